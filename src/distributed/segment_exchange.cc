#include "distributed/segment_exchange.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "distributed/messages.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

std::byte* pack_rows(const Rows& from, RowRange tokens, const TokenBytes& bytes,
                     std::int64_t row_bytes, std::byte* to) {
  for (std::int64_t b = 0; b < bytes.batch; ++b) {
    for (std::int64_t h = 0; h < bytes.heads; ++h) {
      for (std::int64_t i = tokens.begin; i < tokens.end; ++i, to += row_bytes) {
        if (row_bytes > 0) {
          std::memcpy(to, from.row(b, h, i), static_cast<std::size_t>(row_bytes));
        }
      }
    }
  }
  return to;
}

Rows packed_rows(DataType type, std::int64_t count, const TokenBytes& bytes, std::int64_t row_bytes,
                 const std::byte* data) {
  return {data, type, bytes.heads * count * row_bytes, count * row_bytes, row_bytes};
}

}  // namespace

void pack_tokens(const KeyRows& from, std::int64_t first, std::int64_t count,
                 const TokenBytes& bytes, std::byte* to) {
  const RowRange tokens{first, first + count};
  to = pack_rows(from.key, tokens, bytes, bytes.key, to);
  pack_rows(from.value, tokens, bytes, bytes.value, to);
}

KeyRows packed_tokens(const KeyRows& like, std::int64_t count, const TokenBytes& bytes,
                      const std::byte* packed) {
  const std::byte* values = packed + bytes.batch * bytes.heads * count * bytes.key;
  return {packed_rows(like.key.type, count, bytes, bytes.key, packed),
          packed_rows(like.value.type, count, bytes, bytes.value, values)};
}

void SegmentExchange::Slot::wait() {
  for (const auto& transfer : transfers) transfer->wait();
  transfers.clear();
}

void SegmentExchange::take_memory() {
  const std::int64_t tokens = std::min(division_.length(), TokenDivision::kSegment);
  engine::Layout layout;
  const auto first = layout.add<std::byte>(bytes_.of_tokens(tokens));
  const auto second = layout.add<std::byte>(bytes_.of_tokens(tokens));
  memory_.emplace(layout);
  slots_[0].memory = first.in(memory_->memory());
  slots_[1].memory = second.in(memory_->memory());
}

bool SegmentExchange::is_read_by_all(std::int64_t segment) const {
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank != division_.owner(segment) && !readers_.reads(rank, segment)) return false;
  }
  return true;
}

void SegmentExchange::start(std::int64_t segment) {
  Slot& place = slot(segment);
  place.wait();
  const RowRange tokens = division_.tokens(segment);
  const std::int64_t count = tokens.end - tokens.begin;
  const std::span message(place.memory, static_cast<std::size_t>(bytes_.of_tokens(count)));
  const int owner = division_.owner(segment);
  if (owner == ranks_.rank()) {
    pack_tokens(own_, division_.first_row(segment), count, bytes_, message.data());
  }
  if (ranks_.size() == 1) return;
  if (is_read_by_all(segment)) {
    place.transfers.push_back(ranks_.broadcast(message, owner));
  } else if (owner != ranks_.rank()) {
    if (!readers_.reads(ranks_.rank(), segment)) return;
    place.transfers.push_back(ranks_.receive(message, owner, kKeysTag));
  } else {
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (rank == owner || !readers_.reads(rank, segment)) continue;
      place.transfers.push_back(ranks_.send(message, rank, kKeysTag));
    }
  }
}

KeyRows SegmentExchange::wait(std::int64_t segment) {
  Slot& place = slot(segment);
  if (division_.owner(segment) != ranks_.rank()) place.wait();
  const RowRange tokens = division_.tokens(segment);
  return packed_tokens(own_, tokens.end - tokens.begin, bytes_, place.memory);
}

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
