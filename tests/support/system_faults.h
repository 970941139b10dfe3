// System calls that fail when a test wants them to. The linker puts these in the place of what the
// library calls: see --wrap in tests/CMakeLists.txt.
#pragma once

namespace heed::testing_support {

// While it lives, the call of this thread that comes after `index` others fails with `error`; those
// after it do not. Calls are open, write, fsync, fchmod, link, rename and getrandom.
class SystemFault {
 public:
  // `kKill` in the place of an error ends the process by SIGKILL before the call.
  static constexpr int kKill = -1;

  SystemFault(int index, int error) noexcept;
  ~SystemFault();
  SystemFault(const SystemFault&) = delete;
  SystemFault& operator=(const SystemFault&) = delete;

  bool has_happened() const noexcept;
  // The name of the call that failed, empty before.
  const char* call() const noexcept;
};

}  // namespace heed::testing_support
