#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "nn/search_steps.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// The likeliest of `tokens`, at equal probability the first; row: log probabilities.
template <class T>
std::int64_t likeliest(TensorView<const T> row, const std::vector<std::int64_t>& tokens) {
  std::int64_t best = tokens.front();
  for (const std::int64_t token : tokens) {
    if (row(token) > row(best)) best = token;
  }
  return best;
}

// Takes one step of every hypothesis. Complete ones read their end token again and do not change.
template <class T>
class Greedy {
 public:
  explicit Greedy(std::int64_t num_targets)
      : hypotheses_(static_cast<std::size_t>(num_targets)),
        looks_(hypotheses_.size()),
        next_(hypotheses_.size()) {
    for (std::size_t i = 0; i < next_.size(); ++i) next_[i].target = static_cast<std::int64_t>(i);
  }

  const std::vector<NextToken>& next() const { return next_; }

  void take(const NextScores<T>& scores, const ReservedTokens& reserved) {
    const auto tokens = tokens_to_write("greedy_search", reserved, scores.logits.extent(1));
    const Variable<T> logs = log_softmax(scores.logits);
    for (auto& [target, last] : next_) {
      const auto index = static_cast<std::size_t>(target);
      Hypothesis<T>& hypothesis = hypotheses_[index];
      if (hypothesis.is_complete) continue;
      const auto row = logs.value().select(0, target);
      last = likeliest<T>(row, tokens);
      hypothesis.log_probability += static_cast<double>(row(last));
      hypothesis.is_complete = last == reserved.end;
      if (hypothesis.is_complete) continue;
      hypothesis.tokens.push_back(last);
      looks_[index].push_back(look_of<T>(scores.weights, target));
    }
  }

  bool is_done() const {
    return std::all_of(hypotheses_.begin(), hypotheses_.end(),
                       [](const auto& hypothesis) { return hypothesis.is_complete; });
  }

  std::vector<Hypothesis<T>> finish() && {
    for (std::size_t i = 0; i < hypotheses_.size(); ++i) {
      hypotheses_[i].alignment = alignment_of(looks_[i], hypotheses_[i].tokens.size());
    }
    return std::move(hypotheses_);
  }

 private:
  std::vector<Hypothesis<T>> hypotheses_;
  std::vector<Looks<T>> looks_;
  std::vector<NextToken> next_;
};

void check_max_len(const SearchOptions& options) {
  if (options.max_len >= 0) return;
  throw InvalidArgument(
      fmt::format("greedy_search: max_len is {}, expected at least 0", options.max_len));
}

}  // namespace

template <class T>
std::vector<Hypothesis<T>> greedy_search(Writer<T>& writer, const SearchOptions& options) {
  const FloatEnvironment environment;
  check_max_len(options);
  const NoGrad no_grad;
  const ReservedTokens reserved = writer.reserved();
  Greedy<T> search(writer.num_targets());
  for (std::int64_t length = 0; length < options.max_len && !search.is_done(); ++length) {
    NextScores<T> scores = length == 0 ? writer.begin() : writer.go_on(search.next());
    if (!options.return_alignment) scores.weights = {};
    search.take(scores, reserved);
  }
  return std::move(search).finish();
}

template <class T>
std::vector<Hypothesis<T>> greedy_search(Seq2Seq<T>& model, TensorView<const std::int64_t> src,
                                         const std::vector<std::int64_t>& lengths,
                                         const SearchOptions& options) {
  const FloatEnvironment environment;
  check_max_len(options);
  const NoGrad no_grad;
  const Evaluation<T> evaluation(model);
  TargetWriter<T> writer(model, model.encode(src, lengths), options.return_alignment);
  return greedy_search(writer, options);
}

template HEED_API std::vector<Hypothesis<float>> greedy_search(Writer<float>&,
                                                               const SearchOptions&);
template HEED_API std::vector<Hypothesis<double>> greedy_search(Writer<double>&,
                                                                const SearchOptions&);
template HEED_API std::vector<Hypothesis<float>> greedy_search(Seq2Seq<float>&,
                                                               TensorView<const std::int64_t>,
                                                               const std::vector<std::int64_t>&,
                                                               const SearchOptions&);
template HEED_API std::vector<Hypothesis<double>> greedy_search(Seq2Seq<double>&,
                                                                TensorView<const std::int64_t>,
                                                                const std::vector<std::int64_t>&,
                                                                const SearchOptions&);

}}}  // namespace heed::v0::nn
