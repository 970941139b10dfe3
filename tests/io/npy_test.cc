#include "heed/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "io/io_test_util.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing_support::elements_of;

constexpr const char* kTypes[] = {"bool",   "int8",   "int16",  "int32",   "int64",   "uint8",
                                  "uint16", "uint32", "uint64", "float16", "float32", "float64"};

// Returns the elements of the fixtures, as tests/python/dump_npy_fixtures.py defines them.
double counting_element(std::string_view dtype, std::int64_t i) {
  const auto value = static_cast<double>(i);
  if (dtype == "bool") return i % 3 == 0 ? 1 : 0;
  if (dtype.starts_with("uint")) return value;
  if (dtype.starts_with("int")) return value - 3;
  return (value - 3) / 4;
}

void expect_counting(const AnyTensor& tensor, std::string_view dtype, const Shape& expected) {
  EXPECT_EQ(dtype_name(tensor), dtype);
  ASSERT_EQ(shape(tensor), expected);
  const Tensor<double> doubles = to_double(tensor);
  const Tensor<float> floats = to_float(tensor);
  for (std::int64_t i = 0; i < doubles.num_elements(); ++i) {
    ASSERT_EQ(doubles.data()[i], counting_element(dtype, i)) << dtype << " element " << i;
    ASSERT_EQ(static_cast<double>(floats.data()[i]), counting_element(dtype, i));
  }
}

TEST(ReadNpy, ReadsEveryTypeAndOrderThatNumPyWrites) {
  for (const std::string type : kTypes) {
    expect_counting(read_npy(fixture(type + "_little.npy")), type, {2, 3, 4});
    expect_counting(read_npy(fixture(type + "_big_fortran.npy")), type, {2, 3, 4});
  }
}

TEST(ReadNpy, ReadsEveryVersionAndRank) {
  expect_counting(read_npy(fixture("version2.npy")), "float32", {2, 3});
  expect_counting(read_npy(fixture("version3.npy")), "float32", {2, 3});
  expect_counting(read_npy(fixture("scalar.npy")), "float64", {});
  expect_counting(read_npy(fixture("empty.npy")), "float32", {0});
  expect_counting(read_npy(fixture("empty_fortran.npy")), "float32", {2, 0, 3});
  expect_counting(read_npy(fixture("rank6.npy")), "int16", {1, 2, 1, 3, 1, 2});
}

TEST(ReadNpy, KeepsExtremes) {
  EXPECT_THAT(elements_of(std::get<Tensor<std::int64_t>>(read_npy(fixture("int64_extremes.npy")))),
              ElementsAre(std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()));
  EXPECT_THAT(
      elements_of(std::get<Tensor<std::uint64_t>>(read_npy(fixture("uint64_extremes.npy")))),
      ElementsAre(0U, std::numeric_limits<std::uint64_t>::max()));
  const auto halves = to_float(read_npy(fixture("float16_extremes.npy")));
  EXPECT_EQ(halves(0), -65504.0F);
  EXPECT_EQ(halves(1), 0x1p-24F);
  EXPECT_EQ(halves(2), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(halves(3)));
}

TEST(AnyTensor, RoundsIntegersToTheNearest) {
  const AnyTensor wide = Tensor<std::int64_t>(
      {3}, {(std::int64_t{1} << 24) + 1, (std::int64_t{1} << 53) + 1, (std::int64_t{1} << 53) + 3});
  EXPECT_THAT(elements_of(to_float(wide)), ElementsAre(0x1p24F, 0x1p53F, 0x1p53F));
  EXPECT_THAT(elements_of(to_double(wide)), ElementsAre(0x1p24 + 1, 0x1p53, 0x1p53 + 4));
  const AnyTensor large = Tensor<double>({2}, {1e300, 1 + 0x1p-24});
  EXPECT_THAT(elements_of(to_float(large)),
              ElementsAre(std::numeric_limits<float>::infinity(), 1.0F));
}

class WriteNpy : public IoTest {};

TEST_F(WriteNpy, RefusesWhatNumPyHasNoTypeFor) {
  const Tensor<BFloat16> x({2});
  EXPECT_THAT(
      [&] { write_npy(path("x.npy"), x.view()); },
      testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("of bfloat16, for which")));
  EXPECT_EQ(num_files(), 0U);
}

template <class T>
void expect_round_trip(const std::filesystem::path& path) {
  const Tensor<T> written({2, 3}, {T(0), T(1), T(0), T(1), T(1), T(0)});
  write_npy(path, written);
  const auto read = std::get<Tensor<T>>(read_npy(path));
  EXPECT_EQ(read.shape(), written.shape());
  EXPECT_TRUE(
      std::equal(read.elements().begin(), read.elements().end(), written.elements().begin()));
}

TEST_F(WriteNpy, RoundTripsEveryType) {
  const auto file = path("a.npy");
  expect_round_trip<bool>(file);
  expect_round_trip<std::int8_t>(file);
  expect_round_trip<std::int16_t>(file);
  expect_round_trip<std::int32_t>(file);
  expect_round_trip<std::int64_t>(file);
  expect_round_trip<std::uint8_t>(file);
  expect_round_trip<std::uint16_t>(file);
  expect_round_trip<std::uint32_t>(file);
  expect_round_trip<std::uint64_t>(file);
  expect_round_trip<Float16>(file);
  expect_round_trip<float>(file);
  expect_round_trip<double>(file);
}

TEST_F(WriteNpy, WritesTheBytesThatNumPyWrites) {
  for (const std::string type : kTypes) {
    const auto original = fixture(type + "_little.npy");
    const AnyTensor tensor = read_npy(original);
    write_npy(path("a.npy"), view(tensor));
    EXPECT_EQ(read_text(path("a.npy")), read_text(original)) << type;
  }
  for (const std::string name : {"scalar.npy", "empty.npy", "rank6.npy"}) {
    const AnyTensor tensor = read_npy(fixture(name));
    write_npy(path("a.npy"), view(tensor));
    EXPECT_EQ(read_text(path("a.npy")), read_text(fixture(name))) << name;
  }
}

TEST_F(WriteNpy, WritesStridedViewsInRowMajorOrder) {
  // More elements than are gathered at once.
  Tensor<float> tensor(Shape{150, 151});
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data()[i] = static_cast<float>(i);
  }
  write_npy(path("a.npy"), tensor.view().permute({1, 0}));
  const auto read = std::get<Tensor<float>>(read_npy(path("a.npy")));
  ASSERT_EQ(read.shape(), (Shape{151, 150}));
  for (std::int64_t i = 0; i < 151; ++i) {
    for (std::int64_t j = 0; j < 150; ++j) ASSERT_EQ(read(i, j), tensor(j, i));
  }
}

}  // namespace
}  // namespace heed
