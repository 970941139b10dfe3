#include "distributed/gathered_keys.h"

#include <cstring>

namespace heed { inline namespace v0 { namespace distributed {

namespace {

// Copies the tokens of a segment, all heads of one batch entry, to their places among all tokens.
void copy_segment(const Rows& from, RowRange tokens, const TokenBytes& bytes,
                  std::int64_t row_bytes, const Rows& to, std::byte* data) {
  if (row_bytes == 0) return;
  for (std::int64_t h = 0; h < bytes.heads; ++h) {
    for (std::int64_t i = tokens.begin; i < tokens.end; ++i) {
      std::memcpy(data + h * to.head_stride + i * row_bytes, from.row(0, h, i - tokens.begin),
                  static_cast<std::size_t>(row_bytes));
    }
  }
}

}  // namespace

GatheredKeys::GatheredKeys(Communicator& ranks, const TokenDivision& division, const KeyRows& own,
                           TokenBytes bytes) {
  bytes.batch = 1;
  const std::int64_t length = division.length();
  const auto size = static_cast<std::size_t>(bytes.of_tokens(length));
  std::unique_ptr<std::byte[]> segment;
  run_on_all(ranks, [&] {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(size);
    segment = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(bytes.of_tokens(TokenDivision::kSegment)));
  });
  rows_ = packed_tokens(own, length, bytes, memory_.get());
  rows_.key.batch_stride = rows_.value.batch_stride = 0;
  std::byte* const keys = memory_.get();
  std::byte* const values = keys + (rows_.value.data - rows_.key.data);
  for (std::int64_t j = 0; j < division.num_segments(); ++j) {
    const RowRange tokens = division.tokens(j);
    const std::int64_t count = tokens.end - tokens.begin;
    if (division.owner(j) == ranks.rank()) {
      pack_tokens(own, division.first_row(j), count, bytes, segment.get());
    }
    ranks
        .broadcast({segment.get(), static_cast<std::size_t>(bytes.of_tokens(count))},
                   division.owner(j))
        ->wait();
    const KeyRows packed = packed_tokens(own, count, bytes, segment.get());
    copy_segment(packed.key, tokens, bytes, bytes.key, rows_.key, keys);
    copy_segment(packed.value, tokens, bytes, bytes.value, rows_.value, values);
  }
}

}}}  // namespace heed::v0::distributed
