#include "attention/call.h"

#include <algorithm>

#include "attention/floats.h"
#include "attention/fused/forward.h"
#include "attention/reference/forward.h"
#include "attention/target.h"
#include "heed/parallel.h"

namespace heed::inline v0 {

namespace {

template <class T>
void copy(const Tensor<float>& from, TensorView<T> to) {
  const float* number = from.data();
  for_each_element(to, [&number](T& element) { element = static_cast<T>(*number++); });
}

}  // namespace

Call decide(const char* function, const AttentionShapes& shapes, const AttentionOptions& options) {
  Call call{shapes, check_terms(function, shapes, options), {}};
  const auto* table = kernels_in_use();
  // The kernels count to a limit along a row.
  if (table != nullptr && std::max(shapes.head_dim, shapes.value_dim) <= kernels::kMaxDim) {
    call.schedule = fused::make_schedule(*table, call.terms, shapes, num_threads(), true);
  }
  return call;
}

template <class T>
void execute_by_reference(const Terms<float>& terms, RowRange batches, TensorView<const T> query,
                          TensorView<const T> key, TensorView<const T> value,
                          const AttentionBuffers<T>& buffers) {
  const Tensor<float> tensors[] = {to_floats(query), to_floats(key), to_floats(value)};
  const Problem<float> problem{{terms},
                               tensors[0].view().broadcast_to(query.shape()),
                               tensors[1].view().broadcast_to(key.shape()),
                               tensors[2].view().broadcast_to(value.shape())};
  const auto result = reference::forward(problem, batches);
  copy(result.out, buffers.out);
  if (!buffers.lse.empty()) copy(result.lse, buffers.lse);
}

template <class T>
void execute(const Call& call, TensorView<const T> query, TensorView<const T> key,
             TensorView<const T> value, const AttentionBuffers<T>& buffers) {
  const RowRange batches{0, call.shapes.batch};
  if (!call.is_fused()) {
    execute_by_reference(call.terms, batches, query, key, value, buffers);
    return;
  }
  const fused::Job job{&call.terms,          rows_of(query), rows_of(key), rows_of(value),
                       rows_of(buffers.out), buffers.lse,    batches};
  fused::forward({&job, 1}, call.schedule, buffers.workspace);
}

template void execute(const Call&, FloatView, FloatView, FloatView, const AttentionBuffers<float>&);
template void execute(const Call&, Float16View, Float16View, Float16View,
                      const AttentionBuffers<Float16>&);
template void execute(const Call&, BFloat16View, BFloat16View, BFloat16View,
                      const AttentionBuffers<BFloat16>&);
template void execute_by_reference(const Terms<float>&, RowRange, FloatView, FloatView, FloatView,
                                   const AttentionBuffers<float>&);
template void execute_by_reference(const Terms<float>&, RowRange, Float16View, Float16View,
                                   Float16View, const AttentionBuffers<Float16>&);
template void execute_by_reference(const Terms<float>&, RowRange, BFloat16View, BFloat16View,
                                   BFloat16View, const AttentionBuffers<BFloat16>&);

}  // namespace heed::inline v0
