// A command that runs concurrently with the test.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "support/command.h"

namespace heed::testing_support {

// Its stderr can be read while it runs; its stdout is discarded.
class Child {
 public:
  // `prepare` is called in the new process before it executes the command.
  explicit Child(
      const std::vector<std::string>& arguments, const std::function<void()>& prepare = [] {}) {
    int pipe[2];
    if (::pipe(pipe) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe[1], STDERR_FILENO);
      ::close(pipe[0]);
      ::close(pipe[1]);
      detail::redirect(STDOUT_FILENO, "/dev/null");
      prepare();
      detail::become_command(arguments, {});
    }
    ::close(pipe[1]);
    err_ = pipe[0];
  }
  ~Child() { ::close(err_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void wait_for(const std::string& text) {
    while (text_.find(text) == std::string::npos && read_some()) {
    }
  }
  void send(int signal) const { ::kill(pid_, signal); }
  CommandResult finish() {
    while (read_some()) {
    }
    return {detail::exit_code_of(pid_), "", text_};
  }

 private:
  bool read_some() {
    char buffer[512];
    ssize_t count = 0;
    do {
      count = ::read(err_, buffer, sizeof buffer);
    } while (count < 0 && errno == EINTR);
    if (count > 0) text_.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  pid_t pid_ = -1;
  int err_ = -1;
  std::string text_;
};

}  // namespace heed::testing_support
