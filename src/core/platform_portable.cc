// What POSIX systems other than Linux do, browsers among them: threads run on any processor, pages
// are ordinary.
#include <sys/stat.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#include <algorithm>
#include <thread>

#include "core/platform.h"
#include "core/platform_files.h"

namespace heed { inline namespace v0 { namespace platform {

int num_processors() { return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1); }

int current_processor() { return -1; }
bool get_processors(ThreadHandle, ProcessorSet&) { return false; }
bool set_processors(ThreadHandle, const ProcessorSet&) { return false; }

void advise_huge_pages(void*, std::size_t) noexcept {}

bool request_amx_tiles() { return false; }
bool is_arm_with_bfloat16() { return false; }

unsigned usual_permissions() {
  const mode_t mask = ::umask(0077);
  ::umask(mask);
  return 0666U & ~static_cast<unsigned>(mask);
}

// getentropy() gives up to 256 bytes.
bool draw_bytes(std::span<std::byte> out) { return ::getentropy(out.data(), out.size()) == 0; }

}}}  // namespace heed::v0::platform
