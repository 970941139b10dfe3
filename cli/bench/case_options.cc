#include "bench/case_options.h"

#include <cstdlib>
#include <utility>

#include "heed/attention/position.h"

namespace heed::cli {

namespace {

// The distance at which relative positions are clipped, as in Shaw et al., 2018.
constexpr std::int64_t kReach = 16;

// Returns a boolean mask [num_heads, q_len, kv_len]: head h of num_heads sees the keys at a
// distance below kv_len · (h + 1) / num_heads.
Mask head_windows(const ForwardCase& forward) {
  Tensor<bool> allowed({forward.num_heads, forward.q_len, forward.kv_len});
  for (std::int64_t h = 0; h < forward.num_heads; ++h) {
    const std::int64_t width = (h + 1) * forward.kv_len / forward.num_heads;
    for (std::int64_t q = 0; q < forward.q_len; ++q) {
      const std::int64_t position = q + forward.kv_len - forward.q_len;
      for (std::int64_t k = 0; k < forward.kv_len; ++k) {
        allowed(h, q, k) = std::abs(k - position) < width;
      }
    }
  }
  return Mask::allow(std::move(allowed));
}

}  // namespace

template <class Real>
CaseOptions<Real>::CaseOptions(const ForwardCase& forward, TorchGenerator& random) {
  const std::string& with = forward.with;
  options_.mask = mask_of(forward);
  if (with == "head-windows") options_.mask = options_.mask & head_windows(forward);
  if (with == "softcap") options_.softcap = 30;
  if (with == "exact") options_.precision = Precision::kExact;
  if (with == "dropout") options_.dropout = {.probability = 0.1F, .seed = 0};
  if (with == "score-mod") {
    options_.score_mod = [](auto score, int /*b*/, int /*h*/, int q_idx, int kv_idx) {
      return score - 0.01F * heed::abs(static_cast<float>(q_idx - kv_idx));
    };
  }
  if (with == "bias") {
    options_.bias = tensor_ = random.randn<Real>({forward.q_len, forward.kv_len});
  } else if (with == "alibi") {
    options_.alibi_slopes = tensor_ = alibi_slopes<Real>(forward.num_heads);
  } else if (with == "sinks") {
    options_.sinks = tensor_ = random.randn<Real>({forward.num_heads});
  } else if (with == "clip" || with == "t5") {
    const auto buckets = with == "t5" ? RelativeBuckets::t5() : RelativeBuckets::clip(kReach);
    tensor_ = random.randn<Real>({forward.num_heads, buckets.count()});
    options_.relative_bias = {tensor_.view(), buckets};
  } else if (with == "shaw-keys" || with == "shaw") {
    const auto buckets = RelativeBuckets::clip(kReach);
    tensor_ = random.randn<Real>({buckets.count(), forward.head_dim});
    options_.relative_vectors = {tensor_.view(), std::nullopt, buckets};
    if (with == "shaw-keys") return;
    other_tensor_ = random.randn<Real>({buckets.count(), forward.value_dim});
    options_.relative_vectors->value = other_tensor_.view();
  }
}

template class CaseOptions<float>;
template class CaseOptions<double>;

}  // namespace heed::cli
