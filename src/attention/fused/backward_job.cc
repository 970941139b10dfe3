#include "attention/fused/backward_job.h"

#include <algorithm>

namespace heed::inline v0::fused {

namespace {

// Groups that are aimed at, so that several threads find work: more cost memory, and time to add
// their sums.
constexpr std::int64_t kGroups = 8;

// Rows for which a part's sums pay.
constexpr std::int64_t kRowsPerPart = 512;

}  // namespace

BackwardDivision::BackwardDivision(const BackwardJob& job, std::int32_t panel_rows)
    : first_batch_(job.batches().begin),
      batch_(job.batches().end - job.batches().begin),
      kv_heads_(job.terms().num_kv_heads()),
      q_len_(job.terms().shape.q_len),
      shares_bias_(job.gradients.bias && job.gradients.bias->stride(2) != 0 &&
                   job.gradients.bias->stride(3) != 0),
      groups_of_batch_(shares_bias_ && job.gradients.bias->stride(0) == 0
                           ? std::min<std::int64_t>(batch_, 1)
                           : batch_),
      groups_of_heads_(shares_bias_ && job.gradients.bias->stride(1) == 0
                           ? std::min<std::int64_t>(kv_heads_, 1)
                           : kv_heads_) {
  const std::int64_t groups = std::max<std::int64_t>(groups_of_batch_ * groups_of_heads_, 1);
  const std::int64_t most = job.forward.rows_per_kv_head() / kRowsPerPart;
  const std::int64_t wanted =
      std::max<std::int64_t>(std::min((kGroups + groups - 1) / groups, most), 1);
  // Whole panels, but for the last.
  const std::int64_t queries = (q_len_ + wanted - 1) / wanted;
  queries_per_part_ =
      std::max<std::int64_t>((queries + panel_rows - 1) / panel_rows * panel_rows, 1);
  parts_ = std::max<std::int64_t>((q_len_ + queries_per_part_ - 1) / queries_per_part_, 1);
}

BackwardTask BackwardDivision::task(std::int64_t head, std::int64_t part) const {
  const std::int64_t first = part * queries_per_part_;
  return {first_batch_ + head / kv_heads_,
          head % kv_heads_,
          part,
          {first, std::min(first + queries_per_part_, q_len_)}};
}

}  // namespace heed::inline v0::fused
