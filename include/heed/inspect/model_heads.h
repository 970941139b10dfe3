/// Scores and roles of each head of a trained model, from texts and from random tokens that repeat.
///
///     const auto model = heed::models::load("SmolLM2-135M");
///     const auto scores = heed::inspect::score_heads(model, {read_text(model, "The cat …")});
///     for (const heed::inspect::HeadRole& role : heed::inspect::head_roles(scores)) …
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/inspect/head_scores.h"
#include "heed/inspect/patterns.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace inspect {

/// A text as a model reads it, with the data about its tokens that patterns need.
struct ModelText {
  TokenSequence tokens;
  std::vector<std::int64_t> type_ids;  ///< empty: all 0
  std::vector<std::string> labels;     ///< one for each token, to be displayed
  /// Of repeated tokens: the index of the first token that repeats, which is the first predictable
  /// one.
  std::int64_t first_repeated = 0;
};

/// Tokenises a text and adds the special tokens that the model expects around it. A text longer
/// than max_tokens is truncated before its last special token.
/// @throws InvalidArgument when the text is not valid UTF-8, or max_tokens is below 2.
HEED_API ModelText read_text(const models::Model& model, std::string_view text,
                             std::int64_t max_tokens = kUnbounded);
/// read_text() of a pair of texts. @throws InvalidArgument also when the model's tokenizer has no
/// form for pairs.
HEED_API ModelText read_pair(const models::Model& model, std::string_view first,
                             std::string_view second, std::int64_t max_tokens = kUnbounded);

/// The parameters of repeated_tokens(). Source: Olsson et al., "In-context Learning and Induction
/// Heads", 2022, whose sequences repeat 25 tokens four times.
struct RepeatedTokens {
  std::int64_t length = 25;
  std::int64_t repeats = 4;
  std::int64_t sequences = 4;
  std::uint64_t seed = 0;
};

/// Draws sequences of different tokens that are whole words or parts of words: only letters, no
/// special tokens. They are from the middle half of the vocabulary's ids, if that has enough of
/// them: where ids are ordered by frequency, as mostly in BPE and WordPiece, this excludes the most
/// and the least frequent tokens. Each sequence is repeated, after the token that begins a text
/// and, if the model is an encoder, before the token that ends it.
/// @throws InvalidArgument when a number is below 1, repeats is below 2, the sequence is longer
/// than the model's positions, or the vocabulary has too few such tokens.
HEED_API std::vector<ModelText> repeated_tokens(const models::Model& model,
                                                const RepeatedTokens& numbers = {});

/// The options of score_heads().
struct HeadScoresOptions {
  std::int64_t max_offset = 16;  ///< the largest constant distance that is measured
  RepeatedTokens repeated = {};
  /// Called after each attention of each forward pass, with the number of finished ones.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// Measurements of all heads on some texts.
struct ScoredTexts {
  std::vector<ModelText> texts;
  std::vector<TokenPattern> patterns;
  std::vector<std::vector<HeadMeasures>> layers;  ///< [layer][head]
};

/// The result of score_heads().
struct HeadScores {
  ScoredTexts text;      ///< of text_patterns()
  ScoredTexts repeated;  ///< of duplicate_token(), and, if the model is causal, induction()
};

/// Runs the model over the texts and over repeated tokens, and scores all heads in memory linear in
/// the lengths.
/// @throws InvalidArgument when there is no text, one does not fit the model, or an option is out
/// of range.
HEED_API HeadScores score_heads(const models::Model& model, std::vector<ModelText> texts,
                                const HeadScoresOptions& options = {});

/// A role of a head.
struct HeadRole {
  models::HeadIndex head;
  std::string name;  ///< of a pattern, or "positional", "constant offset", "broad"
  std::string looks_at;
  double score = 0;
  double threshold = 0;  ///< the score is above it or, for "broad", below it
  double uniform = 0;    ///< of a pattern: the score of a head with equal weights on all keys
  std::string source;    ///< the publication with the threshold
  std::int64_t rows = 0;
  WeightExample strongest = {};
  bool is_repeated = false;  ///< found in repeated tokens, not in texts
};

/// All roles of all heads, ordered by name in the order of the patterns, the highest scores first.
/// A pattern is a role if its score exceeds its threshold and more than 8 rows have it. Other roles
/// are:
///   positional: the largest weight is at one distance in at least 0.9 of the rows (Voita et
///     al. 2019);
///   constant offset: more than half of the attention is at a distance other than −1, 0 and 1;
///   broad: the mean of the largest weights is at most 0.1 (Clark et al. 2019).
/// "Duplicate token" is measured on repeated tokens, where its score by chance is small.
HEED_API std::vector<HeadRole> head_roles(const HeadScores& scores);

}}}  // namespace heed::v0::inspect
