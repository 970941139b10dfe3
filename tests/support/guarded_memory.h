// Arrays next to a protected page.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

namespace heed::testing_support {

// The end of an array that is next to a protected page.
enum class Edge { kFirst, kLast };

// Memory of `bytes` bytes that begins or ends at a protected page.
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

// While an object exists, access to a protected page ends the program with a line that names the
// current case.
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
