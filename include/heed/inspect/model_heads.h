/// What each head of a trained model does: on texts, and on random tokens that repeat.
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

/// A text as a model reads it, and what patterns ask of its tokens.
struct ModelText {
  TokenSequence tokens;
  std::vector<std::int64_t> type_ids;  ///< none: all 0
  std::vector<std::string> labels;     ///< one for each token, as people should see it
  /// From where on tokens have been there before, of repeated ones: the first that can be foretold.
  std::int64_t first_repeated = 0;
};

/// A text, with the special tokens that the model expects around it. What is longer than max_tokens
/// is cut off before its last special token.
/// @throws InvalidArgument when the text is not valid UTF-8, or max_tokens is below 2.
HEED_API ModelText read_text(const models::Model& model, std::string_view text,
                             std::int64_t max_tokens = kUnbounded);
/// A pair of texts. @throws InvalidArgument also when the model's tokenizer has no form for pairs.
HEED_API ModelText read_pair(const models::Model& model, std::string_view first,
                             std::string_view second, std::int64_t max_tokens = kUnbounded);

/// Random tokens that repeat. Source: Olsson et al., "In-context Learning and Induction Heads",
/// 2022, whose sequences are these 25 tokens, four times.
struct RepeatedTokens {
  std::int64_t length = 25;
  std::int64_t repeats = 4;
  std::int64_t sequences = 4;
  std::uint64_t seed = 0;
};

/// Draws sequences of different tokens that are whole words or parts of words: letters alone, and
/// no special tokens. They are of the middle half of the vocabulary's ids, if that has enough: it
/// leaves out the most and the least common ones where ids are ordered by how common they are, as
/// those of BPE and WordPiece mostly are. Each sequence repeats, behind the token that begins a
/// text and, if the model is an encoder, before the one that ends it.
/// @throws InvalidArgument when a number is below 1, there are less than two repeats, the model's
/// positions do not reach so far, or its vocabulary has too few such tokens.
HEED_API std::vector<ModelText> repeated_tokens(const models::Model& model,
                                                const RepeatedTokens& numbers = {});

struct HeadScoresOptions {
  std::int64_t max_offset = 16;  ///< of constant distances
  RepeatedTokens repeated = {};
  /// Called after each attention of each forward pass, with how many of them are done.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// What the heads did on some texts.
struct ScoredTexts {
  std::vector<ModelText> texts;
  std::vector<TokenPattern> patterns;
  std::vector<std::vector<HeadMeasures>> layers;  ///< [layer][head]
};

struct HeadScores {
  ScoredTexts text;      ///< of text_patterns()
  ScoredTexts repeated;  ///< of duplicate_token(), and, if the model is causal, induction()
};

/// Runs the model over the texts and over repeated tokens, and scores all heads in memory linear in
/// the lengths.
/// @throws InvalidArgument when there is no text, one does not fit the model, or an option means
/// nothing.
HEED_API HeadScores score_heads(const models::Model& model, std::vector<ModelText> texts,
                                const HeadScoresOptions& options = {});

/// A name that a head earned.
struct HeadRole {
  models::HeadIndex head;
  std::string name;  ///< of a pattern, or "positional", "constant offset", "broad"
  std::string looks_at;
  double score = 0;
  double threshold = 0;  ///< which the score exceeds, or, of "broad", stays below
  double uniform = 0;    ///< of a pattern: the score of a head that looks at all keys alike
  std::string source;    ///< whose threshold it is
  std::int64_t rows = 0;
  WeightExample strongest = {};
  bool is_repeated = false;  ///< found in repeated tokens, not in texts
};

/// All that the scores say, ordered by name as patterns are, the highest scores first. Besides the
/// patterns whose threshold is exceeded, and which more than 8 rows have:
///   positional: the largest weight stands at one distance in at least 0.9 of the rows (Voita et
///     al. 2019);
///   constant offset: more than half of the attention is at a distance other than −1, 0 and 1;
///   broad: the largest weight is at most 0.1 in the mean (Clark et al. 2019).
/// "Duplicate token" is of repeated tokens, where chance is small.
HEED_API std::vector<HeadRole> head_roles(const HeadScores& scores);

}}}  // namespace heed::v0::inspect
