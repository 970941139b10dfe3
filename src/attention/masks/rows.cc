// One range of keys for each query: Mask::rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

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

class GivenRows final : public MaskPart {
 public:
  explicit GivenRows(std::vector<RowRange> ranges) : ranges_(std::move(ranges)) {}
  void check(const ScoreShape& shape) const override {
    if (static_cast<std::int64_t>(ranges_.size()) != shape.q_len) {
      throw InvalidArgument(fmt::format("Mask::rows: {} ranges were given but q_len is {}",
                                        ranges_.size(), shape.q_len));
    }
  }
  std::string description() const override {
    std::vector<std::string> names;
    names.reserve(ranges_.size());
    for (const auto& [begin, end] : ranges_) names.push_back(fmt::format("{}:{}", begin, end));
    return fmt::format("rows({})", fmt::join(names, ", "));
  }
  RowRange range(const ScoreShape&, const AttentionRow& row) const override {
    return ranges_[static_cast<std::size_t>(row.query)];
  }

 private:
  std::vector<RowRange> ranges_;
};

}  // namespace

Mask Mask::rows(std::vector<RowRange> ranges) {
  return Mask(std::make_shared<GivenRows>(std::move(ranges)));
}

}}  // namespace heed::v0
