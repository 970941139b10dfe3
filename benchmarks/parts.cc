// heed_measure parts: what the parts of heed cost, alone and beside each other.
#include "parts.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "arguments.h"
#include "bench/report.h"
#include "heed/core/parallel.h"
#include "measure_verbs.h"
#include "nn/blas.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

struct PartsArguments {
  std::string only;
  int threads = 1;
  int repetitions = 10;
  bool as_json = false;
};

Part empty_loop(std::int64_t parts) {
  return {.name = fmt::format("empty loop of {}", parts), .call = [parts] {
            std::atomic<std::int64_t> sum = 0;
            parallel_for(0, parts, 1, [&sum](std::int64_t first, std::int64_t /*last*/) {
              sum.store(first, std::memory_order_relaxed);
            });
          }};
}

// [rows, width] times [width, width].
Part product(std::int64_t rows, std::int64_t width) {
  return {.name = fmt::format("product of {} rows, {}", rows, width),
          .operations = 2.0 * static_cast<double>(rows * width * width),
          .call = [a = Tensor<float>({rows, width}), b = Tensor<float>({width, width}),
                   out = Tensor<float>({rows, width})]() mutable { matmul(a, b, out); }};
}

std::vector<PartsInTurn> all_parts() {
  std::vector<PartsInTurn> all;
  for (const std::int64_t parts : {1, 16, 1024}) all.push_back({empty_loop(parts)});
  for (const std::int64_t width : {256, 768}) {
    for (const std::int64_t rows : {1, 128, 1024}) all.push_back({product(rows, width)});
  }
  all.push_back(parts_of_attention());
  all.push_back(parts_of_statistics());
  return all;
}

// Leaves out the parts whose names do not contain `only`, but the first of those in turn.
PartsInTurn chosen(const PartsInTurn& parts, const std::string& only) {
  PartsInTurn some;
  for (const Part& part : parts) {
    if (part.name.find(only) != std::string::npos) some.push_back(part);
  }
  if (!some.empty() && some.front().name != parts.front().name) {
    some.insert(some.begin(), parts.front());
  }
  return some;
}

void measure_parts(const PartsInTurn& parts, const PartsArguments& arguments, Progress& progress,
                   Json& results) {
  std::vector<ReadyCase> ready;
  for (const Part& part : parts) {
    ReadyCase& one = ready.emplace_back();
    one.outcome.operations = part.operations;
    one.call = part.call;
  }
  measure({.threads = arguments.threads, .repetitions = arguments.repetitions}, ready, progress);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Outcome& outcome = ready[i].outcome;
    const Timing timing = summarize(outcome.seconds);
    Json result{{"case", {{"part", parts[i].name}, {"threads", arguments.threads}}}};
    result.update(times_json(timing));
    if (outcome.operations > 0) result["gflops"] = outcome.operations / timing.median / 1e9;
    if (outcome.rate_over_first) {
      result["beside"] = parts.front().name;
      result["rate_over_first"] = *outcome.rate_over_first;
    }
    results.push_back(std::move(result));
  }
}

std::vector<std::string> part_cells(const Json& result) {
  const auto cell = [&](const char* name, const char* format) {
    return result.contains(name) ? fmt::format(fmt::runtime(format), result[name].get<double>())
                                 : std::string();
  };
  return {cell("median_ms", "{:#.4g}"), spread_cell(result), cell("best_ms", "{:#.4g}"),
          cell("gflops", "{:.1f}"), cell("rate_over_first", "{:.3f}")};
}

void run_parts(const PartsArguments& arguments) {
  std::vector<PartsInTurn> all;
  for (const PartsInTurn& parts : all_parts()) {
    PartsInTurn some = chosen(parts, arguments.only);
    if (!some.empty()) all.push_back(std::move(some));
  }
  if (all.empty()) {
    throw UsageError(fmt::format("--only: no part has '{}' in its name", arguments.only));
  }
  auto results = Json::array();
  {
    Progress progress(static_cast<int>(all.size()));
    for (const PartsInTurn& parts : all) measure_parts(parts, arguments, progress, results);
  }
  print_report(arguments.as_json, "parts", {{"machine", machine()}, {"results", results}},
               [](const Json& report) {
                 return case_table(report,
                                   {"median ms", "spread", "best ms", "GFLOP/s", "times as fast"},
                                   [](const Json& result) { return part_cells(result); });
               });
}

}  // namespace

void add_parts(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("parts", "What the parts of heed cost, alone and beside each other");
  const auto arguments = std::make_shared<PartsArguments>();
  add_option(*verb, "--only", arguments->only, "The parts whose names contain this");
  add_option(*verb, "--threads", arguments->threads, "Threads of each")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str();
  add_option(*verb, "--repeat", arguments->repetitions, "How often each is measured")
      ->check(CLI::Range(1, 1000000).description(""))
      ->capture_default_str();
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "Attention and statistics are of 8 heads, 2048 tokens and 64 dimensions. They take\n"
      "turns with plain attention: 'times as fast' is the ratio to it.");
  verb->callback([arguments] { run_parts(*arguments); });
}

}  // namespace heed::cli
