// A request that a backend has prepared for one pass: the interface of the implementations of
// attention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "attention/engine/schedule.h"
#include "attention/request/call.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/plan.h"
#include "heed/attention/statistics.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

using engine::Pass;

// It is immutable, so that any number of threads may run it at the same time. Functions that take a
// request take the one that was prepared. All arguments must have been checked.
template <class Real>
class Prepared {
 public:
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;

  // The instruction set of the kernels, or the name of the backend.
  virtual std::string target() const = 0;
  // Lines of text about how it computes, each "name        value\n".
  virtual std::string describe(const Request<Real>& request) const = 0;
  // The memory that the pass needs in addition to its arguments and its result.
  virtual std::size_t bytes(const Request<Real>& request) const = 0;
  // The number of weights that the forward pass keeps for the backward pass; 0 for none.
  virtual std::int64_t kept_size(const Request<Real>& /*request*/) const { return 0; }
  // The tiles of scores, for a backend that divides the scores into tiles.
  virtual TileCounts tiles(const Request<Real>& /*request*/) const { return {}; }
  virtual int num_threads() const { return 1; }
  // True if threads share the keys of a row.
  virtual bool splits_keys() const { return false; }
  // The number of rows of a key head below which a call can go on from the states of rows over the
  // first keys (ForwardCall::continuation), which other calls share; 0 if it cannot.
  virtual std::int64_t rows_that_continue() const { return 0; }

  // Calls that are computed together have the same options, and what was prepared is the largest.
  // `workspace` is empty or has the bytes() of a single call.
  virtual void forward(std::span<const ForwardCall<Real>> calls,
                       std::span<std::byte> workspace = {}) const = 0;
  virtual void backward(std::span<const BackwardCall<Real>> calls,
                        std::span<std::byte> workspace = {}) const = 0;
  // [rows, kv_len]
  virtual Tensor<Real> weights(const Call<Real>& call,
                               std::span<const AttentionRow> rows) const = 0;
  virtual BasicAttentionStatistics<Real> statistics(const Call<Real>& call,
                                                    std::int64_t top_k) const = 0;
  virtual AttentionDiagnostics diagnose(const Call<Real>& call,
                                        const DiagnosticsOptions& lengths) const = 0;
};

// What a backend makes of a request: it prepares it, or says why it cannot compute it.
template <class Real>
struct Preparation {
  std::unique_ptr<const Prepared<Real>> prepared;  // null if refused
  std::string refusal;
};

// The engine, with the kernels in use, and the plain loops. A backend is such a function and a
// place in the order of prepare().
template <class Real>
Preparation<Real> prepare_fused(const Request<Real>& request, Pass pass);
template <class Real>
Preparation<Real> prepare_reference(const Request<Real>& request, Pass pass);

}}  // namespace heed::v0
