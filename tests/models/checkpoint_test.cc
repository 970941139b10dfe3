#include "heed/models/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/io/safetensors.h"
#include "io/io_test_util.h"
#include "models/model_files.h"
#include "support/gguf_builder.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::models { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::GgufBuilder;
using testing_support::kInfinity;
using testing_support::normal;
using testing_support::raw;
using testing_support::Refuses;
using testing_support::same_bits;

std::string half(float value) { return raw(Float16(value).bits()); }

std::string nibbles(int low, int high) {
  return std::string(16, static_cast<char>(low | high << 4));
}

StoredTensor stored(WeightType type, const Shape& shape, const std::string& bytes) {
  return {"t", type, shape, bytes_of(bytes)};
}

std::vector<float> floats(WeightType type, const Shape& shape, const std::string& bytes) {
  return elements_of(to_float(stored(type, shape, bytes)));
}

TEST(WeightTypes, HaveNamesAndSizes) {
  EXPECT_EQ(to_string(WeightType::kFloat32), "float32");
  EXPECT_EQ(to_string(WeightType::kBFloat16), "bfloat16");
  EXPECT_EQ(to_string(WeightType::kQ4_1), "q4_1");
  EXPECT_EQ(row_bytes(WeightType::kFloat32, 3), 12);
  EXPECT_EQ(row_bytes(WeightType::kFloat16, 3), 6);
  EXPECT_EQ(row_bytes(WeightType::kBFloat16, 0), 0);
  EXPECT_EQ(row_bytes(WeightType::kQ8_0, 64), 68);
  EXPECT_EQ(row_bytes(WeightType::kQ4_0, 64), 36);
  EXPECT_EQ(row_bytes(WeightType::kQ4_1, 64), 40);
  EXPECT_THAT([] { row_bytes(WeightType::kQ4_1, 33); }, Refuses("columns", "33"));
  EXPECT_THROW(row_bytes(WeightType::kFloat32, -1), InvalidArgument);
  EXPECT_THROW(row_bytes(WeightType::kFloat32, std::int64_t{1} << 61), InvalidArgument);
}

TEST(ToFloat, OfFloats) {
  EXPECT_THAT(floats(WeightType::kFloat32, {2}, raw(0.1F) + raw(-kInfinity)),
              ElementsAre(0.1F, -kInfinity));
  EXPECT_THAT(floats(WeightType::kFloat16, {1, 2}, half(0.1F) + half(-6e-8F)),
              ElementsAre(float{Float16(0.1F)}, float{Float16(-6e-8F)}));
  EXPECT_THAT(floats(WeightType::kBFloat16, {1}, raw(BFloat16(3e38F).bits())),
              ElementsAre(float{BFloat16(3e38F)}));
  EXPECT_THAT(floats(WeightType::kFloat32, Shape{}, raw(2.5F)), ElementsAre(2.5F));
  EXPECT_THAT(floats(WeightType::kQ4_0, {3, 0}, ""), ElementsAre());
}

TEST(ToFloat, OfBlocks) {
  std::string bytes = half(0.5F);
  for (int i = 0; i < 32; ++i) bytes += static_cast<char>(i == 0 ? -128 : i);
  const auto q8 = floats(WeightType::kQ8_0, {32}, bytes);
  EXPECT_EQ(q8[0], -64.0F);
  EXPECT_EQ(q8[31], 15.5F);
  const auto q4_0 =
      floats(WeightType::kQ4_0, {1, 64}, half(0.25F) + nibbles(0, 15) + half(-1) + nibbles(8, 9));
  EXPECT_EQ(q4_0[0], -2.0F);
  EXPECT_EQ(q4_0[15], -2.0F);
  EXPECT_EQ(q4_0[16], 1.75F);
  EXPECT_EQ(q4_0[32], 0.0F);
  EXPECT_TRUE(std::signbit(q4_0[32]));  // −1 · 0
  EXPECT_EQ(q4_0[63], -1.0F);
  // The product is exact; the sum is rounded once.
  const auto q4_1 = floats(WeightType::kQ4_1, {32}, half(0.1F) + half(1000) + nibbles(3, 7));
  EXPECT_EQ(q4_1[0], static_cast<float>(double{Float16(0.1F)} * 3 + 1000));
  EXPECT_EQ(q4_1[16], static_cast<float>(double{Float16(0.1F)} * 7 + 1000));
}

TEST(ToFloat, RefusesBytesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        floats(WeightType::kQ4_1, {2, 32}, std::string(39, 'x'));
      },
      ThrowsMessage<InvalidArgument>(
          "to_float: tensor 't' of shape [2, 32] takes 40 bytes as q4_1, but has 39"));
  EXPECT_THROW(floats(WeightType::kQ4_1, {20}, std::string(20, 'x')), InvalidArgument);
}

class CheckpointFiles : public IoTest {
 protected:
  void write_index(const std::string& weight_map) {
    write_text(path("model.safetensors.index.json"),
               R"({"metadata": {"total_size": 1, "more": [{"weight_map": {}}]}, "weight_map": )" +
                   weight_map + "}");
  }
  void write_shards() {
    write_safetensors(path("one"), {{"a", a_}, {"b", b_}});
    write_safetensors(path("two"), {{"c", c_}});
  }
  void expect_folder_refused(const std::string& text) {
    EXPECT_THAT([&] { Checkpoint::open(path("")); }, ThrowsMessage<FormatError>(HasSubstr(text)));
  }

  Tensor<float> a_ = normal<float>({3, 5}, 1);
  Tensor<Float16> b_ = testing_support::converted<Float16>(normal<float>({7}, 2));
  Tensor<BFloat16> c_ = testing_support::converted<BFloat16>(normal<float>({1, 2}, 3));
  Tensor<std::int64_t> whole_{{2}, {1, 2}};
};

TEST_F(CheckpointFiles, OneSafetensorsFile) {
  write_safetensors(path("model.safetensors"), {{"a", a_}, {"b", b_}, {"c", c_}, {"i", whole_}});
  for (const std::string name : {"", "model.safetensors"}) {
    const Checkpoint checkpoint = Checkpoint::open(path(name));
    EXPECT_EQ(checkpoint.name(), path(name).string());
    EXPECT_THAT(checkpoint.names(), ElementsAre("a", "b", "c", "i"));
    EXPECT_TRUE(checkpoint.contains("a"));
    EXPECT_FALSE(checkpoint.contains("d"));
    EXPECT_FALSE(checkpoint.gguf());
    EXPECT_TRUE(same_bits(to_float(checkpoint.tensor("a")), a_));
    const StoredTensor b = checkpoint.tensor("b");
    EXPECT_EQ(b.type, WeightType::kFloat16);
    EXPECT_EQ(b.name, "b");
    EXPECT_TRUE(same_bits(to_float(b), testing_support::converted<float>(b_)));
    EXPECT_EQ(checkpoint.tensor("c").type, WeightType::kBFloat16);
    EXPECT_TRUE(same_bits(to_float(checkpoint.tensor("c")), testing_support::converted<float>(c_)));
  }
}

TEST_F(CheckpointFiles, AskForTensors) {
  write_safetensors(path("m"), {{"a", a_}, {"i", whole_}});
  const Checkpoint checkpoint = Checkpoint::open(path("m"));
  EXPECT_THAT([&] { checkpoint.tensor("x\n"); },
              ThrowsMessage<FormatError>(path("m").string() +
                                         ": at byte 0: none of the 2 tensors is 'x?'"));
  EXPECT_THAT([&] { checkpoint.tensor("i"); },
              ThrowsMessage<FormatError>(
                  HasSubstr("tensor 'i' is of type I64; read are F32, F16, "
                            "BF16, F8_E4M3, F8_E5M2 and GGUF's Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, "
                            "Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, "
                            "MXFP4, TQ1_0 and TQ2_0")));
}

TEST_F(CheckpointFiles, StayMapped) {
  write_safetensors(path("m"), {{"a", a_}});
  auto checkpoint = std::make_unique<Checkpoint>(Checkpoint::open(path("m")));
  const StoredTensor tensor = checkpoint->tensor("a");
  const Checkpoint copy = *checkpoint;
  checkpoint.reset();
  std::filesystem::remove(path("m"));
  EXPECT_TRUE(same_bits(to_float(tensor), a_));
}

TEST_F(CheckpointFiles, Gguf) {
  const std::string blocks = half(2) + half(-1) + nibbles(1, 3);
  GgufBuilder builder;
  builder.add("general.architecture", testing_support::kText, testing_support::gguf_text("llama"))
      .add_tensor("q", {32, 1}, 3, blocks)
      .add_tensor("k", {256}, 17, std::string(74, 'k'))
      .add_tensor("x", {1}, 1234, "");
  write_text(path("m.gguf"), builder.build());
  write_text(path("other"), builder.build());
  const GgufFile file = GgufFile::open(path("m.gguf"));
  for (const auto& checkpoint :
       {Checkpoint::open(path("m.gguf")), Checkpoint::open(path("other")), Checkpoint::of(file)}) {
    EXPECT_THAT(checkpoint.names(), ElementsAre("k", "q", "x"));
    const Tensor<float> q = to_float(checkpoint.tensor("q"));
    EXPECT_EQ(q.shape(), (Shape{1, 32}));
    EXPECT_EQ(q(0, 0), 1.0F);
    EXPECT_EQ(q(0, 31), 5.0F);
    EXPECT_EQ(checkpoint.gguf()->string("general.architecture"), "llama");
    EXPECT_THAT(
        [&] { checkpoint.tensor("k"); },
        ThrowsMessage<FormatError>(HasSubstr("tensor 'k' is of type IQ2_XS; read are F32")));
    EXPECT_THAT([&] { checkpoint.tensor("x"); },
                ThrowsMessage<FormatError>(HasSubstr("tensor 'x' is of type ggml's type 1234;")));
  }
}

// A part of a GGUF file, with one tensor.
std::string gguf_part(int number, int count, const std::string& tensor, int num_tensors = 3) {
  using testing_support::kU16;
  return GgufBuilder()
      .add("split.no", kU16, raw(static_cast<std::uint16_t>(number)))
      .add("split.count", kU16, raw(static_cast<std::uint16_t>(count)))
      .add("split.tensors.count", testing_support::kI32, raw(num_tensors))
      .add_tensor(tensor, {1}, 0, raw(static_cast<float>(number)))
      .build();
}

class GgufParts : public CheckpointFiles {
 protected:
  static constexpr const char* kFirst = "m-00001-of-00003.gguf";
  void SetUp() override {
    CheckpointFiles::SetUp();
    write_text(path(kFirst), gguf_part(0, 3, "a"));
    write_text(path("m-00002-of-00003.gguf"), gguf_part(1, 3, "b"));
    write_text(path("m-00003-of-00003.gguf"), gguf_part(2, 3, "c"));
  }
  template <class Error = FormatError>
  void expect_refused(const std::string& name, const std::string& problem) {
    EXPECT_THAT([&] { Checkpoint::open(path(name)); }, ThrowsMessage<Error>(HasSubstr(problem)));
  }
};

TEST_F(GgufParts, AreOneCheckpoint) {
  const Checkpoint checkpoint = Checkpoint::open(path(kFirst));
  EXPECT_THAT(checkpoint.names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(to_float(checkpoint.tensor("c"))(0), 2.0F);
  EXPECT_EQ(checkpoint.files().size(), 3U);
  EXPECT_EQ(checkpoint.gguf()->name(), path(kFirst).string());
}

TEST_F(GgufParts, OfWhichTheFirstIsGiven) {
  expect_refused("m-00002-of-00003.gguf",
                 "it is part 2 of 3; give the first, whose name ends in -00001-of-00003.gguf");
  std::filesystem::copy_file(path(kFirst), path("m.gguf"));
  expect_refused("m.gguf", "the first of 3 parts, whose name must end in -00001-of-00003.gguf");
  EXPECT_THAT([&] { Checkpoint::of(GgufFile::open_alone(path(kFirst))); },
              ThrowsMessage<FormatError>(HasSubstr("it is one of 3 parts")));
}

TEST_F(GgufParts, ThatDoNotFitTogether) {
  write_text(path("m-00003-of-00003.gguf"), gguf_part(1, 3, "c"));
  expect_refused(kFirst, "it says that it is part 2 of 3, expected 3 of 3");
  write_text(path("m-00003-of-00003.gguf"), gguf_part(2, 4, "c"));
  expect_refused(kFirst, "it says that it is part 3 of 4, expected 3 of 3");
  write_text(path("m-00003-of-00003.gguf"), gguf_part(2, 3, "a"));
  expect_refused(kFirst, "tensor 'a' is in '" + path(kFirst).string() + "' too");
  write_text(path(kFirst), gguf_part(0, 3, "a", 4));
  write_text(path("m-00003-of-00003.gguf"), gguf_part(2, 3, "c"));
  expect_refused(kFirst, "split.tensors.count is 4, but the 3 parts hold 3");
  std::filesystem::remove(path("m-00002-of-00003.gguf"));
  expect_refused<IoError>(kFirst, "part 2 of 3 is not there; all parts must be in one folder");
  write_text(path(kFirst), gguf_part(3, 3, "a"));
  expect_refused(kFirst, "split.no is 3 and split.count is 3");
}

TEST_F(CheckpointFiles, Shards) {
  write_shards();
  write_index(R"({"c": "two", "a": "one", "b": "one"})");
  const Checkpoint checkpoint = Checkpoint::open(path(""));
  EXPECT_THAT(checkpoint.names(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(same_bits(to_float(checkpoint.tensor("a")), a_));
  EXPECT_TRUE(same_bits(to_float(checkpoint.tensor("c")), testing_support::converted<float>(c_)));
}

TEST_F(CheckpointFiles, ShardsThatTheIndexContradicts) {
  write_shards();
  write_index(R"({"c": "one", "a": "one", "b": "one"})");
  expect_folder_refused("index.json: at byte 0: tensor 'c' is not in 'one'");
  write_index(R"({"c": "two", "a": "one", "b": "one", "d": "two"})");
  expect_folder_refused("index.json: at byte 0: tensor 'd' is not in 'two'");
  write_index(R"({"c": "two", "a": "one"})");
  expect_folder_refused("tensor 'b' is not in '" + path("model.safetensors.index.json").string());
  write_index(R"({"c": "two", "a": "one", "b": "one", "e": "three"})");
  EXPECT_THAT([&] { Checkpoint::open(path("")); },
              ThrowsMessage<IoError>(HasSubstr("three': No such file or directory")));
  write_safetensors(path("two"), {{"c", c_}, {"a", a_}});
  write_index(R"({"c": "two", "a": "one", "b": "one"})");
  expect_folder_refused("tensor 'a' is in '" + path("one").string() + "' too");
}

TEST_F(CheckpointFiles, ThatCannotBeRead) {
  const auto expect_refused = [&](const std::string& name, const std::string& reason) {
    EXPECT_THAT([&] { Checkpoint::open(path(name)); },
                ThrowsMessage<IoError>("cannot read '" + path(name).string() + "': " + reason));
  };
  expect_refused("", "it has neither model.safetensors nor model.safetensors.index.json");
  expect_refused("none", "No such file or directory");
  write_text(path("empty.safetensors"), "");
  expect_refused("empty.safetensors", "it is empty");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused("pipe", "not a regular file");
  EXPECT_THAT([] { Checkpoint::open(std::string("a\0b", 3)); },
              ThrowsMessage<IoError>("cannot read 'a': the path goes on after a NUL"));
  write_text(path("short"), "GG");
  EXPECT_THAT([&] { Checkpoint::open(path("short")); },
              ThrowsMessage<FormatError>(HasSubstr("a safetensors file has at least 8 bytes")));
}

void expect_index_refused(const std::string& text, const std::string& problem) {
  EXPECT_THAT([&] { parse_checkpoint_index(text, "i"); },
              ThrowsMessage<FormatError>(HasSubstr(problem)))
      << text;
}

TEST(CheckpointIndex, IsReadWhateverElseItHolds) {
  const auto files = parse_checkpoint_index(
      R"({"weight_map": {"a": "x", "b\n": "y"}, "m": {"weight_map": [1, {"z": null}, "s", 2.5]}})",
      "i");
  EXPECT_THAT(files, ElementsAre(std::pair("a", "x"), std::pair("b\n", "y")));
  EXPECT_TRUE(parse_checkpoint_index(R"({"weight_map": {}})", "i").empty());
}

TEST(CheckpointIndex, RefusesWhatItIsNot) {
  expect_index_refused("", "i: at byte ");
  expect_index_refused("[]", "the index is an array, expected an object");
  expect_index_refused("1", "the index is a number, expected an object");
  expect_index_refused("{}", "there is no object 'weight_map'");
  expect_index_refused(R"({"m": {"weight_map": {}}})", "there is no object 'weight_map'");
  for (const auto& [value, found] :
       std::vector<std::pair<std::string, std::string>>{{"[]", "an array"},
                                                        {"1", "a number"},
                                                        {"-1", "a number"},
                                                        {"1.5", "a number"},
                                                        {"null", "null"},
                                                        {"true", "a boolean"}}) {
    expect_index_refused(R"({"weight_map": )" + value + "}",
                         "'weight_map' is " + found + ", expected an object");
    expect_index_refused(R"({"weight_map": {"a": )" + value + "}}",
                         "tensor 'a' lies in " + found + ", expected a string");
  }
  expect_index_refused(R"({"weight_map": "x"})", "'weight_map' is a string, expected an object");
  expect_index_refused(R"({"weight_map": {"a": {}}})", "tensor 'a' lies in an object");
  expect_index_refused(R"({"weight_map": {}, "weight_map": {}})", "'weight_map' occurs twice");
  expect_index_refused(R"({"weight_map": {"a": "x", "a": "x"}})", "tensor 'a' occurs twice");
  expect_index_refused(R"({"weight_map": {"a": "x"})", "not valid JSON");
  expect_index_refused(R"({"weight_map": {"a": 1e999}})", "not valid JSON");
  expect_index_refused("{\"weight_map\": {\"a\": \"\xFF\"}}", "not valid JSON");
}

TEST(CheckpointIndex, RefusesFilesElsewhere) {
  for (const std::string file : {"", ".", "..", "../x", "/x", "a/b", "a\\\\b", "x\\u0000y"}) {
    expect_index_refused(R"({"weight_map": {"a": ")" + file + R"("}})",
                         "expected the name of a file in the same folder");
  }
}

}  // namespace
}  // namespace heed::models
