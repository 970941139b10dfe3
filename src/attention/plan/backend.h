// What can compute attention: the interface that every implementation has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "attention/engine/schedule.h"
#include "attention/request/call.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/statistics.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

using engine::Pass;

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

}}  // namespace heed::v0
