// The bytes of a token's key and value in a message.
#pragma once

#include <cstdint>

#include "heed/attention/plan.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 { namespace distributed {

// The bytes of a token's key and of its value, over the key heads of all batch entries.
struct TokenBytes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t key;
  std::int64_t value;

  static TokenBytes of(const AttentionShapes& shapes) {
    return {shapes.batch, shapes.num_kv_heads, shapes.head_dim * size_of(shapes.type_of_keys()),
            shapes.value_dim * size_of(shapes.type_of_values())};
  }
  std::int64_t of_tokens(std::int64_t count) const {
    return checked_multiply(checked_multiply(checked_multiply(batch, heads), count), key + value);
  }
};

}}}  // namespace heed::v0::distributed
