// Floating-point modes that a caller of heed may have set.
#pragma once

#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace heed {

// During its lifetime this thread has another mode.
class CallerMode {
 public:
  enum class Kind { kUpward, kDownward, kTowardZero, kFlushed };

  explicit CallerMode(Kind kind) : outer_(read()) {
    if (kind == Kind::kFlushed) {
      set_flushing();
    } else {
      constexpr int kDirections[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
      std::fesetround(kDirections[static_cast<int>(kind)]);
    }
  }
  ~CallerMode() {
    std::fesetround(FE_TONEAREST);  // also of long double, which x86 computes apart
    write(outer_);
  }
  CallerMode(const CallerMode&) = delete;
  CallerMode& operator=(const CallerMode&) = delete;

  // The mode of this thread, without flags of exceptions that occurred.
  static std::uint64_t now() { return read() & ~kFlags; }

 private:
#if defined(__x86_64__)
  static constexpr std::uint64_t kFlags = 0x3f;
  static std::uint64_t read() { return _mm_getcsr(); }
  static void write(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
  // Flush-to-zero and denormals-are-zero, as programs linked with -ffast-math start.
  static void set_flushing() { write(read() | 0x8040); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlags = 0;
  static std::uint64_t read() {
    std::uint64_t mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
  static void set_flushing() { write(read() | std::uint64_t{1} << 24); }
#else
  static constexpr std::uint64_t kFlags = 0;
  static std::uint64_t read() { return static_cast<std::uint64_t>(std::fegetround()); }
  static void write(std::uint64_t mode) { std::fesetround(static_cast<int>(mode)); }
  static void set_flushing() {}
#endif

  std::uint64_t outer_;
};

struct Entry {
  std::string name;
  std::function<std::uint64_t()> hash;  // of the results
};

// Each entry has the same results in every mode of its caller, and leaves the mode as it was.
inline void expect_no_influence_of_the_caller(const std::vector<Entry>& entries) {
  using Kind = CallerMode::Kind;
  const std::pair<Kind, const char*> kinds[] = {{Kind::kUpward, "rounding upward"},
                                                {Kind::kDownward, "rounding downward"},
                                                {Kind::kTowardZero, "rounding toward 0"},
                                                {Kind::kFlushed, "subnormal numbers flushed"}};
  for (const Entry& entry : entries) {
    const std::uint64_t expected = entry.hash();
    for (const auto& [kind, name] : kinds) {
      std::uint64_t found = 0;
      std::uint64_t before = 0;
      std::uint64_t after = 0;
      {
        const CallerMode mode(kind);
        before = CallerMode::now();
        found = entry.hash();
        after = CallerMode::now();
      }
      EXPECT_EQ(found, expected) << entry.name << " while " << name;
      EXPECT_EQ(after, before) << entry.name << " while " << name;
    }
  }
}

}  // namespace heed
