// Tiles of keys and values as rows of floats: where they lie, or copied.
#pragma once

#include <cstdint>

#include "attention/fused/job.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::fused {

class TileReader {
 public:
  TileReader(const Schedule& schedule, Workspace& workspace);

  // Prepares for one key head.
  void start(const Job& job, std::int64_t batch, std::int64_t kv_head);

  // At most kTileKeys keys. A copy stands until the next call.
  kernels::Tile read(RowRange keys);

 private:
  const float* rows_at(const Rows& rows, RowRange keys, std::int64_t dim, float* staged,
                       std::int64_t& stride) const;

  const Schedule& schedule_;
  const Job* job_ = nullptr;
  std::int64_t batch_ = 0;
  std::int64_t kv_head_ = 0;
  float* staged_key_ = nullptr;    // [kTileKeys][head_dim]
  float* staged_value_ = nullptr;  // [kTileKeys][value_dim]
};

}  // namespace heed::inline v0::fused
