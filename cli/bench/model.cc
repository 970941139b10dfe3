// heed bench model: how fast a trained model reads and writes text or makes vectors, and its
// memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/case_arguments.h"
#include "bench/model_runs.h"
#include "bench/peak_memory.h"
#include "bench/report.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "models/trained_model.h"
#include "verbs.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

struct ModelArguments {
  ModelRequest request;
  bool as_json = false;
};

// Fills in the values that were not given within the model's positions. Throws UsageError where a
// given value exceeds them.
void settle_positions(ModelRequest& request, std::int64_t positions) {
  if (request.prompt == 0) request.prompt = std::min<std::int64_t>(512, positions);
  if (request.prompt > positions) {
    throw UsageError(
        fmt::format("--prompt is {}, the model has {} positions", request.prompt, positions));
  }
  const std::int64_t longest = positions - request.tokens;
  if (request.past.empty()) {
    for (const std::int64_t past : {100, 2000}) {
      if (past <= longest) request.past.push_back(past);
    }
  }
  std::sort(request.past.begin(), request.past.end());
  request.past.erase(std::unique(request.past.begin(), request.past.end()), request.past.end());
  if (!request.past.empty() && request.past.back() > longest) {
    throw UsageError(fmt::format("--past is {}, with {} tokens more than the model's {} positions",
                                 request.past.back(), request.tokens, positions));
  }
}

void check_model(const CLI::App& verb, ModelRequest& request, const models::Model& model) {
  const std::string& architecture = model.config().architecture;
  if (model.config().is_causal()) {
    if (!model.has_head()) {
      throw InvalidArgument(
          fmt::format("bench model: a model of architecture {} does not write", architecture));
    }
    return settle_positions(request, model.config().max_positions);
  }
  for (const char* option : {"--prompt", "--past", "--tokens"}) {
    if (verb.count(option) == 0) continue;
    throw UsageError(fmt::format("{} goes with models that write, '{}' is a {}", option,
                                 request.path, architecture));
  }
}

Json result_json(const Outcome& outcome) {
  const Timing timing = summarize(outcome.seconds);
  Json result{{"case", outcome.description}};
  result.update(times_json(timing));
  const auto add_rate = [&](const char* counted, const char* rate) {
    if (outcome.description["work"] == "start" || !outcome.description.contains(counted)) return;
    result[rate] = outcome.description[counted].get<double>() / timing.median;
  };
  add_rate("tokens", "tokens_per_second");
  add_rate("sentences", "sentences_per_second");
  return result;
}

Json results_of(const std::vector<Outcome>& outcomes) {
  Json results = Json::array();
  for (const Outcome& outcome : outcomes) results.push_back(result_json(outcome));
  return results;
}

// Returns a number of a case or a result as text; empty where it has none.
std::string cell_of(const Json& object, const char* name, const char* format) {
  if (!object.contains(name)) return "";
  return fmt::format(fmt::runtime(format), object[name].get<double>());
}

std::string table_of(const Json& report, const std::string& model) {
  const Json& results = report["results"];
  const bool writes = report.contains("written");
  std::vector<std::vector<std::string>> rows{{"work", writes ? "past" : "sentences", "tokens",
                                              "threads", "median ms", "spread", "best ms",
                                              "tokens/s"}};
  if (!writes) rows.front().emplace_back("sentences/s");
  for (const Json& result : results) {
    const Json& one = result["case"];
    std::vector<std::string> row{one["work"],
                                 cell_of(one, writes ? "past" : "sentences", "{:.0f}"),
                                 cell_of(one, "tokens", "{:.0f}"),
                                 cell_of(one, "threads", "{:.0f}"),
                                 cell_of(result, "median_ms", "{:#.4g}"),
                                 spread_cell(result),
                                 cell_of(result, "best_ms", "{:#.4g}"),
                                 cell_of(result, "tokens_per_second", "{:.1f}")};
    if (!writes) row.push_back(cell_of(result, "sentences_per_second", "{:.1f}"));
    rows.push_back(std::move(row));
  }
  return fmt::format("{}{}\n\n{}\nat most {:.0f} MB in memory\n", headline(report["machine"]),
                     model, aligned(rows), report["peak_bytes"].get<double>() / 1e6);
}

void run_model(const CLI::App& verb, ModelArguments arguments) {
  ModelRequest& request = arguments.request;
  if (request.threads.empty()) request.threads = {num_threads()};
  models::Model model = models::load(request.path);
  check_model(verb, request, model);
  const std::string description = describe_model(model);
  Json report{{"machine", machine()},
              {"model",
               {{"name", std::filesystem::path(request.path).filename()},
                {"architecture", model.config().architecture},
                {"parameters", model.num_parameters()},
                {"bytes", model.num_bytes()}}}};
  const ModelFindings findings = measure_model(request, std::move(model));
  report["peak_bytes"] = peak_process_bytes();
  report["results"] = results_of(findings.outcomes);
  report.update(findings.input);
  if (!findings.written.is_null()) report["written"] = findings.written;
  print_report(arguments.as_json, "model", report,
               [&](const Json& whole) { return table_of(whole, description); });
}

}  // namespace

void add_bench_model(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "model", "Measure how fast a trained model reads and writes, or makes vectors");
  const auto arguments = std::make_shared<ModelArguments>();
  ModelRequest& request = arguments->request;
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  add_option(*verb, "--model", request.path,
             "A folder of transformers or sentence-transformers, or a GGUF file")
      ->required()
      ->type_name("PATH");
  const auto add = [&](const char* name, auto& value, const char* text) {
    return add_option(*verb, name, value, text)
        ->check(CLI::Range(std::int64_t{1}, kMost).description(""))
        ->type_name("N");
  };
  add("--prompt", request.prompt, "Tokens that are read at once; 512, if there are positions");
  add_numbers(*verb, "--past", request.past, kMost,
              "Tokens behind which it writes; 100,2000, as far as there are positions");
  add("--tokens", request.tokens, "Tokens that it writes")->capture_default_str();
  add_numbers(*verb, "--threads", request.threads, 1024, "All the machine has, if not given");
  add("--runs", request.repetitions, "How often each is measured, after once to warm up")
      ->capture_default_str();
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "Example:\n"
      "  heed bench model --model SmolLM2.gguf --threads 1,2\n\n"
      "A model that writes reads the beginning of a story ('read': until it has chosen the\n"
      "next token), and writes behind as many tokens as --past says ('write': always the\n"
      "likeliest token, also where that would end a text). 'start' is loading, reading the\n"
      "prompt and choosing the first token, the files being in the system's cache. Of a\n"
      "BERT it is loading and the vector of one sentence, and 'embed' the vectors of 64\n"
      "sentences of 4 to 40 words, which the story is cut into.");
  verb->callback([verb, arguments] { run_model(*verb, *arguments); });
}

}  // namespace heed::cli
