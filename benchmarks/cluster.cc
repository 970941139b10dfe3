// heed_measure cluster: the time of attention on a cluster of machines like this one, by the model
// of docs/distributed.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/divided_arguments.h"
#include "bench/report.h"
#include "heed/attention.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/distributed/plan.h"
#include "heed/viz/chart.h"
#include "measure_verbs.h"
#include "picture_file.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSimulationOut = "--out";
constexpr std::int64_t kMeasuredTokens = 4096;

struct ClusterArguments : DividedArguments {
  ClusterArguments() {
    ranks = {1, 4, 16, 64};
    seq = {65536};
  }

  int threads = 0;  // per rank
  double latency_us = 20;
  double gbytes_per_s = 10;
  std::string out;  // a picture, or empty
  bool as_json = false;
};

Picture simulation_pictures(const Json& report) {
  return {.figure =
              [&report] {
                std::vector<Curve> curves;
                for (const Json& row : report["results"]) {
                  const Json& one = row["case"];
                  const auto by = one["divide"].get<std::string>();
                  const std::string name = fmt::format("{} tokens{}", one["seq"].dump(),
                                                       by == "automatic" ? "" : ", by " + by);
                  if (curves.empty() || curves.back().name != name) {
                    curves.push_back({.name = name, .has_markers = true});
                  }
                  curves.back().x.push_back(one["ranks"]);
                  curves.back().y.push_back(row["efficiency"]);
                }
                return curves_figure(
                    curves, {.title = "Efficiency of attention over divided tokens",
                             .note = fmt::format("A model: mask {}, {} µs and {} GB/s a message",
                                                 report["mask"].get<std::string>(),
                                                 report["latency_us"].get<double>(),
                                                 report["gbytes_per_s"].get<double>()),
                             .x_title = "ranks",
                             .y_title = "time of one rank / (ranks · time)",
                             .has_log_x = true,
                             .y_low = 0,
                             .y_high = 1.05});
              },
          .json = [&report] { return report.dump(1) + '\n'; }};
}

// Returns the (query, key) pairs that this machine computes per second.
double measured_rate(const AttentionShapes& shapes, int threads) {
  TorchGenerator random(0);
  const Tensor<float> query = random.randn({1, shapes.num_heads, kMeasuredTokens, shapes.head_dim});
  const Tensor<float> key =
      random.randn({1, shapes.num_kv_heads, kMeasuredTokens, shapes.head_dim});
  const Tensor<float> value = random.randn(key.shape());
  Progress progress(1);
  const auto call = [&] { return attention(query, key, value); };
  const double seconds =
      summarize(measure({.threads = threads, .repetitions = 5}, make_ready(call), progress).seconds)
          .best;
  return static_cast<double>(shapes.num_heads * kMeasuredTokens * kMeasuredTokens) / seconds;
}

Json simulate_all(const ClusterArguments& arguments, double rate) {
  const distributed::Cluster cluster{.pairs_per_second = rate,
                                     .latency_seconds = arguments.latency_us * 1e-6,
                                     .bytes_per_second = arguments.gbytes_per_s * 1e9};
  auto rows = Json::array();
  for (const DividedCase& one : arguments.cases(false)) {
    const auto plan_for = [&](std::int64_t size) {
      return distributed::plan(one.shapes, static_cast<int>(size), one.options(), one.divided_by);
    };
    const double alone = distributed::simulated_seconds(plan_for(1), cluster);
    for (const std::int64_t size : arguments.ranks) {
      const auto plan = plan_for(size);
      const double seconds = distributed::simulated_seconds(plan, cluster);
      rows.push_back({{"case",
                       {{"seq", one.shapes.q_len},
                        {"divide", std::string(to_string(one.divided_by))},
                        {"ranks", size}}},
                      {"divided_by", std::string(to_string(plan.divided_by))},
                      {"median_ms", seconds * 1e3},
                      {"efficiency", alone / (static_cast<double>(size) * seconds)},
                      {"balance", plan.balance()},
                      {"bytes_received", plan.most_bytes_received()}});
    }
  }
  return rows;
}

std::string simulation_table(const Json& report) {
  std::vector<std::vector<std::string>> rows{
      {"seq", "by", "ranks", "seconds", "efficiency", "balance", "received MB"}};
  for (const Json& row : report["results"]) {
    rows.push_back({row["case"]["seq"].dump(), row["divided_by"], row["case"]["ranks"].dump(),
                    fmt::format("{:.4g}", row["median_ms"].get<double>() / 1e3),
                    fmt::format("{:.3f}", row["efficiency"].get<double>()),
                    fmt::format("{:.3f}", row["balance"].get<double>()),
                    fmt::format("{:.1f}", row["bytes_received"].get<double>() / 1e6)});
  }
  return headline(report["machine"]) +
         fmt::format(
             "A model of ranks with {} threads that compute {:.4g} pairs a second, as this "
             "machine does,\n{} µs and {} GB/s a message\n",
             report["threads"].get<int>(), report["pairs_per_s"].get<double>(),
             report["latency_us"].get<double>(), report["gbytes_per_s"].get<double>()) +
         aligned(rows);
}

void run_cluster(ClusterArguments arguments) {
  const std::vector<DividedCase> cases = arguments.cases(false);
  check_division(cases, arguments.ranks);
  if (arguments.threads == 0) arguments.threads = num_threads();
  Json report;
  const Picture picture = simulation_pictures(report);
  OutputFiles files;
  if (!arguments.out.empty()) {
    check_picture(kSimulationOut, arguments.out, picture);
    files.reserve(kSimulationOut, arguments.out);
  }
  const double rate = measured_rate(cases.front().shapes, arguments.threads);
  report = {{"machine", machine()},
            {"mask", arguments.mask},
            {"threads", arguments.threads},
            {"pairs_per_s", rate},
            {"latency_us", arguments.latency_us},
            {"gbytes_per_s", arguments.gbytes_per_s},
            {"results", simulate_all(arguments, rate)}};
  if (!arguments.out.empty()) {
    write_picture(files, kSimulationOut, arguments.out, picture);
    files.commit();
  }
  print_report(arguments.as_json, "cluster", report,
               [](const Json& whole) { return simulation_table(whole); });
}

}  // namespace

void add_cluster(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "cluster", "What ranks on machines of their own would take, by a model");
  auto arguments = std::make_shared<ClusterArguments>();
  add_divided_options(*verb, *arguments, "How many ranks; 1,4,16,64", "How many tokens; 65536");
  add_option(*verb, "--threads", arguments->threads, "Threads of a rank; all, if not given")
      ->check(CLI::Range(1, 1024).description(""));
  add_option(*verb, "--latency", arguments->latency_us, "Microseconds of a message")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->capture_default_str();
  add_option(*verb, "--bandwidth", arguments->gbytes_per_s,
             "GB/s that a machine sends, and receives")
      ->check(CLI::Range(1e-3, 1e6).description(""))
      ->capture_default_str();
  add_option(*verb, kSimulationOut, arguments->out,
             "Draw efficiency against ranks: " + picture_endings(simulation_pictures(Json())))
      ->type_name("FILE");
  add_report_options(*verb, arguments->as_json);
  verb->callback([arguments] { run_cluster(*arguments); });
}

}  // namespace heed::cli
