// The interface of the implementations of attention.
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

// All arguments must have been checked. Calls that are computed together have the same options, and
// their schedule is that of the largest.
template <class Real>
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // The instruction set of the kernels, or "reference".
  virtual std::string name() const = 0;
  // The reason why this backend cannot compute a request; empty if it can.
  virtual std::string refusal(const Request<Real>& request) const = 0;

  // The division of a request into tasks for up to `threads` threads; empty for a backend that does
  // not divide it.
  virtual engine::Schedule<Real> schedule(const Request<Real>& request, Pass pass,
                                          int threads) const = 0;
  // The memory that a pass needs in addition to its arguments and its result.
  virtual std::size_t workspace_bytes(const Request<Real>& request,
                                      const engine::Schedule<Real>& schedule, Pass pass) const = 0;

  // `workspace` is empty or has the workspace_bytes() of the pass, which are those of a single
  // call.
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

// The fused kernels of one instruction set, given by its table for float. For a null table, a
// backend that refuses everything.
template <class Real>
const Backend<Real>& fused_backend(const kernels::KernelTable* table);
// The plain loops.
template <class Real>
const Backend<Real>& reference_backend();

}}  // namespace heed::v0
