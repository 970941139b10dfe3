#include "heed/io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "io/io_test_util.h"
#include "support/gguf_builder.h"

namespace heed { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gguf_array;
using testing_support::gguf_text;
using testing_support::GgufBuilder;
using testing_support::raw;
namespace of = testing_support;

constexpr std::uint32_t kQ41 = 3;
constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
constexpr std::int64_t kFirstKey = 24;  // its offset in a file

GgufFile parse_gguf(const std::string& bytes) { return GgufFile::parse(bytes_of(bytes), "f"); }

void expect_gguf_refused(const std::string& bytes, const std::string& problem) {
  EXPECT_THAT([&] { parse_gguf(bytes); },
              ThrowsMessage<FormatError>(AllOf(HasSubstr("f: at byte "), HasSubstr(problem))));
}

void expect_gguf_refused_at(const std::string& bytes, std::int64_t byte,
                            const std::string& problem) {
  expect_gguf_refused(bytes, "f: at byte " + std::to_string(byte) + ": " + problem);
}

// Returns a file whose only value is this.
std::string with_value(std::uint32_t type, const std::string& value) {
  return GgufBuilder().add("k", type, value).build();
}
// The offsets of the type of that value and of the value.
constexpr std::int64_t kTypeAt = kFirstKey + 8 + 1;
constexpr std::int64_t kValueAt = kTypeAt + 4;

TEST(Gguf, ReadsNumbersOfEveryWidth) {
  const auto file = parse_gguf(GgufBuilder()
                                   .add("u8", of::kU8, raw<std::uint8_t>(255))
                                   .add("i8", of::kI8, raw<std::int8_t>(-128))
                                   .add("u16", of::kU16, raw<std::uint16_t>(65535))
                                   .add("i16", of::kI16, raw<std::int16_t>(-2))
                                   .add("u32", of::kU32, raw<std::uint32_t>(4294967295U))
                                   .add("i32", of::kI32, raw<std::int32_t>(-3))
                                   .add("u64", of::kU64, raw<std::uint64_t>(kBeyond - 1))
                                   .add("i64", of::kI64, raw<std::int64_t>(-4))
                                   .add("f32", of::kF32, raw(0.1F))
                                   .add("f64", of::kF64, raw(0.1))
                                   .build());
  EXPECT_EQ(file.integer("u8"), 255);
  EXPECT_EQ(file.integer("i8"), -128);
  EXPECT_EQ(file.integer("u16"), 65535);
  EXPECT_EQ(file.integer("i16"), -2);
  EXPECT_EQ(file.integer("u32"), 4294967295);
  EXPECT_EQ(file.integer("i32"), -3);
  EXPECT_EQ(file.integer("u64"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(file.integer("i64"), -4);
  EXPECT_EQ(file.number("f32"), static_cast<double>(0.1F));
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.number("i64"), -4.0);
  EXPECT_EQ(file.metadata().size(), 10U);
  EXPECT_EQ(file.name(), "f");
}

TEST(Gguf, ReadsTextsBoolsAndArrays) {
  const std::string texts = gguf_text("größe") + gguf_text("");
  const auto file =
      parse_gguf(GgufBuilder()
                     .add("text", of::kText, gguf_text("a\nb"))
                     .add("yes", of::kBool, raw<std::uint8_t>(1))
                     .add("no", of::kBool, raw<std::uint8_t>(0))
                     .add("texts", of::kArray, gguf_array(of::kText, 2, texts))
                     .add("bytes", of::kArray, gguf_array(of::kI8, 3, "\1\2\xFF"))
                     .add("reals", of::kArray, gguf_array(of::kF32, 2, raw(0.5F) + raw(-1.0F)))
                     .add("bools", of::kArray, gguf_array(of::kBool, 2, {'\1', '\0'}))
                     .add("none", of::kArray, gguf_array(of::kU64, 0, ""))
                     .build());
  EXPECT_EQ(file.string("text"), "a\nb");
  EXPECT_TRUE(file.boolean("yes"));
  EXPECT_FALSE(file.boolean("no"));
  EXPECT_THAT(file.strings("texts"), ElementsAre("größe", ""));
  EXPECT_THAT(file.integers("bytes"), ElementsAre(1, 2, -1));
  EXPECT_THAT(file.numbers("reals"), ElementsAre(0.5, -1.0));
  EXPECT_EQ(std::get<std::vector<bool>>(file.metadata().at("bools")),
            (std::vector<bool>{true, false}));
  EXPECT_TRUE(file.integers("none").empty());
  EXPECT_TRUE(file.contains("none"));
  EXPECT_FALSE(file.contains("x"));
}

TEST(Gguf, AsksForKeysByKind) {
  const std::string bytes = with_value(of::kText, gguf_text("v"));
  const auto file = parse_gguf(bytes);
  const auto says = [](std::int64_t byte, const std::string& problem) {
    return ThrowsMessage<FormatError>("f: at byte " + std::to_string(byte) + ": " + problem);
  };
  const auto end = static_cast<std::int64_t>(bytes.size());
  EXPECT_THAT([&] { file.integer("x\n"); }, says(end, "none of the 1 keys before is 'x?'"));
  EXPECT_THAT([&] { file.number("x"); }, says(end, "none of the 1 keys before is 'x'"));
  EXPECT_THAT([&] { file.integer("k"); }, says(kValueAt, "'k' is a string, expected an integer"));
  EXPECT_THAT([&] { file.number("k"); }, says(kValueAt, "'k' is a string, expected a number"));
  EXPECT_THAT([&] { file.boolean("k"); }, says(kValueAt, "'k' is a string, expected a bool"));
  EXPECT_THAT([&] { file.integers("k"); },
              says(kValueAt, "'k' is a string, expected an array of integers"));
  EXPECT_THAT([&] { file.numbers("k"); },
              says(kValueAt, "'k' is a string, expected an array of numbers"));
  EXPECT_THAT([&] { file.strings("k"); },
              says(kValueAt, "'k' is a string, expected an array of strings"));
  const auto real = parse_gguf(with_value(of::kF32, raw(1.0F)));
  EXPECT_THAT([&] { real.integer("k"); }, says(kValueAt, "'k' is a number, expected an integer"));
  EXPECT_THAT([&] { real.string("k"); }, says(kValueAt, "'k' is a number, expected a string"));
}

TEST(Gguf, TensorsLieWhereTheFileSays) {
  GgufBuilder builder;
  builder.add_tensor("b", {3, 2}, 0, std::string(24, 'b'));
  builder.add_tensor("a", {64, 5, 1, 2}, kQ41, std::string(400, 'a'));
  builder.add_tensor("empty", {0}, 0, "");
  for (const std::uint32_t version : {2U, 3U}) {
    builder.version = version;
    const std::string bytes = builder.build();
    const auto file = parse_gguf(bytes);
    ASSERT_EQ(file.tensors().size(), 3U);
    const GgufTensor& a = file.tensors().at("a");
    EXPECT_EQ(a.shape, (Shape{2, 1, 5, 64}));
    EXPECT_EQ(a.type, kQ41);
    EXPECT_EQ(a.bytes.size(), 400U);
    EXPECT_EQ(std::to_integer<char>(a.bytes[0]), 'a');
    EXPECT_EQ(a.offset, static_cast<std::int64_t>(bytes.find("aaaa")));
    const GgufTensor& b = file.tensors().at("b");
    EXPECT_EQ(b.shape, (Shape{2, 3}));
    EXPECT_EQ(b.offset, static_cast<std::int64_t>(bytes.find("bbbb")));
    EXPECT_EQ(b.bytes.size(), 24U);
    EXPECT_TRUE(file.tensors().at("empty").bytes.empty());
  }
}

TEST(Gguf, KeepsToItsAlignment) {
  for (const std::uint32_t alignment : {1U, 8U, 256U}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.add("general.alignment", of::kU32, raw(alignment));
    builder.add_tensor("a", {3}, 24, "abc").add_tensor("b", {1}, 24, "d");
    const std::string bytes = builder.build();
    const auto file = parse_gguf(bytes);
    EXPECT_EQ(std::to_integer<char>(file.tensors().at("a").bytes[2]), 'c');
    EXPECT_EQ(std::to_integer<char>(file.tensors().at("b").bytes[0]), 'd');
  }
}

TEST(Gguf, TakesTensorsOfUnknownTypes) {
  const std::string bytes = GgufBuilder()
                                .add_tensor("a", {7}, 1000, std::string(40, 'a'))
                                .add_tensor("b", {1}, 24, "b")
                                .build();
  const auto file = parse_gguf(bytes);
  EXPECT_TRUE(file.tensors().at("a").bytes.empty());
  EXPECT_EQ(file.tensors().at("a").type, 1000U);
  EXPECT_EQ(std::to_integer<char>(file.tensors().at("b").bytes[0]), 'b');
}

TEST(Gguf, RefusesOtherFiles) {
  expect_gguf_refused_at("", 0, "truncated in the magic number");
  expect_gguf_refused_at("GGU", 3, "truncated in the magic number");
  expect_gguf_refused_at("GGML" + std::string(40, '\0'), 0, "a GGUF file begins with 'GGUF'");
  GgufBuilder builder;
  for (const std::uint32_t version : {0U, 1U, 4U}) {
    builder.version = version;
    expect_gguf_refused_at(builder.build(), 4,
                           "version " + std::to_string(version) +
                               (version == 0 ? ": a big-endian file?" : "") +
                               "; versions 2 and 3 are read");
  }
  builder.version = 0x03000000;
  expect_gguf_refused_at(builder.build(), 4, "version 50331648: a big-endian file?");
}

TEST(Gguf, RefusesNumbersOfThingsThatDoNotFit) {
  const GgufBuilder builder;
  expect_gguf_refused_at(builder.build(1, 0), 8,
                         "the number of tensors is 1, more than the 8 bytes");
  expect_gguf_refused_at(builder.build(kBeyond, 0), 8,
                         "the number of tensors is 9223372036854775808, beyond 63 bits");
  expect_gguf_refused_at(builder.build(0, 1), 16, "the number of keys is 1, more than the 0 bytes");
  expect_gguf_refused_at(builder.build(0, kBeyond - 1), 16,
                         "the number of keys is 9223372036854775807, more than the 0 bytes");
  expect_gguf_refused_at(builder.build(0, ~std::uint64_t{0}), 16,
                         "the number of keys is 18446744073709551615, beyond 63 bits");
}

TEST(Gguf, RefusesKeysThatAreNone) {
  const std::string value = raw<std::uint32_t>(7);
  expect_gguf_refused_at(GgufBuilder().add("", of::kU32, value).build(), kFirstKey, "an empty key");
  expect_gguf_refused_at(GgufBuilder().add("k", of::kU32, value).add("k", of::kU32, value).build(),
                         kValueAt + 4, "the key 'k' occurs twice");
  expect_gguf_refused_at(GgufBuilder().add("k\xC3", of::kU32, value).build(), kFirstKey + 9,
                         "a key 'k?' is not UTF-8");
}

TEST(Gguf, RefusesWrongValues) {
  expect_gguf_refused_at(with_value(13, raw<std::uint64_t>(0)), kTypeAt,
                         "the value of 'k' has the unknown type 13");
  expect_gguf_refused_at(with_value(of::kBool, "\2"), kValueAt,
                         "the value of 'k' is 2, a bool is 0 or 1");
  expect_gguf_refused_at(with_value(of::kU64, raw(kBeyond)), kValueAt,
                         "the value of 'k' is 9223372036854775808, beyond 63 bits");
  expect_gguf_refused_at(with_value(of::kText, gguf_text("a\xFF")), kValueAt + 9,
                         "the value of 'k' 'a?' is not UTF-8");
  expect_gguf_refused_at(with_value(of::kText, raw<std::uint64_t>(2) + "a"), kValueAt,
                         "the length of the value of 'k' is 2, more than the 1 bytes");
  expect_gguf_refused_at(with_value(of::kText, raw(~std::uint64_t{0})), kValueAt,
                         "the length of the value of 'k' is 18446744073709551615, beyond 63 bits");
  expect_gguf_refused_at(with_value(of::kU16, "\1"), kValueAt + 1, "truncated in the value of 'k'");
}

TEST(Gguf, RefusesWrongArrays) {
  expect_gguf_refused_at(with_value(of::kArray, gguf_array(of::kArray, 0, "")), kValueAt,
                         "the value of 'k' is an array of arrays");
  expect_gguf_refused_at(with_value(of::kArray, gguf_array(99, 0, "")), kValueAt,
                         "the value of 'k' has the unknown type 99");
  expect_gguf_refused_at(with_value(of::kArray, gguf_array(of::kU32, 3, std::string(11, 'x'))),
                         kValueAt + 4,
                         "the length of the value of 'k' is 3, more than the 11 bytes");
  expect_gguf_refused_at(with_value(of::kArray, gguf_array(of::kText, kBeyond / 8, "")),
                         kValueAt + 4,
                         "the length of the value of 'k' is 1152921504606846976, more than the 0");
  expect_gguf_refused_at(with_value(of::kArray, gguf_array(of::kBool, 2, "\1\3")),
                         kValueAt + 4 + 8 + 1, "the value of 'k' is 3, a bool is 0 or 1");
  expect_gguf_refused_at(with_value(of::kArray, gguf_array(of::kText, 1, gguf_text("\xC3\x28"))),
                         kValueAt + 4 + 8 + 8, "the value of 'k' '?(' is not UTF-8");
}

TEST(Gguf, RefusesAlignmentsThatAreNone) {
  const auto with_alignment = [](std::uint32_t type, const std::string& value) {
    return GgufBuilder().add("general.alignment", type, value).build();
  };
  constexpr std::int64_t kAt = kFirstKey + 8 + 17;
  expect_gguf_refused_at(with_alignment(of::kU32, raw(0U)), kAt + 4,
                         "general.alignment is 0, a power of two is expected");
  expect_gguf_refused_at(with_alignment(of::kU32, raw(48U)), kAt + 4,
                         "general.alignment is 48, a power of two is expected");
  expect_gguf_refused_at(with_alignment(of::kU64, raw<std::uint64_t>(32)), kAt,
                         "general.alignment has the type 10, 4 (uint32) is expected");
  expect_gguf_refused_at(with_alignment(of::kText, gguf_text("32")), kAt,
                         "general.alignment has the type 8");
  expect_gguf_refused_at(with_alignment(of::kArray, gguf_array(of::kU32, 1, raw(32U))), kAt,
                         "general.alignment has the type 9");
}

// Returns a file with a tensor "t" of this description and 64 bytes of data.
std::string with_tensor(const std::vector<std::uint64_t>& dims, std::uint32_t type,
                        std::uint64_t offset = 0) {
  return GgufBuilder()
      .add_tensor("a", {64}, 24, std::string(64, 'a'))
      .add_tensor_at("t", dims, type, offset)
      .build();
}

TEST(Gguf, RefusesShapesThatAreNone) {
  expect_gguf_refused(with_tensor({}, 0), "tensor 't' has 0 dimensions, 1 to 4 are expected");
  expect_gguf_refused(with_tensor({1, 1, 1, 1, 1}, 0), "tensor 't' has 5 dimensions");
  expect_gguf_refused(with_tensor({1U << 31, 1U << 31, 4}, 0), "tensor 't': ");
  expect_gguf_refused(with_tensor({kBeyond / 2}, 0), "tensor 't': ");  // times four bytes
  expect_gguf_refused(with_tensor({kBeyond}, 0),
                      "an extent of tensor 't' is 9223372036854775808, beyond 63 bits");
  expect_gguf_refused(with_tensor({33}, kQ41),
                      "tensor 't' has rows of 33 elements, Q4_1 has blocks of 32");
  expect_gguf_refused(with_tensor({128}, 14),
                      "tensor 't' has rows of 128 elements, Q6_K has blocks of 256");
}

TEST(Gguf, RefusesPlacesThatAreNone) {
  expect_gguf_refused(with_tensor({1}, 24, 65),
                      "tensor 't' is at 65 of the data, which is no "
                      "multiple of 32");
  expect_gguf_refused(with_tensor({1}, 24, 64),
                      "tensor 't' takes the bytes 64 to 65 of the data, which has 64");
  expect_gguf_refused(with_tensor({1}, 24, kBeyond - 32), "which has 64");
  expect_gguf_refused(with_tensor({64}, 24, kBeyond - 32), "tensor 't' ends beyond 63 bits");
  expect_gguf_refused(with_tensor({1}, 24, ~std::uint64_t{31}),
                      "the offset of tensor 't' is 18446744073709551584, beyond 63 bits");
  expect_gguf_refused(with_tensor({1}, 1000, 96), "which has 64");
  expect_gguf_refused(with_tensor({1}, 24, 0),
                      "tensor 'a' begins at 0 of the data, where 't' has not ended");
  expect_gguf_refused(with_tensor({1}, 24, 32),
                      "tensor 't' begins at 32 of the data, where 'a' has not ended");
  // No data at all, not even padding.
  expect_gguf_refused(GgufBuilder().add_tensor_at("t", {1}, 24, 0).build(), "which has 0");
}

TEST(Gguf, RefusesNamesThatAreNone) {
  const auto twice = [](const std::string& a, const std::string& b) {
    return GgufBuilder().add_tensor(a, {1}, 24, "a").add_tensor(b, {1}, 24, "b").build();
  };
  expect_gguf_refused(twice("a", "a"), "tensor 'a' occurs twice");
  expect_gguf_refused(twice("a", ""), "a tensor without a name");
  expect_gguf_refused(twice("\xE2\x82", "b"), "the name of a tensor '?\?' is not UTF-8");
}

TEST(Gguf, RefusesFilesThatEndAnywhere) {
  GgufBuilder builder;
  builder.alignment = 8;
  builder.add("general.alignment", of::kU32, raw(8U))
      .add("text", of::kText, gguf_text("größe"))
      .add("array", of::kArray, gguf_array(of::kText, 2, gguf_text("a") + gguf_text("b")))
      .add_tensor("q", {32, 2}, kQ41, std::string(40, 'q'))
      .add_tensor("f", {3}, 0, std::string(12, 'f'));
  const std::string bytes = builder.build();
  parse_gguf(bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own length, so that sanitizers detect a read past the end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(GgufFile::parse(std::as_bytes(std::span(cut)), "f"), FormatError) << size;
  }
}

class GgufOnDisk : public IoTest {};

TEST_F(GgufOnDisk, IsMappedAsLongAsAHandleLives) {
  write_text(path("m.gguf"), GgufBuilder().add_tensor("a", {3}, 24, "abc").build());
  auto file = std::make_unique<GgufFile>(GgufFile::open(path("m.gguf")));
  const GgufFile copy = *file;
  file.reset();
  std::filesystem::remove(path("m.gguf"));
  EXPECT_EQ(std::to_integer<char>(copy.tensors().at("a").bytes[1]), 'b');
  EXPECT_EQ(copy.name(), path("m.gguf").string());
}

TEST_F(GgufOnDisk, SaysWhatCannotBeRead) {
  const auto expect_refused = [](const std::filesystem::path& file, const std::string& reason) {
    EXPECT_THAT([&] { GgufFile::open(file); },
                ThrowsMessage<IoError>("cannot read '" + file.string() + "': " + reason));
  };
  expect_refused(path("none"), "No such file or directory");
  expect_refused(path(""), "Is a directory");
  write_text(path("empty"), "");
  expect_refused(path("empty"), "it is empty");
  EXPECT_THAT([&] { GgufFile::open(std::string("a\0b", 3)); },
              ThrowsMessage<IoError>("cannot read 'a': the path goes on after a NUL"));
  write_text(path("text"), "GGUF but not really");
  EXPECT_THAT(
      [&] { GgufFile::open(path("text")); },
      ThrowsMessage<FormatError>(HasSubstr(path("text").string() + ": at byte 4: version")));
}

}  // namespace
}  // namespace heed
