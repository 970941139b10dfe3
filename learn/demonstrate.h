/// Demonstrations of attention on random numbers: shapes, weights, and the effect of a causal mask.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Writes to `out` the shapes of multi-head self-attention on a random sequence, and the weights of
/// position 0 in head 0.
///
/// Draws from default_generator(), in this order: the four projections as attention_init does, then
/// the input, normal [1, seq_len, embed_dim].
/// @throws InvalidArgument when an argument is below 1 or embed_dim is not a multiple of num_heads.
void demonstrate_attention(std::ostream& out, std::int64_t seq_len = 6, std::int64_t embed_dim = 32,
                           std::int64_t num_heads = 4);

/// Writes to `out` the causal mask of a sequence and the weights of position 0 without and with it.
///
/// Draws from default_generator(), in this order: query, key and value, each normal
/// [1, 1, seq_len, 8].
/// @throws InvalidArgument when seq_len is below 1.
void demonstrate_causal_attention(std::ostream& out, std::int64_t seq_len = 6);

}}  // namespace heed::v0
