#include "bench/peak_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace heed::cli {

// Linux reports VmHWM in KiB. The peak of getrusage() includes that of the program that started
// this one, for example Python, so it is used on other systems only.
std::int64_t peak_process_bytes() {
  const std::string name = "VmHWM:";
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::stoll(line.substr(name.size())) * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace heed::cli
