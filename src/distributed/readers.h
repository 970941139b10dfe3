// The ranks that read each segment of keys.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace distributed {

// For each rank, the segments with some key that it sees. Equal on every rank.
class Readers {
 public:
  Readers(std::int64_t num_segments, std::vector<std::uint8_t> reads)
      : num_segments_(num_segments), reads_(std::move(reads)) {}

  bool reads(int rank, std::int64_t segment) const {
    return reads_[static_cast<std::size_t>(rank * num_segments_ + segment)] != 0;
  }

 private:
  std::int64_t num_segments_;
  std::vector<std::uint8_t> reads_;  // [ranks][segments]
};

}}}  // namespace heed::v0::distributed
