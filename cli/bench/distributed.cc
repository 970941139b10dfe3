// heed bench distributed: attention of divided tokens beside one process with as many threads.
#include "heed/distributed.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/case_arguments.h"
#include "bench/report.h"
#include "bench/simulated_cluster.h"
#include "bench/statistics.h"
#include "bench/timed_ranks.h"
#include "heed/distributed_plan.h"
#include "heed/error.h"
#include "heed/parallel.h"
#include "heed/random.h"
#include "heed/thread_ranks.h"
#include "mask_argument.h"
#include "verbs.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

struct DistributedArguments {
  Names pass{"forward"};
  Numbers ranks{1, 2}, seq{16384};
  std::int64_t heads = 8, kv_heads = 0, head_dim = 64;
  std::string mask = "causal";
  int threads = 0;
  int repetitions = 3;
  ReportOptions report;
  bool simulates = false;
  Links links;
  std::string out;

  AttentionShapes shapes(std::int64_t length) const {
    return {.num_heads = heads,
            .num_kv_heads = kv_heads == 0 ? heads : kv_heads,
            .q_len = length,
            .kv_len = length,
            .head_dim = head_dim,
            .value_dim = head_dim};
  }
};

// The tensors of one pass, of all tokens or of a rank's.
struct DividedOperands {
  Tensor<float> query, key, value, grad_out;
  AttentionOutput<float> forward;  // where it is the backward pass

  DividedOperands own(const Communicator& ranks) const {
    const auto part = [&](const Tensor<float>& whole) {
      return distributed::own_tokens(ranks, FloatView(whole));
    };
    if (grad_out.empty()) return {part(query), part(key), part(value), {}, {}};
    return {part(query),
            part(key),
            part(value),
            part(grad_out),
            {part(forward.out), part(forward.lse), part(forward.lse_low)}};
  }
};

DividedOperands draw_operands(const AttentionShapes& shapes, const AttentionOptions& options,
                              bool is_backward) {
  TorchGenerator random(0);
  DividedOperands in;
  in.query = random.randn({1, shapes.num_heads, shapes.q_len, shapes.head_dim});
  in.key = random.randn({1, shapes.num_kv_heads, shapes.kv_len, shapes.head_dim});
  in.value = random.randn(in.key.shape());
  if (!is_backward) return in;
  in.grad_out = random.randn(in.query.shape());
  in.forward = attention_with_lse(in.query, in.key, in.value, options);
  return in;
}

void compute_pass(const DividedOperands& in, const AttentionOptions& options) {
  if (in.grad_out.empty()) {
    attention_with_lse(in.query, in.key, in.value, options);
  } else {
    attention_backward(in.grad_out, in.query, in.key, in.value, in.forward, options);
  }
}

void compute_pass(Communicator& ranks, const DividedOperands& in, const AttentionOptions& options) {
  if (in.grad_out.empty()) {
    distributed::attention_with_lse(ranks, in.query, in.key, in.value, options);
  } else {
    distributed::attention_backward(ranks, in.grad_out, in.query, in.key, in.value, in.forward,
                                    options);
  }
}

// So many ranks, which are threads of this process: they wait as those of several would.
class RankCalls {
 public:
  RankCalls(const DividedOperands& whole, const AttentionOptions& options, int size)
      : options_(options), size_(size), own_(static_cast<std::size_t>(size)), waited_(own_.size()) {
    run_thread_ranks(size, [&](Communicator& ranks) { own_[index(ranks)] = whole.own(ranks); });
  }

  void operator()() {
    const auto start = std::chrono::steady_clock::now();
    run_thread_ranks(size_, [&](Communicator& ranks) {
      TimedRanks timed(ranks);
      compute_pass(timed, own_[index(ranks)], options_);
      waited_[index(ranks)] += timed.seconds();
    });
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Of the time of all ranks.
  double share_of_waiting() const {
    double sum = 0;
    for (const double seconds : waited_) sum += seconds;
    return sum / (size_ * seconds_);
  }

 private:
  static std::size_t index(const Communicator& ranks) {
    return static_cast<std::size_t>(ranks.rank());
  }

  const AttentionOptions& options_;
  int size_;
  std::vector<DividedOperands> own_;
  std::vector<double> waited_;
  double seconds_ = 0;
};

// A row for each number of ranks, all measured in turn with one process.
std::vector<Json> measure_ranks(const DistributedArguments& arguments, const std::string& pass,
                                std::int64_t length, Progress& progress) {
  const AttentionShapes shapes = arguments.shapes(length);
  const AttentionOptions options{.mask = parse_mask("--mask", arguments.mask)};
  const DividedOperands whole = draw_operands(shapes, options, pass == "backward");
  std::vector<std::unique_ptr<RankCalls>> ranks;
  const auto one_process = [&] { compute_pass(whole, options); };
  std::vector<FunctionRef<void()>> calls{one_process};
  for (const std::int64_t size : arguments.ranks) {
    ranks.push_back(std::make_unique<RankCalls>(whole, options, static_cast<int>(size)));
    calls.emplace_back(*ranks.back());
  }
  progress.start_case();
  const auto repetitions = time_in_turn(
      {.threads = arguments.threads, .warmups = 1, .repetitions = arguments.repetitions}, calls,
      progress);
  std::vector<Timing> timings;
  timings.reserve(repetitions.size());
  for (const auto& of_call : repetitions) {
    timings.push_back(summarize(of_call, undisturbed_rates(of_call)));
  }
  std::vector<Json> rows;
  rows.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto size = static_cast<int>(arguments.ranks[i]);
    const auto plan = distributed::plan(shapes, size, options);
    const Json described{{"pass", pass},
                         {"seq", length},
                         {"heads", shapes.num_heads},
                         {"kv_heads", shapes.num_kv_heads},
                         {"head_dim", shapes.head_dim},
                         {"mask", arguments.mask},
                         {"ranks", size},
                         {"threads", std::max(arguments.threads / size, 1)}};
    const double alone = timings[0].median_seconds;
    const double divided = timings[i + 1].median_seconds;
    rows.emplace_back(Json{{"case", described},
                           {"median_ms", divided * 1e3},
                           {"one_process_ms", alone * 1e3},
                           {"efficiency", alone / divided},
                           {"waiting_share", ranks[i]->share_of_waiting()},
                           {"balance", plan.balance()},
                           {"bytes_received", plan.most_bytes_received()},
                           {"quiet", timings[i + 1].quiet},
                           {"repetitions", timings[i + 1].repetitions}});
  }
  return rows;
}

std::string ranks_table(const Json& report) {
  std::vector<std::vector<std::string>> rows{{"pass", "seq", "ranks", "threads each", "ms",
                                              "one process ms", "efficiency", "waiting",
                                              "received MB", "quiet"}};
  for (const Json& row : report["results"]) {
    const Json& one = row["case"];
    rows.push_back({one["pass"], one["seq"].dump(), one["ranks"].dump(), one["threads"].dump(),
                    fmt::format("{:.1f}", row["median_ms"].get<double>()),
                    fmt::format("{:.1f}", row["one_process_ms"].get<double>()),
                    fmt::format("{:.2f}", row["efficiency"].get<double>()),
                    fmt::format("{:.1f} %", 100 * row["waiting_share"].get<double>()),
                    fmt::format("{:.1f}", row["bytes_received"].get<double>() / 1e6),
                    quiet_cell(row)});
  }
  add_ratios(report, rows);
  return headline(report["machine"]) + aligned(rows) + quiet_note(report) + baseline_notes(report);
}

void run_ranks(const DistributedArguments& arguments) {
  const ReportPrinter printer(arguments.report, "distributed");
  Json report{{"machine", machine()}, {"results", Json::array()}};
  {
    Progress progress(static_cast<int>(arguments.pass.size() * arguments.seq.size()));
    for (const std::string& pass : arguments.pass) {
      for (const std::int64_t length : arguments.seq) {
        for (Json& row : measure_ranks(arguments, pass, length, progress)) {
          report["results"].push_back(std::move(row));
        }
      }
    }
  }
  printer.print(report, [](const Json& whole) { return ranks_table(whole); });
}

void run_distributed(DistributedArguments arguments) {
  if (arguments.threads == 0) arguments.threads = num_threads();
  // What does not fit is said before anything is measured.
  for (const std::int64_t length : arguments.seq) {
    const AttentionOptions options{.mask = parse_mask("--mask", arguments.mask)};
    try {
      distributed::plan(arguments.shapes(length), 1, options);
    } catch (const InvalidArgument& error) {
      throw UsageError(fmt::format("--seq, --heads, --kv-heads or --mask: {}", error.what()));
    }
  }
  if (!arguments.simulates) return run_ranks(arguments);
  std::vector<AttentionShapes> shapes;
  for (const std::int64_t length : arguments.seq) shapes.push_back(arguments.shapes(length));
  report_simulation({.shapes = std::move(shapes),
                     .ranks = arguments.ranks,
                     .mask = arguments.mask,
                     .threads = arguments.threads,
                     .links = arguments.links,
                     .out = arguments.out,
                     .report = arguments.report});
}

void add_simulation_options(CLI::App& verb, DistributedArguments& arguments) {
  CLI::Option* simulates =
      add_flag(verb, "--simulate", arguments.simulates,
               "Say what ranks on machines of their own would take: by a model, with the rate "
               "measured here");
  add_option(verb, "--latency", arguments.links.latency_us, "Microseconds of a message")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->capture_default_str()
      ->needs(simulates);
  add_option(verb, "--bandwidth", arguments.links.gbytes_per_s,
             "GB/s that a machine sends, and receives")
      ->check(CLI::Range(1e-3, 1e6).description(""))
      ->capture_default_str()
      ->needs(simulates);
  add_option(verb, "--out", arguments.out, "Draw efficiency against ranks: " + simulation_endings())
      ->type_name("FILE")
      ->needs(simulates);
}

}  // namespace

void add_bench_distributed(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "distributed", "Attention of tokens divided among ranks, beside one process");
  auto arguments = std::make_shared<DistributedArguments>();
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  add_names(*verb, "--pass", arguments->pass, {"forward", "backward"}, "forward");
  add_numbers(*verb, "--ranks", arguments->ranks, 1024, "How many ranks; 1,2");
  add_numbers(*verb, "--seq", arguments->seq, kMost, "How many tokens; 16384");
  const auto add = [&](const char* name, std::int64_t& number, const char* help) {
    return add_option(*verb, name, number, help)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}).description(""));
  };
  add("--heads", arguments->heads, "Heads of the query")->capture_default_str();
  add("--kv-heads", arguments->kv_heads, "Heads of key and value; as the query");
  add("--head-dim", arguments->head_dim, "Dimensions of a head")->capture_default_str();
  add_option(*verb, "--mask", arguments->mask, "Which keys are seen")
      ->type_name("MASK")
      ->capture_default_str();
  add_option(*verb, "--threads", arguments->threads,
             "Threads of all ranks together; all the machine has, if not given")
      ->check(CLI::Range(1, 1024).description(""));
  add_option(*verb, "--repeat", arguments->repetitions, "How often each case is measured")
      ->check(CLI::Range(1, 1000000).description(""))
      ->capture_default_str();
  add_report_options(*verb, arguments->report);
  add_simulation_options(*verb, *arguments);
  verb->footer(
      "Ranks are threads of this process, each with its share of --threads; 'one process'\n"
      "is attention() with all of them, measured in turn. 'efficiency' is its time by that\n"
      "of the ranks, 'waiting' the share of their time that goes by in messages, 'received'\n"
      "what the busiest rank gets from others. The model of --simulate is in\n"
      "docs/distributed.md.\n\n"
      "Examples:\n"
      "  heed bench distributed --ranks 1,2 --pass forward,backward\n"
      "  heed bench distributed --simulate --ranks 1,4,16,64 --seq 65536,1048576");
  verb->callback([arguments] { run_distributed(*arguments); });
}

}  // namespace heed::cli
