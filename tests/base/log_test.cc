#include "base/log.h"

#include <cmath>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// What body writes to stderr, when stderr is a file.
template <class Body>
std::string InFile(Body body) {
  const TemporaryFolder folder;
  const int file = ::open(folder.Path("text").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(file, STDERR_FILENO);
  body();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(file);
  return ReadFile(folder.Path("text"));
}

// What body writes to stderr, when stderr is a terminal of `columns`; short enough for its buffer.
// "" where the system has no pseudo-terminals.
template <class Body>
std::string OnTerminal(int columns, Body body) {
  int controller = -1, terminal = -1;
  winsize size{};
  size.ws_col = static_cast<uint16_t>(columns);
  size.ws_row = 24;
  if (::openpty(&controller, &terminal, nullptr, nullptr, &size) != 0) return "";
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(terminal, STDERR_FILENO);
  body();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(terminal);
  std::string text;
  char part[4096];
  ssize_t count = 0;
  // The kernel hands the bytes over when it likes; with the terminal closed, the last read fails.
  while ((count = ::read(controller, part, sizeof(part))) > 0) {
    text.append(part, static_cast<size_t>(count));
  }
  ::close(controller);
  return text;
}

TEST(LogText, WritesTimeLevelAndText) {
  const std::string text = InFile([] {
    LogInfo("starts");
    LogWarn("careful");
  });
  EXPECT_THAT(text, ContainsRegex("^ *[0-9]+\\.[0-9][0-9]s info  starts\n"));
  EXPECT_THAT(text, EndsWith("s warn  careful\n"));
}

TEST(LogText, QuietHidesInfoButNotErrors) {
  const std::string text = InFile([] {
    SetLogQuiet(true);
    LogInfo("hidden");
    LogError("shown");
    ProgressLine progress("run", 100, 0);
    progress.Update(1, 1, {});
    progress.Update(2, 1, {});
    progress.Finish();
    SetLogQuiet(false);
  });
  EXPECT_THAT(text, EndsWith("error shown\n"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(LogText, LinesOfSeveralThreadsStayWhole) {
  const std::string text = InFile([] {
    std::thread other([] {
      for (int i = 0; i < 200; ++i) LogInfo("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    });
    for (int i = 0; i < 200; ++i) LogInfo("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    other.join();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 400);
  EXPECT_THAT(text, Not(HasSubstr("ab")));
  EXPECT_THAT(text, Not(HasSubstr("ba")));
}

TEST(ProgressLine, PrintsOneLineAnIntervalIntoAFile) {
  const std::string text = InFile([] {
    ProgressLine progress("ppo CartPole-v1", 1000000, 0);
    progress.Update(1000, NAN, {});
    progress.Update(412000, 1843.2, {{"policy_loss", -0.0123}, {"value_loss", 2.5e-7}});
    progress.Finish();
    progress.Finish();
  });
  EXPECT_THAT(text, StartsWith("ppo CartPole-v1  1,000/1,000,000    0%  "));
  EXPECT_THAT(text.substr(0, text.find('\n')), Not(HasSubstr("return")));
  EXPECT_THAT(text, HasSubstr("ppo CartPole-v1  412,000/1,000,000   41%  "));
  EXPECT_THAT(text, HasSubstr(" steps/s  eta "));
  EXPECT_THAT(text, HasSubstr("  return 1843.2  policy_loss -0.0123  value_loss 2.50e-07\n"));
  EXPECT_THAT(text, HasSubstr("steps/s  in 0.0s  return 1843.2"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(ProgressLine, SaysNothingBeforeTheIntervalIsOver) {
  EXPECT_THAT(InFile([] {
                ProgressLine progress("run", 10, 3600);
                for (int i = 0; i < 10; ++i) progress.Update(i, 0, {});
              }),
              IsEmpty());
}

TEST(ProgressLine, IsRedrawnInPlaceOnATerminalBelowTextThatIsLogged) {
  const std::string text = OnTerminal(60, [] {
    ProgressLine progress("run", 100, 0);
    progress.Update(0, 1, {});
    progress.Update(10, 1, {});
    LogInfo("a checkpoint");
    progress.Update(20, 1, {{"a_very_long_name_of_a_metric_that_does_not_fit", 1}});
    progress.Finish();
  });
  if (text.empty()) GTEST_SKIP() << "the system has no pseudo-terminals (/dev/pts)";
  EXPECT_THAT(text, StartsWith("\r\x1b[Krun  0/100"));
  EXPECT_THAT(text, ContainsRegex("\r.\\[K *[0-9.]+s info  a checkpoint\r\nrun  10/100"));
  EXPECT_THAT(text, Not(HasSubstr("a_very")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);  // the text and the end
  for (size_t at = 0; (at = text.find("\r\x1b[Krun", at)) != std::string::npos; ++at) {
    const size_t end = text.find('\r', at + 1);
    EXPECT_LE(std::min(end, text.size()) - at - 4, 59u);
  }
}

}  // namespace
}  // namespace weft
