// Tiles of doubles for user's functions that take tiles of floats only.
#include <cstdint>

#include "heed/attention/score_mod.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

// Calls use(i, position) for every score of the tile that is to be computed; i is its index.
template <class Use>
void for_each_score(const BasicScoreTile<double>& tile, Use use) {
  for (std::int32_t j = tile.begin; j < tile.end; ++j) {
    for (std::int32_t r = 0; r < tile.width; ++r) {
      use(std::int64_t{j} * tile.width + r,
          ScorePosition{tile.batch, tile.heads[r], tile.q_idx[r], tile.first_key + j});
    }
  }
}

}  // namespace

void ScoreFunction::apply_to(const BasicScoreTile<double>& tile) const {
  for_each_score(tile, [&](std::int64_t i, const ScorePosition& at) {
    if (tile.derivatives == nullptr) {
      tile.scores[i] = apply(tile.scores[i], at);
      return;
    }
    const Dual<double> result = apply(Dual<double>(tile.scores[i], tile.derivatives[i]), at);
    tile.scores[i] = result.value;
    tile.derivatives[i] = result.derivative;
  });
}

}}}  // namespace heed::v0::detail
