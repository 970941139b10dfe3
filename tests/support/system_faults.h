// Makes system calls fail on request. The linker replaces the library's calls with these: see
// --wrap in tests/CMakeLists.txt.
#pragma once

namespace heed::testing_support {

// While an object exists, the call of this thread after `index` others fails with `error`; later
// ones succeed. The calls are open, write, fsync, fchmod, link, rename and getrandom.
class SystemFault {
 public:
  // `kKill` instead of an error ends the process by SIGKILL before the call.
  static constexpr int kKill = -1;

  SystemFault(int index, int error) noexcept;
  ~SystemFault();
  SystemFault(const SystemFault&) = delete;
  SystemFault& operator=(const SystemFault&) = delete;

  bool has_happened() const noexcept;
  // Returns the name of the call that failed; empty before.
  const char* call() const noexcept;
};

}  // namespace heed::testing_support
