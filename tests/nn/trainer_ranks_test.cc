// Trainers on several ranks: the losses of one process, reproducible bits, errors on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/distributed/thread_ranks.h"
#include "heed/nn/layers.h"
#include "heed/nn/ops.h"
#include "heed/nn/trainer.h"
#include "heed/train/training_run.h"
#include "io/io_test_util.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;

constexpr std::int64_t kBatch = 4;

// A run whose batches of four rows are drawn from the default generator.
class RankRun {
 public:
  RankRun(Communicator* ranks, const std::filesystem::path& checkpoint, double dropout = 0,
          std::int64_t width = 5)
      : share_(train::share_of_batch(kBatch, ranks)),
        width_(width),
        model_((set_seed(3), width), width),
        dropout_(dropout),
        optimizer_(model_.parameters(), 1e-2),
        trainer(model_, optimizer_,
                {.schedule = {.peak = 1e-2, .warmup_steps = 3, .total_steps = 20},
                 .checkpoint = checkpoint,
                 .save_every = 4,
                 .ranks = ranks}) {}

  bool run(std::int64_t last = 20) {
    return trainer.run([this] { return loss(); },
                       [&](const TrainingStep& done) {
                         losses.push_back(done.loss);
                         weight = done.weight;
                         return done.step < last;
                       });
  }

  BatchLoss<float> loss() {
    const Tensor<float> batch = default_generator().randn({kBatch, width_});
    if (share_.count == 0) return {{}, 0};
    const Variable<float> x(
        to_tensor(batch.view().slice(0, share_.first, share_.first + share_.count)));
    const Variable<float> difference = dropout_.forward(model_.forward(x)) - x;
    return {mean(difference * difference), static_cast<double>(share_.count)};
  }

  std::vector<double> losses;
  double weight = 0;

 private:
  train::BatchShare share_;
  std::int64_t width_;
  Linear<float> model_;
  Dropout<float> dropout_;
  AdamW<float> optimizer_;

 public:
  Trainer<float> trainer;
};

class TrainerRanks : public IoTest {
 protected:
  // Returns the losses that all ranks see, which must be equal.
  std::vector<double> losses_of(int size, const std::string& checkpoint, double dropout = 0) {
    std::vector<std::vector<double>> losses(static_cast<std::size_t>(size));
    run_thread_ranks(size, [&](Communicator& ranks) {
      RankRun run(&ranks, path(checkpoint), dropout);
      EXPECT_TRUE(run.run());
      EXPECT_EQ(run.weight, kBatch);
      losses[static_cast<std::size_t>(ranks.rank())] = run.losses;
    });
    for (const auto& of_rank : losses) EXPECT_EQ(of_rank, losses[0]);
    return losses[0];
  }
};

TEST_F(TrainerRanks, LossesAreThoseOfOneProcess) {
  RankRun alone(nullptr, path("alone"));
  alone.run();
  for (const int size : {1, 2, 3, 4, 6}) {
    const std::vector<double> losses = losses_of(size, "ranks" + std::to_string(size));
    ASSERT_EQ(losses.size(), 20U);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], alone.losses[i], 2e-6 * alone.losses[i]) << size << ' ' << i;
    }
  }
  EXPECT_EQ(read_text(path("ranks1")), read_text(path("alone")));
}

TEST_F(TrainerRanks, AsManyRanksGiveTheSameBits) {
  for (const int size : {2, 6}) {
    for (const double dropout : {0.0, 0.3}) {
      losses_of(size, "one", dropout);
      losses_of(size, "other", dropout);
      EXPECT_EQ(read_text(path("one")), read_text(path("other"))) << size << ' ' << dropout;
    }
  }
}

TEST_F(TrainerRanks, ARunGoesOnWithTheSameNumberOrAnother) {
  const std::vector<double> whole = losses_of(3, "whole");
  run_thread_ranks(3, [&](Communicator& ranks) {
    RankRun run(&ranks, path("part"));
    EXPECT_FALSE(run.run(7));
  });
  std::filesystem::copy_file(path("part"), path("other"));
  run_thread_ranks(3, [&](Communicator& ranks) {
    RankRun run(&ranks, ranks.rank() == 0 ? path("part") : path("nowhere"));
    set_seed(99 + static_cast<std::uint64_t>(ranks.rank()));
    run.trainer.resume();
    EXPECT_EQ(run.trainer.step(), 7);
    EXPECT_TRUE(run.run());
  });
  EXPECT_EQ(read_text(path("part")), read_text(path("whole")));
  run_thread_ranks(2, [&](Communicator& ranks) {
    RankRun run(&ranks, path("other"));
    run.trainer.resume();
    EXPECT_TRUE(run.run());
    EXPECT_NEAR(run.losses.back(), whole.back(), 2e-6 * whole.back());
  });
}

TEST_F(TrainerRanks, WhatRankZeroHasCounts) {
  losses_of(2, "whole");
  run_thread_ranks(2, [&](Communicator& ranks) {
    RankRun run(&ranks, path("part"));
    if (ranks.rank() == 1) {
      set_seed(5);
      run.loss().loss.backward();
    }
    EXPECT_TRUE(run.run());
  });
  EXPECT_EQ(read_text(path("part")), read_text(path("whole")));
}

TEST_F(TrainerRanks, AnyRankEndsTheRun) {
  run_thread_ranks(3, [&](Communicator& ranks) {
    RankRun run(&ranks, path("run"));
    EXPECT_FALSE(run.run(ranks.rank() == 2 ? 5 : 20));
    EXPECT_EQ(run.trainer.step(), 5);
  });
}

TEST_F(TrainerRanks, WhatOneThrowsAllThrow) {
  run_thread_ranks(3, [&](Communicator& ranks) {
    RankRun run(&ranks, path("run"));
    const auto loss = [&]() -> BatchLoss<float> {
      if (ranks.rank() == 1 && run.trainer.step() == 9) throw std::runtime_error("no more data");
      return run.loss();
    };
    EXPECT_THAT([&] { run.trainer.run(loss); },
                ThrowsMessage<std::runtime_error>(StrEq("rank 1: no more data")));
    EXPECT_EQ(run.trainer.step(), 9);
    const auto after = [&](const TrainingStep& done) -> bool {
      if (ranks.rank() == 2) throw InvalidArgument("cannot say so");
      return done.step > 0;
    };
    EXPECT_THAT([&] { run.trainer.run([&] { return run.loss(); }, after); },
                ThrowsMessage<InvalidArgument>(StrEq("rank 2: cannot say so")));
    RankRun elsewhere(&ranks, path("no/such/folder"));
    EXPECT_THAT([&] { elsewhere.trainer.save(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("rank 0: cannot ")));
    EXPECT_THAT([&] { elsewhere.trainer.resume(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("rank 0: cannot ")));
  });
}

TEST_F(TrainerRanks, AnotherModelIsRefusedOnAllRanks) {
  run_thread_ranks(3, [&](Communicator& ranks) {
    RankRun run(&ranks, path("run"), 0, ranks.rank() == 2 ? 6 : 5);
    EXPECT_THAT([&] { run.run(); }, ThrowsMessage<InvalidArgument>(
                                        HasSubstr("rank 2 trains another model than rank 0")));
  });
}

}  // namespace
}  // namespace heed::nn
