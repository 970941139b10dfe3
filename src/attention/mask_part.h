// What a mask is made of, seen from inside the library.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "heed/mask.h"

namespace heed::inline v0::detail {

// A cell of the score tensor by its indices: q counts from the first query of the call.
struct Cell {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t q;
  std::int64_t k;
};

inline ScorePosition position(const ScoreShape& shape, const Cell& cell) {
  return {static_cast<std::int32_t>(cell.batch), static_cast<std::int32_t>(cell.head),
          static_cast<std::int32_t>(cell.q + shape.query_offset),
          static_cast<std::int32_t>(cell.k)};
}

// One part of a mask. A structural part is one interval of keys per query and overrides range()
// alone. An irregular one overrides is_structural() and hide(), visible() and, if it adds to
// scores, added(). Everything but check() may assume that check() passed for the same shape.
class MaskPart {
 public:
  MaskPart() = default;
  MaskPart(const MaskPart&) = delete;
  MaskPart& operator=(const MaskPart&) = delete;
  virtual ~MaskPart() = default;

  // Throws InvalidArgument when the part does not fit the shape.
  virtual void check(const ScoreShape& shape) const = 0;
  virtual std::string description() const = 0;

  virtual RowRange range(const ScoreShape& shape, std::int64_t /*batch*/,
                         std::int64_t /*q*/) const {
    return {0, shape.kv_len};
  }
  virtual bool visible(const ScoreShape& /*shape*/, const Cell& /*cell*/) const { return true; }
  virtual float added(const Cell& /*cell*/) const { return 0; }

  // How the part puts queries at keys, if it does.
  virtual const Alignment* alignment() const { return nullptr; }

  virtual bool is_structural() const { return true; }
  // Adds what is to be added to scores to `tile`, and makes what it hides −infinity there.
  virtual void hide(const ScoreShape& /*shape*/, const ScoreTile& /*tile*/,
                    const kernels::KernelTable& /*table*/) const {}
};

}  // namespace heed::inline v0::detail
