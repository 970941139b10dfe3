#include "heed/nn/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <variant>

#include "heed/core/random.h"
#include "heed/io/safetensors.h"
#include "heed/nn/layers.h"
#include "io/io_test_util.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;

// A run whose batches and dropout are drawn from the default generator.
struct SmallRun {
  explicit SmallRun(const std::filesystem::path& checkpoint, std::uint64_t seed = 3)
      : model((set_seed(seed), 5), 5),
        dropout(0.3),
        optimizer(model.parameters(), 1e-2),
        trainer(model, optimizer,
                {.schedule = {.peak = 1e-2, .warmup_steps = 3, .total_steps = 20},
                 .checkpoint = checkpoint,
                 .save_every = 4,
                 .notes = {{"note", "n"}}}) {}

  Variable<float> loss() {
    const Variable<float> x(default_generator().randn({4, 5}));
    const Variable<float> difference = dropout.forward(model.forward(x)) - x;
    return mean(difference * difference);
  }
  bool run(const Trainer<float>::AfterStep& after_step = {}) {
    return trainer.run([this] { return loss(); }, after_step);
  }

  Linear<float> model;
  Dropout<float> dropout;
  AdamW<float> optimizer;
  Trainer<float> trainer;
};

class TrainerTest : public IoTest {};

AnyView view_of(const AnyTensor& any) {
  return std::visit([](const auto& tensor) { return AnyView(tensor.view()); }, any);
}

TEST_F(TrainerTest, ARunThatIsStoppedAnywhereResumesToTheSameBits) {
  SmallRun whole(path("whole"));
  EXPECT_TRUE(whole.run());
  EXPECT_EQ(whole.trainer.step(), 20);
  for (const int stop : {1, 4, 7, 19}) {
    SmallRun first(path("part"));
    EXPECT_FALSE(first.run([stop](const TrainingStep& done) { return done.step < stop; }));
    SmallRun second(path("part"), 99);
    second.trainer.resume();
    EXPECT_EQ(second.trainer.step(), stop);
    EXPECT_TRUE(second.run());
    EXPECT_EQ(read_text(path("part")), read_text(path("whole"))) << stop;
  }
}

TEST_F(TrainerTest, ACrashLosesOnlyWhatCameAfterTheLastCheckpoint) {
  SmallRun whole(path("whole"));
  whole.run();
  SmallRun first(path("part"));
  EXPECT_THROW(first.run([](const TrainingStep& done) {
    if (done.step == 11) throw std::runtime_error("crash");
    return true;
  }),
               std::runtime_error);
  SmallRun second(path("part"));
  second.trainer.resume();
  EXPECT_EQ(second.trainer.step(), 8);
  second.run();
  EXPECT_EQ(read_text(path("part")), read_text(path("whole")));
  EXPECT_EQ(read_safetensors(path("part")).metadata.at("note"), "n");
}

TEST_F(TrainerTest, NotesFollowTheRun) {
  SmallRun run(path("c"));
  EXPECT_FALSE(run.run([&run](const TrainingStep& done) {
    run.trainer.set_note("seen", std::to_string(done.step));
    return done.step < 6;
  }));
  const auto metadata = read_safetensors(path("c")).metadata;
  EXPECT_EQ(metadata.at("seen"), "6");
  EXPECT_EQ(metadata.at("note"), "n");
}

TEST_F(TrainerTest, AFinishedRunHasNothingLeftToDo) {
  SmallRun run(path("c"));
  run.run();
  SmallRun again(path("c"));
  again.trainer.resume();
  EXPECT_TRUE(again.run([](const TrainingStep&) -> bool { throw std::runtime_error("a step"); }));
}

TEST_F(TrainerTest, WithoutACheckpointNothingIsWritten) {
  SmallRun run("");
  EXPECT_TRUE(run.run());
  EXPECT_EQ(num_files(), 0U);
}

TEST_F(TrainerTest, ALossThatIsNotFiniteEndsTheRunAndKeepsTheLastCheckpoint) {
  SmallRun run(path("c"));
  int steps = 0;
  const auto loss = [&] {
    const float factor = ++steps < 6 ? 1 : std::numeric_limits<float>::infinity();
    return run.loss() * factor;
  };
  EXPECT_THAT([&] { run.trainer.run(loss); }, Refuses("loss of step 6", "inf"));
  EXPECT_EQ(read_safetensors(path("c")).metadata.at("step"), "4");
}

TEST_F(TrainerTest, WhatIsNoCheckpointIsNamed) {
  SmallRun run(path("c"));
  save(path("c"), run.model);
  EXPECT_THAT([&] { run.trainer.resume(); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr(path("c").string()), HasSubstr("it has no step"))));
  save(path("c"), run.model, {{"step", "-1"}});
  EXPECT_THAT([&] { run.trainer.resume(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("its step is not a number")));
  save(path("c"), run.model, {{"step", "1"}});
  EXPECT_THAT([&] { run.trainer.resume(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no state of a generator")));
}

TEST_F(TrainerTest, ACheckpointThatDoesNotFitLeavesTheRunAsItWas) {
  SmallRun run(path("c"));
  run.run();
  const Safetensors file = read_safetensors(path("c"));
  const Tensor<std::uint64_t> no_state({3});
  SmallRun other(path("other"), 4);
  const Tensor<float> weight = to_tensor(other.model.weight().value());
  const Tensor<std::uint64_t> random = default_generator().state();
  for (const std::string spoilt : {"optimizer.0.exp_avg", "random"}) {
    std::map<std::string, AnyView> tensors;
    for (const auto& [name, tensor] : file.tensors) tensors.insert_or_assign(name, view_of(tensor));
    tensors.insert_or_assign(spoilt, no_state.view());
    write_safetensors(path("other"), tensors, file.metadata);
    EXPECT_THROW(other.trainer.resume(), InvalidArgument) << spoilt;
    EXPECT_TRUE(testing_support::same_bits(to_tensor(other.model.weight().value()), weight));
    EXPECT_TRUE(testing_support::same_bits(default_generator().state(), random));
    EXPECT_EQ(other.trainer.step(), 0);
  }
}

TEST_F(TrainerTest, NumbersOfStepsArePositive) {
  SmallRun run("");
  EXPECT_THAT([&] { Trainer<float>(run.model, run.optimizer, {.save_every = 0}); },
              Refuses("save_every", "0"));
}

}  // namespace
}  // namespace heed::nn
