/// Scores of translations.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace tasks {

/// A text as tokens.
using Tokens = std::vector<std::string>;

/// The longest n-grams that BLEU counts.
inline constexpr int kMaxNgram = 4;

/// The options of corpus_bleu().
struct BleuOptions {
  /// If true, the k-th n-gram length without any match counts as 2⁻ᵏ matches, the default of
  /// sacrebleu; otherwise BLEU is then 0.
  bool smooths = true;
  /// If true, n-grams longer than any hypothesis are left out. Otherwise hypotheses that are all
  /// shorter than four tokens have BLEU 0, even perfect ones.
  bool effective_order = false;
};

/// The result of corpus_bleu().
struct Bleu {
  double score = 0;                            ///< 0 to 100
  std::array<double, kMaxNgram> precisions{};  ///< 0 to 100, of n-grams of 1 to 4 tokens
  double brevity_penalty = 0;                  ///< 0 to 1
  std::int64_t hypothesis_length = 0;          ///< tokens of all hypotheses
  std::int64_t reference_length = 0;           ///< tokens of all references
};

/// BLEU of a corpus with one reference for each hypothesis:
///
///     score = brevity_penalty · exp(¼ Σₙ log precisionₙ)
///
/// precisionₙ is the share of the hypotheses' n-grams that are in the reference, where each n-gram
/// counts at most as often as it is there; brevity_penalty = min(1, exp(1 − reference_length /
/// hypothesis_length)). Equal to sacrebleu's score of the same tokens. Source: Papineni et al.,
/// "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002.
/// @throws InvalidArgument when the numbers of hypotheses and references differ.
HEED_API Bleu corpus_bleu(std::span<const Tokens> hypotheses, std::span<const Tokens> references,
                          const BleuOptions& options = {});

/// The share of the hypotheses, 0 to 1, that equal their reference token for token; 0 if there are
/// none.
/// @throws InvalidArgument when the numbers of hypotheses and references differ.
HEED_API double exact_match(std::span<const Tokens> hypotheses, std::span<const Tokens> references);

/// The scores of sources with min_length to max_length tokens.
struct LengthScore {
  std::int64_t min_length = 0;
  std::int64_t max_length = 0;
  std::int64_t count = 0;
  double bleu = 0;  ///< with effective_order, because short targets have no long n-grams
  double exact = 0;
};

/// The result of score_translations().
struct TranslationScore {
  Bleu bleu;
  double exact = 0;
  std::vector<LengthScore> by_length;  ///< without length groups that have no source
};

/// All scores of translations. Sources are grouped by length: 1 … width, width + 1 … 2 · width, and
/// so on; empty ones belong to the first group.
/// @throws InvalidArgument when the numbers differ or width is not positive.
HEED_API TranslationScore score_translations(std::span<const std::int64_t> source_lengths,
                                             std::span<const Tokens> hypotheses,
                                             std::span<const Tokens> references,
                                             std::int64_t width = 5);

}}}  // namespace heed::v0::tasks
