// A service of the built weft on a free port.
#pragma once

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/program/http_client.h"

namespace weft {

class ServerProcess {
 public:
  // arguments: the command, the model and more.
  explicit ServerProcess(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), WEFT_BINARY);
    arguments.insert(arguments.end(), {"--port", "0"});
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    const std::string out = folder_.Path("out.txt"), error = folder_.Path("error.txt");
    id_ = fork();
    if (id_ == 0) {
      dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
      dup2(open(error.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
      execv(words[0], words.data());
      _exit(127);
    }
    const std::string mark = "http://127.0.0.1:";
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
         port_ == 0 && std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      const std::string text = FileExists(out) ? ReadFile(out) : "";
      const size_t at = text.find(mark);
      if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
        port_ = std::atoi(text.c_str() + at + mark.size());
      }
    }
    EXPECT_NE(port_, 0) << ReadFile(error);
  }
  ~ServerProcess() {
    if (id_ > 0) Stop();
  }

  int port() const { return port_; }

  // By Ctrl-C; the exit status.
  int Stop() {
    kill(id_, SIGINT);
    int status = 0;
    waitpid(id_, &status, 0);
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  HttpAnswer Get(const std::string& path) const {
    HttpClient client(port_);
    client.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return client.ReadAnswer();
  }
  HttpAnswer Post(const std::string& path, const std::string& body,
                  const std::string& headers = "") const {
    HttpClient client(port_);
    client.Post(path, body, headers);
    return client.ReadAnswer();
  }
  nlohmann::json Complete(const std::string& path, const nlohmann::json& body) const {
    const HttpAnswer answer = Post(path, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return nlohmann::json::parse(answer.body);
  }
  nlohmann::json Health() const { return nlohmann::json::parse(Get("/health").body); }

  // Waits for a count of /health.
  bool Reaches(const char* name, int64_t value) const {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
      if (Health()[name] == value) return true;
    }
    return false;
  }

 private:
  TemporaryFolder folder_;
  pid_t id_ = -1;
  int port_ = 0;
};

}  // namespace weft
