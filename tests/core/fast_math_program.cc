// A program that is compiled and linked with -ffast-math, so that it starts with subnormal numbers
// flushed to zero. heed's results are those of a program that is not; exit code 1 if they differ.
#include <bit>
#include <cstdint>
#include <cstdio>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "attention/bits/hash.h"
#include "core/float_environment.h"
#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/position.h"

namespace {

// Of the thread, without flags of exceptions that occurred.
unsigned mode() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3fU;
#else
  return 0;
#endif
}

// Rows of 16 numbers from 1 to 2, but for the first four, which are subnormal.
heed::Tensor<float> numbers(const heed::Shape& shape, std::uint32_t seed) {
  heed::Tensor<float> result(shape);
  std::uint32_t drawn = seed;
  std::uint32_t place = 0;
  for (float& number : result.elements()) {
    drawn = (drawn * 37 + 11) % 101;
    // By bits: this file's own arithmetic would flush it.
    const bool is_subnormal = place++ % 16 < 4;
    number = std::bit_cast<float>(is_subnormal ? drawn << 12 : 0x3f800000U + (drawn << 14));
  }
  return result;
}

std::uint64_t results() {
  const auto query = numbers({1, 2, 20, 16}, 1);
  const auto key = numbers({1, 2, 40, 16}, 2);
  const auto value = numbers({1, 2, 40, 16}, 3);
  const auto out = heed::attention_with_lse(query, key, value);
  const auto gradients = heed::attention_backward(query, query, key, value, out);
  heed::bits::Hash hash;
  for (const auto* tensor : {&out.out, &out.lse, &gradients.query, &gradients.key}) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(tensor->data());
    for (std::int64_t i = 0; i < tensor->num_elements(); ++i) hash.add_number(words[i]);
  }
  hash.add(heed::sinusoidal_encoding<double>(9, 6));
  return hash.value();
}

}  // namespace

int main() {
  const unsigned start = mode();
  const std::uint64_t found = results();
  const bool is_kept = mode() == start;
  std::uint64_t expected = 0;
  {
    const heed::FloatEnvironment environment;
    expected = results();
  }
  if (found == expected && is_kept) return 0;
  std::printf("mode %x, then %x: results %llx, expected %llx\n", start, mode(),
              static_cast<unsigned long long>(found), static_cast<unsigned long long>(expected));
  return 1;
}
