// A tensor of this rank's heads, and the way there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "attention/request/tensor_rows.h"
#include "core/arena.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

// [batch, this rank's heads, all tokens, dim], without gaps, 0 at first. Every other rank has the
// next ones of the heads, as many, and all ranks call what follows together.
class HeadTensor {
 public:
  struct Extents {
    std::int64_t batch;
    std::int64_t heads;  // of a rank
    std::int64_t dim;
    DataType type;
  };

  HeadTensor(Communicator& ranks, const TokenDivision& tokens, const Extents& extents);

  MutableRows target() const { return rows_; }
  Rows rows() const {
    return {rows_.data, rows_.type, rows_.batch_stride, rows_.head_stride, rows_.row_stride};
  }
  // As [batch, heads, tokens], where dim is 1.
  template <class Real>
  TensorView<Real> numbers() const {
    return {reinterpret_cast<Real*>(rows_.data),
            {extents_.batch, extents_.heads, tokens_.length()}};
  }

  // Fills it from tensors [batch, all heads, own tokens, dim].
  void fetch(const Rows& own);
  // Fills such tensors from it.
  void give(const MutableRows& own);

 private:
  // The rows of a message in a tensor: a rank's heads from first_head on, of its own tokens, or of
  // those that a rank has among all.
  struct Part {
    std::int64_t first_head;
    std::int64_t num_tokens;
    int rank = -1;  // not among all
  };

  Part own_part(int rank) const {
    return {rank * extents_.heads, tokens_.num_tokens(ranks_.rank())};
  }
  Part part_of_all(int rank) const { return {0, tokens_.num_tokens(rank), rank}; }
  std::int64_t row_bytes() const { return rows_.row_stride; }
  std::size_t message_bytes(std::int64_t tokens) const;
  template <class Byte, class Copy>
  void for_each_row(const BasicRows<Byte>& tensor, const Part& part, const Copy& copy) const;
  void pack(const Rows& tensor, const Part& part);
  void unpack(const MutableRows& tensor, const Part& part, const std::byte* message) const;
  // Sends what was packed to a rank, in exchange for that many tokens of another.
  void exchange(int to, std::int64_t sent_tokens, int from, std::int64_t received_tokens);

  Communicator& ranks_;
  TokenDivision tokens_;
  Extents extents_;
  MutableRows rows_;
  std::unique_ptr<engine::Arena> memory_;  // the tensor and two messages
  std::byte* sent_;
  std::byte* received_;
};

}}}  // namespace heed::v0::distributed
