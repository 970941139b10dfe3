// Several documents packed into one sequence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::MaskPart;

class Documents final : public MaskPart {
 public:
  explicit Documents(std::vector<std::int64_t> boundaries) : boundaries_(std::move(boundaries)) {}
  void check(const ScoreShape& shape) const override {
    if (boundaries_.back() != shape.kv_len) {
      throw InvalidArgument(fmt::format("documents: the last boundary is {} but kv_len is {}",
                                        boundaries_.back(), shape.kv_len));
    }
    for (const std::int64_t offset : shape.query_offset.values()) {
      if (offset >= 0 && offset + shape.q_len <= shape.kv_len) continue;
      throw InvalidArgument(
          fmt::format("documents: queries at positions {} to {}, expected 0 to {}", offset,
                      offset + shape.q_len, shape.kv_len));
    }
  }
  std::string description() const override {
    return fmt::format("documents({})", fmt::join(boundaries_, ", "));
  }
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const override {
    const auto end = std::upper_bound(boundaries_.begin(), boundaries_.end(),
                                      row.query + shape.query_offset[row.batch]);
    return {*(end - 1), *end};
  }

 private:
  std::vector<std::int64_t> boundaries_;
};

}  // namespace

Mask documents(std::vector<std::int64_t> cu_seqlens) {
  if (cu_seqlens.empty() || cu_seqlens.front() != 0 ||
      !std::is_sorted(cu_seqlens.begin(), cu_seqlens.end())) {
    throw InvalidArgument(fmt::format("documents: boundaries ({}) must start at 0 and never fall",
                                      fmt::join(cu_seqlens, ", ")));
  }
  return Mask(std::make_shared<Documents>(std::move(cu_seqlens)));
}

}}  // namespace heed::v0
