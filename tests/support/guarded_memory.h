// Arrays with a page beside them that nobody may touch.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

namespace heed::testing_support {

// Which end of an array lies at a page that may not be read or written.
enum class Edge { kFirst, kLast };

// Memory for `bytes` bytes that begin where, or end where, a forbidden page does.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t bytes, Edge edge);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::size_t length_;
  std::byte* pages_;
  void* data_;
};

// While it lives, a forbidden page that is touched ends the program with a line that says during
// what.
class FaultReport {
 public:
  FaultReport();
  ~FaultReport();
  FaultReport(const FaultReport&) = delete;
  FaultReport& operator=(const FaultReport&) = delete;

  static void during(const std::string& what);

 private:
  struct sigaction before_ {};
};

}  // namespace heed::testing_support
