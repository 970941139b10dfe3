// The way back through packed sequences: one job for each, on the schedule of the largest.
#include <cstddef>
#include <utility>
#include <vector>

#include "attention/fused/backward.h"
#include "attention/packed_problem.h"
#include "attention/reference/backward.h"
#include "heed/packed.h"
#include "heed/parallel.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kFunction = "attention_packed_backward";

using Sequence = PackedSequence<float>;

// What belongs to the output.
struct Outputs {
  FloatView grad_out;
  FloatView out;
  FloatView lse;
};

void check_outputs(const Outputs& outputs, FloatView query, FloatView value) {
  const Shape out{query.extent(0), query.extent(1), value.extent(2)};
  check_tensor(kFunction, "grad_out", outputs.grad_out, out);
  check_tensor(kFunction, "grad_out", outputs.grad_out.to_rank(4), {1, out[0], out[1], out[2]});
  check_tensor(kFunction, "forward.out", outputs.out, out);
  check_tensor(kFunction, "forward.lse", outputs.lse, {query.extent(1), query.extent(0)});
}

void add(FloatView from, TensorView<float> to) {
  const float* number = from.data();
  for_each_element(to, [&number](float& element) { element += *number++; });
}

void copy(const Tensor<float>& from, TensorView<float> to) {
  const float* number = from.data();
  for_each_element(to, [&number](float& element) { element = *number++; });
}

// Sequence i has batch entry i of a bias that has several.
template <class T>
TensorView<T> entry_of_bias(const TensorView<T>& bias, const Sequence& sequence) {
  if (bias.rank() < 4 || bias.extent(0) == 1) return bias;
  return bias.slice(0, sequence.index, sequence.index + 1);
}

class PackedBackward {
 public:
  PackedBackward(std::vector<Sequence> sequences, const Outputs& outputs,
                 const AttentionOptions& options)
      : sequences_(std::move(sequences)), outputs_(outputs), options_(options) {}

  AttentionGradients<float> run(FloatView query, FloatView key, FloatView value) && {
    gradients_.query = Tensor<float>(query.shape());
    gradients_.key = Tensor<float>(key.shape());
    gradients_.value = Tensor<float>(value.shape());
    if (options_.alibi_slopes) {
      gradients_.alibi_slopes = Tensor<float>(options_.alibi_slopes->shape());
    }
    if (options_.sinks) gradients_.sinks = Tensor<float>(options_.sinks->shape());
    if (options_.bias) gradients_.bias = Tensor<float>(options_.bias->shape());
    if (sequences_.empty()) return std::move(gradients_);
    if (sequences_.front().call.is_fused()) {
      compute_by_kernels();
    } else {
      for (const Sequence& one : sequences_) compute_by_reference(one);
    }
    return std::move(gradients_);
  }

 private:
  void compute_by_kernels() {
    const auto count = static_cast<std::int64_t>(sequences_.size());
    const std::int64_t heads = sequences_.front().call.shapes.num_heads;
    Tensor<float> alibi_slopes({options_.alibi_slopes ? count : 0, heads});
    Tensor<float> sinks({options_.sinks ? count : 0, heads});
    std::vector<fused::BackwardJob> jobs;
    jobs.reserve(sequences_.size());
    for (const Sequence& one : sequences_) {
      fused::BackwardJob job = job_of(one);
      if (options_.alibi_slopes) {
        job.gradients.alibi_slopes = alibi_slopes.data() + one.index * heads;
      }
      if (options_.sinks) job.gradients.sinks = sinks.data() + one.index * heads;
      jobs.push_back(job);
    }
    const LargestProblem largest = largest_of(sequences_);
    const fused::Schedule schedule = fused::make_backward_schedule(
        *sequences_.front().call.schedule.table, largest.terms, largest.shapes, num_threads());
    if (options_.bias) {
      for (const Sequence& one : sequences_) {
        compute_with_bias(one, jobs[static_cast<std::size_t>(one.index)], schedule);
      }
    } else {
      fused::backward(jobs, schedule);
    }
    for (std::int64_t i = 0; i < alibi_slopes.extent(0); ++i) {
      add(alibi_slopes.view().select(0, i), gradients_.alibi_slopes);
    }
    for (std::int64_t i = 0; i < sinks.extent(0); ++i) {
      add(sinks.view().select(0, i), gradients_.sinks);
    }
  }

  fused::BackwardJob job_of(const Sequence& one) {
    fused::BackwardJob job =
        fused::make_backward_job({one.of_queries(outputs_.grad_out), one.query, one.key, one.value,
                                  one.of_queries(outputs_.out), one.of_lse(outputs_.lse)},
                                 one.call.terms, one.batches());
    job.gradients.query = one.of_queries(gradients_.query.view());
    job.gradients.key = one.of_keys(gradients_.key.view());
    job.gradients.value = one.of_keys(gradients_.value.view());
    return job;
  }

  void compute_with_bias(const Sequence& one, fused::BackwardJob& job,
                         const fused::Schedule& schedule) {
    const TensorView<float> shared = entry_of_bias(gradients_.bias.view(), one);
    Tensor<float> own(shared.shape());
    if (!own.empty()) job.gradients.bias = own.view().broadcast_to(one.call.terms.bias->shape());
    fused::backward({&job, 1}, schedule);
    add(own, shared);
  }

  void compute_by_reference(const Sequence& one) {
    const Problem<float> problem{{one.call.terms}, one.query, one.key, one.value};
    const Shape bias_shape = options_.bias ? entry_of_bias(*options_.bias, one).shape() : Shape{};
    const AttentionGradients<float> own =
        reference::backward(problem, one.of_queries(outputs_.grad_out), one.batches(),
                            options_.bias ? &bias_shape : nullptr);
    const auto entry = [](const TensorView<float>& view) { return view.slice(0, 0, 1); };
    copy(own.query, entry(one.of_queries(gradients_.query.view())));
    copy(own.key, entry(one.of_keys(gradients_.key.view())));
    copy(own.value, entry(one.of_keys(gradients_.value.view())));
    if (options_.alibi_slopes) add(own.alibi_slopes, gradients_.alibi_slopes);
    if (options_.sinks) add(own.sinks, gradients_.sinks);
    if (options_.bias) add(own.bias, entry_of_bias(gradients_.bias.view(), one));
  }

  std::vector<Sequence> sequences_;
  Outputs outputs_;
  const AttentionOptions& options_;
  AttentionGradients<float> gradients_;
};

}  // namespace

AttentionGradients<float> attention_packed_backward(FloatView grad_out, FloatView query,
                                                    FloatView key, FloatView value,
                                                    const PackedSequences& sequences,
                                                    const AttentionOutputView<float>& forward,
                                                    const AttentionOptions& options) {
  auto checked = check_packed(kFunction, query, key, value, sequences, options);
  const Outputs outputs{grad_out, forward.out, forward.lse};
  check_outputs(outputs, query, value);
  return PackedBackward(std::move(checked), outputs, options).run(query, key, value);
}

}  // namespace heed::inline v0
