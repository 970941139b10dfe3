#include "attention/fused/backward_sums.h"

#include <algorithm>
#include <vector>

#include "heed/parallel.h"

namespace heed::inline v0::fused {

BackwardSums::BackwardSums(const BackwardJob& job, const BackwardDivision& division,
                           std::int32_t lanes, Workspace& workspace)
    : job_(job),
      division_(division),
      kv_len_(job.terms().shape.kv_len),
      group_(job.terms().heads_per_kv_head),
      key_(make_rows(job.gradients.key, lanes, workspace)),
      value_(make_rows(job.gradients.value, lanes, workspace)) {
  const std::int64_t heads = division.num_tasks() * group_;
  if (job.terms().alibi_slopes) alibi_slopes_ = workspace.take<double>(heads);
  if (job.terms().sinks) sinks_ = workspace.take<double>(heads);
  if (!job.gradients.bias || division.shares_bias()) return;
  bias_heads_ = job.gradients.bias->stride(1) == 0 ? 1 : group_;
  bias_queries_ = job.gradients.bias->stride(2) == 0 ? 1 : division.queries_per_part();
  bias_keys_ = job.gradients.bias->stride(3) == 0 ? 1 : kv_len_;
  bias_ = workspace.floats(division.num_tasks() * bias_heads_ * bias_queries_ * bias_keys_);
}

BackwardSums::Rows BackwardSums::make_rows(const TensorView<float>& gradient, std::int32_t lanes,
                                           Workspace& workspace) const {
  Rows rows;
  rows.gradient = gradient;
  rows.dim = gradient.extent(3);
  rows.stride = (rows.dim + lanes - 1) / lanes * lanes;
  rows.first_part = rows.stride == rows.dim && gradient.stride(2) == rows.dim ? 1 : 0;
  rows.sums = workspace.floats(division_.num_heads() * (division_.parts() - rows.first_part) *
                               kv_len_ * rows.stride);
  return rows;
}

// `head` counts the key heads of all batch entries that are computed.
float* BackwardSums::gradient_of(const Rows& rows, std::int64_t head) const {
  const BackwardTask task = division_.task(head, 0);
  return rows.gradient.data() + task.batch * rows.gradient.stride(0) +
         task.kv_head * rows.gradient.stride(1);
}

float* BackwardSums::part_of(const Rows& rows, std::int64_t head, std::int64_t part) const {
  const std::int64_t parts = division_.parts() - rows.first_part;
  return part < rows.first_part
             ? gradient_of(rows, head)
             : rows.sums + (head * parts + part - rows.first_part) * kv_len_ * rows.stride;
}

float* BackwardSums::start(const Rows& rows, const BackwardTask& task) const {
  float* sums = part_of(rows, division_.head(task), task.part);
  if (task.part >= rows.first_part) std::fill_n(sums, kv_len_ * rows.stride, 0.0F);
  return sums;
}

TaskSums BackwardSums::start(const BackwardTask& task) {
  TaskSums sums{.key = start(key_, task),
                .key_stride = key_.stride,
                .value = start(value_, task),
                .value_stride = value_.stride};
  sums.alibi_slopes = start_heads(alibi_slopes_, task);
  sums.sinks = start_heads(sinks_, task);
  if (job_.gradients.bias) sums.bias = bias_of(task);
  if (bias_ != nullptr) {
    std::fill_n(sums.bias.data, bias_heads_ * bias_queries_ * bias_keys_, 0.0F);
  }
  return sums;
}

double* BackwardSums::start_heads(double* sums, const BackwardTask& task) const {
  if (sums == nullptr) return nullptr;
  double* started = sums + division_.index(task) * group_;
  std::fill_n(started, group_, 0.0);
  return started;
}

BiasSums BackwardSums::bias_of(const BackwardTask& task) const {
  const TensorView<float>& bias = *job_.gradients.bias;
  if (bias_ == nullptr) {
    return {bias.data() + task.batch * bias.stride(0) + task.kv_head * group_ * bias.stride(1) +
                task.queries.begin * bias.stride(2),
            bias.stride(1), bias.stride(2), bias.stride(3)};
  }
  return {bias_ + division_.index(task) * bias_heads_ * bias_queries_ * bias_keys_,
          bias_heads_ == 1 ? 0 : bias_queries_ * bias_keys_, bias.stride(2) == 0 ? 0 : bias_keys_,
          bias.stride(3) == 0 ? 0 : 1};
}

template <class Visit>
void BackwardSums::for_each_task(Visit visit) const {
  for (std::int64_t head = 0; head < division_.num_heads(); ++head) {
    for (std::int64_t part = 0; part < division_.parts(); ++part) visit(division_.task(head, part));
  }
}

void BackwardSums::write() const {
  write(key_);
  write(value_);
  if (bias_ != nullptr) for_each_task([&](const BackwardTask& task) { write_bias(task); });
  if (alibi_slopes_ != nullptr) write_heads(alibi_slopes_, job_.gradients.alibi_slopes);
  if (sinks_ != nullptr) write_heads(sinks_, job_.gradients.sinks);
}

void BackwardSums::write_heads(const double* all, float* gradient) const {
  std::vector<double> totals(static_cast<std::size_t>(job_.terms().shape.num_heads));
  for_each_task([&](const BackwardTask& task) {
    const double* sums = all + division_.index(task) * group_;
    double* total = totals.data() + task.kv_head * group_;
    for (std::int64_t h = 0; h < group_; ++h) total[h] += sums[h];
  });
  std::transform(totals.begin(), totals.end(), gradient,
                 [](double total) { return static_cast<float>(total); });
}

void BackwardSums::write(const Rows& rows) const {
  if (rows.first_part == division_.parts()) return;
  parallel_for(0, division_.num_heads(), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t head = first; head < last; ++head) {
      for (std::int64_t part = rows.first_part; part < division_.parts(); ++part) {
        write_part(rows, head, part);
      }
    }
  });
}

void BackwardSums::write_part(const Rows& rows, std::int64_t head, std::int64_t part) const {
  const float* sums = part_of(rows, head, part);
  float* gradient = gradient_of(rows, head);
  for (std::int64_t k = 0; k < kv_len_; ++k) {
    if (part == 0) {  // not added to 0, which would lose the sign of a zero
      std::copy_n(sums, rows.dim, gradient);
    } else {
      for (std::int64_t d = 0; d < rows.dim; ++d) gradient[d] += sums[d];
    }
    sums += rows.stride;
    gradient += rows.gradient.stride(2);
  }
}

void BackwardSums::write_bias(const BackwardTask& task) const {
  const TensorView<float>& bias = *job_.gradients.bias;
  const BiasSums sums = bias_of(task);
  const std::int64_t queries = bias.stride(2) == 0 ? 1 : task.queries.end - task.queries.begin;
  for (std::int64_t h = 0; h < bias_heads_; ++h) {
    for (std::int64_t q = 0; q < queries; ++q) {
      float* target = bias.data() + task.batch * bias.stride(0) +
                      (task.kv_head * group_ + h) * bias.stride(1) +
                      (task.queries.begin + q) * bias.stride(2);
      const float* from = sums.data + h * sums.head_stride + q * sums.query_stride;
      for (std::int64_t k = 0; k < bias_keys_; ++k) target[k * bias.stride(3)] += from[k];
    }
  }
}

}  // namespace heed::inline v0::fused
