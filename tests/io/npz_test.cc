#include "heed/io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/io_test_util.h"

namespace heed { namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_fixture_arrays(const std::map<std::string, AnyTensor>& arrays) {
  ASSERT_EQ(arrays.size(), 4U);
  const auto& query = std::get<Tensor<float>>(arrays.at("query"));
  EXPECT_EQ(query.shape(), (Shape{2, 3}));
  EXPECT_THAT(query.elements(), ElementsAre(-0.75F, -0.5F, -0.25F, 0.0F, 0.25F, 0.5F));
  const auto& mask = std::get<Tensor<bool>>(arrays.at("mask"));
  EXPECT_EQ(mask.shape(), (Shape{3, 3}));
  EXPECT_THAT(mask.elements(),
              ElementsAre(true, false, false, true, false, false, true, false, false));
  EXPECT_THAT(std::get<Tensor<std::int64_t>>(arrays.at("layers/0/größe")).elements(),
              ElementsAre(-3, -2, -1, 0));
  EXPECT_EQ(std::get<Tensor<double>>(arrays.at("scale"))(), -0.75);
}

TEST(ReadNpz, ReadsWhatNumPyWrites) {
  for (const char* name : {"stored.npz", "deflated.npz", "streamed.npz"}) {
    SCOPED_TRACE(name);
    expect_fixture_arrays(read_npz(fixture(name)));
  }
  EXPECT_TRUE(read_npz(fixture("none.npz")).empty());
}

TEST(ReadNpz, InflatesAsMuchAsIsAllowed) {
  // 1 MiB of zeros and a header of 128 bytes, close to deflate's best ratio.
  constexpr std::int64_t kSize = (1 << 20) + 128;
  const auto arrays = read_npz(fixture("zeros.npz"), kSize);
  EXPECT_THAT(std::get<Tensor<std::uint8_t>>(arrays.at("zeros")).elements(), Each(0));
  EXPECT_THAT(
      [] { read_npz(fixture("zeros.npz"), kSize - 1); },
      ThrowsMessage<FormatError>(HasSubstr("of the 1048703 bytes allowed for all members")));
}

class WriteNpz : public IoTest {};

TEST_F(WriteNpz, RoundTrips) {
  const auto arrays = read_npz(fixture("stored.npz"));
  std::map<std::string, AnyView> views;
  for (const auto& [name, array] : arrays) views.emplace(name, view(array));
  for (const auto compression : {NpzCompression::kStored, NpzCompression::kDeflated}) {
    write_npz(path("a.npz"), views, compression);
    expect_fixture_arrays(read_npz(path("a.npz")));
  }
  write_npz(path("none.npz"), {});
  EXPECT_TRUE(read_npz(path("none.npz")).empty());
}

TEST_F(WriteNpz, CompressesStridedAndEmptyViews) {
  const Tensor<float> one({1, 1}, {0.5F});
  const Tensor<bool> none(Shape{0, 4});
  const auto wide = one.view().broadcast_to({300, 400});
  write_npz(path("a.npz"), {{"wide", wide}, {"none", none}}, NpzCompression::kDeflated);
  EXPECT_LT(std::filesystem::file_size(path("a.npz")), 2000U);
  const auto arrays = read_npz(path("a.npz"));
  EXPECT_EQ(shape(arrays.at("wide")), (Shape{300, 400}));
  EXPECT_THAT(std::get<Tensor<float>>(arrays.at("wide")).elements(), Each(0.5F));
  EXPECT_EQ(shape(arrays.at("none")), (Shape{0, 4}));
  EXPECT_EQ(dtype_name(arrays.at("none")), "bool");
}

TEST_F(WriteNpz, GivesTheSameBytesForTheSameArrays) {
  const Tensor<float> tensor({2}, {1, 2});
  write_npz(path("a.npz"), {{"x", tensor}}, NpzCompression::kDeflated);
  write_npz(path("b.npz"), {{"x", tensor}}, NpzCompression::kDeflated);
  EXPECT_EQ(read_text(path("a.npz")), read_text(path("b.npz")));
}

TEST_F(WriteNpz, RefusesNamesThatItWouldNotRead) {
  const Tensor<float> tensor({1}, {1});
  const auto expect_refused = [&](const std::string& name, const char* problem) {
    EXPECT_THAT(
        [&] {
          write_npz(path("a.npz"), {{name, tensor}});
        },
        ThrowsMessage<InvalidArgument>(HasSubstr(problem)));
  };
  expect_refused("", "empty");
  expect_refused("/etc/passwd", "'/etc/passwd': the name is an absolute path");
  expect_refused("C:x", "absolute");
  expect_refused("a/../../b", "part '..'");
  expect_refused("a//b", "empty");
  expect_refused("./b", "'.'");
  expect_refused("a\\b", "backslash");
  expect_refused("a\nb", "'a?b': the name is not UTF-8 without control characters");
  expect_refused("\xff", "not UTF-8");
  expect_refused(std::string(65532, 'a'), "too long");
  EXPECT_EQ(num_files(), 0U);
}

}  // namespace
}  // namespace heed
