// The files that read_npy refuses, and its messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"
#include "heed/io/npy.h"
#include "io/io_test_util.h"
#include "io/npy_stream.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

std::string npy(const std::string& header, const std::string& data = "") {
  const auto length = static_cast<char>(header.size());
  return std::string("\x93NUMPY\1\0", 8) + length + '\0' + header + data;
}

std::string header(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}";
}

void expect_refused(const std::string& file, std::int64_t byte, const std::string& problem) {
  EXPECT_THAT([&] { parse_npy(bytes_of(file), "x.npy"); },
              ThrowsMessage<FormatError>(AllOf(
                  StartsWith("x.npy: at byte " + std::to_string(byte) + ":"), HasSubstr(problem))))
      << file;
}

// Expects the error to name the position of `text` in the dictionary.
void expect_header_refused(const std::string& dictionary, const std::string& text,
                           const std::string& problem) {
  const std::size_t at = dictionary.find(text);
  ASSERT_NE(at, std::string::npos);
  expect_refused(npy(dictionary, "12345678"), static_cast<std::int64_t>(10 + at), problem);
}

void expect_accepted(const std::string& dictionary, const std::string& data,
                     const Shape& expected) {
  EXPECT_EQ(shape(parse_npy(bytes_of(npy(dictionary, data)), "x.npy")), expected) << dictionary;
}

TEST(NpyHeader, AcceptsEveryWayToWriteTheDictionary) {
  expect_accepted(header("'<i2'", "(2,)"), "1234", {2});
  expect_accepted("{\"shape\":(2,1,),'fortran_order':True,\"descr\":'>u2',}\n", "1234", {2, 1});
  expect_accepted("  { 'shape' : ( 2L , 1L ) , 'descr' : '=i2' , 'fortran_order' : False }  ",
                  "1234", {2, 1});
  expect_accepted(header("'|u1'", "()"), "1", {});
  expect_accepted(header("'<u1'", "(0,)"), "", {0});
}

TEST(NpyHeader, ReadsFortranOrder) {
  const auto file = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "abcdef");
  const auto tensor = std::get<Tensor<std::uint8_t>>(parse_npy(bytes_of(file), "x.npy"));
  EXPECT_THAT(tensor.elements(), testing::ElementsAre('a', 'c', 'e', 'b', 'd', 'f'));
}

TEST(NpyHeader, RefusesWhatIsNotNpy) {
  expect_refused("", 0, "truncated");
  expect_refused(std::string("\x93NUMPY\1\0\1", 9), 9, "truncated");
  expect_refused(std::string("\x93NUMPX\1\0\1\0 ", 11), 0, "not a .npy file");
  expect_refused("PK\3\4 and so on", 0, "not a .npy file");
  expect_refused(std::string("\x93NUMPY\4\0\1\0 ", 11), 6, "version 4.0, expected 1.0, 2.0 or 3.0");
  expect_refused(std::string("\x93NUMPY\0\0\1\0 ", 11), 6, "version 0.0");
  expect_refused(std::string("\x93NUMPY\1\1\1\0 ", 11), 6, "version 1.1");
  expect_refused(std::string("\x93NUMPY\2\0\1\0", 10), 10, "length of the header");
}

TEST(NpyHeader, ChecksTheLengthOfTheHeaderBeforeReadingIt) {
  expect_refused(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), 8,
                 "4294967295 bytes, at most 65535");
  expect_refused(std::string("\x93NUMPY\3\0\0\0\1\0{}", 14), 8, "65536 bytes, at most 65535");
  expect_refused(std::string("\x93NUMPY\1\0\xff\xff{}", 12), 12, "65535 bytes but only 2 follow");
}

TEST(NpyHeader, RefusesMalformedDictionaries) {
  expect_header_refused("['descr']", "[", "expected '{'");
  expect_header_refused("{'descr' '<f4'}", "'<f4'", "expected ':'");
  expect_header_refused("{descr: '<f4'}", "descr", "expected a string");
  expect_header_refused("{'descr': '<f4", "'<f4", "does not end");
  expect_header_refused("{'descr': '\\x3cf4'}", "'\\x3c", "escape");
  expect_header_refused("{'descr': '<f4' 'shape': ()}", "'shape'", "expected '}'");
  expect_header_refused("{'descr': '<f4',,}", ",}", "expected a string");
  expect_header_refused("{'fortran_order': 1}", "1", "expected True or False");
  expect_header_refused("{'colour': 1}", "'colour'", "unknown key 'colour'");
  expect_header_refused("{'fortran_order': False, 'fortran_order': False}",
                        "'fortran_order': False}", "'fortran_order' occurs twice");
  expect_header_refused("{'descr': '<f4', 'shape': ()}", "{", "no key 'fortran_order'");
  expect_header_refused("{'fortran_order': False, 'shape': ()}", "{", "no key 'descr'");
  expect_header_refused("{'fortran_order': False, 'descr': '<f4'}", "{", "no key 'shape'");
  expect_header_refused(header("'<f4'", "()") + " print()", "print", "goes on");
}

TEST(NpyHeader, RefusesDtypesWithTheReason) {
  const auto refuse = [](const std::string& descr, const std::string& problem) {
    expect_header_refused(header(descr, "()"), descr, problem);
  };
  refuse("'|O'", "object arrays are pickled Python; refused");
  refuse("'O'", "object arrays are pickled Python; refused");
  refuse("[('x', '<f4')]", "structured dtypes");
  refuse("'|V2'", "structured and raw dtypes");
  refuse("'<U4'", "text");
  refuse("'<c8'", "complex");
  refuse("'<f16'", "expected a byte order and");
  refuse("'<M8[ns]'", "expected a byte order and");
  refuse("'f4'", "expected a byte order and");
  refuse("'|f4'", "4 bytes but no byte order");
  refuse("''", "expected a byte order and");
  refuse("'<\x1b[31m'", "'<?[31m'");
}

TEST(NpyHeader, RefusesShapes) {
  const auto refuse = [](const std::string& shape, const std::string& at,
                         const std::string& problem) {
    expect_header_refused(header("'<f4'", shape), at, problem);
  };
  refuse("(3)", "(3)", "not a tuple");
  refuse("[3]", "[3]", "expected '('");
  refuse("(3 4)", "4)", "expected ')'");
  refuse("(-3,)", "(-3", "extent -3 in [-3] is negative");
  refuse("(03,)", "03", "leading zero");
  refuse("(,)", ",)", "expected a number");
  refuse("(9223372036854775808,)", "9223372036854775808", "63 bits");
  refuse("(4611686018427387904, 2)", "(46", "63 bits");
  refuse("(0, 4611686018427387904, 2)", "(0", "63 bits");
  refuse("(1, 1, 1, 1, 1, 1, 1)", "(1, 1", "7 dimensions, at most 6");
}

TEST(NpyHeader, ChecksTheSizeOfTheDataBeforeAllocating) {
  const std::string one_row = header("'<i2'", "(3,)");
  const auto end = static_cast<std::int64_t>(10 + one_row.size());
  expect_refused(npy(one_row, "12345"), end + 5, "truncated: shape [3] of int16 needs 3 elements");
  expect_refused(npy(one_row, "1234567"), end + 6, "1 trailing bytes");
  const std::string huge = header("'<f8'", "(4611686018427387904,)");
  expect_refused(npy(huge, "1"), static_cast<std::int64_t>(11 + huge.size()), "truncated");
}

TEST(NpyHeader, RefusesBoolsThatAreNeither) {
  const std::string bools = header("'|b1'", "(3,)");
  expect_refused(npy(bools, std::string("\0\1\2", 3)), static_cast<std::int64_t>(12 + bools.size()),
                 "a bool is 2, expected 0 or 1");
}

TEST(NpyHeader, RefusesWhatNumPyWritesButHeedDoesNotRead) {
  const auto expect_fixture_refused = [](const char* name, const char* problem) {
    EXPECT_THAT([&] { read_npy(fixture(name)); },
                ThrowsMessage<FormatError>(AllOf(HasSubstr(name), HasSubstr(problem))));
  };
  expect_fixture_refused("object.npy", "object arrays are pickled Python; refused");
  expect_fixture_refused("structured.npy", "structured dtypes");
  expect_fixture_refused("complex.npy", "complex");
  expect_fixture_refused("text.npy", "text");
  expect_fixture_refused("rank7.npy", "7 dimensions");
}

// Every truncation of a valid file is invalid.
TEST(NpyHeader, RefusesEveryTruncation) {
  const std::string good = read_text(fixture("int16_big_fortran.npy"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(parse_npy(bytes_of(good).first(size), "x.npy"), FormatError) << size;
  }
}

}  // namespace
}  // namespace heed
