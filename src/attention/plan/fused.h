// The backend of the engine: tiles of keys, panels of rows, kernels of one instruction set.
#pragma once

#include <span>
#include <string>

#include "attention/plan/prepared.h"

namespace heed { inline namespace v0 {

// A schedule of the engine with its kernels. `table` is that of numbers, also where the schedule
// multiplies pairs.
template <class Real>
class FusedPass final : public Prepared<Real> {
 public:
  using Table = kernels::BasicKernelTable<Real>;
  using Schedule = engine::Schedule<Real>;

  FusedPass(const Table& table, const Schedule& schedule, Pass pass)
      : table_(table), schedule_(schedule), pass_(pass) {}
  // Divides the request into tasks for up to `threads` threads.
  FusedPass(const Table& table, const Request<Real>& request, Pass pass, int threads)
      : FusedPass(table, engine::make_schedule(table, request, pass, threads), pass) {}

  const Schedule& schedule() const { return schedule_; }

  std::string target() const override { return table_.name; }
  std::string describe(const Request<Real>& request) const override;
  std::size_t bytes(const Request<Real>& request) const override;
  std::int64_t kept_size(const Request<Real>& request) const override;
  TileCounts tiles(const Request<Real>& request) const override;
  int num_threads() const override { return schedule_.workers; }
  bool splits_keys() const override { return schedule_.key_chunks > 1; }
  std::int64_t rows_that_continue() const override {
    return schedule_.has_plain_scores ? schedule_.full_panel_rows() : 0;
  }

  void forward(std::span<const ForwardCall<Real>> calls,
               std::span<std::byte> workspace = {}) const override;
  void backward(std::span<const BackwardCall<Real>> calls,
                std::span<std::byte> workspace = {}) const override;
  Tensor<Real> weights(const Call<Real>& call, std::span<const AttentionRow> rows) const override;
  BasicAttentionStatistics<Real> statistics(const Call<Real>& call,
                                            std::int64_t top_k) const override;
  AttentionDiagnostics diagnose(const Call<Real>& call,
                                const DiagnosticsOptions& lengths) const override;

 private:
  const Table& table_;
  Schedule schedule_;
  Pass pass_;
};

}}  // namespace heed::v0
