/// How good translations are.
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

inline constexpr int kMaxNgram = 4;

struct BleuOptions {
  /// Whether the k-th n-gram length without any match counts as 2⁻ᵏ matches, as sacrebleu has it
  /// unless told otherwise, or BLEU is 0 then.
  bool smooths = true;
  /// Whether n-grams longer than any hypothesis are left out. If not, hypotheses all shorter than
  /// four tokens have BLEU 0, the perfect ones too.
  bool effective_order = false;
};

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
/// precisionₙ: of all n-grams of the hypotheses, how many are in the reference, each counted at
/// most as often as there; brevity_penalty = min(1, exp(1 − reference_length / hypothesis_length)).
/// Equal to sacrebleu's on the same tokens. Source: Papineni et al., "BLEU: a Method for Automatic
/// Evaluation of Machine Translation", 2002.
/// @throws InvalidArgument when their numbers differ.
HEED_API Bleu corpus_bleu(std::span<const Tokens> hypotheses, std::span<const Tokens> references,
                          const BleuOptions& options = {});

/// Which share of the hypotheses, 0 to 1, is the reference, token for token. 0 for none at all.
/// @throws InvalidArgument when their numbers differ.
HEED_API double exact_match(std::span<const Tokens> hypotheses, std::span<const Tokens> references);

/// The scores of the sources of min_length to max_length tokens.
struct LengthScore {
  std::int64_t min_length = 0;
  std::int64_t max_length = 0;
  std::int64_t count = 0;
  double bleu = 0;  ///< with effective_order, for short targets have no long n-grams
  double exact = 0;
};

struct TranslationScore {
  Bleu bleu;
  double exact = 0;
  std::vector<LengthScore> by_length;  ///< without lengths that no source has
};

/// All scores at once. Sources are grouped by length: 1 … width, width + 1 … 2 · width, and so on;
/// empty ones belong to the first.
/// @throws InvalidArgument when the numbers differ or width is not positive.
HEED_API TranslationScore score_translations(std::span<const std::int64_t> source_lengths,
                                             std::span<const Tokens> hypotheses,
                                             std::span<const Tokens> references,
                                             std::int64_t width = 5);

}}}  // namespace heed::v0::tasks
