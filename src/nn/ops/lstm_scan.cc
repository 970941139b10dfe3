#include "nn/ops/lstm_scan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "heed/core/parallel.h"
#include "nn/blas.h"
#include "nn/ops/vector_loops.h"
#include "nn/product.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Sequences per chunk. Each chunk goes through time on its own, without waiting for others at every
// step. Products of so few rows run at 79 % of their full speed (nn/blas.cc).
constexpr std::int64_t kSequences = 32;

template <class T>
T* row_at(TensorView<T> x, std::int64_t row, std::int64_t position) {
  return x.data() + row * x.stride(0) + position * x.stride(1);
}

// The gates or states of sequences first … last − 1 at one position: [last − first, width].
template <class T>
TensorView<T> block_at(TensorView<T> x, std::int64_t first, std::int64_t last,
                       std::int64_t position) {
  return {row_at(x, first, position), Shape{last - first, x.extent(2)}, Strides{x.stride(0), 1}};
}

template <class T>
void forward_block(const LstmOrder& order, TensorView<const T> weight_hh,
                   const LstmStart<TensorView<const T>>& start,
                   const LstmTrace<TensorView<T>>& trace, std::int64_t first, std::int64_t last) {
  const std::int64_t n = trace.cells.extent(2);
  Tensor<T> hidden = to_tensor(start.hidden.slice(0, first, last));
  Tensor<T> cell = to_tensor(start.cell.slice(0, first, last));
  for (std::int64_t step = 0; step < order.length(); ++step) {
    const std::int64_t t = order.position(step);
    product(std::as_const(hidden).view(), weight_hh.permute({1, 0}),
            block_at(trace.gates, first, last, t), true);
    for (std::int64_t row = first; row < last; ++row) {
      T* const out = row_at(trace.out, row, t);
      if (!order.has(row, t)) {
        std::fill_n(out, n, T{0});
        continue;
      }
      T* const own_hidden = hidden.data() + (row - first) * n;
      T* const own_cell = cell.data() + (row - first) * n;
      vector_loops<T>().lstm_advance(row_at(trace.gates, row, t), own_cell, own_hidden, n);
      std::copy_n(own_hidden, n, out);
      std::copy_n(own_cell, n, row_at(trace.cells, row, t));
    }
  }
  for (std::int64_t row = first; row < last; ++row) {
    std::copy_n(hidden.data() + (row - first) * n, n, row_at(trace.out, row, order.length()));
    std::copy_n(cell.data() + (row - first) * n, n, row_at(trace.out, row, order.length() + 1));
  }
}

// The tensors that the backward pass reads.
template <class T>
struct Recorded {
  const LstmOrder& order;
  TensorView<const T> weight_hh;
  const LstmStart<TensorView<const T>>& start;
  const LstmTrace<TensorView<const T>>& trace;
  TensorView<const T> grad_out;
};

template <class T>
void backward_block(const Recorded<T>& pass, LstmGradients<T>& grads, std::int64_t first,
                    std::int64_t last) {
  const std::int64_t n = pass.trace.cells.extent(2);
  const std::int64_t length = pass.order.length();
  const TensorView<T> grad_hidden = grads.start.hidden.view().slice(0, first, last);
  const auto of_row = [n](Tensor<T>& grad, std::int64_t row) { return grad.data() + row * n; };
  for (std::int64_t row = first; row < last; ++row) {
    std::copy_n(row_at(pass.grad_out, row, length), n, of_row(grads.start.hidden, row));
    std::copy_n(row_at(pass.grad_out, row, length + 1), n, of_row(grads.start.cell, row));
  }
  for (std::int64_t step = length - 1; step >= 0; --step) {
    const std::int64_t t = pass.order.position(step);
    for (std::int64_t row = first; row < last; ++row) {
      if (!pass.order.has(row, t)) {
        std::fill_n(row_at(grads.gates.view(), row, t), 4 * n, T{0});
        continue;
      }
      T* const of_hidden = of_row(grads.start.hidden, row);
      const T* const of_out = row_at(pass.grad_out, row, t);
      std::transform(of_hidden, of_hidden + n, of_out, of_hidden, std::plus<>());
      const std::int64_t before = pass.order.before(row, t);
      vector_loops<T>().lstm_retreat(
          {row_at(pass.trace.gates, row, t), row_at(pass.trace.cells, row, t),
           before < 0 ? pass.start.cell.data() + row * n : row_at(pass.trace.cells, row, before),
           n},
          of_hidden, of_row(grads.start.cell, row), row_at(grads.gates.view(), row, t));
      // The product below adds to this memory: it must hold 0, or where a sequence has ended the
      // state's own gradient.
      std::fill_n(of_hidden, n, T{0});
    }
    const auto grad_gates = block_at(grads.gates.view(), first, last, t);
    matmul(grad_gates, pass.weight_hh, grad_hidden, {.alpha = 1, .beta = 1});
  }
}

}  // namespace

template <class T>
void lstm_forward(const LstmOrder& order, TensorView<const T> weight_hh,
                  const LstmStart<TensorView<const T>>& start,
                  const LstmTrace<TensorView<T>>& trace) {
  parallel_for(0, start.hidden.extent(0), kSequences, [&](std::int64_t first, std::int64_t last) {
    forward_block(order, weight_hh, start, trace, first, last);
  });
}

template <class T>
LstmGradients<T> lstm_backward(const LstmOrder& order, TensorView<const T> weight_hh,
                               const LstmStart<TensorView<const T>>& start,
                               const LstmTrace<TensorView<const T>>& trace,
                               TensorView<const T> grad_out) {
  LstmGradients<T> grads{Tensor<T>::uninitialized(trace.gates.shape()),
                         {Tensor<T>::uninitialized(start.hidden.shape()),
                          Tensor<T>::uninitialized(start.cell.shape())}};
  const Recorded<T> pass{order, weight_hh, start, trace, grad_out};
  parallel_for(0, start.hidden.extent(0), kSequences, [&](std::int64_t first, std::int64_t last) {
    backward_block(pass, grads, first, last);
  });
  return grads;
}

template <class T>
Tensor<T> hidden_before(const LstmOrder& order, TensorView<const T> start,
                        TensorView<const T> out) {
  const std::int64_t n = out.extent(2);
  auto result = Tensor<T>::uninitialized({out.extent(0), order.length(), n});
  parallel_for(0, out.extent(0), kSequences, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t t = 0; t < order.length(); ++t) {
        T* const to = row_at(result.view(), row, t);
        if (!order.has(row, t)) {
          std::fill_n(to, n, T{0});
          continue;
        }
        const std::int64_t before = order.before(row, t);
        std::copy_n(before < 0 ? start.data() + row * n : row_at(out, row, before), n, to);
      }
    }
  });
  return result;
}

template void lstm_forward(const LstmOrder&, FloatView, const LstmStart<FloatView>&,
                           const LstmTrace<TensorView<float>>&);
template void lstm_forward(const LstmOrder&, DoubleView, const LstmStart<DoubleView>&,
                           const LstmTrace<TensorView<double>>&);
template LstmGradients<float> lstm_backward(const LstmOrder&, FloatView,
                                            const LstmStart<FloatView>&,
                                            const LstmTrace<FloatView>&, FloatView);
template LstmGradients<double> lstm_backward(const LstmOrder&, DoubleView,
                                             const LstmStart<DoubleView>&,
                                             const LstmTrace<DoubleView>&, DoubleView);
template Tensor<float> hidden_before(const LstmOrder&, FloatView, FloatView);
template Tensor<double> hidden_before(const LstmOrder&, DoubleView, DoubleView);

}}}  // namespace heed::v0::nn
