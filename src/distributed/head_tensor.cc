#include "distributed/head_tensor.h"

#include <algorithm>
#include <cstring>

#include "distributed/messages.h"
#include "heed/core/parallel.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 { namespace distributed {

HeadTensor::HeadTensor(Communicator& ranks, const TokenDivision& tokens, const Extents& extents)
    : ranks_(ranks), tokens_(tokens), extents_(extents) {
  rows_.type = extents.type;
  rows_.row_stride = checked_multiply(extents.dim, size_of(extents.type));
  rows_.head_stride = checked_multiply(rows_.row_stride, tokens.length());
  rows_.batch_stride = checked_multiply(rows_.head_stride, extents.heads);
  const std::int64_t bytes = checked_multiply(rows_.batch_stride, extents.batch);
  const auto message = static_cast<std::int64_t>(message_bytes(tokens.most_tokens()));
  engine::Layout parts;
  const auto tensor = parts.add<std::byte>(bytes);
  const auto sent = parts.add<std::byte>(message);
  const auto received = parts.add<std::byte>(message);
  memory_ = std::make_unique<engine::Arena>(parts);
  rows_.data = tensor.in(memory_->memory());
  sent_ = sent.in(memory_->memory());
  received_ = received.in(memory_->memory());
  std::fill_n(rows_.data, bytes, std::byte{0});
}

void HeadTensor::fetch(const Rows& own) {
  const int size = ranks_.size();
  for (int i = 0; i < size; ++i) {
    const int to = (ranks_.rank() + i) % size;
    const int from = (ranks_.rank() + size - i) % size;
    pack(own, own_part(to));
    exchange(to, own_part(to).num_tokens, from, part_of_all(from).num_tokens);
    unpack(rows_, part_of_all(from), i == 0 ? sent_ : received_);
  }
}

void HeadTensor::give(const MutableRows& own) {
  const int size = ranks_.size();
  for (int i = 0; i < size; ++i) {
    const int to = (ranks_.rank() + i) % size;
    const int from = (ranks_.rank() + size - i) % size;
    pack(rows(), part_of_all(to));
    exchange(to, part_of_all(to).num_tokens, from, own_part(from).num_tokens);
    unpack(own, own_part(from), i == 0 ? sent_ : received_);
  }
}

std::size_t HeadTensor::message_bytes(std::int64_t tokens) const {
  const std::int64_t rows =
      checked_multiply(checked_multiply(extents_.batch, extents_.heads), tokens);
  return static_cast<std::size_t>(checked_multiply(rows, row_bytes()));
}

// Calls copy(row of the tensor, offset of the row in the message in bytes).
template <class Byte, class Copy>
void HeadTensor::for_each_row(const BasicRows<Byte>& tensor, const Part& part,
                              const Copy& copy) const {
  if (row_bytes() == 0) return;
  parallel_for(0, extents_.batch * extents_.heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t head = first; head < last; ++head) {
      std::int64_t at = head * part.num_tokens * row_bytes();
      for (std::int64_t i = 0; i < part.num_tokens; ++i, at += row_bytes()) {
        const std::int64_t token = part.rank < 0 ? i : tokens_.token(part.rank, i);
        copy(tensor.row(head / extents_.heads, part.first_head + head % extents_.heads, token), at);
      }
    }
  });
}

void HeadTensor::pack(const Rows& tensor, const Part& part) {
  for_each_row(tensor, part, [&](const std::byte* row, std::int64_t at) {
    std::memcpy(sent_ + at, row, static_cast<std::size_t>(row_bytes()));
  });
}

void HeadTensor::unpack(const MutableRows& tensor, const Part& part,
                        const std::byte* message) const {
  for_each_row(tensor, part, [&](std::byte* row, std::int64_t at) {
    std::memcpy(row, message + at, static_cast<std::size_t>(row_bytes()));
  });
}

void HeadTensor::exchange(int to, std::int64_t sent_tokens, int from,
                          std::int64_t received_tokens) {
  if (to == ranks_.rank()) return;
  const std::size_t sent = message_bytes(sent_tokens);
  const std::size_t received = message_bytes(received_tokens);
  std::unique_ptr<Transfer> arriving;
  std::unique_ptr<Transfer> leaving;
  if (received > 0) arriving = ranks_.receive({received_, received}, from, kHeadsTag);
  if (sent > 0) leaving = ranks_.send({sent_, sent}, to, kHeadsTag);
  if (arriving) arriving->wait();
  if (leaving) leaving->wait();
}

}}}  // namespace heed::v0::distributed
