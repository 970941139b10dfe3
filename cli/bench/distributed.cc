// heed bench distributed: attention with divided tokens, compared to one process with as many
// threads.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/divided_arguments.h"
#include "bench/measured_ranks.h"
#include "bench/report.h"
#include "heed/core/parallel.h"
#include "ranks.h"
#include "verbs.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

struct DistributedArguments : DividedArguments {
  DistributedArguments() {
    ranks = {1, 2};
    seq = {16384};
  }

  Names pass{"forward"};
  int threads = 0;       // of all ranks together
  int threads_each = 0;  // of each process that mpirun started
  int repetitions = 3;
  bool as_json = false;
  bool names_ranks = false;  // --ranks is given

  std::vector<DividedCase> cases() const;
};

std::vector<DividedCase> DistributedArguments::cases() const {
  std::vector<DividedCase> all;
  for (const std::string& one : pass) {
    const std::vector<DividedCase> some = DividedArguments::cases(one == "backward");
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string ranks_table(const Json& report) {
  std::vector<std::vector<std::string>> rows{{"pass", "seq", "by", "ranks", "threads each", "ms",
                                              "spread", "one process ms", "efficiency", "waiting",
                                              "received MB"}};
  const auto cell = [](const Json& number, int digits) {
    return number.is_null() ? "-" : fmt::format("{:.{}f}", number.get<double>(), digits);
  };
  for (const Json& row : report["results"]) {
    const Json& one = row["case"];
    rows.push_back({one["pass"], one["seq"].dump(), one["divided_by"], one["ranks"].dump(),
                    one["threads"].dump(), cell(row["median_ms"], 1), spread_cell(row),
                    cell(row["one_process_ms"], 1), cell(row["efficiency"], 2),
                    fmt::format("{:.1f} %", 100 * row["waiting_share"].get<double>()),
                    fmt::format("{:.1f}", row["bytes_received"].get<double>() / 1e6)});
  }
  return headline(report["machine"]) + aligned(rows);
}

// Measures ranks that are threads of this process, or processes that mpirun started.
std::vector<MeasuredRanks> measure_case(const DistributedArguments& arguments,
                                        const DividedCase& one, Progress& progress) {
  progress.start_case();
  Communicator* const processes = ranks();
  if (processes == nullptr) {
    return measure_thread_ranks(one, arguments.ranks, arguments.threads, arguments.repetitions,
                                progress);
  }
  return {measure_ranks_there_are(*processes, one, arguments.threads_each, arguments.repetitions,
                                  progress)};
}

void run_ranks(const DistributedArguments& arguments) {
  Json report{{"machine", machine()}, {"results", Json::array()}};
  {
    const std::vector<DividedCase> cases = arguments.cases();
    Progress progress(static_cast<int>(cases.size()));
    for (const DividedCase& one : cases) {
      for (const MeasuredRanks& measured : measure_case(arguments, one, progress)) {
        report["results"].push_back(measured.row(one));
      }
    }
  }
  on_first_rank([&] {
    print_report(arguments.as_json, "distributed", report,
                 [](const Json& whole) { return ranks_table(whole); });
  });
}

// Throws UsageError where mpirun started several processes and the options name other ranks.
void check_processes(const DistributedArguments& arguments) {
  if (ranks() == nullptr) return;
  if (arguments.names_ranks) {
    throw UsageError(fmt::format(
        "--ranks: {} processes were started, which are the ranks, expected none to be named",
        ranks()->size()));
  }
}

void settle_threads(DistributedArguments& arguments) {
  if (ranks() != nullptr && arguments.threads > 0) {
    arguments.threads_each = std::max(arguments.threads / ranks()->size(), 1);
  } else {
    arguments.threads_each = num_threads();
  }
  if (arguments.threads == 0) arguments.threads = num_threads();
}

void run_distributed(DistributedArguments arguments) {
  check_processes(arguments);
  settle_threads(arguments);
  check_division(arguments.cases(),
                 ranks() == nullptr ? arguments.ranks : Numbers{ranks()->size()});
  run_ranks(arguments);
}

}  // namespace

void add_bench_distributed(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "distributed", "Attention of tokens divided among ranks, beside one process");
  auto arguments = std::make_shared<DistributedArguments>();
  add_names(*verb, "--pass", arguments->pass, {"forward", "backward"}, "forward");
  add_divided_options(*verb, *arguments, "How many ranks; 1,2", "How many tokens; 16384");
  add_option(*verb, "--threads", arguments->threads,
             "Threads of all ranks together; all that there are, if not given")
      ->check(CLI::Range(1, 1024).description(""));
  add_option(*verb, "--repeat", arguments->repetitions, "How often each case is measured")
      ->check(CLI::Range(1, 1000000).description(""))
      ->capture_default_str();
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "Ranks are threads of this process, each with its share of --threads, or the\n"
      "processes that mpirun started; 'one process' is attention() with the threads of\n"
      "all, measured in turn, where the first rank has as many processors.\n"
      "'efficiency' is its time by that of the ranks, 'waiting' the share of their time\n"
      "that goes by in messages, 'received' what the busiest rank gets from others.\n\n"
      "Examples:\n"
      "  heed bench distributed --ranks 1,2 --pass forward,backward\n"
      "  mpirun -n 4 heed bench distributed --seq 65536");
  verb->callback([arguments, verb] {
    arguments->names_ranks = verb->count("--ranks") > 0;
    run_distributed(*arguments);
  });
}

}  // namespace heed::cli
