// The mask of a prefix: keys that every query sees.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/masks/aligned.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::Aligned;

class Prefix final : public Aligned {
 public:
  Prefix(std::int64_t length, Alignment alignment)
      : Aligned("prefix", fmt::format("{}", length), std::move(alignment)), length_(length) {}

 private:
  RowRange range_at(std::int64_t position) const override {
    return {0, std::max(length_, position + 1)};
  }

  std::int64_t length_;
};

}  // namespace

Mask prefix(std::int64_t length, Alignment alignment) {
  if (length < 0) {
    throw InvalidArgument(fmt::format("prefix: length is {}, expected at least 0", length));
  }
  return Mask(std::make_shared<Prefix>(length, std::move(alignment)));
}

}}  // namespace heed::v0
