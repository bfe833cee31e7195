#include "base/file.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return temporary_.Path(name); }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

// The message of the Error(kIo) that call throws.
template <class Call>
std::string IoError(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    return error.message();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Runs body in a child that may write at most `limit` bytes a file; its exit status or -signal.
template <class Body>
int InChildWithFileLimit(rlim_t limit, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit bound{limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &bound);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(FileTest, ReadsBackWhatWasWrittenWithoutLeavings) {
  std::string bytes("\0\n\xff text", 8);
  WriteFileAtomic(Path("a"), bytes);
  EXPECT_EQ(ReadFile(Path("a")), bytes);
  bytes.assign(300000, 'x');
  WriteFileAtomic(Path("a"), bytes);
  EXPECT_EQ(ReadFile(Path("a")), bytes);
  WriteFileAtomic(Path("a"), "");
  EXPECT_EQ(ReadFile(Path("a")), "");
  EXPECT_THAT(ListDirectory(folder_), ElementsAre("a"));
}

TEST_F(FileTest, ReadNamesPathAndReason) {
  EXPECT_THAT(IoError([&] { ReadFile(Path("missing")); }), HasSubstr("missing: No such file"));
  EXPECT_THAT(IoError([&] { ReadFile(folder_); }), HasSubstr("no regular file"));
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(IoError([&] { ReadFile(Path("pipe")); }), HasSubstr("no regular file"));
  WriteFileAtomic(Path("large"), "12345");
  EXPECT_EQ(ReadFile(Path("large"), 5), "12345");
  EXPECT_THAT(IoError([&] { ReadFile(Path("large"), 4); }), HasSubstr("more than 4 bytes"));
}

TEST_F(FileTest, ReadsFilesWhoseSizeTheSystemDoesNotTell) {
  EXPECT_THAT(ReadFile("/proc/self/status"), HasSubstr("Threads:"));
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFileAndLeavesNothing) {
  WriteFileAtomic(Path("a"), "old");
  const int status = InChildWithFileLimit(1000, [&] {
    try {
      WriteFileAtomic(Path("a"), std::string(5000, 'n'));
    } catch (const Error& error) {
      return error.message().find("File too large") != std::string::npos ? 42 : 2;
    }
    return 1;
  });
  EXPECT_EQ(status, 42);  // an error, not death by SIGXFSZ
  EXPECT_EQ(ReadFile(Path("a")), "old");
  EXPECT_THAT(ListDirectory(folder_), ElementsAre("a"));
  EXPECT_THAT(IoError([&] { WriteFileAtomic(Path("no/such/folder"), "x"); }),
              HasSubstr("no/such/folder"));
}

TEST_F(FileTest, AppendTellsThatTheDiskIsFull) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  AppendFile full("/dev/full");
  EXPECT_THAT(full.Append("record"), HasSubstr("No space left"));
}

TEST_F(FileTest, SizeSignalStaysAsItWasForOtherWriters) {
  const int status = InChildWithFileLimit(10, [&] {
    try {
      WriteFileAtomic(Path("a"), std::string(100, 'n'));
    } catch (const Error&) {
    }
    const int raw = ::open(Path("b").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string bytes(100, 'x');
    if (::write(raw, bytes.data(), 100) == 10) (void)!::write(raw, bytes.data(), 100);
    return 0;
  });
  EXPECT_EQ(status, -SIGXFSZ);
}

TEST_F(FileTest, ADirectoryAppearsWholeOrNotAtAll) {
  WriteDirectoryAtomic(Path("checkpoint"), [&](const std::string& temporary) {
    EXPECT_FALSE(DirectoryExists(Path("checkpoint")));
    WriteFileAtomic(temporary + "/one", "1");
    MakeDirectories(temporary + "/deep/er");
    WriteFileAtomic(temporary + "/deep/er/two", "2");
  });
  EXPECT_EQ(ReadFile(Path("checkpoint/deep/er/two")), "2");
  EXPECT_THROW(WriteDirectoryAtomic(Path("other"),
                                    [](const std::string& temporary) {
                                      WriteFileAtomic(temporary + "/one", "1");
                                      throw Error(ErrorCode::kInternal, "half way");
                                    }),
               Error);
  EXPECT_THAT(ListDirectory(folder_), ElementsAre("checkpoint"));
  EXPECT_THAT(IoError([&] { WriteDirectoryAtomic(Path("checkpoint"), [](auto&) {}); }),
              HasSubstr("it exists"));
  EXPECT_EQ(ReadFile(Path("checkpoint/one")), "1");
}

TEST_F(FileTest, AKilledWriterLeavesTheOldFileReadable) {
  WriteFileAtomic(Path("a"), std::string(100, 'o'));
  const std::string fresh(4 << 20, 'n');
  for (int trial = 0; trial < 10; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) WriteFileAtomic(Path("a"), fresh);
    }
    ::usleep(static_cast<useconds_t>(500 + 700 * trial));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string found = ReadFile(Path("a"));
    EXPECT_TRUE(found == fresh || found == std::string(100, 'o')) << found.size();
  }
}

TEST_F(FileTest, AppendCutsAPartialRecordOffAgain) {
  const int status = InChildWithFileLimit(25, [&] {
    AppendFile file(Path("log"));
    if (!file.Append("0123456789").empty() || !file.Append("0123456789").empty()) return 1;
    if (file.Append("0123456789").empty()) return 2;
    return file.size() == 20 && file.Append("01234").empty() ? 42 : 3;
  });
  EXPECT_EQ(status, 42);
  EXPECT_EQ(ReadFile(Path("log")), "0123456789012345678901234");
  AppendFile shorter(Path("log"), 12);
  EXPECT_EQ(shorter.Append("!"), "");
  EXPECT_EQ(ReadFile(Path("log")), "012345678901!");
}

TEST_F(FileTest, MapsFilesEmptyOnesIncluded) {
  WriteFileAtomic(Path("a"), "abc");
  WriteFileAtomic(Path("empty"), "");
  EXPECT_THAT(MappedFile(Path("a")).bytes(), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(MappedFile(Path("empty")).bytes(), IsEmpty());
  EXPECT_THAT(IoError([&] { MappedFile map(Path("missing")); }), HasSubstr("missing"));
}

TEST_F(FileTest, ListsSortedAndRemovesTrees) {
  for (const char* name : {"b", "a", "c"}) WriteFileAtomic(Path(name), name);
  EXPECT_THAT(ListDirectory(folder_), ElementsAre("a", "b", "c"));
  MakeDirectories(Path("x/y/z"));
  MakeDirectories(Path("x/y/z"));
  EXPECT_TRUE(DirectoryExists(Path("x/y/z")));
  RemoveTree(Path("x"));
  RemoveTree(Path("x"));
  EXPECT_FALSE(DirectoryExists(Path("x")));
  EXPECT_TRUE(FileExists(Path("a")));
  EXPECT_FALSE(FileExists(folder_));
  EXPECT_THAT(IoError([&] { MakeDirectories(Path("a/below")); }), HasSubstr("a/below"));
  EXPECT_THAT(IoError([&] { ListDirectory(Path("missing")); }), HasSubstr("missing"));
  EXPECT_GT(FreeBytes(folder_), 0u);
}

}  // namespace
}  // namespace weft
