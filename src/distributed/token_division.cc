// The division of tokens among ranks, and tensors that are divided by it.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "distributed/agreement.h"
#include "heed/core/data_type.h"
#include "heed/core/error.h"
#include "heed/core/shape.h"
#include "heed/distributed/attention.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

constexpr int kLength = 2;  // the dimension of the tokens

template <class T>
void check_rank(const char* function, const TensorView<const T>& view) {
  if (view.rank() > kLength) return;
  throw InvalidArgument(
      fmt::format("{}: the tensor has shape {}, expected [batch, heads, length, …]", function,
                  to_string(view.shape())));
}

Shape with_length(const Shape& shape, std::int64_t length) {
  std::vector<std::int64_t> extents(shape.begin(), shape.end());
  extents[kLength] = length;
  return Shape(std::span<const std::int64_t>(extents));
}

template <class T>
void copy_tokens(const TensorView<const T>& from, const TensorView<T>& to) {
  const Tensor<T> tokens = to_tensor(from);
  const T* next = tokens.data();
  for_each_element(to, [&next](T& element) { element = *next++; });
}

// Calls visit(tokens of the whole, tokens of the part) for each segment of a rank.
template <class Visit>
void for_each_segment(const TokenDivision& division, int rank, const Visit& visit) {
  for (std::int64_t round = 0; division.segment(rank, round) < division.num_segments(); ++round) {
    const RowRange tokens = division.tokens(division.segment(rank, round));
    const std::int64_t first = round * TokenDivision::kSegment;
    visit(tokens, RowRange{first, first + tokens.end - tokens.begin});
  }
}

// Returns the division of the tensors; throws on all ranks unless their shapes fit each other.
template <class T>
TokenDivision checked_division(Communicator& ranks, const TensorView<const T>& own) {
  const char* function = "gather_tokens";
  run_on_all(ranks, [&] { check_rank(function, own); });
  const TokenDivision division = divide_tokens(function, ranks, "tokens", own.extent(kLength));
  check_alike(function, ranks, to_string(with_length(own.shape(), division.length())));
  return division;
}

}  // namespace

TokenDivision::TokenDivision(std::int64_t length, int size) : length_(length), size_(size) {
  if (length < 0) {
    throw InvalidArgument(fmt::format("TokenDivision: length is {}, expected at least 0", length));
  }
  if (size < 1) {
    throw InvalidArgument(fmt::format("TokenDivision: size is {}, expected at least 1", size));
  }
}

RowRange TokenDivision::tokens(std::int64_t segment) const noexcept {
  return {segment * kSegment, std::min((segment + 1) * kSegment, length_)};
}

std::int64_t TokenDivision::num_tokens(int rank) const noexcept {
  std::int64_t round = num_segments() / size_;
  if (segment(rank, round) >= num_segments()) --round;
  if (round < 0) return 0;
  const RowRange last = tokens(segment(rank, round));
  return round * kSegment + last.end - last.begin;
}

std::int64_t TokenDivision::most_tokens() const noexcept {
  return std::min((num_segments() + size_ - 1) / size_ * kSegment, length_);
}

template <class T>
Tensor<T> own_tokens(const Communicator& ranks, const TensorView<const T>& whole) {
  check_rank("own_tokens", whole);
  const TokenDivision division(whole.extent(kLength), ranks.size());
  auto own =
      Tensor<T>::uninitialized(with_length(whole.shape(), division.num_tokens(ranks.rank())));
  for_each_segment(division, ranks.rank(), [&](RowRange of_whole, RowRange of_own) {
    copy_tokens(whole.slice(kLength, of_whole.begin, of_whole.end),
                own.view().slice(kLength, of_own.begin, of_own.end));
  });
  return own;
}

// Ranks with fewer tokens than others send padding, so that all send equally many.
template <class T>
Tensor<T> gather_tokens(Communicator& ranks, const TensorView<const T>& own) {
  const TokenDivision division = checked_division(ranks, own);
  const Shape padded = with_length(own.shape(), division.most_tokens());
  Tensor<T> mine(padded);
  copy_tokens(own, mine.view().slice(kLength, 0, own.extent(kLength)));
  std::vector<T> all(
      static_cast<std::size_t>(checked_multiply(padded.num_elements(), ranks.size())));
  ranks.gather(std::as_bytes(std::span<const T>(mine.view().elements())),
               std::as_writable_bytes(std::span(all)));
  auto whole = Tensor<T>::uninitialized(with_length(own.shape(), division.length()));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const TensorView<const T> part(all.data() + rank * padded.num_elements(), padded);
    for_each_segment(division, rank, [&](RowRange of_whole, RowRange of_own) {
      copy_tokens(part.slice(kLength, of_own.begin, of_own.end),
                  whole.view().slice(kLength, of_whole.begin, of_whole.end));
    });
  }
  return whole;
}

template HEED_API Tensor<std::int64_t> own_tokens(const Communicator&,
                                                  const TensorView<const std::int64_t>&);
template HEED_API Tensor<float> own_tokens(const Communicator&, const TensorView<const float>&);
template HEED_API Tensor<float> gather_tokens(Communicator&, const TensorView<const float>&);
template HEED_API Tensor<Float16> own_tokens(const Communicator&, const TensorView<const Float16>&);
template HEED_API Tensor<Float16> gather_tokens(Communicator&, const TensorView<const Float16>&);
template HEED_API Tensor<BFloat16> own_tokens(const Communicator&,
                                              const TensorView<const BFloat16>&);
template HEED_API Tensor<BFloat16> gather_tokens(Communicator&, const TensorView<const BFloat16>&);
template HEED_API Tensor<double> own_tokens(const Communicator&, const TensorView<const double>&);
template HEED_API Tensor<double> gather_tokens(Communicator&, const TensorView<const double>&);

}}}  // namespace heed::v0::distributed
