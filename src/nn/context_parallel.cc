#include "heed/nn/context_parallel.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "heed/core/error.h"
#include "nn/divided_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

thread_local const ContextParallel* innermost = nullptr;

// Returns, of numbers [rows, length], the columns of this rank's tokens.
Tensor<std::int64_t> own_columns(const Communicator& ranks,
                                 const TensorView<const std::int64_t>& whole) {
  Tensor<std::int64_t> own =
      distributed::own_tokens(ranks, whole.reshape({whole.extent(0), 1, whole.extent(1)}));
  const Shape shape{own.extent(0), own.extent(2)};
  return std::move(own).reshaped(shape);
}

Tensor<std::int64_t> places_of_own(const Communicator& ranks, std::int64_t length) {
  if (length < 0) {
    throw InvalidArgument(
        fmt::format("ContextParallel: length is {}, expected at least 0", length));
  }
  Tensor<std::int64_t> all({1, length});
  std::iota(all.data(), all.data() + length, std::int64_t{0});
  Tensor<std::int64_t> own = own_columns(ranks, all.view());
  const Shape shape{own.extent(1)};
  return std::move(own).reshaped(shape);
}

}  // namespace

ContextParallel::ContextParallel(Communicator& ranks, std::int64_t length)
    : ranks_(ranks),
      length_(length),
      places_(places_of_own(ranks, length)),
      outer_(std::exchange(innermost, this)) {}

ContextParallel::~ContextParallel() { innermost = outer_; }

const ContextParallel* ContextParallel::current() noexcept { return innermost; }

Tensor<std::int64_t> ContextParallel::own(TensorView<const std::int64_t> whole) const {
  if (whole.rank() != 2 || whole.extent(1) != length_) {
    throw InvalidArgument(
        fmt::format("ContextParallel::own: whole has shape {}, expected [batch, length = {}]",
                    to_string(whole.shape()), length_));
  }
  const Tensor<std::int64_t> contiguous = to_tensor(whole);
  return own_columns(ranks_, contiguous.view());
}

void refuse_divided(const std::string& function) {
  if (ContextParallel::current() == nullptr) return;
  throw InvalidArgument(fmt::format(
      "{}: the tokens of a sequence are divided over ranks (ContextParallel), expected all of "
      "them: only attention by a softmax divides them",
      function));
}

std::int64_t length_of_sequence(const std::string& function, std::int64_t num_tokens) {
  const ContextParallel* const divided = ContextParallel::current();
  if (divided == nullptr) return num_tokens;
  const std::int64_t own = divided->places().extent(0);
  if (num_tokens == own) return divided->length();
  throw InvalidArgument(fmt::format(
      "{}: x has {} tokens, expected the {} of {} that rank {} of {} has (ContextParallel)",
      function, num_tokens, own, divided->length(), divided->ranks().rank(),
      divided->ranks().size()));
}

}}}  // namespace heed::v0::nn
