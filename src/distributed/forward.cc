#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attention/kernels/target.h"
#include "attention/keys/segment_keys.h"
#include "attention/request/call.h"
#include "distributed/agreement.h"
#include "distributed/passes.h"
#include "distributed/segment_exchange.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

// The rows of this rank, which read one segment of keys after the other. Their partial sums are
// kept between segments.
template <class Real>
class RowSums {
 public:
  RowSums(const SharedProblem<Real>& problem, const Results<Real>& results)
      : problem_(problem),
        results_(results),
        pass_(prepare_for(problem, Pass::kForward, TokenDivision::kSegment)),
        row_(RowStates<Real>::size_of_row(problem.request.value_dim())),
        asks_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(problem.batch()))) {
    const std::int64_t rows =
        checked_multiply(checked_multiply(problem.batch(), problem.request.shape.num_heads),
                         problem.num_own_queries());
    states_ = std::make_unique_for_overwrite<Real[]>(
        static_cast<std::size_t>(checked_multiply(rows, row_)));
  }

  // Adds these keys, which follow those added before.
  void add(RowRange keys, const KeyRows& rows) {
    const SegmentKeys<Real> source({kernels::kernels_in<Real>(*kernels_in_use()),
                                    problem_.request.shape, rows.key, rows.value},
                                   keys.begin);
    run(keys, &source, true);
  }

  // Writes the results. Returns 1 for a batch entry with a row that must read all keys again.
  std::vector<std::uint8_t> write() {
    const std::int64_t end = problem_.keys.length();
    const SegmentKeys<Real> none({}, end);
    run({end, end}, &none, false);
    std::vector<std::uint8_t> asks;
    for (std::int64_t b = 0; b < problem_.batch(); ++b) asks.push_back(asks_[index(b)] ? 1 : 0);
    return asks;
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  RowStates<Real> states(std::int64_t batch) const {
    const std::int64_t head = problem_.num_own_queries() * row_;
    return {states_.get() + batch * problem_.request.shape.num_heads * head, head, row_};
  }

  // Runs one call per batch entry, each with its own states.
  void run(RowRange keys, const KeySource<Real>* source, bool leaves_states) {
    const Request<Real> request = problem_.with_keys(keys);
    std::vector<ForwardCall<Real>> calls;
    for (std::int64_t b = 0; b < problem_.batch(); ++b) {
      ForwardCall<Real> call;
      call.request = &request;
      call.query = problem_.query;
      call.batches = {b, b + 1};
      call.keys = source;
      call.out = results_.out;
      call.lse = results_.lse;
      call.lse_low = results_.lse_low;
      call.out_low = results_.out_low.value_or(MutableRows{});
      call.continuation = {states(b), keys.begin, leaves_states, asks_.get()};
      calls.push_back(call);
    }
    if (!calls.empty()) pass_->forward(calls);
  }

  const SharedProblem<Real>& problem_;
  const Results<Real>& results_;
  PreparedPass<Real> pass_;
  std::int64_t row_;
  std::unique_ptr<Real[]> states_;
  std::unique_ptr<std::atomic<bool>[]> asks_;  // [batch]: true if some row must read all keys again
};

// Computes the batch entries with rows that read keys twice. All ranks call it.
template <class Real>
void compute_from_all_keys(const SharedProblem<Real>& problem, const Results<Real>& results,
                           std::int64_t batch) {
  const GatheredKeys keys(problem, batch);
  run_on_all(problem.ranks, [&] {
    const CancellationScope scope(problem.cancellation);
    ForwardCall<Real> call;
    call.request = &problem.request;
    call.query = problem.query;
    call.key = keys.rows().key;
    call.value = keys.rows().value;
    call.batches = {batch, batch + 1};
    call.out = results.out;
    call.lse = results.lse;
    call.lse_low = results.lse_low;
    call.out_low = results.out_low.value_or(MutableRows{});
    prepare_for(problem, Pass::kForward, problem.keys.length())->forward({&call, 1});
  });
}

}  // namespace

template <class Real>
void forward(const SharedProblem<Real>& problem, const Results<Real>& results) {
  if (problem.divided_by == DividedBy::kHeads) return forward_by_heads(problem, results);
  std::optional<RowSums<Real>> sums;
  std::optional<SegmentExchange> exchange;
  run_on_all(problem.ranks, [&] {
    sums.emplace(problem, results);
    exchange.emplace(problem);
  });
  std::vector<std::uint8_t> asks(static_cast<std::size_t>(problem.batch()));
  run_on_all(problem.ranks, [&] {
    OwnPart own(problem.cancellation);
    exchange->for_each_segment([&](std::int64_t j, const KeyRows* rows) {
      if (rows != nullptr) {
        own.run([&] { sums->add(problem.keys.tokens(j), *rows); });
      } else if (j == 0) {
        own.run([&] { sums->add({0, 0}, {}); });  // for rows that have summed nothing yet
      }
    });
    own.run([&] { asks = sums->write(); });
    own.finish();
  });
  sums.reset();
  const std::vector<bool> again = any_rank_says(problem.ranks, asks);
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    if (again[static_cast<std::size_t>(b)]) compute_from_all_keys(problem, results, b);
  }
}

template void forward(const SharedProblem<float>&, const Results<float>&);
template void forward(const SharedProblem<double>&, const Results<double>&);

}}}  // namespace heed::v0::distributed
