// The backend of the engine: tiles of keys, panels of rows, kernels of one instruction set.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/engine/backward.h"
#include "attention/engine/forward.h"
#include "attention/engine/head_patterns.h"
#include "attention/engine/statistics.h"
#include "attention/keys/tensor_keys.h"
#include "attention/plan/backend.h"

namespace heed { inline namespace v0 {

namespace {

template <class Real>
class FusedBackend final : public Backend<Real> {
 public:
  using Schedule = engine::Schedule<Real>;
  using Table = kernels::BasicKernelTable<Real>;

  explicit FusedBackend(const Table* table) : table_(table) {}

  std::string name() const override { return table_ == nullptr ? "none" : table_->name; }

  std::string refusal(const Request<Real>& request) const override {
    if (table_ == nullptr) return "no vector kernel is in use here";
    if (std::max(request.head_dim(), request.value_dim()) > kernels::kMaxDim) {
      return "kernels take a head_dim and value_dim up to " + std::to_string(kernels::kMaxDim);
    }
    return "";
  }

  Schedule schedule(const Request<Real>& request, Pass pass, int threads) const override {
    return engine::make_schedule(*table_, request, pass, threads);
  }

  std::size_t workspace_bytes(const Request<Real>& request, const Schedule& schedule,
                              Pass pass) const override {
    if (pass == Pass::kForward) return engine::forward_bytes(request, schedule);
    if (pass == Pass::kWeights) return engine::weights_bytes(schedule);
    return engine::backward_bytes(imagined_call(request), schedule);
  }

  void forward(std::span<const ForwardCall<Real>> calls, const Schedule& schedule,
               std::span<std::byte> workspace) const override {
    if (calls.size() == 1) {
      const TensorKeys<Real> keys = keys_of(calls.front());
      const ForwardCall<Real> call = reading(calls.front(), keys);
      engine::forward<Real>({&call, 1}, schedule, workspace);
      return;
    }
    with_keys(calls, [&](auto all) { engine::forward<Real>(all, schedule, workspace); });
  }

  void backward(std::span<const BackwardCall<Real>> calls, const Schedule& schedule,
                std::span<std::byte> workspace) const override {
    with_keys(calls, [&](auto all) { engine::backward<Real>(all, schedule, workspace); });
  }

  Tensor<Real> weights(const Call<Real>& call, const Schedule& schedule,
                       std::span<const AttentionRow> rows) const override {
    Tensor<Real> result({static_cast<std::int64_t>(rows.size()), call.request->shape.kv_len});
    const TensorKeys<Real> keys = keys_of(call);
    engine::weights_of_rows<Real>(reading(call, keys), schedule, rows, result);
    return result;
  }

  BasicAttentionStatistics<Real> statistics(const Call<Real>& call, const Schedule& schedule,
                                            std::int64_t top_k) const override {
    auto result = make_statistics<Real>(call.request->shape, top_k);
    const TensorKeys<Real> keys = keys_of(call);
    engine::statistics_of<Real>(reading(call, keys), schedule, result);
    return result;
  }

  AttentionDiagnostics diagnose(const Call<Real>& call, const Schedule& schedule,
                                const DiagnosticsOptions& lengths) const override {
    const TensorKeys<Real> keys = keys_of(call);
    return engine::diagnose<Real>(reading(call, keys), schedule, lengths);
  }

 private:
  TensorKeys<Real> keys_of(const Call<Real>& call) const {
    return {*table_, call.request->shapes, call.key, call.value};
  }

  // The call with the keys that the engine reads: its own KeySource or that of its tensors.
  template <class SomeCall>
  static SomeCall reading(const SomeCall& call, const TensorKeys<Real>& keys) {
    SomeCall copy = call;
    if (copy.keys == nullptr) copy.keys = &keys;
    return copy;
  }

  template <class SomeCall, class Compute>
  void with_keys(std::span<const SomeCall> calls, Compute compute) const {
    std::vector<TensorKeys<Real>> keys;
    std::vector<SomeCall> all;
    keys.reserve(calls.size());
    all.reserve(calls.size());
    for (const SomeCall& call : calls) {
      keys.push_back(keys_of(call));
      all.push_back(reading(call, keys.back()));
    }
    compute(std::span<const SomeCall>(all));
  }

  // A backward call without memory, into contiguous gradients, from which the workspace is
  // computed.
  static BackwardCall<Real> imagined_call(const Request<Real>& request) {
    BackwardCall<Real> call;
    call.request = &request;
    call.batches = {0, request.shape.batch};
    const auto rows = [&](DataType type, std::int64_t dim) {
      MutableRows none;
      none.type = type;
      none.row_stride = dim * size_of(type);
      return none;
    };
    call.gradients.key = rows(request.shapes.type_of_keys(), request.head_dim());
    call.gradients.value = rows(request.shapes.type_of_values(), request.value_dim());
    const ScoreShape& shape = request.shape;
    for (const auto& term : request.terms) {
      if (term->gradient() == nullptr || term->sums_per_head() > 0) continue;
      call.gradients.cells =
          TensorView<Real>(nullptr, term->gradient_shape())
              .broadcast_to({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
    }
    return call;
  }

  const Table* table_;
};

}  // namespace

template <class Real>
const Backend<Real>& fused_backend(const kernels::KernelTable* table) {
  static const FusedBackend<Real> none(nullptr);
  static const auto all = [] {
    std::map<const kernels::KernelTable*, std::unique_ptr<FusedBackend<Real>>> made;
    for (const auto* one : kernels::supported_kernels()) {
      made[one] = std::make_unique<FusedBackend<Real>>(&kernels::kernels_in<Real>(*one));
    }
    return made;
  }();
  return table == nullptr ? none : *all.at(table);
}

template const Backend<float>& fused_backend(const kernels::KernelTable*);
template const Backend<double>& fused_backend(const kernels::KernelTable*);

}}  // namespace heed::v0
