#include "bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "heed/attention.h"
#include "heed/config.h"
#include "heed/viz/layout.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

// As Linux names it; empty elsewhere.
std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

Json outcome_json(const Outcome& outcome, const Probe& best) {
  const Timing timing = summarize(outcome.repetitions, best);
  const double peak = best.fma_rate * outcome.peak_factor;
  const double median_rate = outcome.operations / timing.median_seconds;
  const double best_rate = outcome.operations / timing.best_seconds;
  return {{"case", outcome.description},
          {"median_ms", timing.median_seconds * 1e3},
          {"best_ms", timing.best_seconds * 1e3},
          {"gflops", median_rate / 1e9},
          {"peak_gflops", peak / 1e9},
          {"peak_share_median", median_rate / peak},
          {"peak_share_best", best_rate / peak},
          {"quiet", timing.quiet},
          {"repetitions", timing.repetitions},
          {"extra_bytes", outcome.extra_bytes}};
}

std::string to_text(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_common(const Json& results, const std::string& name) {
  return std::all_of(results.begin(), results.end(), [&](const Json& result) {
    return result["case"][name] == results.front()["case"][name];
  });
}

using Row = std::vector<std::string>;

Row measured_cells(const Json& result) {
  const auto number = [&](const char* name) { return result[name].get<double>(); };
  const auto share = [&](const char* name) { return fmt::format("{:.1f} %", 100 * number(name)); };
  const int quiet = result["quiet"];
  return {fmt::format("{:#.4g}", number("median_ms")),
          fmt::format("{:#.4g}", number("best_ms")),
          fmt::format("{:.1f}", number("gflops")),
          fmt::format("{:.1f}", number("peak_gflops")),
          share("peak_share_median"),
          share("peak_share_best"),
          fmt::format("{}/{}{}", quiet, result["repetitions"].get<int>(), quiet == 0 ? "!" : ""),
          result["extra_bytes"].dump()};
}

const Row kMeasuredNames{"median ms", "best ms",    "GFLOP/s", "peak GFLOP/s",
                         "share",     "best share", "quiet",   "extra bytes"};

}  // namespace

Json machine() {
  return {{"version", version()},
          {"processor", processor_name()},
          {"processors", std::thread::hardware_concurrency()},
          {"attention_target", attention_target()}};
}

std::string headline(const Json& machine) {
  return fmt::format("heed {} by {} on {} processors{}\n", to_text(machine["version"]),
                     to_text(machine["attention_target"]), to_text(machine["processors"]),
                     machine["processor"] == "" ? "" : ", " + to_text(machine["processor"]));
}

std::string aligned(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      std::size_t width = 0;
      for (const Row& other : rows) width = std::max(width, other[column].size());
      text += fmt::format("{}{:>{}}", column == 0 ? "" : "  ", row[column], width);
    }
    text += '\n';
  }
  return text;
}

std::map<int, Probe> best_probes(const std::vector<Outcome>& outcomes) {
  std::map<int, Probe> best;
  for (const Outcome& outcome : outcomes) {
    const Probe probe = best_probe(outcome.repetitions);
    const auto [entry, is_first] = best.emplace(outcome.threads, probe);
    if (!is_first) entry->second = better(entry->second, probe);
  }
  return best;
}

Json to_json(const std::vector<Outcome>& outcomes) {
  const std::map<int, Probe> best = best_probes(outcomes);
  Json results = Json::array();
  for (const Outcome& outcome : outcomes) {
    results.push_back(outcome_json(outcome, best.at(outcome.threads)));
  }
  return {{"machine", machine()}, {"results", results}};
}

std::string to_table(const Json& report) {
  const Json& results = report["results"];
  std::string common;
  Row header;
  for (const auto& item : results.front()["case"].items()) {
    if (is_common(results, item.key())) {
      common +=
          fmt::format("{}{}={}", common.empty() ? "" : ", ", item.key(), to_text(item.value()));
    } else {
      header.push_back(item.key());
    }
  }
  std::vector<Row> rows;
  bool is_any_disturbed = false;
  for (const Json& result : results) {
    Row row;
    for (const std::string& name : header) row.push_back(to_text(result["case"][name]));
    for (std::string& cell : measured_cells(result)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
    is_any_disturbed = is_any_disturbed || result["quiet"] == 0;
  }
  header.insert(header.end(), kMeasuredNames.begin(), kMeasuredNames.end());
  rows.insert(rows.begin(), header);
  return headline(report["machine"]) + wrap_text(common, 80) + '\n' + aligned(rows) +
         (is_any_disturbed ? "! no repetition was quiet: the times are those of all\n" : "");
}

}  // namespace heed::cli
