#include "attention/plan/fused.h"

#include <algorithm>
#include <vector>

#include "attention/engine/kept_weights.h"
#include "attention/engine/passes.h"
#include "attention/kernels/target.h"
#include "attention/keys/tensor_keys.h"
#include "attention/plan/plan_text.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

namespace {

template <class Real>
TensorKeys<Real> keys_of(const kernels::BasicKernelTable<Real>& table, const Call<Real>& call) {
  return {table, call.request->shape, call.key, call.value};
}

// The call with the keys that the engine reads: its own KeySource or that of its tensors.
template <class SomeCall, class Real>
SomeCall reading(const SomeCall& call, const TensorKeys<Real>& keys) {
  SomeCall copy = call;
  if (copy.keys == nullptr) copy.keys = &keys;
  return copy;
}

// Calls compute(calls) with the keys of every call.
template <class SomeCall, class Real, class Compute>
void with_keys(const kernels::BasicKernelTable<Real>& table, std::span<const SomeCall> calls,
               Compute compute) {
  std::vector<TensorKeys<Real>> keys;
  std::vector<SomeCall> all;
  keys.reserve(calls.size());
  all.reserve(calls.size());
  for (const SomeCall& call : calls) {
    keys.push_back(keys_of(table, call));
    all.push_back(reading(call, keys.back()));
  }
  compute(std::span<const SomeCall>(all));
}

// A backward call without memory, into contiguous gradients, from which the workspace is computed.
template <class Real>
BackwardCall<Real> imagined_call(const Request<Real>& request) {
  BackwardCall<Real> call;
  call.request = &request;
  call.batches = {0, request.shape.batch};
  const auto rows = [&](DataType type, std::int64_t dim) {
    MutableRows none;
    none.type = type;
    none.row_stride = dim * size_of(type);
    return none;
  };
  call.gradients.key = rows(request.shape.type_of_keys(), request.head_dim());
  call.gradients.value = rows(request.shape.type_of_values(), request.value_dim());
  const AttentionShapes& shape = request.shape;
  for (const auto& term : request.terms) {
    if (term->gradient() == nullptr || term->sums_per_head() > 0) continue;
    call.gradients.cells =
        TensorView<Real>(nullptr, term->gradient_shape())
            .broadcast_to({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
  }
  return call;
}

}  // namespace

template <class Real>
std::string FusedPass<Real>::describe(const Request<Real>& request) const {
  return fused_text(request, schedule_);
}

template <class Real>
std::size_t FusedPass<Real>::bytes(const Request<Real>& request) const {
  if (pass_ == Pass::kForward) return engine::forward_bytes(request, schedule_);
  if (pass_ == Pass::kWeights) return engine::weights_bytes(schedule_);
  return engine::backward_bytes(imagined_call(request), schedule_);
}

template <class Real>
std::int64_t FusedPass<Real>::kept_size(const Request<Real>& request) const {
  return engine::kept_size(request, schedule_);
}

template <class Real>
TileCounts FusedPass<Real>::tiles(const Request<Real>& request) const {
  return count_tiles(request, schedule_);
}

template <class Real>
void FusedPass<Real>::forward(std::span<const ForwardCall<Real>> calls,
                              std::span<std::byte> workspace) const {
  if (calls.size() == 1) {
    const TensorKeys<Real> keys = keys_of(table_, calls.front());
    const ForwardCall<Real> call = reading(calls.front(), keys);
    engine::forward<Real>({&call, 1}, schedule_, workspace);
    return;
  }
  with_keys(table_, calls, [&](auto all) { engine::forward<Real>(all, schedule_, workspace); });
}

template <class Real>
void FusedPass<Real>::backward(std::span<const BackwardCall<Real>> calls,
                               std::span<std::byte> workspace) const {
  with_keys(table_, calls, [&](auto all) { engine::backward<Real>(all, schedule_, workspace); });
}

template <class Real>
Tensor<Real> FusedPass<Real>::weights(const Call<Real>& call,
                                      std::span<const AttentionRow> rows) const {
  Tensor<Real> result({static_cast<std::int64_t>(rows.size()), call.request->shape.kv_len});
  const TensorKeys<Real> keys = keys_of(table_, call);
  engine::weights_of_rows<Real>(reading(call, keys), schedule_, rows, result);
  return result;
}

template <class Real>
BasicAttentionStatistics<Real> FusedPass<Real>::statistics(const Call<Real>& call,
                                                           std::int64_t top_k) const {
  auto result = make_statistics<Real>(call.request->scores(), top_k);
  const TensorKeys<Real> keys = keys_of(table_, call);
  engine::statistics_of<Real>(reading(call, keys), schedule_, result);
  return result;
}

template <class Real>
AttentionDiagnostics FusedPass<Real>::diagnose(const Call<Real>& call,
                                               const DiagnosticsOptions& lengths) const {
  const TensorKeys<Real> keys = keys_of(table_, call);
  return engine::diagnose<Real>(reading(call, keys), schedule_, lengths);
}

template <class Real>
Preparation<Real> prepare_fused(const Request<Real>& request, Pass pass) {
  const kernels::KernelTable* const in_use = kernels_in_use();
  if (in_use == nullptr) return {nullptr, "no vector kernel is in use here"};
  if (std::max(request.head_dim(), request.value_dim()) > kernels::kMaxDim) {
    return {nullptr,
            "kernels take a head_dim and value_dim up to " + std::to_string(kernels::kMaxDim)};
  }
  const auto& table = kernels::kernels_in<Real>(*in_use);
  return {std::make_unique<FusedPass<Real>>(table, request, pass, num_threads()), ""};
}

template class FusedPass<float>;
template class FusedPass<double>;
template Preparation<float> prepare_fused(const Request<float>&, Pass);
template Preparation<double> prepare_fused(const Request<double>&, Pass);

}}  // namespace heed::v0
