#include "nn/ops/heads.h"

#include <fmt/format.h>

#include <utility>

#include "core/split_heads.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

template <class T>
void check_heads(const char* function, const char* name, const Heads<T>& heads) {
  const Shape& shape = heads.source.shape();
  const auto& [num_heads, head_dim, first] = heads.columns;
  if (shape.rank() == 4) return;
  if (shape.rank() != 3) {
    throw InvalidArgument(fmt::format(
        "{}: {} has shape {}, expected [batch, num_heads, length, head_dim] or columns of [batch, "
        "length, width]",
        function, name, to_string(shape)));
  }
  if (num_heads >= 1 && head_dim >= 0 && first >= 0 &&
      checked_multiply(num_heads, head_dim) <= shape[2] - first) {
    return;
  }
  throw InvalidArgument(
      fmt::format("{}: {} is {} heads of {} columns from column {}, but its source has shape {}",
                  function, name, num_heads, head_dim, first, to_string(shape)));
}

template <class T>
TensorView<T> columns_in(const TensorView<T>& elements, const HeadColumns& columns) {
  return elements.slice(2, columns.first, columns.first + columns.width());
}

template <class T>
TensorView<T> heads_in(const TensorView<T>& elements, const HeadColumns& columns) {
  if (elements.rank() == 4) return elements;
  return heads_side_by_side(columns_in(elements, columns), columns.num_heads);
}

template <class T>
void give_heads(Step<T>& step, std::size_t input, const SavedHeads<T>& heads, Tensor<T> grad) {
  if (!step.wants(input)) return;
  if (heads.shape.rank() == 4) return step.give(input, std::move(grad));
  if (step.has_sum(input) || heads.columns.width() != heads.shape[2]) {
    add_into(heads_in(step.sum_for(input), heads.columns), std::as_const(grad).view());
    return;
  }
  auto whole = uninitialized<T>(heads.shape);
  copy_into(heads_in(whole.view(), heads.columns), std::as_const(grad).view());
  step.give(input, std::move(whole));
}

template <class T>
TensorView<const T> Heads<T>::view() const& {
  check_heads("Heads::view", "source", *this);
  return heads_in(source.value(), columns);
}

template struct Heads<float>;
template struct Heads<double>;
template void check_heads(const char*, const char*, const Heads<float>&);
template void check_heads(const char*, const char*, const Heads<double>&);
template TensorView<float> columns_in(const TensorView<float>&, const HeadColumns&);
template TensorView<double> columns_in(const TensorView<double>&, const HeadColumns&);
template FloatView columns_in(const FloatView&, const HeadColumns&);
template DoubleView columns_in(const DoubleView&, const HeadColumns&);
template TensorView<float> heads_in(const TensorView<float>&, const HeadColumns&);
template TensorView<double> heads_in(const TensorView<double>&, const HeadColumns&);
template FloatView heads_in(const FloatView&, const HeadColumns&);
template DoubleView heads_in(const DoubleView&, const HeadColumns&);
template void give_heads(Step<float>&, std::size_t, const SavedHeads<float>&, Tensor<float>);
template void give_heads(Step<double>&, std::size_t, const SavedHeads<double>&, Tensor<double>);

}}}  // namespace heed::v0::nn
