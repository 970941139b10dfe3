// What can compute attention: the interface that every implementation has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "attention/engine/backward_job.h"
#include "attention/engine/row_states.h"
#include "attention/engine/schedule.h"
#include "attention/keys/key_source.h"
#include "attention/request.h"
#include "attention/rows.h"
#include "heed/diagnostics.h"
#include "heed/statistics.h"
#include "heed/tensor.h"

namespace heed::inline v0 {

using engine::Pass;

// A request with its tensors, of any types of float.
template <class Real>
struct Call {
  const Request<Real>* request = nullptr;
  Rows query;
  Rows key;
  Rows value;        // none where only weights are asked for
  RowRange batches;  // the batch entries to compute
  // Unless null, this has the keys and values, and the request says so; there are no tensors then.
  const KeySource<Real>* keys = nullptr;
};

template <class Real>
struct ForwardCall : Call<Real> {
  MutableRows out;
  TensorView<Real> lse;           // empty when not wanted
  TensorView<Real> lse_low = {};  // what lse lacks; empty when not wanted
  MutableRows out_low = {};       // what out lacks, where it is rounded; none when not wanted
  // For backends whose schedule says has_plain_scores.
  engine::Continuation<Real> continuation = {};
  Real* kept = nullptr;  // kept_size() numbers, for the weights; null when not wanted
};

template <class Real>
struct BackwardCall : Call<Real> {
  Rows grad_out;
  Rows out;  // of the forward pass, as is lse
  TensorView<const Real> lse;
  engine::GradientTargets<Real> gradients;
  TensorView<const Real> lse_low = {};  // empty when not known
  Rows out_low = {};                    // none when out lacks nothing, or not known
  const Real* kept = nullptr;           // kept_size() numbers; null when not known
};

// The arguments of all functions are checked. Calls that are computed together have the same
// options, and the schedule is that of the largest.
template <class Real>
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // The instruction set of the kernels, or "reference".
  virtual std::string name() const = 0;
  // Why it cannot compute a request; empty if it can.
  virtual std::string refusal(const Request<Real>& request) const = 0;

  // How it divides a request; `threads` may be used. Empty where it does not.
  virtual engine::Schedule<Real> schedule(const Request<Real>& request, Pass pass,
                                          int threads) const = 0;
  // Memory that a pass takes beside its arguments and its result.
  virtual std::size_t workspace_bytes(const Request<Real>& request,
                                      const engine::Schedule<Real>& schedule, Pass pass) const = 0;

  // `workspace` is empty or has workspace_bytes() for the pass, which are those of a single call.
  virtual void forward(std::span<const ForwardCall<Real>> calls,
                       const engine::Schedule<Real>& schedule,
                       std::span<std::byte> workspace) const = 0;
  virtual void backward(std::span<const BackwardCall<Real>> calls,
                        const engine::Schedule<Real>& schedule,
                        std::span<std::byte> workspace) const = 0;
  // [rows, kv_len]
  virtual Tensor<Real> weights(const Call<Real>& call, const engine::Schedule<Real>& schedule,
                               std::span<const AttentionRow> rows) const = 0;
  virtual BasicAttentionStatistics<Real> statistics(const Call<Real>& call,
                                                    const engine::Schedule<Real>& schedule,
                                                    std::int64_t top_k) const = 0;
  virtual AttentionDiagnostics diagnose(const Call<Real>& call,
                                        const engine::Schedule<Real>& schedule,
                                        const DiagnosticsOptions& lengths) const = 0;
};

// The fused kernels of the instruction set whose table for float this is; of a null one, a backend
// that refuses everything.
template <class Real>
const Backend<Real>& fused_backend(const kernels::KernelTable* table);
// Plain loops.
template <class Real>
const Backend<Real>& reference_backend();

}  // namespace heed::inline v0
