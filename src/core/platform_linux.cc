// What Linux alone has.
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "core/platform.h"
#include "core/platform_files.h"

namespace heed { inline namespace v0 { namespace platform {

namespace {

static_assert(sizeof(cpu_set_t) == sizeof(ProcessorSet));

// Reads the umask from /proc if it is there: the system call reads it by changing it, for all
// threads.
mode_t umask_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Umask:", 0) == 0) {
      return static_cast<mode_t>(std::stoul(line.substr(6), nullptr, 8));
    }
  }
  const mode_t mask = ::umask(0077);
  ::umask(mask);
  return mask;
}

}  // namespace

int num_processors() {
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof processors, &processors) == 0) return CPU_COUNT(&processors);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

int current_processor() { return ::sched_getcpu(); }

bool get_processors(ThreadHandle thread, ProcessorSet& processors) {
  cpu_set_t set;
  if (::pthread_getaffinity_np(thread, sizeof set, &set) != 0) return false;
  std::memcpy(processors.data(), &set, sizeof set);
  return true;
}

bool set_processors(ThreadHandle thread, const ProcessorSet& processors) {
  cpu_set_t set;
  std::memcpy(&set, processors.data(), sizeof set);
  return ::pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

void advise_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  // This is advice: if the kernel ignores it, pages are ordinary.
  static_cast<void>(::madvise(begin, bytes, MADV_HUGEPAGE));
#endif
}

bool request_amx_tiles() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool is_arm_with_bfloat16() {
#if defined(__aarch64__)
  return (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
  return false;
#endif
}

unsigned usual_permissions() { return 0666U & ~umask_of_process(); }

bool draw_bytes(std::span<std::byte> out) {
  while (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) {
    if (errno != EINTR) return false;
  }
  return true;
}

}}}  // namespace heed::v0::platform
