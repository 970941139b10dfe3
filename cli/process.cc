#include "process.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>
#include <stdexcept>

#include "heed/attention.h"
#include "heed/core/parallel.h"

namespace heed::cli {

namespace {

// Twice the known requirement of the program and of its threads, whose stacks are as large.
constexpr rlim_t kLeastStack = 256 * 1024;

void check_stack() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStack) return;
  throw std::runtime_error(fmt::format(
      "the stack is limited to {} KiB, at least {} are needed: raise the limit (`ulimit "
      "-s {}`)",
      limit.rlim_cur / 1024, kLeastStack / 1024, kLeastStack / 1024));
}

}  // namespace

void report_large_files() noexcept { static_cast<void>(std::signal(SIGXFSZ, SIG_IGN)); }

void check_process() {
  check_stack();
  static_cast<void>(attention_target());
  // Runs an empty task, which reads the environment variables of the threads.
  default_executor().run(1, [] {});
}

}  // namespace heed::cli
