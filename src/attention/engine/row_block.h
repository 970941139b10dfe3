// The rows of a problem that are computed together.
#pragma once

#include <cstdint>
#include <limits>

#include "attention/keys/key_source.h"
#include "attention/request/call.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
inline constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// Rows of one key head of one batch entry that are computed together. Row r is query first_query +
// r / group · query_step of head kv_head · group + r % group, where group is the number of heads
// that share the key head, so that neighbours see almost the same keys.
struct RowBlock {
  std::int64_t batch = 0;
  std::int64_t kv_head = 0;
  RowRange rows;
  std::int64_t first_query = 0;
  std::int64_t query_step = 1;
};

// A row within one batch entry.
struct RowIndex {
  std::int32_t head;
  std::int32_t query;  // counted from the first query of the call
};

}}}  // namespace heed::v0::engine
