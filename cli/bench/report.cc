#include "bench/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "arguments.h"
#include "bench/peak.h"
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

Json outcome_json(const Outcome& outcome) {
  const Timing timing = summarize(outcome.seconds);
  const double peak = peak_rate(outcome.threads) * outcome.peak_factor;
  const double median_rate = outcome.operations / timing.median;
  const double best_rate = outcome.operations / timing.best;
  Json result{{"case", outcome.description}};
  result.update(times_json(timing));
  result.update({{"gflops", median_rate / 1e9},
                 {"peak_gflops", peak / 1e9},
                 {"peak_share_median", median_rate / peak},
                 {"peak_share_best", best_rate / peak}});
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
            spread_cell(result),
            fmt::format("{:#.4g}", number("best_ms")),
            fmt::format("{:.1f}", number("gflops")),
            fmt::format("{:.1f}", number("peak_gflops")),
            share("peak_share_median"),
            share("peak_share_best")};
  if (is_in_turn(result)) cells.push_back(fmt::format("{:.3f}", number("rate_over_first")));
  return cells;
}

}  // namespace

void add_report_options(CLI::App& verb, bool& as_json) {
  add_flag(verb, "--json", as_json, "Print one JSON object instead of the table");
}

void print_report(bool as_json, const std::string& verb, const Json& report,
                  FunctionRef<std::string(const Json&)> to_table) {
  Json whole{{"verb", verb}};
  whole.update(report);
  std::cout << (as_json ? whole.dump() + '\n' : to_table(whole));
}

Json times_json(const Timing& timing) {
  return {{"median_ms", timing.median * 1e3},
          {"best_ms", timing.best * 1e3},
          {"quartiles_ms", {timing.lower_quartile * 1e3, timing.upper_quartile * 1e3}},
          {"repetitions", timing.repetitions}};
}

std::string spread_cell(const Json& result, const char* name) {
  const double half = (result[name][1].get<double>() - result[name][0].get<double>()) / 2;
  const int digits = half > 0 ? 1 - static_cast<int>(std::floor(std::log10(half))) : 0;
  return fmt::format("{:.{}f}", half, std::clamp(digits, 0, 6));  // two digits, no power of ten
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

Json to_json(const std::vector<Outcome>& outcomes) {
  Json results = Json::array();
  for (const Outcome& outcome : outcomes) results.push_back(outcome_json(outcome));
  return {{"machine", machine()}, {"results", results}};
}

std::string case_table(const Json& report, const Row& names,
                       FunctionRef<Row(const Json&)> cells_of) {
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
    for (std::string& cell : cells_of(result)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
  }
  header.insert(header.end(), names.begin(), names.end());
  rows.insert(rows.begin(), header);
  return headline(report["machine"]) + wrap_text(common, 80) + '\n' + aligned(rows);
}

std::string to_table(const Json& report) {
  Row names{"median ms", "spread", "best ms", "GFLOP/s", "peak GFLOP/s", "share", "best share"};
  if (is_in_turn(report["results"].front())) names.emplace_back("of first");
  return case_table(report, names, [](const Json& result) { return measured_cells(result); });
}

}  // namespace heed::cli
