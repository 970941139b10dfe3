#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "nn/search_steps.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

void check_beam(const BeamOptions& options) {
  if (options.beam < 1 || options.max_len < 0 || !std::isfinite(options.length_penalty)) {
    throw InvalidArgument(fmt::format(
        "beam_search: beam is {}, max_len {} and length_penalty {}; expected at least 1, at least "
        "0 and a number",
        options.beam, options.max_len, options.length_penalty));
  }
}

// An unfinished hypothesis. Hypotheses that branch off share its attention weights (looks).
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

// The `count` likeliest continuations of all branches by `tokens`; logs [branches, vocabulary].
template <class T>
std::vector<Continuation> best_continuations(const std::vector<Branch<T>>& branches,
                                             TensorView<const T> logs,
                                             const std::vector<std::int64_t>& tokens,
                                             std::int64_t count) {
  std::vector<Continuation> all;
  for (std::int64_t branch = 0; branch < logs.extent(0); ++branch) {
    const double so_far = branches[static_cast<std::size_t>(branch)].log_probability;
    for (const std::int64_t token : tokens) {
      all.push_back({branch, token, so_far + static_cast<double>(logs(branch, token))});
    }
  }
  const auto kept =
      std::min(static_cast<std::ptrdiff_t>(all.size()), static_cast<std::ptrdiff_t>(count));
  // At equal probability the first branch and token win, so that the order is the same everywhere.
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

template <class T>
class Beam {
 public:
  Beam(Writer<T>& writer, const BeamOptions& options)
      : writer_(writer), options_(options), reserved_(writer.reserved()), branches_(1) {}

  std::vector<Hypothesis<T>> run() && {
    std::vector<NextToken> next;
    for (std::int64_t length = 0; length < options_.max_len && !branches_.empty(); ++length) {
      next = step(length == 0 ? writer_.begin() : writer_.go_on(next));
    }
    for (const auto& branch : branches_) finish(branch, branch.log_probability, false);
    std::stable_sort(finished_.begin(), finished_.end(),
                     [this](const auto& a, const auto& b) { return rank(a) > rank(b); });
    if (static_cast<std::int64_t>(finished_.size()) > options_.beam) {
      finished_.erase(finished_.begin() + options_.beam, finished_.end());
    }
    return std::move(finished_);
  }

 private:
  // The number of hypotheses that may go on: each finished one takes a place.
  std::int64_t places() const {
    return options_.beam - static_cast<std::int64_t>(finished_.size());
  }

  // Returns the branches that go on, each with its next token.
  std::vector<NextToken> step(const NextScores<T>& scores) {
    const auto tokens = tokens_to_write("beam_search", reserved_, scores.logits.extent(1));
    const Variable<T> logs = log_softmax(scores.logits);
    std::vector<Branch<T>> branches;
    std::vector<NextToken> next;
    for (const auto& continuation :
         best_continuations<T>(branches_, logs.value(), tokens, places())) {
      const auto& parent = branches_[static_cast<std::size_t>(continuation.branch)];
      if (continuation.token == reserved_.end) {
        finish(parent, continuation.log_probability, true);
        continue;
      }
      Branch<T> branch = parent;
      branch.tokens.push_back(continuation.token);
      branch.looks.push_back(
          std::make_shared<const Tensor<T>>(look_of<T>(scores.weights, continuation.branch)));
      branch.log_probability = continuation.log_probability;
      branches.push_back(std::move(branch));
      next.push_back({continuation.branch, continuation.token});
    }
    branches_ = std::move(branches);
    return next;
  }

  void finish(const Branch<T>& branch, double log_probability, bool is_complete) {
    Looks<T> looks;
    for (const auto& look : branch.looks) looks.push_back(to_tensor(look->view()));
    finished_.push_back(
        {branch.tokens, alignment_of(looks, branch.tokens.size()), log_probability, is_complete});
  }

  double rank(const Hypothesis<T>& hypothesis) const {
    const auto length = static_cast<double>(hypothesis.tokens.size());
    return hypothesis.log_probability / elementary::pow((5 + length) / 6, options_.length_penalty);
  }

  Writer<T>& writer_;
  const BeamOptions& options_;
  ReservedTokens reserved_;
  std::vector<Branch<T>> branches_;
  std::vector<Hypothesis<T>> finished_;
};

}  // namespace

template <class T>
std::vector<Hypothesis<T>> beam_search(Writer<T>& writer, const BeamOptions& options) {
  const FloatEnvironment environment;
  check_beam(options);
  if (writer.num_targets() != 1) {
    throw InvalidArgument(
        fmt::format("beam_search: the writer begins {} targets, expected 1", writer.num_targets()));
  }
  const NoGrad no_grad;
  return Beam<T>(writer, options).run();
}

template <class T>
std::vector<Hypothesis<T>> beam_search(Seq2Seq<T>& model, TensorView<const std::int64_t> src,
                                       const BeamOptions& options) {
  const FloatEnvironment environment;
  if (src.rank() != 1) {
    throw InvalidArgument(
        fmt::format("beam_search: src has shape {}, expected [src_len]", to_string(src.shape())));
  }
  check_beam(options);
  const NoGrad no_grad;
  const Evaluation<T> evaluation(model);
  const Tensor<std::int64_t> batch = to_tensor(src).reshaped({1, src.extent(0)});
  TargetWriter<T> writer(model, model.encode(batch), true);
  return beam_search(writer, options);
}

template HEED_API std::vector<Hypothesis<float>> beam_search(Writer<float>&, const BeamOptions&);
template HEED_API std::vector<Hypothesis<double>> beam_search(Writer<double>&, const BeamOptions&);
template HEED_API std::vector<Hypothesis<float>> beam_search(Seq2Seq<float>&,
                                                             TensorView<const std::int64_t>,
                                                             const BeamOptions&);
template HEED_API std::vector<Hypothesis<double>> beam_search(Seq2Seq<double>&,
                                                              TensorView<const std::int64_t>,
                                                              const BeamOptions&);

}}}  // namespace heed::v0::nn
