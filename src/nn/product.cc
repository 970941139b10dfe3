#include "nn/product.h"

#include <algorithm>

#include "heed/core/parallel.h"
#include "nn/kernels/products.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Rows of a that stay in a cache while one panel of b after the other is multiplied with them.
constexpr std::int64_t kNearRows = 256;

// Multiply-adds per chunk of a thread: some 20 µs.
constexpr std::int64_t kChunkWork = std::int64_t{1} << 20;

// The rows and columns of a chunk, which depend on the shape alone.
struct Chunks {
  Chunks(const Shape& out, std::int64_t steps, std::int64_t panel)
      : rows(std::min(out[0], kNearRows)), num_rows((out[0] + rows - 1) / rows) {
    const std::int64_t wanted = kChunkWork / std::max<std::int64_t>(rows * steps, 1) / panel;
    columns = std::max<std::int64_t>(wanted, 1) * panel;
    num_columns = (out[1] + columns - 1) / columns;
  }

  std::int64_t rows, num_rows;
  std::int64_t columns, num_columns;
};

}  // namespace

template <class T>
void product(TensorView<const T> a, TensorView<const T> b, TensorView<T> out, bool adds) {
  if (out.empty()) return;
  if (a.extent(1) == 0) {
    if (!adds) for_each_element(out, [](T& element) { element = 0; });
    return;
  }
  Tensor<T> copy;
  if (a.extent(1) > 1 && a.stride(1) != 1) {
    copy = to_tensor(a);
    a = copy.view();
  }
  const ProductKernels<T>& kernels = product_kernels<T>();
  const Chunks chunks(out.shape(), a.extent(1), kernels.columns);
  const auto multiply = [&](std::int64_t chunk) {
    const std::int64_t row = chunk / chunks.num_columns * chunks.rows;
    const std::int64_t column = chunk % chunks.num_columns * chunks.columns;
    kernels.multiply({.a = a.data() + row * a.stride(0),
                      .a_stride = a.stride(0),
                      .b = b.data() + column * b.stride(1),
                      .b_stride = b.stride(0),
                      .b_column_stride = b.stride(1),
                      .out = out.data() + row * out.stride(0) + column,
                      .out_stride = out.stride(0),
                      .rows = std::min(chunks.rows, out.extent(0) - row),
                      .columns = std::min(chunks.columns, out.extent(1) - column),
                      .steps = a.extent(1),
                      .adds = adds});
  };
  parallel_for(0, chunks.num_rows * chunks.num_columns, 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t chunk = first; chunk < last; ++chunk) multiply(chunk);
               });
}

template void product(FloatView, FloatView, TensorView<float>, bool);
template void product(DoubleView, DoubleView, TensorView<double>, bool);

}}}  // namespace heed::v0::nn
