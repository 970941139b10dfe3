#include "bench/simulated_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/measurement.h"
#include "bench/report.h"
#include "heed/attention.h"
#include "heed/core/random.h"
#include "heed/distributed/plan.h"
#include "heed/viz/chart.h"
#include "mask_argument.h"
#include "picture_file.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSimulationOut = "--out";
constexpr std::int64_t kMeasuredTokens = 4096;

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
  progress.start_case();
  const auto repetitions = time_calls(
      {.threads = threads, .warmups = 1, .repetitions = 5}, [&] { attention(query, key, value); },
      progress);
  const double seconds = summarize(repetitions, undisturbed_rates(repetitions)).best_seconds;
  return static_cast<double>(shapes.num_heads * kMeasuredTokens * kMeasuredTokens) / seconds;
}

Json simulate_all(const Simulation& simulation, double rate) {
  const distributed::Cluster cluster{.pairs_per_second = rate,
                                     .latency_seconds = simulation.links.latency_us * 1e-6,
                                     .bytes_per_second = simulation.links.gbytes_per_s * 1e9};
  auto rows = Json::array();
  for (const DividedCase& one : simulation.cases) {
    const auto plan_for = [&](std::int64_t size) {
      return distributed::plan(one.shapes, static_cast<int>(size), one.options(), one.divided_by);
    };
    const double alone = distributed::simulated_seconds(plan_for(1), cluster);
    for (const std::int64_t size : simulation.ranks) {
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
         aligned(rows) + baseline_notes(report);
}

}  // namespace

std::string simulation_endings() { return picture_endings(simulation_pictures(Json())); }

void report_simulation(const Simulation& simulation) {
  const ReportPrinter printer(simulation.report, "distributed --simulate");
  Json report;
  const Picture picture = simulation_pictures(report);
  OutputFiles files;
  if (!simulation.out.empty()) {
    check_picture(kSimulationOut, simulation.out, picture);
    files.reserve(kSimulationOut, simulation.out);
  }
  const DividedCase& first = simulation.cases.front();
  const double rate = measured_rate(first.shapes, simulation.threads);
  report = {{"machine", machine()},
            {"mask", first.mask},
            {"threads", simulation.threads},
            {"pairs_per_s", rate},
            {"latency_us", simulation.links.latency_us},
            {"gbytes_per_s", simulation.links.gbytes_per_s},
            {"results", simulate_all(simulation, rate)}};
  if (!simulation.out.empty()) {
    write_picture(files, kSimulationOut, simulation.out, picture);
    files.commit();
  }
  printer.print(report, [](const Json& whole) { return simulation_table(whole); });
}

}  // namespace heed::cli
