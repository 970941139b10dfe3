// A tensor of this rank's heads, exchanged with tensors that are divided by tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "attention/request/tensor_rows.h"
#include "core/arena.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

// A tensor [batch, this rank's heads, all tokens, dim] without gaps, 0 at first. Every rank has
// equally many heads, in the order of ranks. All ranks call the functions below together.
class HeadTensor {
 public:
  struct Extents {
    std::int64_t batch;
    std::int64_t heads;  // of one rank
    std::int64_t dim;
    DataType type;
  };

  HeadTensor(Communicator& ranks, const TokenDivision& tokens, const Extents& extents);

  MutableRows target() const { return rows_; }
  Rows rows() const {
    return {rows_.data, rows_.type, rows_.batch_stride, rows_.head_stride, rows_.row_stride};
  }
  // A view [batch, heads, tokens] of a tensor with dim 1.
  template <class Real>
  TensorView<Real> numbers() const {
    return {reinterpret_cast<Real*>(rows_.data),
            {extents_.batch, extents_.heads, tokens_.length()}};
  }

  // Fills it from the ranks' tensors [batch, all heads, own tokens, dim].
  void fetch(const Rows& own);
  // Writes it to the ranks' tensors [batch, all heads, own tokens, dim].
  void give(const MutableRows& own);

 private:
  // The rows of a tensor that one message holds: a rank's heads from first_head on, either for its
  // own tokens or for the tokens that `rank` has among all.
  struct Part {
    std::int64_t first_head;
    std::int64_t num_tokens;
    int rank = -1;  // -1: the tensor holds own tokens only
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
  // Sends the packed tokens to a rank and receives that many tokens from another.
  void exchange(int to, std::int64_t sent_tokens, int from, std::int64_t received_tokens);

  Communicator& ranks_;
  TokenDivision tokens_;
  Extents extents_;
  MutableRows rows_;
  std::unique_ptr<engine::Arena> memory_;  // holds the tensor and two messages
  std::byte* sent_;
  std::byte* received_;
};

}}}  // namespace heed::v0::distributed
