#include "nn/ops/embedding.h"

#include <fmt/format.h>

#include <algorithm>

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

void check_ids(TensorView<const std::int64_t> ids, const Shape& table) {
  if (table.rank() != 2) {
    throw InvalidArgument(
        fmt::format("embedding: table has shape {}, expected [num_embeddings, embedding_dim]",
                    to_string(table)));
  }
  for_each_element(ids, [&](std::int64_t id) {
    if (id < 0 || id >= table[0]) {
      throw InvalidArgument(
          fmt::format("embedding: token id {} is not in the table of {}", id, table[0]));
    }
  });
}

}  // namespace

template <class T>
Tensor<T> gather_rows(TensorView<const std::int64_t> ids, TensorView<const T> table) {
  check_ids(ids, table.shape());
  std::vector<std::int64_t> extents = extents_of(ids.shape());
  extents.push_back(table.extent(1));
  auto result = Tensor<T>::uninitialized(Shape(extents));
  T* out = result.data();
  for_each_element(ids, [&](std::int64_t id) {
    copy_into(TensorView<T>(out, Shape{table.extent(1)}), table.select(0, id));
    out += table.extent(1);
  });
  return result;
}

template <class T>
Variable<T> embedding(TensorView<const std::int64_t> ids, const Variable<T>& table,
                      std::optional<std::int64_t> padding_idx) {
  const Value<std::int64_t> saved_ids(to_tensor(ids));
  return record<T>("embedding", gather_rows(saved_ids.view(), table.value()), {table},
                   [ids = saved_ids, padding_idx](Step<T>& step) {
                     const TensorView<T> sum = step.sum_for(0);
                     const std::int64_t width = sum.extent(1);
                     const T* grad = step.grad().data();
                     for (const std::int64_t id : ids.view().elements()) {
                       T* row = sum.data() + id * width;
                       if (id != padding_idx) {
                         std::transform(row, row + width, grad, row, std::plus<>());
                       }
                       grad += width;
                     }
                   });
}

template Tensor<float> gather_rows(TensorView<const std::int64_t>, FloatView);
template Tensor<double> gather_rows(TensorView<const std::int64_t>, DoubleView);
template HEED_API Variable<float> embedding(TensorView<const std::int64_t>, const Variable<float>&,
                                            std::optional<std::int64_t>);
template HEED_API Variable<double> embedding(TensorView<const std::int64_t>,
                                             const Variable<double>&, std::optional<std::int64_t>);

}}}  // namespace heed::v0::nn
