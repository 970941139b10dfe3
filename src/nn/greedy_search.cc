#include <fmt/format.h>

#include "heed/special_tokens.h"
#include "nn/search_steps.h"

namespace heed::inline v0::nn {

namespace {

// The likeliest token of a row of log probabilities.
template <class T>
std::int64_t likeliest(TensorView<const T> row) {
  std::int64_t best = kEosId;
  for (std::int64_t id = 0; id < row.extent(0); ++id) {
    if (id != kPadId && id != kBosId && row(id) > row(best)) best = id;
  }
  return best;
}

// Takes one step of every hypothesis; those that are complete read padding and stay.
template <class T>
class Greedy {
 public:
  explicit Greedy(std::int64_t batch)
      : hypotheses_(static_cast<std::size_t>(batch)),
        looks_(static_cast<std::size_t>(batch)),
        last_({batch, 1}) {
    std::fill_n(last_.data(), batch, kBosId);
  }

  TensorView<const std::int64_t> last() const { return last_.view(); }

  void take(const Decoded<T>& step) {
    const Variable<T> logs = log_softmax(step.logits);
    for (std::int64_t row = 0; row < last_.extent(0); ++row) {
      Hypothesis<T>& hypothesis = hypotheses_[static_cast<std::size_t>(row)];
      if (hypothesis.is_complete) continue;
      const auto row_logs = logs.value().select(0, row).select(0, 0);
      const std::int64_t token = likeliest<T>(row_logs);
      hypothesis.log_probability += static_cast<double>(row_logs(token));
      hypothesis.is_complete = token == kEosId;
      last_(row, 0) = token;
      if (hypothesis.is_complete) continue;
      hypothesis.tokens.push_back(token);
      looks_[static_cast<std::size_t>(row)].push_back(look_of<T>(step.weights, row));
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
  Tensor<std::int64_t> last_;
};

}  // namespace

template <class T>
std::vector<Hypothesis<T>> greedy_search(Seq2Seq<T>& model, TensorView<const std::int64_t> src,
                                         const std::vector<std::int64_t>& lengths,
                                         const SearchOptions& options) {
  if (options.max_len < 0) {
    throw InvalidArgument(
        fmt::format("greedy_search: max_len is {}, expected at least 0", options.max_len));
  }
  const NoGrad no_grad;
  const Evaluation<T> evaluation(model);
  const Encoded<T> encoded = model.encode(src, lengths);
  DecoderState<T> state = encoded.start;
  Greedy<T> search(src.extent(0));
  while (state.position < options.max_len && !search.is_done()) {
    const Decoded<T> step = model.decode(search.last(), encoded, state, options.return_alignment);
    search.take(step);
    state = step.state;
  }
  return std::move(search).finish();
}

template HEED_API std::vector<Hypothesis<float>> greedy_search(Seq2Seq<float>&,
                                                               TensorView<const std::int64_t>,
                                                               const std::vector<std::int64_t>&,
                                                               const SearchOptions&);
template HEED_API std::vector<Hypothesis<double>> greedy_search(Seq2Seq<double>&,
                                                                TensorView<const std::int64_t>,
                                                                const std::vector<std::int64_t>&,
                                                                const SearchOptions&);

}  // namespace heed::inline v0::nn
