// The backward pass of packed sequences: a call for each sequence, prepared for the largest.
#include <cstddef>
#include <utility>
#include <vector>

#include "attention/calls/packed_problem.h"
#include "attention/request/gradient_tensors.h"
#include "core/float_environment.h"
#include "heed/attention/packed.h"

namespace heed { inline namespace v0 {

namespace {

constexpr const char* kBackwardFunction = "attention_packed_backward";

using Sequence = PackedSequence<float>;

// The output of the forward pass and its gradient.
struct Outputs {
  FloatView grad_out;
  FloatView out;
  FloatView lse;
  FloatView lse_low;  // empty when not known
};

void check_outputs(const Outputs& outputs, FloatView query, FloatView value) {
  const Shape out{query.extent(0), query.extent(1), value.extent(2)};
  check_tensor(kBackwardFunction, "grad_out", outputs.grad_out, out);
  check_tensor(kBackwardFunction, "grad_out", outputs.grad_out.to_rank(4),
               {1, out[0], out[1], out[2]});
  check_tensor(kBackwardFunction, "forward.out", outputs.out, out);
  check_tensor(kBackwardFunction, "forward.lse", outputs.lse, {query.extent(1), query.extent(0)});
  if (!outputs.lse_low.empty()) {
    check_tensor(kBackwardFunction, "forward.lse_low", outputs.lse_low, outputs.lse.shape());
  }
}

void add(FloatView from, TensorView<float> to) {
  const float* number = from.data();
  for_each_element(to, [&number](float& element) { element += *number++; });
}

// A gradient of cells with several batch entries has one for each sequence.
TensorView<float> entry_of(const TensorView<float>& cells, const Sequence& sequence) {
  if (cells.rank() < 4 || cells.extent(0) == 1) return cells;
  return cells.slice(0, sequence.index, sequence.index + 1);
}

class PackedBackward {
 public:
  PackedBackward(std::vector<Sequence> sequences, const Outputs& outputs)
      : sequences_(std::move(sequences)), outputs_(outputs) {}

  AttentionGradients<float> run(FloatView query, FloatView key, FloatView value,
                                const AttentionOptions& options) && {
    gradients_ = {zero_gradients(options), Tensor<float>(query.shape()), Tensor<float>(key.shape()),
                  Tensor<float>(value.shape())};
    if (!sequences_.empty()) compute();
    return std::move(gradients_);
  }

 private:
  using Gradient = ScoreTerm<float>::Gradient;

  void compute() {
    const auto pass = prepare_packed(sequences_, Pass::kBackward);
    std::vector<OptionGradients<float>> own;
    own.reserve(sequences_.size());
    std::vector<BackwardCall<float>> calls;
    calls.reserve(sequences_.size());
    for (const Sequence& one : sequences_) {
      own.push_back(make_own_gradients(one));
      calls.push_back(call(one, own.back()));
    }
    if (cells_ == nullptr) {
      pass->backward(calls);
    } else {
      for (std::size_t i = 0; i < calls.size(); ++i) compute_with_cells(i, calls[i], *pass);
    }
    for (const OptionGradients<float>& one : own) add_to_totals(one);
  }

  // The gradients that sequences share, for one sequence, without the gradient of cells: of that
  // there is memory for one sequence at a time.
  OptionGradients<float> make_own_gradients(const Sequence& one) {
    OptionGradients<float> own;
    for (const auto& term : one.request.terms) {
      if (term->gradient() == nullptr) continue;
      if (term->sums_per_head() > 0) {
        own.*term->gradient() = Tensor<float>(term->gradient_shape());
      } else {
        cells_ = term->gradient();
      }
    }
    if (one.request.sinks) own.sinks = Tensor<float>(one.request.sinks->shape());
    return own;
  }

  BackwardCall<float> call(const Sequence& one, OptionGradients<float>& own) {
    BackwardCall<float> call{call_of(one.request, one.query, one.key, one.value),
                             rows_of(one.of_queries(outputs_.grad_out)),
                             rows_of(one.of_queries(outputs_.out)),
                             one.of_lse(outputs_.lse),
                             {},
                             {}};
    if (!outputs_.lse_low.empty()) call.lse_low = one.of_lse(outputs_.lse_low);
    call.batches = one.batches();
    call.gradients.query = rows_of(one.of_queries(gradients_.query.view()));
    call.gradients.key = rows_of(one.of_keys(gradients_.key.view()));
    call.gradients.value = rows_of(one.of_keys(gradients_.value.view()));
    aim_at_options(one.request, own, call.gradients);
    return call;
  }

  void compute_with_cells(std::size_t i, BackwardCall<float>& call, const Prepared<float>& pass) {
    const ScoreShape& shape = sequences_[i].request.scores();
    const TensorView<float> shared = entry_of((gradients_.*cells_).view(), sequences_[i]);
    Tensor<float> own(shared.shape());
    if (!own.empty()) {
      call.gradients.cells =
          own.view().broadcast_to({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
    }
    pass.backward({&call, 1});
    add(own, shared);
  }

  void add_to_totals(const OptionGradients<float>& own) {
    for (const auto& term : sequences_.front().request.terms) {
      if (term->sums_per_head() > 0) add(own.*term->gradient(), gradients_.*term->gradient());
    }
    if (!own.sinks.empty()) add(own.sinks, gradients_.sinks);
  }

  std::vector<Sequence> sequences_;
  Outputs outputs_;
  Gradient cells_ = nullptr;  // the gradient that consists of cells
  AttentionGradients<float> gradients_;
};

}  // namespace

AttentionGradients<float> attention_packed_backward(FloatView grad_out, FloatView query,
                                                    FloatView key, FloatView value,
                                                    const PackedSequences& sequences,
                                                    const AttentionOutputView<float>& forward,
                                                    const AttentionOptions& options) {
  const FloatEnvironment environment;
  auto checked = check_packed(kBackwardFunction, query, key, value, sequences, options);
  const Outputs outputs{grad_out, forward.out, forward.lse, forward.lse_low};
  check_outputs(outputs, query, value);
  return PackedBackward(std::move(checked), outputs).run(query, key, value, options);
}

}}  // namespace heed::v0
