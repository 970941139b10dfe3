#include "heed/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "heed/core/random.h"
#include "heed/nn/layers.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Block : Module<> {
  Variable<float> gain = make_parameter("gain", Tensor<float>({2}, {1, 2}));
  Linear<>& first = make_module<Linear<>>("first", 2, 3);
  Variable<float> table = make_buffer("table", Tensor<float>({1}, {5}));
  Linear<>& second = make_module<Linear<>>("second", 3, 2, false);
  Block() { make_constant("mask", Tensor<bool>({2}, {false, true})); }
  std::string class_name() const override { return "Block"; }
};

struct Model : Module<> {
  Block& block = make_module<Block>("block");
  Dropout<>& dropout = make_module<Dropout<>>("dropout", 0.25);
  std::string class_name() const override { return "Model"; }
};

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> result;
  for (const auto& [name, value] : state) result.push_back(name);
  return result;
}

TEST(Module, NamesItsStateAsPyTorchDoes) {
  const Model model;
  EXPECT_THAT(names(model.state_dict()),
              ElementsAre("block.gain", "block.table", "block.mask", "block.first.weight",
                          "block.first.bias", "block.second.weight"));
  std::vector<std::string> parameters;
  for (const auto& [name, variable] : model.named_parameters()) parameters.push_back(name);
  EXPECT_THAT(parameters, ElementsAre("block.gain", "block.first.weight", "block.first.bias",
                                      "block.second.weight"));
  EXPECT_EQ(model.num_parameters(), 2 + 6 + 3 + 6);
}

TEST(Module, PrintsItselfAsPyTorchDoes) {
  std::ostringstream text;
  text << Model();
  EXPECT_EQ(text.str(),
            "Model(\n"
            "  (block): Block(\n"
            "    (first): Linear(in_features=2, out_features=3, bias=True)\n"
            "    (second): Linear(in_features=3, out_features=2, bias=False)\n"
            "  )\n"
            "  (dropout): Dropout(p=0.25, inplace=False)\n"
            ")");
}

TEST(Module, TrainAndEvalReachEveryPart) {
  Model model;
  EXPECT_TRUE(model.dropout.is_training());
  model.eval();
  EXPECT_FALSE(model.dropout.is_training());
  EXPECT_FALSE(model.block.first.is_training());
  model.train();
  EXPECT_TRUE(model.dropout.is_training());
}

TEST(Module, StateGoesFromOneModelToAnother) {
  set_seed(1);
  const Model from;
  Model to;
  from.block.table.writable_value()(0) = 9;
  EXPECT_NE(from.block.first.weight().value()(0, 0), to.block.first.weight().value()(0, 0));
  to.load_state_dict(from.state_dict());
  EXPECT_EQ(to.block.table.value()(0), 9);
  const auto theirs = from.parameters();
  const auto ours = to.parameters();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(testing_support::max_difference(ours[i].value(), theirs[i].value()), 0);
  }
}

TEST(Module, ConvertsOtherElementTypes) {
  Linear<double> layer(1, 1, false);
  const Tensor<Float16> half({1, 1}, {Float16(0.5F)});
  layer.load_state_dict({{"weight", half.view()}});
  EXPECT_EQ(layer.weight().value()(0, 0), 0.5);
}

TEST(Module, NamesEveryTensorThatDoesNotFit) {
  Model model;
  const Model other;
  StateDict state = other.state_dict();
  const Tensor<float> wrong({3});
  const Tensor<bool> all({2});
  state.erase(state.begin());
  state.push_back({"block.third.weight", wrong.view()});
  state.push_back({"block.table", wrong.view()});
  state[1].value = all.view();
  state[2].value = wrong.view();
  const float before = model.block.first.bias().value()(0);
  EXPECT_THAT(
      [&] { model.load_state_dict(state); },
      ThrowsMessage<InvalidArgument>(
          "load_state_dict: the state does not fit Model: block.table is given twice; "
          "block.gain is missing; block.mask is not the constant that the module computes with; "
          "block.first.weight has shape [3], expected [3, 2]; block.third.weight is unexpected"));
  EXPECT_EQ(model.block.first.bias().value()(0), before);
}

TEST(Module, ZeroGradForgetsAll) {
  const Model model;
  sum(model.block.gain).backward();
  EXPECT_TRUE(model.block.gain.has_grad());
  model.zero_grad();
  EXPECT_FALSE(model.block.gain.has_grad());
}

}  // namespace
}  // namespace heed::nn
