#include "support/system_faults.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>

namespace heed::testing_support {

namespace {

struct State {
  int until = -1;  // calls before the one that fails; negative: none fails
  int error = 0;
  const char* call = "";
};

thread_local State state;

// True if this call should fail; errno is set then.
bool fails(const char* call) noexcept {
  if (state.until < 0 || state.until-- > 0) return false;
  if (state.error == SystemFault::kKill) ::kill(::getpid(), SIGKILL);
  state.call = call;
  errno = state.error;
  return true;
}

}  // namespace

SystemFault::SystemFault(int index, int error) noexcept { state = {index, error, ""}; }
SystemFault::~SystemFault() { state = {}; }
bool SystemFault::has_happened() const noexcept { return state.until < 0; }
const char* SystemFault::call() const noexcept { return state.call; }

}  // namespace heed::testing_support

// The linker's names.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
using heed::testing_support::fails;

extern "C" {

int __real_open(const char* path, int flags, mode_t mode);
ssize_t __real_write(int file, const void* bytes, std::size_t size);
int __real_fsync(int file);
int __real_fchmod(int file, mode_t mode);
int __real_link(const char* from, const char* to);
int __real_rename(const char* from, const char* to);
ssize_t __real_getrandom(void* bytes, std::size_t size, unsigned flags);

int __wrap_open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return fails("open") ? -1 : __real_open(path, flags, mode);
}

ssize_t __wrap_write(int file, const void* bytes, std::size_t size) {
  return fails("write") ? -1 : __real_write(file, bytes, size);
}

int __wrap_fsync(int file) { return fails("fsync") ? -1 : __real_fsync(file); }

int __wrap_fchmod(int file, mode_t mode) {
  return fails("fchmod") ? -1 : __real_fchmod(file, mode);
}

int __wrap_link(const char* from, const char* to) {
  return fails("link") ? -1 : __real_link(from, to);
}

int __wrap_rename(const char* from, const char* to) {
  return fails("rename") ? -1 : __real_rename(from, to);
}

ssize_t __wrap_getrandom(void* bytes, std::size_t size, unsigned flags) {
  return fails("getrandom") ? -1 : __real_getrandom(bytes, size, flags);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
