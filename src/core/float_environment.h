// The floating-point mode in which heed computes.
#pragma once

#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cfenv>
#endif

namespace heed { inline namespace v0 {

// During its lifetime the thread computes as programs do when they start, whatever its caller has
// set: numbers are rounded to nearest, subnormal ones are kept, exceptions only set flags. Every
// public function that computes begins with one, so that its results do not depend on the caller
// (whose compiler may have set another mode: -ffast-math does). The destructor restores the
// caller's mode, and its flags if the mode was another. Where nothing has to be changed, it costs
// reading a register twice.
class FloatEnvironment {
 public:
  FloatEnvironment() noexcept : outer_(read()) {
    if (is_other(outer_)) write(kStandard);
  }
  ~FloatEnvironment() {
    if (is_other(outer_)) write(outer_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  // MXCSR: flags of exceptions in the lowest 6 bits, then denormals-are-zero, the exceptions that
  // do not trap, rounding, flush-to-zero.
  using Mode = std::uint32_t;
  static constexpr Mode kStandard = 0x1f80;
  static bool is_other(Mode mode) { return (mode & 0xffc0) != kStandard; }
  static Mode read() { return __builtin_ia32_stmxcsr(); }
  // Memory is named so that compilers move no computation across that reads or writes it.
  static void write(Mode mode) { asm volatile("ldmxcsr %0" : : "m"(mode) : "memory"); }
#elif defined(__aarch64__)
  // FPCR: all bits are modes; the flags are in another register.
  using Mode = std::uint64_t;
  static constexpr Mode kStandard = 0;
  static bool is_other(Mode mode) { return mode != kStandard; }
  static Mode read() {
    Mode mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(Mode mode) { asm volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
  // What the language knows is the direction of rounding.
  using Mode = int;
  static constexpr Mode kStandard = FE_TONEAREST;
  static bool is_other(Mode mode) { return mode != kStandard; }
  static Mode read() { return std::fegetround(); }
  static void write(Mode mode) { std::fesetround(mode); }
#endif

  Mode outer_;
};

// Returns x, which is computed before what follows. Compilers know nothing of modes: they might
// compute the number that a function returns after its FloatEnvironment has ended.
inline double settled(double x) {
  asm volatile("" : "+m"(x));
  return x;
}

}}  // namespace heed::v0
