// Gradients that ranks sum during the backward pass have the bits of those summed after it.
#include "nn/rank_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/core/random.h"
#include "heed/distributed/thread_ranks.h"
#include "heed/nn/layers.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "heed/nn/trainer.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::StrEq;
using testing::ThrowsMessage;
using testing_support::same_bits;

// Three layers, each larger than a bucket (2²⁰ numbers), and one unused parameter.
constexpr std::int64_t kDeepWidth = 1030;

class Deep : public Module<float> {
 public:
  Deep() {
    set_seed(7);
    make_parameter("unused", Tensor<float>({3}));
    for (const char* name : {"first", "second", "third"}) {
      layers_.push_back(&make_module<Linear<float>>(name, kDeepWidth, kDeepWidth));
    }
  }

  // `below` is applied to the output of the first layer.
  Variable<float> loss(const Variable<float>& x,
                       const std::function<Variable<float>(const Variable<float>&)>& below) {
    Variable<float> y = below(layers_[0]->forward(x));
    y = tanh(y);
    y = layers_[2]->forward(tanh(layers_[1]->forward(y)));
    return mean(y * y);
  }

  std::string class_name() const override { return "Deep"; }

 private:
  std::vector<Linear<float>*> layers_;
};

Variable<float> as_it_is(const Variable<float>& x) { return x; }

// Returns x, with `tell` called in the backward pass when its gradient is known.
Variable<float> telling(const Variable<float>& x, const std::function<void()>& tell) {
  return record<float>("telling", x.shared_value(), {x}, [tell](Step<float>& step) {
    tell();
    step.give(0, step.take_grad());
  });
}

Variable<float> part_of(const Communicator& ranks, std::uint64_t seed) {
  return TorchGenerator(seed + static_cast<std::uint64_t>(ranks.rank())).randn({2, kDeepWidth});
}

// Counts the messages that a rank sends.
class CountingSends : public Communicator {
 public:
  explicit CountingSends(Communicator& ranks) : ranks_(ranks) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to, int tag) override {
    ++num_sent;
    return ranks_.send(message, to, tag);
  }
  std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from, int tag) override {
    return ranks_.receive(message, from, tag);
  }
  std::unique_ptr<Transfer> broadcast(std::span<std::byte> message, int root) override {
    return ranks_.broadcast(message, root);
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ranks_.gather(mine, all);
  }

  int num_sent = 0;

 private:
  Communicator& ranks_;
};

TEST(Backward, SaysWhenAGradientIsFinal) {
  const Variable<float> x(Tensor<float>({2}, {1, 2}), true);
  const Variable<float> y(Tensor<float>({2}, {3, 4}), true);
  const Variable<float> apart(Tensor<float>({2}, {5, 6}), true);
  const Variable<float> product = x * y;
  const Variable<float> root = sum(product * product + x * apart);
  std::map<const detail::Node<float>*, Tensor<float>> told;
  std::vector<const detail::Node<float>*> order;
  detail::run_backward<float>(root, Tensor<float>({}, {1}), {},
                              [&](const detail::Node<float>& leaf) {
                                order.push_back(&leaf);
                                told[&leaf] = to_tensor(leaf.grad.view());
                              });
  ASSERT_EQ(order.size(), 3U);
  for (const auto* leaf : {&x, &y, &apart}) {
    ASSERT_EQ(told.count(leaf->node().get()), 1U);
    EXPECT_TRUE(same_bits(told[leaf->node().get()], to_tensor(leaf->grad())));
  }
  EXPECT_EQ(order.front(), apart.node().get());  // only the last function uses it
}

TEST(RankGradients, HaveTheBitsOfThoseAddedUpAfterwards) {
  for (const int size : {2, 3}) {
    run_thread_ranks(size, [&](Communicator& ranks) {
      Deep model;
      const BatchPart part{0, 1.0 + ranks.rank()};
      const auto of_pass = [&](bool is_overlapped) {
        model.zero_grad();
        const Variable<float> loss = model.loss(part_of(ranks, 5), as_it_is);
        if (is_overlapped) {
          SharedBatch batch = share_batch(ranks, model.parameters(), part);
          RankGradients<float> gradients(ranks, model.parameters(), batch.shares);
          detail::run_backward<float>(
              loss, Tensor<float>({}, {1}), {},
              [&](const detail::Node<float>& leaf) { gradients.take(leaf); });
          gradients.finish();
        } else {
          loss.backward();
          mean_over_ranks(ranks, model.parameters(), part);
        }
        std::vector<Tensor<float>> grads;
        for (const auto& [name, parameter] : model.named_parameters()) {
          EXPECT_EQ(parameter.has_grad(), name != "unused");
          if (parameter.has_grad()) grads.push_back(to_tensor(parameter.grad()));
        }
        return grads;
      };
      const auto overlapped = of_pass(true);
      const auto afterwards = of_pass(false);
      ASSERT_EQ(overlapped.size(), 6U);
      for (std::size_t i = 0; i < overlapped.size(); ++i) {
        EXPECT_TRUE(same_bits(overlapped[i], afterwards[i])) << size << ' ' << i;
      }
    });
  }
}

TrainerOptions two_steps(Communicator* ranks) {
  return {.schedule = {.peak = 1e-3, .warmup_steps = 0, .total_steps = 2}, .ranks = ranks};
}

// A trainer of Deep on the ranks' parts of batches.
class DeepRun {
 public:
  explicit DeepRun(Communicator& ranks)
      : optimizer(model.parameters(), 1e-3), trainer(model, optimizer, two_steps(&ranks)) {}

  Deep model;
  AdamW<float> optimizer;
  Trainer<float> trainer;
};

TEST(RankGradients, TrainTheBitsOfAStepThatAddsThemUpAfterwards) {
  run_thread_ranks(2, [](Communicator& ranks) {
    DeepRun run(ranks);
    run.trainer.run([&] {
      return BatchLoss<float>(
          run.model.loss(part_of(ranks, static_cast<std::uint64_t>(run.trainer.step())), as_it_is),
          1.0 + ranks.rank());
    });
    DeepRun other(ranks);
    for (const std::int64_t step : {0, 1}) {
      other.optimizer.set_learning_rate(two_steps(nullptr).schedule(step));
      other.optimizer.zero_grad();
      other.model.loss(part_of(ranks, static_cast<std::uint64_t>(step)), as_it_is).backward();
      mean_over_ranks(ranks, other.model.parameters(), {0, 1.0 + ranks.rank()});
      clip_grad_norm(other.model.parameters(), 1);
      other.optimizer.step();
    }
    const auto expected = other.model.parameters();
    const auto found = run.model.parameters();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(same_bits(to_tensor(found[i].value()), to_tensor(expected[i].value()))) << i;
    }
  });
}

TEST(RankGradients, AreSentWhileOthersAreComputed) {
  run_thread_ranks(3, [](Communicator& ranks) {
    CountingSends counting(ranks);
    DeepRun run(counting);
    int sent_below = 0;
    run.trainer.run(
        [&] {
          counting.num_sent = 0;
          return run.model.loss(part_of(ranks, 5), [&](const Variable<float>& x) {
            return telling(x, [&] { sent_below = counting.num_sent; });
          });
        },
        [](const TrainingStep&) { return false; });
    EXPECT_GE(sent_below, 2 * 2);  // the buckets of the layers above, to two other ranks
    EXPECT_GT(counting.num_sent, sent_below);
  });
}

TEST(RankGradients, WhereABackwardPassFailsAllThrowAndCanGoOn) {
  run_thread_ranks(3, [](Communicator& ranks) {
    DeepRun run(ranks);
    const auto failing = [&] {
      return run.model.loss(part_of(ranks, 5), [&](const Variable<float>& x) {
        return telling(x, [&] {
          if (ranks.rank() == 1) throw InvalidArgument("cannot go back");
        });
      });
    };
    EXPECT_THAT([&] { run.trainer.run(failing); },
                ThrowsMessage<InvalidArgument>(StrEq("rank 1: cannot go back")));
    EXPECT_EQ(run.trainer.step(), 0);
    EXPECT_TRUE(run.trainer.run([&] { return run.model.loss(part_of(ranks, 5), as_it_is); }));
  });
}

}  // namespace
}  // namespace heed::nn
