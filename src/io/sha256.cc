#include "io/sha256.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace heed { inline namespace v0 { namespace io {

namespace {

constexpr std::size_t kRounds = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, kRounds> kRoundConstants{
    0x428a2f98U, 0x71374491U, 0xb5c0fbcfU, 0xe9b5dba5U, 0x3956c25bU, 0x59f111f1U, 0x923f82a4U,
    0xab1c5ed5U, 0xd807aa98U, 0x12835b01U, 0x243185beU, 0x550c7dc3U, 0x72be5d74U, 0x80deb1feU,
    0x9bdc06a7U, 0xc19bf174U, 0xe49b69c1U, 0xefbe4786U, 0x0fc19dc6U, 0x240ca1ccU, 0x2de92c6fU,
    0x4a7484aaU, 0x5cb0a9dcU, 0x76f988daU, 0x983e5152U, 0xa831c66dU, 0xb00327c8U, 0xbf597fc7U,
    0xc6e00bf3U, 0xd5a79147U, 0x06ca6351U, 0x14292967U, 0x27b70a85U, 0x2e1b2138U, 0x4d2c6dfcU,
    0x53380d13U, 0x650a7354U, 0x766a0abbU, 0x81c2c92eU, 0x92722c85U, 0xa2bfe8a1U, 0xa81a664bU,
    0xc24b8b70U, 0xc76c51a3U, 0xd192e819U, 0xd6990624U, 0xf40e3585U, 0x106aa070U, 0x19a4c116U,
    0x1e376c08U, 0x2748774cU, 0x34b0bcb5U, 0x391c0cb3U, 0x4ed8aa4aU, 0x5b9cca4fU, 0x682e6ff3U,
    0x748f82eeU, 0x78a5636fU, 0x84c87814U, 0x8cc70208U, 0x90befffaU, 0xa4506cebU, 0xbef9a3f7U,
    0xc67178f2U};

std::uint32_t big_endian_word(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return word;
}

// The words of a block and those made of them, one for each round.
std::array<std::uint32_t, kRounds> schedule_of(const std::byte* block) {
  std::array<std::uint32_t, kRounds> words;
  for (std::size_t t = 0; t < 16; ++t) words[t] = big_endian_word(block + 4 * t);
  for (std::size_t t = 16; t < kRounds; ++t) {
    const std::uint32_t a = words[t - 15];
    const std::uint32_t b = words[t - 2];
    words[t] = words[t - 16] + words[t - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  return words;
}

void hash_block(const std::byte* block, std::array<std::uint32_t, 8>& state) {
  const std::array<std::uint32_t, kRounds> words = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < kRounds; ++t) {
    const std::uint32_t sum_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t sum_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t first = h + sum_e + ((e & f) ^ (~e & g)) + kRoundConstants[t] + words[t];
    const std::uint32_t second = sum_a + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

void Sha256::take(const std::byte* blocks, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) hash_block(blocks + i * kBlockBytes, state_);
}

Sha256& Sha256::add(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (rest_size_ > 0) {
    const std::size_t taken = std::min(bytes.size(), kBlockBytes - rest_size_);
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < kBlockBytes) return *this;
    take(rest_.data(), 1);
    rest_size_ = 0;
  }
  const std::size_t whole = bytes.size() / kBlockBytes;
  take(bytes.data(), whole);
  bytes = bytes.subspan(whole * kBlockBytes);
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  rest_size_ = bytes.size();
  return *this;
}

Sha256& Sha256::add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

Sha256& Sha256::add_integer(std::int64_t number) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(number) >> 8 * i);
  }
  return add(bytes);
}

Sha256& Sha256::add_floats(std::span<const float> numbers) {
  constexpr std::size_t kAtOnce = 1024;
  constexpr std::uint32_t kNan = 0x7fc00000U;
  std::array<std::byte, 4 * kAtOnce> bytes;
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size(), kAtOnce);
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = std::isnan(numbers[i]) ? kNan : std::bit_cast<std::uint32_t>(numbers[i]);
      for (std::size_t j = 0; j < 4; ++j) bytes[4 * i + j] = static_cast<std::byte>(bits >> 8 * j);
    }
    add(std::span(bytes).first(4 * count));
    numbers = numbers.subspan(count);
  }
  return *this;
}

Sha256Digest Sha256::finish() {
  const std::uint64_t bits = 8 * size_;
  // A one bit, zeros up to the last eight bytes of a block, and there the number of bits.
  std::array<std::byte, 2 * kBlockBytes> end{};
  std::copy_n(rest_.begin(), rest_size_, end.begin());
  end[rest_size_] = std::byte{0x80};
  const std::size_t blocks = rest_size_ + 1 + 8 > kBlockBytes ? 2 : 1;
  for (std::size_t i = 0; i < 8; ++i) {
    end[blocks * kBlockBytes - 1 - i] = static_cast<std::byte>(bits >> 8 * i);
  }
  take(end.data(), blocks);
  Sha256Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) { return Sha256().add(bytes).finish(); }

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

}}}  // namespace heed::v0::io
