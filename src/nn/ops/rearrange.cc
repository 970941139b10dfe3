#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

using Order = std::array<int, kMaxRank>;

// A view with permuted dimensions; the order has as many entries as the view has dimensions.
template <class T>
TensorView<T> permuted(TensorView<T> x, const Order& order) {
  std::vector<std::int64_t> extents;
  Strides strides{};
  for (int dim = 0; dim < x.rank(); ++dim) {
    const int from = order[static_cast<std::size_t>(dim)];
    extents.push_back(x.extent(from));
    strides[static_cast<std::size_t>(dim)] = x.stride(from);
  }
  return {x.data(), Shape(extents), strides};
}

Order checked_order(const Shape& shape, std::initializer_list<int> order) {
  Order result{};
  unsigned seen = 0;
  std::size_t next = 0;
  for (const int dim : order) {
    const int from_front = checked_dim("permute", shape, dim);
    seen |= 1U << from_front;
    if (next < result.size()) result[next++] = from_front;
  }
  if (order.size() != static_cast<std::size_t>(shape.rank()) || seen + 1 != 1U << shape.rank()) {
    throw InvalidArgument(fmt::format("permute: the order [{}] is no permutation of shape {}",
                                      fmt::join(order, ", "), to_string(shape)));
  }
  return result;
}

Order inverse(const Order& order, int rank) {
  Order result{};
  for (int dim = 0; dim < rank; ++dim) {
    result[static_cast<std::size_t>(order[static_cast<std::size_t>(dim)])] = dim;
  }
  return result;
}

template <class T>
Variable<T> reorder(const Variable<T>& x, const Order& order) {
  return record<T>("permute", contiguous(permuted(x.value(), order)), {x},
                   [back = inverse(order, x.rank())](Step<T>& step) {
                     step.give(0, contiguous(permuted(step.grad(), back)));
                   });
}

template <class T>
int check_parts(const char* function, const std::vector<Variable<T>>& parts, int dim) {
  if (parts.empty()) {
    throw InvalidArgument(fmt::format("{}: parts is empty, expected at least one", function));
  }
  const Shape& first = parts.front().shape();
  dim = checked_dim(function, first, dim);
  for (const auto& part : parts) {
    bool fits = part.rank() == first.rank();
    for (int d = 0; fits && d < first.rank(); ++d) fits = d == dim || part.extent(d) == first[d];
    if (!fits) {
      throw InvalidArgument(fmt::format("{}: a part has shape {} but the first {}", function,
                                        to_string(part.shape()), to_string(first)));
    }
  }
  return dim;
}

Shape with_extent(const Shape& shape, int dim, std::int64_t extent) {
  std::vector<std::int64_t> extents = extents_of(shape);
  extents[static_cast<std::size_t>(dim)] = extent;
  return Shape(extents);
}

}  // namespace

template <class T>
Variable<T> reshape(const Variable<T>& x, const Shape& shape) {
  return record<T>(
      "reshape", x.shared_value().reshaped(shape), {x},
      [before = x.shape()](Step<T>& step) { step.give(0, step.take_grad().reshaped(before)); });
}

template <class T>
Variable<T> permute(const Variable<T>& x, std::initializer_list<int> order) {
  return reorder(x, checked_order(x.shape(), order));
}

template <class T>
Variable<T> transpose(const Variable<T>& x) {
  if (x.rank() < 2) {
    throw InvalidArgument(
        fmt::format("transpose: x has shape {}, expected rank 2 or more", to_string(x.shape())));
  }
  Order order{0, 1, 2, 3, 4, 5};
  const auto last = static_cast<std::size_t>(x.rank() - 1);
  std::swap(order[last], order[last - 1]);
  return reorder(x, order);
}

template <class T>
Variable<T> broadcast_to(const Variable<T>& x, const Shape& shape) {
  return record<T>(
      "broadcast_to", contiguous(x.value().broadcast_to(shape)), {x},
      [of_x = x.shape()](Step<T>& step) { step.give(0, reduce_to(step.grad(), of_x)); });
}

template <class T>
Variable<T> slice(const Variable<T>& x, int dim, std::int64_t begin, std::int64_t end) {
  return record<T>("slice", contiguous(x.value().slice(dim, begin, end)), {x}, [=](Step<T>& step) {
    add_into(step.sum_for(0).slice(dim, begin, end), step.grad());
  });
}

template <class T>
Variable<T> select(const Variable<T>& x, int dim, std::int64_t index) {
  const Shape without_dim = x.value().select(dim, index).shape();
  return reshape(slice(x, dim, index, index + 1), without_dim);
}

template <class T>
std::vector<Variable<T>> split(const Variable<T>& x, std::int64_t size, int dim) {
  dim = checked_dim("split", x.shape(), dim);
  if (size < 1) throw InvalidArgument(fmt::format("split: size is {}, expected at least 1", size));
  std::vector<Variable<T>> parts;
  for (std::int64_t begin = 0; begin < x.extent(dim); begin += size) {
    parts.push_back(slice(x, dim, begin, std::min(begin + size, x.extent(dim))));
  }
  return parts;
}

template <class T>
Variable<T> concat(const std::vector<Variable<T>>& parts, int dim) {
  dim = check_parts("concat", parts, dim);
  std::vector<std::int64_t> bounds{0};
  for (const auto& part : parts) bounds.push_back(bounds.back() + part.extent(dim));
  auto result = Tensor<T>::uninitialized(with_extent(parts.front().shape(), dim, bounds.back()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copy_into(result.view().slice(dim, bounds[i], bounds[i + 1]), parts[i].value());
  }
  return record<T>("concat", std::move(result), parts, [dim, bounds](Step<T>& step) {
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (step.wants(i)) {
        step.give(i, contiguous(step.grad().slice(dim, bounds[i], bounds[i + 1])));
      }
    }
  });
}

template <class T>
Variable<T> stack(const std::vector<Variable<T>>& parts, int dim) {
  std::vector<Variable<T>> with_dim;
  for (const auto& part : parts) {
    std::vector<std::int64_t> extents = extents_of(part.shape());
    extents.push_back(1);
    const int position = checked_dim("stack", Shape(extents), dim);
    extents.pop_back();
    extents.insert(extents.begin() + position, 1);
    with_dim.push_back(reshape(part, Shape(extents)));
  }
  return concat(with_dim, dim);
}

template HEED_API Variable<float> reshape(const Variable<float>&, const Shape&);
template HEED_API Variable<float> permute(const Variable<float>&, std::initializer_list<int>);
template HEED_API Variable<float> transpose(const Variable<float>&);
template HEED_API Variable<float> broadcast_to(const Variable<float>&, const Shape&);
template HEED_API Variable<float> slice(const Variable<float>&, int, std::int64_t, std::int64_t);
template HEED_API Variable<float> select(const Variable<float>&, int, std::int64_t);
template HEED_API std::vector<Variable<float>> split(const Variable<float>&, std::int64_t, int);
template HEED_API Variable<float> concat(const std::vector<Variable<float>>&, int);
template HEED_API Variable<float> stack(const std::vector<Variable<float>>&, int);
template HEED_API Variable<double> reshape(const Variable<double>&, const Shape&);
template HEED_API Variable<double> permute(const Variable<double>&, std::initializer_list<int>);
template HEED_API Variable<double> transpose(const Variable<double>&);
template HEED_API Variable<double> broadcast_to(const Variable<double>&, const Shape&);
template HEED_API Variable<double> slice(const Variable<double>&, int, std::int64_t, std::int64_t);
template HEED_API Variable<double> select(const Variable<double>&, int, std::int64_t);
template HEED_API std::vector<Variable<double>> split(const Variable<double>&, std::int64_t, int);
template HEED_API Variable<double> concat(const std::vector<Variable<double>>&, int);
template HEED_API Variable<double> stack(const std::vector<Variable<double>>&, int);

}}}  // namespace heed::v0::nn
