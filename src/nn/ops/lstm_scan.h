// The recurrence of one LSTM layer on plain tensors: everything but the products that do not depend
// on the previous step.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

// The reading order of a layer, and the end of each sequence.
class LstmOrder {
 public:
  LstmOrder(std::int64_t length, bool is_reverse, std::vector<std::int64_t> lengths)
      : length_(length), is_reverse_(is_reverse), lengths_(std::move(lengths)) {}

  std::int64_t length() const { return length_; }
  // The position that step 0, 1, … reads.
  std::int64_t position(std::int64_t step) const { return is_reverse_ ? length_ - 1 - step : step; }
  // True if sequence `row` has this position.
  bool has(std::int64_t row, std::int64_t position) const { return position < end(row); }
  // The position that `row` reads before this one; −1 if none.
  std::int64_t before(std::int64_t row, std::int64_t position) const {
    if (!is_reverse_) return position - 1;
    return position + 1 < end(row) ? position + 1 : -1;
  }

 private:
  std::int64_t end(std::int64_t row) const {
    return lengths_.empty() ? length_ : lengths_[static_cast<std::size_t>(row)];
  }

  std::int64_t length_;
  bool is_reverse_;
  std::vector<std::int64_t> lengths_;
};

// The initial state, [batch, hidden] each.
template <class View>
struct LstmStart {
  View hidden;
  View cell;
};

// The results of the forward pass that the backward pass uses.
template <class View>
struct LstmTrace {
  View gates;  // [batch, length, 4 · hidden], contiguous: i, f, g, o
  View cells;  // [batch, length, hidden], contiguous
  View out;    // [batch, length + 2, hidden], contiguous: outputs, last hidden state, last cell
};

// Activates the gates W x + b in place; fills cells and out. After a sequence's end out is 0; gates
// and cells are undefined there.
template <class T>
void lstm_forward(const LstmOrder& order, TensorView<const T> weight_hh,
                  const LstmStart<TensorView<const T>>& start,
                  const LstmTrace<TensorView<T>>& trace);

// Gradients of the gates before activation, [batch, length, 4 · hidden], 0 after a sequence's end,
// and of the start, computed from the gradient of trace.out.
template <class T>
struct LstmGradients {
  Tensor<T> gates;
  LstmStart<Tensor<T>> start;
};
template <class T>
LstmGradients<T> lstm_backward(const LstmOrder& order, TensorView<const T> weight_hh,
                               const LstmStart<TensorView<const T>>& start,
                               const LstmTrace<TensorView<const T>>& trace,
                               TensorView<const T> grad_out);

// The hidden state at the beginning of each step: [batch, length, hidden].
template <class T>
Tensor<T> hidden_before(const LstmOrder& order, TensorView<const T> start, TensorView<const T> out);

}}}  // namespace heed::v0::nn
