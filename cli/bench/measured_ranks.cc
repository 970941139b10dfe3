#include "bench/measured_ranks.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "bench/measurement.h"
#include "bench/report.h"
#include "bench/timed_ranks.h"
#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"
#include "heed/distributed/plan.h"
#include "heed/distributed/thread_ranks.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

// Computes a pass together with the other ranks and sums the time that it takes.
class RankPass {
 public:
  RankPass(PassOperands operands, AttentionOptions options)
      : operands_(std::move(operands)), options_(std::move(options)) {}

  void compute(Communicator& ranks) {
    const auto start = std::chrono::steady_clock::now();
    TimedRanks timed(ranks);
    operands_.compute(timed, options_);
    waited_ += timed.seconds();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  double waited() const { return waited_; }
  double seconds() const { return seconds_; }

 private:
  PassOperands operands_;
  AttentionOptions options_;
  double waited_ = 0;  // in messages
  double seconds_ = 0;
};

// `size` ranks that are threads of this process.
class ThreadRanksPass {
 public:
  ThreadRanksPass(const PassOperands& whole, const AttentionOptions& options, int size)
      : size_(size), ranks_(static_cast<std::size_t>(size)) {
    run_thread_ranks(size, [&](Communicator& ranks) {
      ranks_[index(ranks)] = std::make_unique<RankPass>(whole.part(ranks), options);
    });
  }

  void operator()() {
    run_thread_ranks(size_, [&](Communicator& ranks) { ranks_[index(ranks)]->compute(ranks); });
  }

  double waiting_share() const {
    double waited = 0, seconds = 0;
    for (const auto& rank : ranks_) {
      waited += rank->waited();
      seconds += rank->seconds();
    }
    return waited / seconds;
  }

 private:
  static std::size_t index(const Communicator& ranks) {
    return static_cast<std::size_t>(ranks.rank());
  }

  int size_;
  std::vector<std::unique_ptr<RankPass>> ranks_;
};

// Waits for messages in sleeps of 100 µs, so that the waiting thread leaves the processor to ranks
// that compute.
class Naps final : public Cancellation {
 public:
  void poll() noexcept override { std::this_thread::sleep_for(std::chrono::microseconds(100)); }
};

// Ranks that compute a pass each time the first rank signals it.
class LedRanks {
 public:
  LedRanks(Communicator& ranks, RankPass& pass, int threads)
      : ranks_(ranks), pass_(pass), threads_(threads) {}

  void follow() {
    while (next() == Step::kCompute) compute();
  }

  // Called on the first rank: all ranks compute one pass.
  void lead() {
    is_together_ = false;
    tell(Step::kCompute);
    compute();
    is_together_ = true;
  }
  // Called on the first rank: ends follow() on the others. After an exception in the pass all ranks
  // have ended already.
  void end() {
    if (is_together_) tell(Step::kEnd);
  }

 private:
  enum class Step : std::uint8_t { kEnd, kCompute };

  void compute() {
    const ThreadLimit limit(threads_);
    pass_.compute(ranks_);
  }
  void tell(Step step) { ranks_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0)->wait(); }
  Step next() {
    Naps naps;
    const CancellationScope scope(&naps);
    Step step = Step::kEnd;
    ranks_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0)->wait();
    return step;
  }

  Communicator& ranks_;
  RankPass& pass_;
  int threads_;
  bool is_together_ = true;
};

// Gathers a number of each rank, in the order of ranks.
template <class Number>
std::vector<Number> from_all(Communicator& ranks, Number mine) {
  std::vector<Number> all(static_cast<std::size_t>(ranks.size()));
  ranks.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

double sum_of_all(Communicator& ranks, double mine) {
  const std::vector<double> all = from_all(ranks, mine);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

// Returns the processors that this process may run on; mpirun may bind processes to a few.
int num_processors_here() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  ::sched_getaffinity(0, sizeof processors, &processors);
  return CPU_COUNT(&processors);
}

// Called on the first rank: measures the ranks, and one process if it has enough processors.
MeasuredRanks lead_measurement(LedRanks& led, const DividedCase& one, int threads_of_all,
                               const Sampling& sampling, Progress& progress) {
  const bool measures_one = threads_of_all <= num_processors_here();
  Sampling of_calls = sampling;
  if (measures_one) of_calls.threads = threads_of_all;
  const PassOperands whole = measures_one ? PassOperands::whole(one) : PassOperands{};
  const AttentionOptions options = one.options();
  const auto divided = [&] { led.lead(); };
  const auto one_process = [&] { whole.compute(options); };
  std::vector<FunctionRef<void()>> calls{divided};
  if (measures_one) calls.emplace_back(one_process);
  const auto made = time_in_turn(of_calls, calls, progress.counting(sampling.repetitions));
  MeasuredRanks found;
  found.timing = summarize(made[0].seconds);
  if (measures_one) found.one_process_seconds = median(made[1].seconds);
  return found;
}

}  // namespace

Json MeasuredRanks::row(const DividedCase& one) const {
  const auto plan = distributed::plan(one.shapes, size, one.options(), one.divided_by);
  const Json described{{"pass", one.is_backward ? "backward" : "forward"},
                       {"seq", one.shapes.q_len},
                       {"heads", one.shapes.num_heads},
                       {"kv_heads", one.shapes.num_kv_heads},
                       {"head_dim", one.shapes.head_dim},
                       {"mask", one.mask},
                       {"divided_by", std::string(to_string(plan.divided_by))},
                       {"ranks", size},
                       {"threads", threads}};
  const auto beside = [&](double number) {
    return one_process_seconds ? Json(number) : Json(nullptr);
  };
  const double alone = one_process_seconds.value_or(0);
  Json row{{"case", described}};
  row.update(times_json(timing));
  row.update({{"one_process_ms", beside(alone * 1e3)},
              {"efficiency", beside(alone / timing.median)},
              {"waiting_share", waiting_share},
              {"balance", plan.balance()},
              {"bytes_received", plan.most_bytes_received()}});
  return row;
}

std::vector<MeasuredRanks> measure_thread_ranks(const DividedCase& one,
                                                const std::vector<std::int64_t>& sizes, int threads,
                                                int repetitions, Progress& progress) {
  const AttentionOptions options = one.options();
  const PassOperands whole = PassOperands::whole(one);
  std::vector<std::unique_ptr<ThreadRanksPass>> ranks;
  const auto one_process = [&] { whole.compute(options); };
  std::vector<FunctionRef<void()>> calls{one_process};
  for (const std::int64_t size : sizes) {
    ranks.push_back(std::make_unique<ThreadRanksPass>(whole, options, static_cast<int>(size)));
    calls.emplace_back(*ranks.back());
  }
  const auto made = time_in_turn({.threads = threads, .warmups = 1, .repetitions = repetitions},
                                 calls, progress.counting(repetitions));
  std::vector<MeasuredRanks> found;
  found.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto size = static_cast<int>(sizes[i]);
    found.push_back({.size = size,
                     .threads = std::max(threads / size, 1),
                     .timing = summarize(made[i + 1].seconds),
                     .one_process_seconds = median(made[0].seconds),
                     .waiting_share = ranks[i]->waiting_share()});
  }
  return found;
}

MeasuredRanks measure_ranks_there_are(Communicator& ranks, const DividedCase& one, int threads,
                                      int repetitions, Progress& progress) {
  RankPass pass(PassOperands::own(ranks, one), one.options());
  const std::vector<int> all_threads = from_all(ranks, threads);
  const int threads_of_all = std::accumulate(all_threads.begin(), all_threads.end(), 0);
  set_num_threads(threads);
  LedRanks led(ranks, pass, threads);
  MeasuredRanks found;
  run_on_all(ranks, [&] {
    if (ranks.rank() != 0) return led.follow();
    try {
      found = lead_measurement(led, one, threads_of_all,
                               {.threads = threads, .warmups = 1, .repetitions = repetitions},
                               progress);
    } catch (...) {
      led.end();
      throw;
    }
    led.end();
  });
  found.size = ranks.size();
  found.threads = threads;
  found.waiting_share = sum_of_all(ranks, pass.waited()) / sum_of_all(ranks, pass.seconds());
  return found;
}

}  // namespace heed::cli
