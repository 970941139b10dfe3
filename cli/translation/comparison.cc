#include "translation/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "heed/core/parallel.h"
#include "heed/train/translator_scores.h"
#include "train/session.h"
#include "translation/shared.h"

namespace heed::cli {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::int64_t parameters_with(train::TranslatorSettings model, const train::VocabularySizes& sizes,
                             std::int64_t d_model) {
  model.d_model = d_model;
  return train::make_model(model, sizes)->num_parameters();
}

// Returns `count` test examples of evenly spread lengths.
std::vector<tasks::Example> spread(std::vector<tasks::Example> examples, std::int64_t count) {
  std::stable_sort(examples.begin(), examples.end(),
                   [](const auto& a, const auto& b) { return a.source.size() < b.source.size(); });
  std::vector<tasks::Example> chosen;
  const auto total = static_cast<std::int64_t>(examples.size());
  for (std::int64_t i = 0; i < std::min(count, total); ++i) {
    chosen.push_back(examples[static_cast<std::size_t>((2 * i + 1) * total / (2 * count))]);
  }
  return chosen;
}

std::vector<ReportedAlignment> alignments_of(train::Translator& translator,
                                             const std::vector<tasks::Example>& examples) {
  std::vector<ReportedAlignment> result;
  for (const tasks::Example& example : examples) {
    const auto ids = translator.source.ids(example.source);
    const Tensor<std::int64_t> src({1, static_cast<std::int64_t>(ids.size())}, ids);
    auto written = nn::greedy_search(*translator.model, src, {},
                                     {.max_len = translator.settings.model.max_len});
    result.push_back({tasks::split_units(example.source, translator.source.units()),
                      translator.target.tokens(written.front().tokens),
                      tasks::split_units(example.target, translator.target.units()),
                      std::move(written.front().alignment)});
  }
  return result;
}

ComparedModel measured(train::Translator& translator, const tasks::Corpus& corpus,
                       const std::vector<tasks::Example>& sentences, train::TranslationRun run) {
  std::vector<double> seconds;
  std::vector<double> speeds;
  for (const train::EpochTime& time : run.times) {
    seconds.push_back(time.seconds);
    speeds.push_back(time.tokens_per_second);
  }
  const train::TranslatorSettings& model = translator.settings.model;
  return {model.attention,
          model.d_model,
          translator.model->num_parameters(),
          std::move(run.epochs),
          run.best,
          median(std::move(seconds)),
          median(std::move(speeds)),
          train::score(translator, corpus.test),
          alignments_of(translator, sentences)};
}

}  // namespace

std::int64_t matching_d_model(const train::TranslatorSettings& model,
                              const train::VocabularySizes& sizes, std::int64_t target) {
  const std::int64_t step =
      model.attention == "multihead" ? std::lcm(model.heads, std::int64_t{2}) : 2;
  const auto parameters = [&](std::int64_t steps) {
    return parameters_with(model, sizes, steps * step);
  };
  std::int64_t low = 1;
  std::int64_t high = std::max<std::int64_t>(1024 / step, 1);
  while (low < high) {  // finds the first with at least `target` parameters
    const std::int64_t middle = (low + high) / 2;
    if (parameters(middle) < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const bool below_is_nearer =
      low > 1 && std::abs(parameters(low - 1) - target) < std::abs(parameters(low) - target);
  return (below_is_nearer ? low - 1 : low) * step;
}

ComparisonReport compare(const train::TranslationSettings& settings, const tasks::Corpus& corpus,
                         const std::vector<std::string>& attentions,
                         const std::filesystem::path& folder, std::int64_t sentences) {
  ComparisonReport report{settings,
                          describe(settings.corpus),
                          static_cast<std::int64_t>(corpus.train.size()),
                          num_threads(),
                          {}};
  train::TranslationSettings dot = settings;
  dot.model.attention = "dot";  // it has as many parameters as none
  const train::Translator reference = new_translator(dot, corpus);
  const std::int64_t target = reference.model->num_parameters();
  const std::vector<tasks::Example> shown = spread(corpus.test, sentences);
  for (const std::string& attention : attentions) {
    train::TranslationSettings own = settings;
    own.model.attention = attention;
    own.model.d_model = matching_d_model(own.model, reference.sizes(), target);
    train::Translator translator = new_translator(own, corpus);
    train::RunPlace place{{}, {}, attention};
    if (!folder.empty()) {
      place.folder = train::new_run(folder / attention);
      place.log = folder / attention / "epochs.jsonl";
      describe_run(place.folder, translator);
    }
    train::TranslationRun run = train_translator_shown(translator, corpus, place);
    report.models.push_back(measured(translator, corpus, shown, std::move(run)));
  }
  return report;
}

}  // namespace heed::cli
