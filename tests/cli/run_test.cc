#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "heed/attention/reference.h"
#include "heed/io/npy.h"
#include "support/command.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::normal;
using testing_support::same_bits;

class Run : public testing::Test {
 protected:
  // Saves query, key and value as q.npy, k.npy and v.npy.
  template <class T>
  void save(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value) {
    write_npy(folder_ / "q.npy", query.view());
    write_npy(folder_ / "k.npy", key.view());
    write_npy(folder_ / "v.npy", value.view());
  }
  void save_square() {
    save(normal<float>({3, 4}, 1), normal<float>({3, 4}, 2), normal<float>({3, 5}, 3));
  }

  CommandResult run(const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"run",         "--query",     path("q.npy"),
                                       "--key",       path("k.npy"), "--value",
                                       path("v.npy"), "--out",       path("o.npy")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return testing_support::run_command(arguments);
  }

  void expect_success(const std::vector<std::string>& options = {}) {
    const CommandResult result = run(options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }

  // Expects failure with the exit code and text, and an unchanged folder.
  void expect_error(int exit_code, const std::vector<std::string>& options,
                    const std::string& text) {
    const std::size_t before = folder_.num_files();
    const CommandResult result = run(options);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("heed run: "), HasSubstr(text)));
    EXPECT_EQ(folder_.num_files(), before);
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  template <class T>
  Tensor<T> load(const std::string& name) const {
    return std::get<Tensor<T>>(read_npy(folder_ / name));
  }

  testing_support::TemporaryFolder folder_;
};

template <class Real>
AttentionOutput<Real> computed(const Tensor<Real>& query, const Tensor<Real>& key,
                               const Tensor<Real>& value,
                               const BasicAttentionOptions<Real>& options = {}) {
  return attention_with_lse(query.view().to_rank(4), key.view().to_rank(4), value.view().to_rank(4),
                            options);
}

// Returns the reference's result, which has every weight.
template <class Real>
reference::Result<Real> expected(const Tensor<Real>& query, const Tensor<Real>& key,
                                 const Tensor<Real>& value,
                                 const BasicAttentionOptions<Real>& options = {}) {
  return reference::attention(query.view().to_rank(4), key.view().to_rank(4),
                              value.view().to_rank(4), options, reference::Keep::kWeights);
}

TEST_F(Run, WritesWhatTheLibraryComputes) {
  const auto query = normal<float>({2, 4, 5, 8}, 1);
  const auto key = normal<float>({2, 2, 7, 8}, 2);
  const auto value = normal<float>({2, 2, 7, 3}, 3);
  save(query, key, value);
  expect_success({"--mask", "causal(bottom_right)", "--mask",
                  "sliding_window(2, unbounded, bottom_right)", "--scale", "0.3", "--softcap", "2",
                  "--weights", path("w.npy"), "--lse", path("l.npy")});
  AttentionOptions options;
  options.mask = causal_bottom_right() & sliding_window(2, kUnbounded, Alignment::bottom_right());
  options.scale = 0.3F;
  options.softcap = 2;
  const auto result = expected(query, key, value, options);
  EXPECT_TRUE(same_bits(load<float>("o.npy"), result.out));
  EXPECT_TRUE(same_bits(load<float>("w.npy"), result.weights));
  EXPECT_TRUE(same_bits(load<float>("l.npy"), result.lse));
  EXPECT_EQ(folder_.num_files(), 6U);
}

TEST_F(Run, TheOutputHasTheRankOfTheQuery) {
  const auto key = normal<float>({6, 4}, 2);
  const auto value = normal<float>({6, 3}, 3);
  for (const Shape& shape : {Shape{5, 4}, Shape{2, 5, 4}, Shape{1, 2, 5, 4}}) {
    save(normal<float>(shape, 1), key, value);
    expect_success({"--weights", path("w.npy"), "--lse", path("l.npy")});
    EXPECT_EQ(load<float>("o.npy").rank(), shape.rank());
    EXPECT_EQ(load<float>("o.npy").extent(-1), 3);
    EXPECT_EQ(load<float>("w.npy").rank(), shape.rank());
    EXPECT_EQ(load<float>("w.npy").extent(-1), 6);
    EXPECT_EQ(load<float>("l.npy").rank(), shape.rank() - 1);
  }
}

TEST_F(Run, DoubleIsComputedInDouble) {
  const auto query = normal<double>({3, 4}, 1);
  const auto key = normal<double>({3, 4}, 2);
  const auto value = normal<double>({3, 5}, 3);
  save(query, key, value);
  expect_success({"--lse", path("l.npy")});
  const auto result = computed(query, key, value);
  EXPECT_TRUE(same_bits(load<double>("o.npy"), Tensor<double>(result.out).reshaped({3, 5})));
  EXPECT_TRUE(same_bits(load<double>("l.npy"), Tensor<double>(result.lse).reshaped({3})));
}

TEST_F(Run, HalfIsComputedInFloat) {
  const auto query = normal<float>({3, 4}, 1);
  Tensor<Float16> half({3, 4});
  Tensor<float> widened({3, 4});
  for (std::size_t i = 0; i < 12; ++i) {
    half.elements()[i] = Float16(query.elements()[i]);
    widened.elements()[i] = half.elements()[i];
  }
  save(half, half, half);
  expect_success({"--lse", path("l.npy")});
  const auto result = computed(widened, widened, widened);
  const auto out = load<Float16>("o.npy");
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(out.elements()[i].bits(), Float16(result.out.elements()[i]).bits());
  }
  EXPECT_EQ(load<float>("l.npy").shape(), Shape{3});
}

TEST_F(Run, AMaskMayBeGivenByName) {
  save_square();
  const auto query = load<float>("q.npy");
  const auto key = load<float>("k.npy");
  const auto value = load<float>("v.npy");
  expect_success({"--mask", "causal & (sliding_window(0, 0) | columns(2))"});
  const Mask mask = causal() & (sliding_window(0, 0) | columns(2));
  EXPECT_TRUE(same_bits(load<float>("o.npy"),
                        computed(query, key, value, {.mask = mask}).out.reshaped({3, 5})));
  const CommandResult result = run({"--mask", "causal", "--mask", "columns(2)"});
  EXPECT_THAT(result.out, HasSubstr("mask     causal & columns(2)\n"));
  expect_error(2, {"--mask", "causal & colums(2)"}, "at character 10\n  causal & colums(2)\n  ");
  expect_error(1, {"--mask", "key_lengths(4)"}, "lengths[0] is 4 but kv_len is 3");
}

TEST_F(Run, ReadsAMaskAsItIsToldTo) {
  save_square();
  const Tensor<bool> mask({3, 3}, {true, false, false, false, true, false, true, true, false});
  write_npy(path("m.npy"), mask.view());
  const auto query = load<float>("q.npy");
  const auto key = load<float>("k.npy");
  const auto value = load<float>("v.npy");
  const Shape shape{3, 5};
  expect_success({"--mask", path("m.npy"), "--mask-means", "allow"});
  EXPECT_TRUE(
      same_bits(load<float>("o.npy"),
                computed(query, key, value, {.mask = Mask::allow(mask)}).out.reshaped(shape)));
  expect_success({"--mask", path("m.npy"), "--mask-means", "block"});
  EXPECT_TRUE(
      same_bits(load<float>("o.npy"),
                computed(query, key, value, {.mask = Mask::block(mask)}).out.reshaped(shape)));
  // The same mask as integers, as tokenizers write it.
  write_npy(path("m.npy"), Tensor<std::int64_t>({3, 3}, {1, 0, 0, 0, 1, 0, 1, 1, 0}));
  expect_success({"--mask", path("m.npy"), "--mask-means", "allow"});
  EXPECT_TRUE(
      same_bits(load<float>("o.npy"),
                computed(query, key, value, {.mask = Mask::allow(mask)}).out.reshaped(shape)));
  write_npy(path("m.npy"), Tensor<std::uint8_t>({3, 3}, {1, 0, 0, 0, 1, 0, 1, 1, 0}));
  expect_success({"--mask", path("m.npy"), "--mask-means", "block"});
  EXPECT_TRUE(
      same_bits(load<float>("o.npy"),
                computed(query, key, value, {.mask = Mask::block(mask)}).out.reshaped(shape)));
  const float hidden = -std::numeric_limits<float>::infinity();
  const Tensor<float> added({3}, {0.5F, hidden, -1});
  write_npy(path("m.npy"), added.view());
  expect_success({"--mask", path("m.npy"), "--mask-means", "additive", "--mask", "causal"});
  EXPECT_TRUE(same_bits(
      load<float>("o.npy"),
      computed(query, key, value, {.mask = causal() & Mask::additive(added)}).out.reshaped(shape)));
}

TEST_F(Run, AlignmentsAndOffsetsReachTheMask) {
  save(normal<float>({2, 4}, 1), normal<float>({3, 4}, 2), normal<float>({3, 4}, 3));
  const auto second_sees_last = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all{"--weights", path("w.npy")};
    all.insert(all.end(), options.begin(), options.end());
    expect_success(all);
    return load<float>("w.npy")(1, 2) > 0;
  };
  EXPECT_FALSE(second_sees_last({"--mask", "causal(top_left)"}));
  EXPECT_TRUE(second_sees_last({"--mask", "causal(bottom_right)"}));
  EXPECT_TRUE(second_sees_last({"--mask", "causal(top_left)", "--query-offset", "1"}));
  EXPECT_TRUE(second_sees_last({"--mask", "sliding_window(0, 0)", "--query-offset", "1"}));
  expect_error(1, {"--mask", "causal"}, "causal");
  expect_error(1, {"--mask", "sliding_window(1, 0)"}, "sliding_window");
}

TEST_F(Run, SummarisesOnStdout) {
  save_square();
  const auto result = run({"--mask", "causal", "--lse", path("l.npy")});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("query    '" + path("q.npy") + "' [3, 4] float32\n"),
                    HasSubstr("mask     causal\n"), HasSubstr("scale    1/sqrt(head_dim)\n"),
                    HasSubstr("out      '" + path("o.npy") + "' [3, 5] float32\n"),
                    HasSubstr("lse      '"), HasSubstr("\ntime     ")));
}

TEST_F(Run, PrintsOneJsonObject) {
  save_square();
  const auto json = nlohmann::json::parse(run({"--json", "--scale", "0.5"}).out);
  EXPECT_EQ(json.at("out").at("file"), path("o.npy"));
  EXPECT_EQ(json.at("out").at("shape"), (std::vector<int>{3, 5}));
  EXPECT_EQ(json.at("query").at("dtype"), "float32");
  EXPECT_EQ(json.at("mask"), "none");
  EXPECT_EQ(json.at("scale"), 0.5);
  EXPECT_GE(json.at("seconds").get<double>(), 0);
  EXPECT_FALSE(json.contains("lse"));
  EXPECT_TRUE(nlohmann::json::parse(run({"--json"}).out).at("scale").is_null());
}

TEST_F(Run, AFileNameOfAnyBytesKeepsTheJsonValid) {
  save_square();
  std::filesystem::rename(path("q.npy"), path("q\xff\x1b.npy"));
  const std::vector<std::string> arguments{"run",         "--query",     path("q\xff\x1b.npy"),
                                           "--key",       path("k.npy"), "--value",
                                           path("v.npy"), "--out",       path("o\xff.npy")};
  auto with_json = arguments;
  with_json.emplace_back("--json");
  EXPECT_TRUE(nlohmann::json::accept(testing_support::run_command(with_json).out));
  const auto result = testing_support::run_command(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("q\\xFF\\x1B.npy"), testing::Not(HasSubstr("\x1b"))));
}

TEST_F(Run, AMaskWithoutItsMeaningIsRefused) {
  save_square();
  write_npy(path("m.npy"), Tensor<bool>({3, 3}));
  expect_error(2, {"--mask", path("m.npy")}, "it is never guessed");
  expect_error(2, {"--mask-means", "allow"}, "no --mask ends in .npy");
  expect_error(2, {"--mask-means", "allow", "--mask", "causal"}, "no --mask ends in .npy");
  expect_error(2, {"--mask", path("m.npy"), "--mask-means", "allow", "--mask", path("n.npy")},
               "--mask names two arrays");
  expect_error(2, {"--mask", path("m.npy"), "--mask-means", "hide"}, "hide");
}

TEST_F(Run, AMaskOfTheWrongTypeOrShapeIsRefused) {
  save_square();
  write_npy(path("m.npy"), Tensor<float>({3, 3}));
  expect_error(1, {"--mask", path("m.npy"), "--mask-means", "allow"},
               "m.npy' holds float32, expected bool, or integers 0 and 1, for a mask that means "
               "allow");
  write_npy(path("m.npy"), Tensor<std::int32_t>({2, 2}, {1, 0, -1, 2}));
  expect_error(1, {"--mask", path("m.npy"), "--mask-means", "block"},
               "m.npy' holds int32 with -1 as element 2 in row-major order, expected only 0 and 1 "
               "for a mask that means block");
  write_npy(path("m.npy"), Tensor<std::uint8_t>({3, 3}));
  expect_error(1, {"--mask", path("m.npy"), "--mask-means", "additive"},
               "m.npy' holds uint8, expected float16, float32 or float64");
  write_npy(path("m.npy"), Tensor<bool>({2, 3}));
  expect_error(1, {"--mask", path("m.npy"), "--mask-means", "block"}, "[2, 3]");
}

TEST_F(Run, TypesThatDoNotFitAreNamed) {
  save_square();
  write_npy(path("k.npy"), normal<double>({3, 4}, 2));
  expect_error(1, {}, "q.npy' holds float32 but '" + path("k.npy") + "' holds float64");
  write_npy(path("k.npy"), Tensor<std::int64_t>({3, 4}));
  expect_error(1, {}, "k.npy' holds int64, expected float16, float32 or float64");
}

TEST_F(Run, ShapesThatDoNotFitAreNamedWithTheirFiles) {
  save(normal<float>({3, 4}, 1), normal<float>({3, 6}, 2), normal<float>({3, 4}, 3));
  expect_error(1, {},
               "key head_dim is 6 but query head_dim is 4 (query '" + path("q.npy") +
                   "' [3, 4] float32, key '" + path("k.npy") + "' [3, 6] float32");
  save(normal<float>({4}, 1), normal<float>({3, 4}, 2), normal<float>({3, 4}, 3));
  expect_error(1, {}, "q.npy' has shape [4], expected 2 to 4 dimensions");
  save(normal<float>({3, 4}, 1), normal<float>({2, 3, 4}, 2), normal<float>({2, 3, 4}, 3));
  expect_error(1, {}, "num_heads is 1, expected a multiple of num_kv_heads, 2");
}

TEST_F(Run, DamagedAndMissingFilesAreNamed) {
  save_square();
  std::ofstream(path("k.npy")) << "no array";
  expect_error(1, {}, "k.npy");
  std::filesystem::remove(path("k.npy"));
  expect_error(1, {}, "k.npy");
}

TEST_F(Run, NumbersThatMakeNoSenseAreRefused) {
  save_square();
  expect_error(2, {"--scale", "inf"}, "--scale: 'inf' is not a finite number");
  expect_error(1, {"--softcap", "-1"}, "softcap is -1");
  expect_error(2, {"--scale", "big"}, "big");
  expect_error(2, {"--mask", "sliding_window(1)"}, "--mask: expected RIGHT, a number or");
  expect_error(2, {"--mask", "causal(left)"}, "--mask: expected an alignment: square, top_left");
}

TEST_F(Run, TwoFilesMayNotBeOne) {
  save_square();
  expect_error(2, {"--lse", path("./o.npy")}, "--out and --lse name the same file");
  expect_error(2, {"--weights", path("k.npy")}, "--key and --weights name the same file");
}

TEST_F(Run, AllOutputsOrNone) {
  save_square();
  expect_error(1, {"--lse", path("missing/l.npy")}, "missing/l.npy");
  std::filesystem::create_directory(path("folder"));
  expect_error(1, {"--weights", path("folder")}, "directory");
  expect_success();
  const auto before = testing_support::read_text(path("o.npy"));
  expect_error(1, {"--mask", "causal", "--softcap", "-1", "--lse", path("l.npy")}, "softcap");
  EXPECT_EQ(testing_support::read_text(path("o.npy")), before);
}

TEST_F(Run, EmptyArraysAreDefined) {
  save(Tensor<float>({0, 4}), Tensor<float>({3, 4}), Tensor<float>({3, 5}));
  expect_success();
  EXPECT_EQ(load<float>("o.npy").shape(), (Shape{0, 5}));
  save(Tensor<float>({2, 4}), Tensor<float>({0, 4}), Tensor<float>({0, 5}));
  expect_success({"--lse", path("l.npy")});
  EXPECT_TRUE(same_bits(load<float>("o.npy"), Tensor<float>({2, 5})));
  EXPECT_EQ(load<float>("l.npy")(0), -std::numeric_limits<float>::infinity());
}

TEST_F(Run, MissingOptionsAreNamed) {
  const auto result = testing_support::run_command({"run", "--query", "q.npy"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--key, --value, --out are required"));
}

}  // namespace
}  // namespace heed
