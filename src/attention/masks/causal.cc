// The causal mask.
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/masks/aligned.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::Aligned;

class Causal final : public Aligned {
 public:
  explicit Causal(Alignment alignment) : Aligned("causal", "", std::move(alignment)) {}

 private:
  RowRange range_at(std::int64_t position) const override { return {0, position + 1}; }
};

}  // namespace

Mask causal(Alignment alignment) { return Mask(std::make_shared<Causal>(std::move(alignment))); }
Mask causal_top_left() { return causal(Alignment::top_left()); }
Mask causal_bottom_right() { return causal(Alignment::bottom_right()); }
Mask causal(std::int64_t offset) { return causal(Alignment::offset(offset)); }

}}  // namespace heed::v0
