#include "heed/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "io/io_test_util.h"
#include "support/places.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::same_bits;

// Returns a file with this header and `data_bytes` bytes of data.
std::string file_with(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> 8 * i & 0xffU);
  return bytes + header + std::string(data_bytes, '\1');
}

Safetensors parse(const std::string& bytes) { return parse_safetensors(bytes_of(bytes), "f"); }

void expect_refused(const std::string& bytes, const std::string& problem) {
  EXPECT_THAT([&] { parse(bytes); },
              ThrowsMessage<FormatError>(AllOf(HasSubstr("f: at byte "), HasSubstr(problem))))
      << bytes.substr(0, 200);
}

void expect_header_refused(const std::string& header, const std::string& problem,
                           std::size_t data_bytes = 8) {
  expect_refused(file_with(header, data_bytes), problem);
}

// Returns the header of a file with one tensor "a" with these fields.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

class SafetensorsFile : public IoTest {};

template <class T>
void expect_same_bytes_again(const std::filesystem::path& path) {
  const Tensor<T> written({2, 3}, {T(0), T(1), T(0), T(1), T(1), T(0)});
  write_safetensors(path, {{"x", written.view()}});
  const Safetensors read = read_safetensors(path);
  ASSERT_EQ(read.tensors.size(), 1U);
  EXPECT_TRUE(same_bits(std::get<Tensor<T>>(read.tensors.at("x")), written));
}

TEST_F(SafetensorsFile, KeepsEveryType) {
  expect_same_bytes_again<float>(path("t"));
  expect_same_bytes_again<double>(path("t"));
  expect_same_bytes_again<bool>(path("t"));
  expect_same_bytes_again<std::int8_t>(path("t"));
  expect_same_bytes_again<std::int16_t>(path("t"));
  expect_same_bytes_again<std::int32_t>(path("t"));
  expect_same_bytes_again<std::int64_t>(path("t"));
  expect_same_bytes_again<std::uint8_t>(path("t"));
  expect_same_bytes_again<std::uint16_t>(path("t"));
  expect_same_bytes_again<std::uint32_t>(path("t"));
  expect_same_bytes_again<std::uint64_t>(path("t"));
  const Tensor<Float16> half({2}, {Float16(1.5F), Float16(-0.0F)});
  const Tensor<BFloat16> brain({1}, {BFloat16(3.0F)});
  write_safetensors(path("t"), {{"half", half.view()}, {"brain", brain.view()}});
  const Safetensors read = read_safetensors(path("t"));
  EXPECT_EQ(std::get<Tensor<Float16>>(read.tensors.at("half"))(1).bits(), 0x8000);
  EXPECT_EQ(to_float(read.tensors.at("brain"))(0), 3.0F);
  EXPECT_EQ(dtype_name(read.tensors.at("brain")), "bfloat16");
}

TEST_F(SafetensorsFile, IsWrittenByteForByteAsTheFormatSays) {
  const Tensor<std::uint8_t> narrow({3}, {1, 2, 3});
  const Tensor<std::int16_t> wide({1, 1}, {0x0201});
  write_safetensors(path("t"), {{"a", narrow.view()}, {"b\"\n", wide.view()}}, {{"k", "v"}});
  std::string header =
      R"({"__metadata__":{"k":"v"},"b\"\n":{"dtype":"I16","shape":[1,1],"data_offsets":[0,2]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_text(path("t")), file_with(header, 0) + "\x01\x02\x01\x02\x03");
  EXPECT_EQ(read_safetensors(path("t")).metadata.at("k"), "v");
}

TEST_F(SafetensorsFile, HoldsNothingScalarsEmptyTensorsAndAnyNames) {
  write_safetensors(path("t"), {});
  EXPECT_EQ(read_text(path("t")), file_with("{}      ", 0));
  EXPECT_TRUE(read_safetensors(path("t")).tensors.empty());
  const Tensor<double> scalar(Shape{}, {2.5});
  const Tensor<float> empty({0, 3});
  write_safetensors(path("t"), {{"", scalar.view()}, {"größe/猫", empty.view()}});
  const Safetensors read = read_safetensors(path("t"));
  EXPECT_TRUE(same_bits(std::get<Tensor<double>>(read.tensors.at("")), scalar));
  EXPECT_EQ(shape(read.tensors.at("größe/猫")), empty.shape());
}

TEST_F(SafetensorsFile, ViewsWithStridesAreWrittenAsIfCopied) {
  const Tensor<float> x({2, 3}, {0, 1, 2, 3, 4, 5});
  write_safetensors(path("t"), {{"x", x.view().permute({1, 0})}});
  EXPECT_TRUE(same_bits(std::get<Tensor<float>>(read_safetensors(path("t")).tensors.at("x")),
                        Tensor<float>({3, 2}, {0, 3, 1, 4, 2, 5})));
}

// Reads a file that tests/python/dump_safetensors_fixtures.py wrote with the Python library.
Safetensors read_fixture(const std::string& name) {
  return read_safetensors(std::filesystem::path(testing_support::test_data()) / "safetensors" /
                          name);
}

TEST(ReadSafetensors, ReadsWhatPythonWrites) {
  const Safetensors types = read_fixture("types.safetensors");
  EXPECT_EQ(types.metadata.at("format"), "pt");
  ASSERT_EQ(types.tensors.size(), 6U);
  for (const auto& [name, tensor] : types.tensors) {
    EXPECT_EQ("torch." + std::string(dtype_name(tensor)), name);
    EXPECT_THAT(elements_of(to_double(tensor)), testing::ElementsAre(0, 1, 0, 1, 0, 1)) << name;
  }
  const Safetensors misaligned = read_fixture("misaligned.safetensors");
  EXPECT_EQ(std::get<Tensor<std::int32_t>>(misaligned.tensors.at("a")).elements()[0], 1);
}

TEST(ParseSafetensors, CopiesWhatIsNotAligned) {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("a":{"dtype":"I32","shape":[2],"data_offsets":[1,9]}})";
  const Safetensors read = parse(file_with(header, 9));
  EXPECT_EQ(std::get<Tensor<std::int32_t>>(read.tensors.at("a"))(1), 0x01010101);
}

TEST(ParseSafetensors, TakesTensorsInAnyOrderAndEmptyOnesBetween) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},)"
                             R"("empty":{"data_offsets":[3,3],"dtype":"F64","shape":[4,0]},)"
                             R"("b":{"shape":[3],"dtype":"U8","data_offsets":[0,3]}}  )";
  EXPECT_EQ(parse(file_with(header, 5)).tensors.size(), 3U);
}

TEST(ParseSafetensors, ChecksTheLengthOfTheHeaderBeforeReading) {
  expect_refused("", "at least 8 bytes");
  expect_refused(std::string(7, '\0'), "at least 8 bytes");
  expect_refused(std::string(8, '\0'), "does not begin with '{'");
  expect_refused(std::string(8, '\xff'), "at most 100000000 are read");
  expect_refused(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), "100000001 bytes, at most");
  expect_refused(std::string("\x00\xe1\xf5\x05\0\0\0\0{}", 10), "has 100000000 bytes but only 2");
  expect_refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), "has 3 bytes but only 2 follow");
}

TEST(ParseSafetensors, TheHeaderIsOneJsonObjectInUtf8) {
  expect_header_refused(" {}", "begin with '{'", 0);
  expect_header_refused("\xef\xbb\xbf{}", "begin with '{'", 0);
  expect_header_refused("[]", "begin with '{'", 0);
  expect_header_refused("{", "not JSON", 0);
  expect_header_refused("{} {}", "not JSON", 0);
  expect_header_refused("{\"a\":{\"shape\":[1e999]}}",
                        "the header is not JSON: number overflow parsing '1e999'", 0);
  expect_header_refused(std::string("{}\0garbage", 10), "a NUL byte", 0);
  expect_header_refused("{\"\xff\":{}}", "not JSON", 0);
  expect_header_refused("{\"\\ud800\":{}}", "not JSON", 0);
  expect_header_refused(R"({"a":1})", "tensor 'a' is a number, expected an object", 0);
  expect_header_refused(R"({"a":"x"})", "is a string, expected an object", 0);
  expect_header_refused(R"({"a":[]})", "an array", 0);
  expect_header_refused(R"({"a":null})", "is null", 0);
  expect_header_refused(R"({"a":{"b":{}}})", "unknown key 'b'", 0);
}

TEST(ParseSafetensors, DeepNestingIsRefusedWhereItBegins) {
  std::string deep = R"({"a":{"shape":)" + std::string(1'000'000, '[');
  expect_header_refused(deep, "an array in 'shape'");
  std::string objects = "{";
  for (int i = 0; i < 100'000; ++i) objects += R"("a":{)";
  expect_header_refused(objects, "unknown key 'a'");
}

TEST(ParseSafetensors, NamesAndKeysOccurOnce) {
  const std::string a = R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
  expect_header_refused("{" + a + "," + a + "}", "tensor 'a' occurs twice");
  expect_header_refused("{" + a + R"(,"\u0061":{}})", "tensor 'a' occurs twice");
  expect_header_refused(R"({"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
                        "the key 'dtype' occurs twice");
  expect_header_refused(R"({"__metadata__":{},"__metadata__":{}})", "occurs twice");
  expect_header_refused(R"({"__metadata__":{"k":"1","k":"2"}})", "the key 'k' occurs twice");
}

TEST(ParseSafetensors, AnEntryHasExactlyItsKeys) {
  expect_header_refused(R"({"a":{"shape":[8],"data_offsets":[0,8]}})", "has no 'dtype'");
  expect_header_refused(R"({"a":{"dtype":"U8","data_offsets":[0,8]}})", "has no 'shape'");
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[8]}})", "has no 'data_offsets'");
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"strides":[1]}})",
                        "unknown key 'strides'");
  expect_header_refused(R"({"__metadata__":{"k":1}})",
                        "metadata 'k' is a number, expected a string");
  expect_header_refused(R"({"__metadata__":[]})", "expected an object");
}

TEST(ParseSafetensors, TypesThatHeedDoesNotHaveAreNamed) {
  expect_header_refused(entry("\"F8_E8M0\"", "[8]", "[0,8]"),
                        "tensor 'a': dtype 'F8_E8M0' is none that heed has");
  expect_refused(file_with(entry("\"F8_E4M3\"", "[8]", "[0,8]"), 8),
                 "tensor 'a' is of type float8_e4m3fn, which heed reads in models only");
  expect_header_refused(entry("7", "[8]", "[0,8]"), "'dtype' is a number, expected a string");
  expect_header_refused(entry("[]", "[8]", "[0,8]"), "'dtype' is an array");
}

TEST(ParseSafetensors, ShapesAreNonNegativeAndTheirProductsChecked) {
  expect_header_refused(entry("\"U8\"", "[-8]", "[0,8]"), "a negative number in 'shape'");
  expect_header_refused(entry("\"U8\"", "[8.0]", "[0,8]"), "a number with a point");
  expect_header_refused(entry("\"U8\"", "[18446744073709551615]", "[0,8]"), "beyond 63 bits");
  expect_header_refused(entry("\"U8\"", "[4294967296,4294967296]", "[0,8]"), "tensor 'a': ");
  expect_header_refused(entry("\"F64\"", "[2305843009213693953]", "[0,8]"),
                        "needs 2305843009213693953");
  expect_header_refused(entry("\"U8\"", "[1,1,1,1,1,1,8]", "[0,8]"), "more than 6 numbers");
  expect_header_refused(entry("\"U8\"", "8", "[0,8]"), "'shape' is a number, expected an array");
  expect_header_refused(entry("\"U8\"", "[[8]]", "[0,8]"), "an array in 'shape'");
}

TEST(ParseSafetensors, TheSizeIsThatOfTheShape) {
  expect_header_refused(entry("\"U8\"", "[7]", "[0,8]"), "needs 7 elements of 1 bytes");
  expect_header_refused(entry("\"F32\"", "[1]", "[0,8]"), "its offsets hold 8 bytes");
  expect_header_refused(entry("\"F32\"", "[2]", "[0,7]"), "its offsets hold 7 bytes", 7);
  expect_header_refused(entry("\"U8\"", "[8]", "[8,0]"), "not a begin and an end");
  expect_header_refused(entry("\"U8\"", "[8]", "[0]"), "not a begin and an end");
  expect_header_refused(entry("\"U8\"", "[8]", "[0,8,8]"), "not a begin and an end");
}

TEST(ParseSafetensors, TheTensorsTileTheData) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(parse(file_with(two("[0,4]", "[4,8]"), 8)).tensors.size(), 2U);
  expect_header_refused(two("[0,4]", "[5,9]"), "tensor 'b' begins at 5 of the data", 9);
  expect_header_refused(two("[0,4]", "[3,7]"), "begins at 3 of the data", 8);
  expect_header_refused(two("[0,4]", "[0,4]"), "begins at 0 of the data, but the one before", 4);
  expect_header_refused(two("[1,5]", "[5,9]"), "begins at 1 of the data", 9);
  expect_header_refused(two("[0,4]", "[4,8]"), "1 trailing bytes", 9);
  expect_header_refused(two("[0,4]", "[4,8]"), "take 8 bytes but only 7 follow", 7);
  expect_header_refused("{}", "1 trailing bytes", 1);
}

TEST(ParseSafetensors, BoolsAreZeroOrOne) {
  std::string bytes = file_with(entry("\"BOOL\"", "[2]", "[0,2]"), 2);
  EXPECT_EQ(parse(bytes).tensors.size(), 1U);
  bytes.back() = '\2';
  expect_refused(bytes, "a bool is 2");
}

TEST(ParseSafetensors, ErrorsNameTheByteAndNeverCommandATerminal) {
  try {
    parse(file_with("{\"a\x1b[31m\xc3\xa9\":0}", 0));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_GT(error.byte(), 8);
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("\x1b")));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("\xc3")));
  }
  const std::string short_header = entry("\"F9\"", "[1]", "[0,1]");
  try {
    parse(file_with(short_header, 1));
    FAIL();
  } catch (const FormatError& error) {
    const auto after_dtype = static_cast<std::int64_t>(8 + short_header.find("F9") + 3);
    EXPECT_GE(error.byte(), after_dtype);
    EXPECT_LE(error.byte(), after_dtype + 1);
  }
}

TEST_F(SafetensorsFile, RefusesToWriteWhatCouldNotBeRead) {
  const Tensor<float> x({1});
  const auto write = [&](const std::string& name, const std::map<std::string, std::string>& data) {
    return [this, &x, name, data] { write_safetensors(path("t"), {{name, x.view()}}, data); };
  };
  EXPECT_THAT(write("__metadata__", {}), ThrowsMessage<InvalidArgument>(HasSubstr("__metadata__")));
  EXPECT_THAT(write("\xff", {}), ThrowsMessage<InvalidArgument>(HasSubstr("not UTF-8 at byte 0")));
  EXPECT_THAT(write("x", {{"k", "a\xc3"}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("not UTF-8 at byte 1")));
  EXPECT_EQ(num_files(), 0U);
}

}  // namespace
}  // namespace heed
