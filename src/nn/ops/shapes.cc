#include "nn/ops/shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/ops/elementwise.h"
#include "nn/ops/vector_loops.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// The innermost rows with number `row` of two views of one shape.
template <class X, class Y>
struct RowPair {
  RowPair(TensorView<X> of_x, TensorView<Y> of_y, std::int64_t row)
      : x(entry_at(of_x, row, 1)), y(entry_at(of_y, row, 1)) {}

  X* x;
  Y* y;
};

// Views a view of rank 0 as a row of one element.
template <class T>
TensorView<T> with_rows(TensorView<T> view) {
  return view.rank() == 0 ? view.to_rank(1) : view;
}

template <class X, class Y>
void add_row(TensorView<X> to, TensorView<Y> from, std::int64_t row) {
  const RowPair<X, Y> pair(to, from, row);
  const std::int64_t to_step = to.stride(-1);
  const std::int64_t from_step = from.stride(-1);
  for (std::int64_t i = 0; i < to.extent(-1); ++i) pair.x[i * to_step] += pair.y[i * from_step];
}

// The rows that are summed as one part, and the columns that one chunk works on: the sums take half
// of a first-level cache.
constexpr std::int64_t kRowsOfPart = 256;
constexpr std::int64_t kColumnsOfPart = 2048;

// Σ over the rows of `from` [rows, width], in parts of a fixed number of rows.
template <class T>
Tensor<T> sum_of_rows(TensorView<const T> from) {
  const std::int64_t rows = from.extent(0);
  const std::int64_t width = from.extent(1);
  const std::int64_t parts = (rows - 1) / kRowsOfPart + 1;
  const std::int64_t columns = (width - 1) / kColumnsOfPart + 1;
  Tensor<double> sums({parts, width});
  parallel_for(0, parts * columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t part = chunk / columns;
      const std::int64_t first = chunk % columns * kColumnsOfPart;
      const std::int64_t count = std::min(kColumnsOfPart, width - first);
      const std::int64_t last_row = std::min((part + 1) * kRowsOfPart, rows);
      for (std::int64_t row = part * kRowsOfPart; row < last_row; ++row) {
        vector_loops<T>().add(from.data() + row * from.stride(0) + first, count,
                              sums.data() + part * width + first);
      }
    }
  });
  auto result = Tensor<T>::uninitialized({width});
  for (std::int64_t column = 0; column < width; ++column) {
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums(part, column);
    result(column) = static_cast<T>(sum);
  }
  return result;
}

}  // namespace

Shape broadcast_shapes(const char* function, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  for (int dim = 1; dim <= rank; ++dim) {
    const std::int64_t left = dim <= a.rank() ? a[-dim] : 1;
    const std::int64_t right = dim <= b.rank() ? b[-dim] : 1;
    if (left != right && left != 1 && right != 1) {
      throw InvalidArgument(fmt::format("{}: the shapes {} and {} do not broadcast", function,
                                        to_string(a), to_string(b)));
    }
    extents[static_cast<std::size_t>(rank - dim)] = left == 1 ? right : left;
  }
  return Shape(extents);
}

int checked_dim(const char* function, const Shape& shape, int dim) {
  if (dim < -shape.rank() || dim >= shape.rank()) {
    throw InvalidArgument(fmt::format("{}: dim is {} but the shape is {}, of rank {}", function,
                                      dim, to_string(shape), shape.rank()));
  }
  return dim < 0 ? dim + shape.rank() : dim;
}

Shape with_last(const Shape& shape, std::int64_t extent) {
  std::vector<std::int64_t> extents = extents_of(shape);
  extents.back() = extent;
  return Shape(extents);
}

template <class T>
Tensor<T> reduce_to(TensorView<const T> grad, const Shape& shape) {
  if (grad.shape() == shape) return contiguous(grad);
  if (shape.rank() == 1 && grad.rank() > 1 && shape[0] == grad.extent(-1) && grad.is_contiguous() &&
      !grad.empty()) {
    return sum_of_rows(grad.reshape({grad.num_elements() / shape[0], shape[0]}));
  }
  Tensor<double> sums(shape);
  const auto from = with_rows(grad);
  const TensorView<double> to = sums.view().broadcast_to(from.shape());
  const std::int64_t rows = grad.empty() ? 0 : grad.num_elements() / from.extent(-1);
  for (std::int64_t row = 0; row < rows; ++row) add_row(to, from, row);
  auto result = Tensor<T>::uninitialized(shape);
  std::transform(sums.elements().begin(), sums.elements().end(), result.data(),
                 [](double sum) { return static_cast<T>(sum); });
  return result;
}

template <class T>
Tensor<T> contiguous(TensorView<const T> view) {
  auto result = uninitialized<T>(view.shape());
  copy_into(result.view(), view);
  return result;
}

template <class T>
void copy_into(TensorView<T> to, TensorView<const T> from) {
  to = with_rows(to);
  from = with_rows(from);
  const std::int64_t width = from.extent(-1);
  const std::int64_t to_step = to.stride(-1);
  const std::int64_t from_step = from.stride(-1);
  for_each_row(from.shape(), [&](std::int64_t row) {
    const RowPair<T, const T> pair(to, from, row);
    if (to_step == 1 && from_step == 1) {
      std::copy_n(pair.y, width, pair.x);
    } else {
      for (std::int64_t i = 0; i < width; ++i) pair.x[i * to_step] = pair.y[i * from_step];
    }
  });
}

template <class T>
void add_into(TensorView<T> to, TensorView<const T> from) {
  to = with_rows(to);
  from = with_rows(from);
  for_each_row(to.shape(), [&](std::int64_t row) { add_row(to, from, row); });
}

template Tensor<float> reduce_to(FloatView, const Shape&);
template Tensor<double> reduce_to(DoubleView, const Shape&);
template Tensor<float> contiguous(FloatView);
template Tensor<double> contiguous(DoubleView);
template void copy_into(TensorView<float>, FloatView);
template void copy_into(TensorView<double>, DoubleView);
template void add_into(TensorView<float>, FloatView);
template void add_into(TensorView<double>, DoubleView);

}}}  // namespace heed::v0::nn
