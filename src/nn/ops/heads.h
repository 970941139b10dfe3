// Heads as views of a variable's elements, and their gradients.
#pragma once

#include <cstddef>

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"

namespace heed { inline namespace v0 { namespace nn {

// Throws InvalidArgument, naming `function` and the operand, unless the columns exist.
template <class T>
void check_heads(const char* function, const char* name, const Heads<T>& heads);

// The columns of the heads: [batch, length, width] of [batch, length, all].
template <class T>
TensorView<T> columns_in(const TensorView<T>& elements, const HeadColumns& columns);

// The heads [batch, num_heads, length, head_dim] in elements with their source's shape.
template <class T>
TensorView<T> heads_in(const TensorView<T>& elements, const HeadColumns& columns);

// Heads kept for the backward pass.
template <class T>
struct SavedHeads {
  explicit SavedHeads(const Heads<T>& heads)
      : source(heads.source), shape(heads.source.shape()), columns(heads.columns) {}
  TensorView<const T> view() const { return heads_in(source.view(), columns); }

  Saved<T> source;
  Shape shape;  // of the source
  HeadColumns columns;
};

// Adds `grad` [batch, num_heads, length, head_dim] to the gradient of the heads' source, which is
// input number `input`.
template <class T>
void give_heads(Step<T>& step, std::size_t input, const SavedHeads<T>& heads, Tensor<T> grad);

}}}  // namespace heed::v0::nn
