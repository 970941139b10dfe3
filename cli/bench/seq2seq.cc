// heed bench seq2seq: the training speed of sequence-to-sequence models in tokens per second.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/measurement.h"
#include "bench/report.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/seq2seq_training.h"
#include "heed/train/translator.h"
#include "train/settings.h"

namespace heed::cli {

namespace {

// The tutorial's model on full batches with its sentence lengths.
constexpr train::VocabularySizes kSizes{10'000, 8'000};
constexpr std::int64_t kSourceLength = 30;
constexpr std::int64_t kTargetLength = 25;  // including the token that begins or ends it

train::TranslatorSettings tutorial_model() {
  train::TranslatorSettings model;
  model.layers = 2;
  model.d_model = 256;
  model.heads = 8;
  model.dropout = 0;
  return model;
}

struct Seq2SeqArguments {
  std::vector<std::string> attentions = train::kAttentionNames;
  train::TranslatorSettings model = tutorial_model();
  std::int64_t batch = 64;
  int threads = 0;
  int repetitions = 5;
  bool as_json = false;
};

nn::SequenceBatch drawn_batch(std::int64_t batch) {
  std::vector<nn::SequencePair> pairs;
  const auto drawn = [](std::int64_t size, std::int64_t length) {
    const auto ids = default_generator().randint(4, size, {length});
    return std::vector<std::int64_t>(ids.elements().begin(), ids.elements().end());
  };
  for (std::int64_t i = 0; i < batch; ++i) {
    pairs.push_back({drawn(kSizes.source, kSourceLength), drawn(kSizes.target, kTargetLength - 1)});
  }
  return nn::make_batch(pairs);
}

nlohmann::ordered_json measured(const Seq2SeqArguments& arguments, const std::string& attention,
                                Progress& progress) {
  set_seed(0);
  train::TranslatorSettings settings = arguments.model;
  settings.attention = attention;
  const auto model = train::make_model(settings, kSizes);
  nn::AdamW<> optimizer(model->parameters(), 1e-3);
  const nn::SequenceBatch batch = drawn_batch(arguments.batch);
  progress.start_case();
  const Sampling sampling{.threads = arguments.threads,
                          .warmups = 1,
                          .repetitions = arguments.repetitions,
                          .seconds_per_repetition = 0};
  const auto step = [&] { nn::train_step(*model, optimizer, batch); };
  const FunctionRef<void()> timed = step;
  const auto made = time_in_turn(sampling, {&timed, 1}, progress.counting(arguments.repetitions));
  const Timing timing = summarize(made.front().seconds);
  const auto tokens = static_cast<double>(batch.num_targets);
  nlohmann::ordered_json result{{"case",
                                 {{"attention", attention},
                                  {"batch", arguments.batch},
                                  {"d_model", arguments.model.d_model},
                                  {"layers", arguments.model.layers},
                                  {"threads", arguments.threads}}},
                                {"parameters", model->num_parameters()}};
  result.update(times_json(timing));
  result["tokens_per_second"] = tokens / timing.median;
  result["best_tokens_per_second"] = tokens / timing.best;
  return result;
}

std::string table_of(const Seq2SeqArguments& arguments, const nlohmann::ordered_json& report) {
  std::vector<std::vector<std::string>> rows{
      {"attention", "parameters", "median ms", "spread", "best ms", "target tokens/s", "best"}};
  for (const auto& result : report["results"]) {
    const auto number = [&](const char* name) { return result[name].get<double>(); };
    rows.push_back({result["case"]["attention"], fmt::format("{:.0f}", number("parameters")),
                    fmt::format("{:.1f}", number("median_ms")), spread_cell(result),
                    fmt::format("{:.1f}", number("best_ms")),
                    fmt::format("{:.0f}", number("tokens_per_second")),
                    fmt::format("{:.0f}", number("best_tokens_per_second"))});
  }
  return headline(report["machine"]) +
         fmt::format(
             "a step of training: batch={}, d_model={}, layers={}, source {} and target {} "
             "tokens,\n"
             "threads={}\n\n",
             arguments.batch, arguments.model.d_model, arguments.model.layers, kSourceLength,
             kTargetLength, arguments.threads) +
         aligned(rows);
}

void run_seq2seq(Seq2SeqArguments arguments) {
  train::TranslationSettings settings;
  settings.model = arguments.model;
  settings.model.attention = "multihead";
  check_given(settings);
  if (arguments.threads == 0) arguments.threads = num_threads();
  auto results = nlohmann::ordered_json::array();
  {
    Progress progress(static_cast<int>(arguments.attentions.size()));
    for (const std::string& attention : arguments.attentions) {
      results.push_back(measured(arguments, attention, progress));
    }
  }
  print_report(arguments.as_json, "seq2seq", {{"machine", machine()}, {"results", results}},
               [&](const nlohmann::ordered_json& report) { return table_of(arguments, report); });
}

}  // namespace

void add_bench_seq2seq(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "seq2seq", "A step of training of sequence-to-sequence models: tokens a second");
  const auto arguments = std::make_shared<Seq2SeqArguments>();
  add_list(*verb, "--attention", arguments->attentions, one_of(train::kAttentionNames),
           "Which kinds, joined by commas; all")
      ->type_name("NAMES");
  const auto add = [&](const std::string& name, auto& value, auto most, const std::string& text) {
    add_option(*verb, name, value, text)
        ->capture_default_str()
        ->check(CLI::Range(decltype(most){1}, most).description(""))
        ->type_name("N");
  };
  add("--batch", arguments->batch, std::int64_t{4096}, "Sentences in a batch");
  add("--d-model", arguments->model.d_model, std::int64_t{1024}, "Even, a multiple of 8");
  add("--layers", arguments->model.layers, std::int64_t{8}, "Of LSTM, on each side");
  add("--repeat", arguments->repetitions, 1'000'000, "How many steps are measured");
  add_option(*verb, "--threads", arguments->threads, "All the machine has, if not given")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "Sentences of 30 and 25 tokens out of vocabularies of 10,000 and 8,000: loss,\n"
      "gradients, clipping and AdamW. Tokens are those of the targets.");
  verb->callback([arguments] { run_seq2seq(*arguments); });
}

}  // namespace heed::cli
