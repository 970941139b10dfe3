#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "heed/special_tokens.h"
#include "nn/search_steps.h"

namespace heed::inline v0::nn {

namespace {

void check_beam(TensorView<const std::int64_t> src, const BeamOptions& options) {
  if (src.rank() != 1) {
    throw InvalidArgument(
        fmt::format("beam_search: src has shape {}, expected [src_len]", to_string(src.shape())));
  }
  if (options.beam < 1 || options.max_len < 0 || !std::isfinite(options.length_penalty)) {
    throw InvalidArgument(fmt::format(
        "beam_search: beam is {}, max_len {} and length_penalty {}; expected at least 1, at least "
        "0 and a number",
        options.beam, options.max_len, options.length_penalty));
  }
}

// A hypothesis that goes on. Looks are shared by the hypotheses that branch off.
template <class T>
struct Branch {
  std::vector<std::int64_t> tokens;
  std::vector<std::shared_ptr<const Tensor<T>>> looks;
  double log_probability = 0;
};

struct Continuation {
  std::int64_t branch;
  std::int64_t token;
  double log_probability;
};

// The `count` likeliest continuations of all branches; logs [branches, 1, vocabulary].
template <class T>
std::vector<Continuation> best_continuations(const std::vector<Branch<T>>& branches,
                                             TensorView<const T> logs, std::int64_t count) {
  std::vector<Continuation> all;
  for (std::int64_t branch = 0; branch < logs.extent(0); ++branch) {
    const double so_far = branches[static_cast<std::size_t>(branch)].log_probability;
    for (std::int64_t token = 0; token < logs.extent(2); ++token) {
      if (token == kPadId || token == kBosId) continue;
      all.push_back({branch, token, so_far + static_cast<double>(logs(branch, 0, token))});
    }
  }
  const auto kept =
      std::min(static_cast<std::ptrdiff_t>(all.size()), static_cast<std::ptrdiff_t>(count));
  // Ties go to the branch and token that come first, so that the order is the same everywhere.
  std::partial_sort(all.begin(), all.begin() + kept, all.end(),
                    [](const Continuation& a, const Continuation& b) {
                      if (a.log_probability != b.log_probability) {
                        return a.log_probability > b.log_probability;
                      }
                      return std::pair(a.branch, a.token) < std::pair(b.branch, b.token);
                    });
  all.resize(static_cast<std::size_t>(kept));
  return all;
}

// Rows of dimension 1 of a state [layers, branches, width].
template <class T>
Variable<T> pick(const Variable<T>& state, const std::vector<std::int64_t>& rows) {
  std::vector<Variable<T>> picked;
  picked.reserve(rows.size());
  for (const std::int64_t row : rows) picked.push_back(slice(state, 1, row, row + 1));
  return concat(picked, 1);
}

// The source that all branches share, once for each of them.
template <class T>
Encoded<T> repeated(const Encoded<T>& encoded, std::int64_t count) {
  const auto repeat = [count](const Variable<T>& one) {
    if (!one.is_defined()) return one;
    return one.rank() == 2 ? broadcast_to(one, {count, one.extent(1)})
                           : broadcast_to(one, {count, one.extent(1), one.extent(2)});
  };
  return {repeat(encoded.outputs), {}, repeat(encoded.summary), {}, repeat(encoded.keys),
          repeat(encoded.values)};
}

template <class T>
class Beam {
 public:
  Beam(Seq2Seq<T>& model, const BeamOptions& options, Encoded<T> encoded)
      : model_(model),
        options_(options),
        encoded_(std::move(encoded)),
        state_(encoded_.start),
        branches_(1) {}

  std::vector<Hypothesis<T>> run() && {
    while (!branches_.empty() && state_.position < options_.max_len) step();
    for (const auto& branch : branches_) finish(branch, branch.log_probability, false);
    std::stable_sort(finished_.begin(), finished_.end(),
                     [this](const auto& a, const auto& b) { return rank(a) > rank(b); });
    if (static_cast<std::int64_t>(finished_.size()) > options_.beam) {
      finished_.erase(finished_.begin() + options_.beam, finished_.end());
    }
    return std::move(finished_);
  }

 private:
  // How many may still go on: each that has ended takes a place.
  std::int64_t places() const {
    return options_.beam - static_cast<std::int64_t>(finished_.size());
  }

  void step() {
    const auto count = static_cast<std::int64_t>(branches_.size());
    Tensor<std::int64_t> last({count, 1});
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& tokens = branches_[static_cast<std::size_t>(i)].tokens;
      last(i, 0) = tokens.empty() ? kBosId : tokens.back();
    }
    const Decoded<T> decoded = model_.decode(last, repeated(encoded_, count), state_);
    const Variable<T> logs = log_softmax(decoded.logits);
    std::vector<Branch<T>> next;
    std::vector<std::int64_t> parents;
    for (const auto& continuation : best_continuations<T>(branches_, logs.value(), places())) {
      const auto& parent = branches_[static_cast<std::size_t>(continuation.branch)];
      if (continuation.token == kEosId) {
        finish(parent, continuation.log_probability, true);
        continue;
      }
      Branch<T> branch = parent;
      branch.tokens.push_back(continuation.token);
      branch.looks.push_back(
          std::make_shared<const Tensor<T>>(look_of<T>(decoded.weights, continuation.branch)));
      branch.log_probability = continuation.log_probability;
      next.push_back(std::move(branch));
      parents.push_back(continuation.branch);
    }
    branches_ = std::move(next);
    state_.position = decoded.state.position;
    if (parents.empty()) return;
    state_.lstm = {pick(decoded.state.lstm.hidden, parents),
                   pick(decoded.state.lstm.cell, parents)};
  }

  void finish(const Branch<T>& branch, double log_probability, bool is_complete) {
    Looks<T> looks;
    for (const auto& look : branch.looks) looks.push_back(to_tensor(look->view()));
    finished_.push_back(
        {branch.tokens, alignment_of(looks, branch.tokens.size()), log_probability, is_complete});
  }

  double rank(const Hypothesis<T>& hypothesis) const {
    const auto length = static_cast<double>(hypothesis.tokens.size());
    return hypothesis.log_probability / std::pow((5 + length) / 6, options_.length_penalty);
  }

  Seq2Seq<T>& model_;
  const BeamOptions& options_;
  Encoded<T> encoded_;
  DecoderState<T> state_;
  std::vector<Branch<T>> branches_;
  std::vector<Hypothesis<T>> finished_;
};

}  // namespace

template <class T>
std::vector<Hypothesis<T>> beam_search(Seq2Seq<T>& model, TensorView<const std::int64_t> src,
                                       const BeamOptions& options) {
  check_beam(src, options);
  const NoGrad no_grad;
  const Evaluation<T> evaluation(model);
  const Tensor<std::int64_t> batch = to_tensor(src).reshaped({1, src.extent(0)});
  return Beam<T>(model, options, model.encode(batch)).run();
}

template HEED_API std::vector<Hypothesis<float>> beam_search(Seq2Seq<float>&,
                                                             TensorView<const std::int64_t>,
                                                             const BeamOptions&);
template HEED_API std::vector<Hypothesis<double>> beam_search(Seq2Seq<double>&,
                                                              TensorView<const std::int64_t>,
                                                              const BeamOptions&);

}  // namespace heed::inline v0::nn
