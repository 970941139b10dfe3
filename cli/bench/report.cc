#include "bench/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "arguments.h"
#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/viz/layout.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

// Returns the processor's name from /proc/cpuinfo; empty on other systems.
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

Json samples_of(const Outcome& outcome) {
  auto samples = Json::array();
  for (const Repetition& one : outcome.repetitions) {
    samples.push_back({one.at, one.elapsed, one.seconds, one.before.rates.attention,
                       one.before.read_seconds, one.after.rates.attention, one.after.read_seconds,
                       one.waiting_share, one.settled.attention});
  }
  return samples;
}

Json outcome_json(const Outcome& outcome, const Rates& undisturbed) {
  const Timing timing = summarize(outcome.repetitions, undisturbed);
  const double peak = undisturbed.fma * outcome.peak_factor;
  const double median_rate = outcome.operations / timing.median_seconds;
  const double best_rate = outcome.operations / timing.best_seconds;
  Json result{{"case", outcome.description},
              {"median_ms", timing.median_seconds * 1e3},
              {"best_ms", timing.best_seconds * 1e3},
              {"gflops", median_rate / 1e9},
              {"peak_gflops", peak / 1e9},
              {"peak_share_median", median_rate / peak},
              {"peak_share_best", best_rate / peak},
              {"quiet", timing.quiet},
              {"repetitions", timing.repetitions},
              {"extra_bytes", outcome.extra_bytes}};
  if (outcome.rate_over_first) result["rate_over_first"] = *outcome.rate_over_first;
  return result;
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

bool is_in_turn(const Json& result) { return result.contains("rate_over_first"); }

Row measured_cells(const Json& result) {
  const auto number = [&](const char* name) { return result[name].get<double>(); };
  const auto share = [&](const char* name) { return fmt::format("{:.1f} %", 100 * number(name)); };
  Row cells{fmt::format("{:#.4g}", number("median_ms")),
            fmt::format("{:#.4g}", number("best_ms")),
            fmt::format("{:.1f}", number("gflops")),
            fmt::format("{:.1f}", number("peak_gflops")),
            share("peak_share_median"),
            share("peak_share_best"),
            quiet_cell(result),
            result["extra_bytes"].dump()};
  if (is_in_turn(result)) cells.push_back(fmt::format("{:.3f}", number("rate_over_first")));
  return cells;
}

const Row kMeasuredNames{"median ms", "best ms",    "GFLOP/s", "peak GFLOP/s",
                         "share",     "best share", "quiet",   "extra bytes"};

}  // namespace

void add_report_options(CLI::App& verb, ReportOptions& options) {
  add_flag(verb, "--json", options.as_json, "Print one JSON object instead of the table");
  add_option(verb, "--baseline", options.baseline,
             "Compare with what --json of this verb printed earlier")
      ->type_name("FILE");
}

ReportPrinter::ReportPrinter(const ReportOptions& options, std::string verb, std::string number)
    : as_json_(options.as_json), verb_(std::move(verb)) {
  if (!options.baseline.empty()) baseline_.emplace(options.baseline, verb_, std::move(number));
}

void ReportPrinter::print(const Json& report,
                          FunctionRef<std::string(const Json&)> to_table) const {
  Json whole{{"verb", verb_}};
  whole.update(report);
  if (baseline_) baseline_->set_beside(whole);
  std::cout << (as_json_ ? whole.dump() + '\n' : to_table(whole) + baseline_notes(whole));
}

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

std::map<int, Rates> undisturbed_by_threads(const std::vector<Outcome>& outcomes) {
  std::map<int, std::vector<Repetition>> all;
  for (const Outcome& outcome : outcomes) {
    auto& of_threads = all[outcome.threads];
    of_threads.insert(of_threads.end(), outcome.repetitions.begin(), outcome.repetitions.end());
  }
  std::map<int, Rates> rates;
  for (const auto& [threads, repetitions] : all) rates[threads] = undisturbed_rates(repetitions);
  return rates;
}

Json to_json(const std::vector<Outcome>& outcomes, Samples samples) {
  const std::map<int, Rates> rates = undisturbed_by_threads(outcomes);
  Json results = Json::array();
  for (const Outcome& outcome : outcomes) {
    results.push_back(outcome_json(outcome, rates.at(outcome.threads)));
    if (samples == Samples::kIncluded) results.back()["samples"] = samples_of(outcome);
  }
  return {{"machine", machine()}, {"results", results}};
}

std::string quiet_cell(const Json& result) {
  const int quiet = result["quiet"];
  return fmt::format("{}/{}{}", quiet, result["repetitions"].get<int>(), quiet == 0 ? "!" : "");
}

std::string quiet_note(const Json& report) {
  const Json& results = report["results"];
  const bool is_any_disturbed = std::any_of(
      results.begin(), results.end(), [](const Json& result) { return result["quiet"] == 0; });
  return is_any_disturbed ? "! no repetition was quiet: the times are those of all\n" : "";
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
  for (const Json& result : results) {
    Row row;
    for (const std::string& name : header) row.push_back(to_text(result["case"][name]));
    for (std::string& cell : measured_cells(result)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
  }
  header.insert(header.end(), kMeasuredNames.begin(), kMeasuredNames.end());
  if (is_in_turn(results.front())) header.emplace_back("of first");
  rows.insert(rows.begin(), header);
  add_ratios(report, rows);
  return headline(report["machine"]) + wrap_text(common, 80) + '\n' + aligned(rows) +
         quiet_note(report);
}

}  // namespace heed::cli
