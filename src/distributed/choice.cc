#include "distributed/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "heed/core/error.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

std::int64_t most(const std::vector<std::int64_t>& bytes) {
  return *std::max_element(bytes.begin(), bytes.end());
}

bool heads_divide(const AttentionShapes& shapes, int size) {
  return shapes.num_kv_heads % size == 0;
}

}  // namespace

std::string_view to_string(DividedBy by) noexcept {
  switch (by) {
    case DividedBy::kTokens:
      return "tokens";
    case DividedBy::kHeads:
      return "heads";
    case DividedBy::kAutomatic:
      break;
  }
  return "automatic";
}

std::vector<std::int64_t> bytes_by_tokens(const AttentionShapes& shapes, int size,
                                          const Readers& readers) {
  const TokenDivision keys(shapes.kv_len, size);
  const TokenBytes bytes = TokenBytes::of(shapes);
  std::vector<std::int64_t> received;
  for (int rank = 0; rank < size; ++rank) {
    std::int64_t sum = 0;
    for (std::int64_t j = 0; j < keys.num_segments(); ++j) {
      if (keys.owner(j) == rank || !readers.reads(rank, j)) continue;
      sum += bytes.of_tokens(keys.tokens(j).end - keys.tokens(j).begin);
    }
    received.push_back(sum);
  }
  return received;
}

std::vector<std::int64_t> bytes_by_heads(const AttentionShapes& shapes, int size) {
  const TokenDivision queries(shapes.q_len, size);
  const TokenDivision keys(shapes.kv_len, size);
  // The bytes of a token's query and output, in place of its key and value.
  const TokenBytes of_query{shapes.batch, shapes.num_heads / size,
                            shapes.head_dim * size_of(shapes.dtype), 0};
  const TokenBytes of_out{shapes.batch, shapes.num_heads / size * (size - 1), 0,
                          shapes.value_dim * size_of(shapes.dtype)};
  TokenBytes of_key = TokenBytes::of(shapes);
  of_key.heads /= size;
  std::vector<std::int64_t> received;
  for (int rank = 0; rank < size; ++rank) {
    const std::int64_t own = queries.num_tokens(rank);
    received.push_back(of_query.of_tokens(queries.length() - own) +
                       of_key.of_tokens(keys.length() - keys.num_tokens(rank)) +
                       of_out.of_tokens(own));
  }
  return received;
}

Choice choose_division(const char* function, const AttentionShapes& shapes, int size,
                       const Readers& readers, DividedBy wanted) {
  const bool divides = heads_divide(shapes, size);
  if (wanted == DividedBy::kHeads && !divides) {
    throw InvalidArgument(
        fmt::format("{}: num_kv_heads is {}, expected a multiple of {}, the number of ranks, to "
                    "divide heads",
                    function, shapes.num_kv_heads, size));
  }
  if (wanted != DividedBy::kAutomatic) return {wanted, "asked for"};
  if (size == 1) return {DividedBy::kTokens, "there is one rank"};
  if (!divides) {
    return {DividedBy::kTokens,
            fmt::format("{} key heads do not divide by {}", shapes.num_kv_heads, size)};
  }
  const std::int64_t by_tokens = most(bytes_by_tokens(shapes, size, readers));
  const std::int64_t by_heads = most(bytes_by_heads(shapes, size));
  const DividedBy by = by_heads < by_tokens ? DividedBy::kHeads : DividedBy::kTokens;
  return {by,
          fmt::format("the busiest rank receives {:.1f} MB by tokens, {:.1f} MB by heads",
                      static_cast<double>(by_tokens) / 1e6, static_cast<double>(by_heads) / 1e6)};
}

}}}  // namespace heed::v0::distributed
