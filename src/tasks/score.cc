#include "heed/tasks/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/core/elementary.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

void check_counts(const char* function, std::size_t hypotheses, std::size_t references) {
  if (hypotheses == references) return;
  throw InvalidArgument(fmt::format("{}: there are {} hypotheses but {} references", function,
                                    hypotheses, references));
}

using Counts = std::map<std::span<const std::string>, std::int64_t,
                        bool (*)(std::span<const std::string>, std::span<const std::string>)>;

bool comes_before(std::span<const std::string> a, std::span<const std::string> b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

// The number of occurrences of each sequence of n tokens in the text.
Counts count_ngrams(const Tokens& text, std::size_t n) {
  Counts counts(comes_before);
  for (std::size_t i = 0; i + n <= text.size(); ++i) {
    ++counts[std::span<const std::string>(text).subspan(i, n)];
  }
  return counts;
}

struct Matches {
  std::array<std::int64_t, kMaxNgram> correct{};
  std::array<std::int64_t, kMaxNgram> total{};
};

void add_matches(const Tokens& hypothesis, const Tokens& reference, Matches& matches) {
  for (std::size_t n = 1; n <= kMaxNgram; ++n) {
    const Counts expected = count_ngrams(reference, n);
    for (const auto& [ngram, count] : count_ngrams(hypothesis, n)) {
      const auto found = expected.find(ngram);
      matches.total[n - 1] += count;
      if (found != expected.end()) matches.correct[n - 1] += std::min(count, found->second);
    }
  }
}

// Computes precisions and score.
void combine(const Matches& matches, const BleuOptions& options, Bleu& bleu) {
  double smoothed = 1;
  double log_sum = 0;
  int order = 0;
  bool is_zero = matches.correct.front() == 0;
  for (std::size_t n = 0; n < kMaxNgram && matches.total[n] > 0; ++n, ++order) {
    const auto total = static_cast<double>(matches.total[n]);
    auto correct = static_cast<double>(matches.correct[n]);
    if (correct == 0 && options.smooths && !is_zero) {
      smoothed *= 2;
      correct = 1 / smoothed;
    }
    bleu.precisions[n] = 100 * correct / total;
    is_zero = is_zero || correct == 0;
    log_sum += elementary::log(bleu.precisions[n]);
  }
  if (is_zero || (order < kMaxNgram && !options.effective_order)) return;
  bleu.score = bleu.brevity_penalty * elementary::exp(log_sum / order);
}

struct Group {
  std::vector<Tokens> hypotheses;
  std::vector<Tokens> references;
};

}  // namespace

Bleu corpus_bleu(std::span<const Tokens> hypotheses, std::span<const Tokens> references,
                 const BleuOptions& options) {
  check_counts("corpus_bleu", hypotheses.size(), references.size());
  Bleu bleu;
  Matches matches;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    bleu.hypothesis_length += static_cast<std::int64_t>(hypotheses[i].size());
    bleu.reference_length += static_cast<std::int64_t>(references[i].size());
    add_matches(hypotheses[i], references[i], matches);
  }
  if (bleu.hypothesis_length > 0) {
    const double ratio =
        static_cast<double>(bleu.reference_length) / static_cast<double>(bleu.hypothesis_length);
    bleu.brevity_penalty = elementary::exp(std::min(0.0, 1 - ratio));
  }
  combine(matches, options, bleu);
  return bleu;
}

double exact_match(std::span<const Tokens> hypotheses, std::span<const Tokens> references) {
  check_counts("exact_match", hypotheses.size(), references.size());
  if (hypotheses.empty()) return 0;
  double count = 0;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) count += hypotheses[i] == references[i];
  return count / static_cast<double>(hypotheses.size());
}

TranslationScore score_translations(std::span<const std::int64_t> source_lengths,
                                    std::span<const Tokens> hypotheses,
                                    std::span<const Tokens> references, std::int64_t width) {
  check_counts("score_translations", hypotheses.size(), references.size());
  if (source_lengths.size() != hypotheses.size() || width < 1) {
    throw InvalidArgument(fmt::format(
        "score_translations: there are {} source_lengths for {} hypotheses and width is {}; "
        "expected as many, and at least 1",
        source_lengths.size(), hypotheses.size(), width));
  }
  std::map<std::int64_t, Group> groups;
  for (std::size_t i = 0; i < source_lengths.size(); ++i) {
    Group& group = groups[std::max<std::int64_t>(source_lengths[i] - 1, 0) / width];
    group.hypotheses.push_back(hypotheses[i]);
    group.references.push_back(references[i]);
  }
  TranslationScore result{
      corpus_bleu(hypotheses, references), exact_match(hypotheses, references), {}};
  for (const auto& [index, group] : groups) {
    result.by_length.push_back(
        {index * width + 1, (index + 1) * width, static_cast<std::int64_t>(group.hypotheses.size()),
         corpus_bleu(group.hypotheses, group.references, {.effective_order = true}).score,
         exact_match(group.hypotheses, group.references)});
  }
  return result;
}

}}}  // namespace heed::v0::tasks
