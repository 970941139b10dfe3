#include "heed/train/translator_scores.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace heed { inline namespace v0 { namespace train {

namespace {

constexpr std::size_t kWrittenTogether = 64;

// The pairs sorted by the length of their sources, so that little of a batch is padding.
std::vector<std::size_t> by_length(const std::vector<nn::SequencePair>& pairs) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pairs[a].source.size() < pairs[b].source.size();
  });
  return order;
}

std::vector<nn::Hypothesis<float>> greedy(Translator& translator,
                                          const std::vector<nn::SequencePair>& chosen) {
  const nn::SequenceBatch batch = nn::make_batch(chosen);
  return nn::greedy_search(
      *translator.model, batch.src, batch.src_lengths,
      {.max_len = translator.settings.model.max_len, .return_alignment = false});
}

nn::Hypothesis<float> best_of_beam(Translator& translator, const std::vector<std::int64_t>& source,
                                   std::int64_t beam) {
  const Tensor<std::int64_t> src({static_cast<std::int64_t>(source.size())}, source);
  return nn::beam_search(*translator.model, src,
                         {.beam = beam, .max_len = translator.settings.model.max_len})
      .front();
}

}  // namespace

std::vector<nn::Hypothesis<float>> write_all(Translator& translator,
                                             const std::vector<nn::SequencePair>& pairs,
                                             const WritingOptions& options) {
  std::vector<nn::Hypothesis<float>> result(pairs.size());
  const std::vector<std::size_t> order = by_length(pairs);
  const std::size_t size = options.beam > 1 ? 1 : kWrittenTogether;
  for (std::size_t first = 0; first < order.size(); first += size) {
    const auto indices = std::span(order).subspan(first, std::min(size, order.size() - first));
    if (options.beam > 1) {
      const std::size_t index = indices.front();
      result[index] = best_of_beam(translator, pairs[index].source, options.beam);
    } else {
      std::vector<nn::SequencePair> chosen;
      chosen.reserve(size);
      for (const std::size_t index : indices) chosen.push_back(pairs[index]);
      auto written = greedy(translator, chosen);
      for (std::size_t i = 0; i < indices.size(); ++i) result[indices[i]] = std::move(written[i]);
    }
    if (options.progress) options.progress(first + indices.size());
  }
  return result;
}

tasks::TranslationScore score(Translator& translator, const std::vector<tasks::Example>& examples,
                              const WritingOptions& options) {
  const std::vector<nn::SequencePair> pairs = translator.encode(examples);
  const auto written = write_all(translator, pairs, options);
  constexpr std::int64_t kGroups = 6;  // of lengths, at most
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 1;
  std::vector<tasks::Tokens> hypotheses;
  std::vector<tasks::Tokens> references;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    lengths.push_back(static_cast<std::int64_t>(pairs[i].source.size()));
    longest = std::max(longest, lengths.back());
    hypotheses.push_back(translator.target.tokens(written[i].tokens));
    references.push_back(tasks::split_units(examples[i].target, translator.target.units()));
  }
  return tasks::score_translations(lengths, hypotheses, references,
                                   (longest + kGroups - 1) / kGroups);
}

}}}  // namespace heed::v0::train
