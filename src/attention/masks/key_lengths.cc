// Sequences of different lengths with padding at their ends.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/masks/aligned.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::MaskPart;

class KeyLengths final : public MaskPart {
 public:
  explicit KeyLengths(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {}
  void check(const ScoreShape& shape) const override {
    detail::check_key_lengths("key_lengths", lengths_, shape);
  }
  std::string description() const override {
    return fmt::format("key_lengths({})", fmt::join(lengths_, ", "));
  }
  RowRange range(const ScoreShape&, const AttentionRow& row) const override {
    return {0, lengths_[static_cast<std::size_t>(row.batch)]};
  }

 private:
  std::vector<std::int64_t> lengths_;
};

}  // namespace

Mask key_lengths(std::vector<std::int64_t> lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) {
      throw InvalidArgument(
          fmt::format("key_lengths: lengths[{}] is {}, expected at least 0", i, lengths[i]));
    }
  }
  return Mask(std::make_shared<KeyLengths>(std::move(lengths)));
}

}}  // namespace heed::v0
