#include "support/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace heed::testing_support {

namespace {

// A signal handler must not allocate.
char current_case[256];

void report(int signal) {
  constexpr char kText[] = "touched memory outside its arguments: ";
  // A failed write cannot be reported either.
  [[maybe_unused]] auto written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  written = write(STDERR_FILENO, current_case, std::strlen(current_case));
  written = write(STDERR_FILENO, "\n", 1);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, Edge edge) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inside = (bytes + page - 1) / page * page;
  length_ = inside + 2 * page;
  void* pages = mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<std::byte*>(pages);
  if (inside != 0 && mprotect(pages_ + page, inside, PROT_READ | PROT_WRITE) != 0) {
    munmap(pages_, length_);
    throw std::bad_alloc();
  }
  data_ = pages_ + page + (edge == Edge::kLast ? inside - bytes : 0);
}

GuardedMemory::~GuardedMemory() { munmap(pages_, length_); }

FaultReport::FaultReport() {
  struct sigaction action {};
  action.sa_handler = report;
  sigaction(SIGSEGV, &action, &before_);
}

FaultReport::~FaultReport() { sigaction(SIGSEGV, &before_, nullptr); }

void FaultReport::during(const std::string& what) {
  const std::size_t length = std::min(what.size(), sizeof(current_case) - 1);
  std::memcpy(current_case, what.data(), length);
  current_case[length] = '\0';
}

}  // namespace heed::testing_support
