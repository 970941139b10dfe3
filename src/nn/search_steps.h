// The common parts of greedy and beam search, and the writer of targets that runs a model.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/nn/search.h"
#include "heed/nn/special_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

// Puts a module in evaluation mode while this object exists.
template <class T>
class Evaluation {
 public:
  explicit Evaluation(Module<T>& module) : module_(module), was_training_(module.is_training()) {
    module.eval();
  }
  ~Evaluation() { module_.train(was_training_); }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Module<T>& module_;
  bool was_training_;
};

// The attention weights of each token of a hypothesis, [num_heads, src_len] each.
template <class T>
using Looks = std::vector<Tensor<T>>;

// The weights of target `row`, of weights [targets, num_heads, src_len]; empty without attention.
template <class T>
Tensor<T> look_of(TensorView<const T> weights, std::int64_t row) {
  return weights.rank() == 3 ? to_tensor(weights.select(0, row)) : Tensor<T>();
}

// The tokens that a writer may write, in order, including the token that ends a target.
inline std::vector<std::int64_t> tokens_to_write(const char* function,
                                                 const ReservedTokens& reserved,
                                                 std::int64_t vocab_size) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t token = 0; token < vocab_size; ++token) {
    if (std::find(reserved.never.begin(), reserved.never.end(), token) == reserved.never.end()) {
      tokens.push_back(token);
    }
  }
  if (!tokens.empty()) return tokens;
  throw InvalidArgument(fmt::format(
      "{}: the vocabulary has {} tokens, none of which is to be written", function, vocab_size));
}

// Combines the looks to [num_heads, tokens, src_len].
template <class T>
Tensor<T> alignment_of(const Looks<T>& looks, std::size_t num_tokens) {
  if (num_tokens == 0 || looks.front().rank() != 2) return {};
  const std::int64_t num_heads = looks.front().extent(0);
  const std::int64_t src_len = looks.front().extent(1);
  const auto length = static_cast<std::int64_t>(num_tokens);
  auto result = Tensor<T>::uninitialized({num_heads, length, src_len});
  for (std::int64_t token = 0; token < length; ++token) {
    const T* look = looks[static_cast<std::size_t>(token)].data();
    for (std::int64_t head = 0; head < num_heads; ++head) {
      std::copy_n(look + head * src_len, src_len,
                  result.data() + (head * length + token) * src_len);
    }
  }
  return result;
}

// Concatenates the chosen entries of a dimension.
template <class T>
Variable<T> picked(const Variable<T>& x, int dim, const std::vector<std::int64_t>& entries) {
  if (!x.is_defined()) return x;
  std::vector<Variable<T>> parts;
  parts.reserve(entries.size());
  for (const std::int64_t entry : entries) parts.push_back(slice(x, dim, entry, entry + 1));
  return concat(parts, dim);
}

// Begins with one target for each source of a batch. Copies sources for other targets only if the
// source of some target changes.
template <class T>
class TargetWriter final : public Writer<T> {
 public:
  TargetWriter(Seq2Seq<T>& model, Encoded<T> sources, bool return_attention)
      : model_(model),
        sources_(std::move(sources)),
        return_attention_(return_attention),
        source_of_(static_cast<std::size_t>(sources_.outputs.extent(0))),
        seen_(sources_),
        state_(sources_.start) {
    std::iota(source_of_.begin(), source_of_.end(), 0);
  }

  ReservedTokens reserved() const override { return {kEosId, {kPadId, kBosId}}; }
  std::int64_t num_targets() const override { return static_cast<std::int64_t>(source_of_.size()); }

  NextScores<T> begin() override {
    return read(std::vector<std::int64_t>(source_of_.size(), kBosId));
  }

  NextScores<T> go_on(std::span<const NextToken> next) override {
    std::vector<std::int64_t> targets;
    std::vector<std::int64_t> tokens;
    for (const NextToken& one : next) {
      targets.push_back(one.target);
      tokens.push_back(one.token);
    }
    pick(targets);
    return read(tokens);
  }

 private:
  void pick(const std::vector<std::int64_t>& targets) {
    std::vector<std::int64_t> all(source_of_.size());
    std::iota(all.begin(), all.end(), 0);
    if (targets == all) return;
    state_.lstm = {picked(state_.lstm.hidden, 1, targets), picked(state_.lstm.cell, 1, targets)};
    std::vector<std::int64_t> source_of;
    source_of.reserve(targets.size());
    for (const std::int64_t target : targets) {
      source_of.push_back(source_of_[static_cast<std::size_t>(target)]);
    }
    if (source_of != source_of_) see(source_of);
    source_of_ = std::move(source_of);
  }

  void see(const std::vector<std::int64_t>& chosen) {
    seen_ = {picked(sources_.outputs, 0, chosen), {},
             picked(sources_.summary, 0, chosen), {},
             picked(sources_.keys, 0, chosen),    picked(sources_.values, 0, chosen)};
    if (sources_.lengths.empty()) return;
    seen_.lengths.reserve(chosen.size());
    for (const std::int64_t source : chosen) {
      seen_.lengths.push_back(sources_.lengths[static_cast<std::size_t>(source)]);
    }
  }

  NextScores<T> read(const std::vector<std::int64_t>& tokens) {
    const TensorView<const std::int64_t> last(tokens.data(), {num_targets(), 1});
    Decoded<T> step = model_.decode(last, seen_, state_, return_attention_);
    state_ = std::move(step.state);
    NextScores<T> scores{reshape(step.logits, {num_targets(), step.logits.extent(2)}), {}};
    if (step.weights.rank() == 4) {
      const Shape shape{num_targets(), step.weights.extent(1), step.weights.extent(3)};
      scores.weights = std::move(step.weights).reshaped(shape);
    }
    return scores;
  }

  Seq2Seq<T>& model_;
  Encoded<T> sources_;
  bool return_attention_;
  std::vector<std::int64_t> source_of_;  // the source of each target
  Encoded<T> seen_;                      // the encoded source of each target
  DecoderState<T> state_;
};

}}}  // namespace heed::v0::nn
