#include "io/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace heed { namespace {

using io::Sha256;
using io::to_hex;

std::string hex_of(std::string_view text) { return to_hex(Sha256().add(text).finish()); }

// The examples of FIPS 180-4, from csrc.nist.gov (SHA256.pdf), and the empty message.
TEST(Sha256, HasThePublishedValues) {
  EXPECT_EQ(hex_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

std::vector<std::byte> counted_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

// The hash of the hashes of messages of 0 to 200 bytes. In Python: h = hashlib.sha256(), then for n
// in range(201): h.update(hashlib.sha256(bytes(i % 251 for i in range(n))).digest())
TEST(Sha256, OfEveryLengthIsPythons) {
  Sha256 all;
  for (std::size_t size = 0; size <= 200; ++size) all.add(io::sha256(counted_bytes(size)));
  EXPECT_EQ(to_hex(all.finish()),
            "64ef7c229fce2408b5336b6a542fea0e078c3a87d2da85cb3fc52e2008b65021");
}

TEST(Sha256, DoesNotDependOnTheParts) {
  const std::vector<std::byte> bytes = counted_bytes(300);
  const std::string expected = to_hex(io::sha256(bytes));
  for (std::size_t first = 0; first <= 130; ++first) {
    for (const std::size_t second : {0U, 1U, 63U, 64U, 65U, 170U}) {
      const std::span<const std::byte> all(bytes);
      Sha256 hash;
      hash.add(all.first(first)).add(all.subspan(first, second)).add(all.subspan(first + second));
      EXPECT_EQ(to_hex(hash.finish()), expected) << first << ' ' << second;
    }
  }
}

TEST(Sha256, NumbersAreLittleEndianAndAllNanAlike) {
  EXPECT_EQ(Sha256().add_integer(-2).finish(),
            Sha256().add(std::string_view("\xfe\xff\xff\xff\xff\xff\xff\xff", 8)).finish());
  const std::vector<float> one{1.0F};
  EXPECT_EQ(Sha256().add_floats(one).finish(),
            Sha256().add(std::string_view("\0\0\x80\x3f", 4)).finish());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> some{nan, 2};
  const std::vector<float> other{std::copysign(nan, -1.0F), 2};
  EXPECT_EQ(Sha256().add_floats(some).finish(), Sha256().add_floats(other).finish());
  // Blocks of numbers join without a seam.
  const std::vector<float> many(3000, 0.5F);
  Sha256 apart;
  for (std::size_t i = 0; i < many.size(); i += 7) {
    apart.add_floats(std::span(many).subspan(i, std::min<std::size_t>(7, many.size() - i)));
  }
  EXPECT_EQ(Sha256().add_floats(many).finish(), apart.finish());
}

}  // namespace
}  // namespace heed
