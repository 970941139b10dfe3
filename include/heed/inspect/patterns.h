/// Named patterns of attention: the keys that a query attends to if its head follows the pattern.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/text/tokenizer.h"

/// Inspection of a model's heads.
namespace heed { inline namespace v0 { namespace inspect {

/// The tokens of a text, with the properties that patterns need.
struct TokenSequence {
  std::vector<std::int64_t> ids;
  std::vector<bool> is_special;      ///< a role, but not "unknown": [CLS], [SEP], <|endoftext|>
  std::vector<bool> is_punctuation;  ///< no character is a letter or a digit
  std::vector<std::int64_t> words;   ///< the number of the token's word; −1: none

  std::int64_t length() const noexcept { return static_cast<std::int64_t>(ids.size()); }
};

/// The tokens of a text, or of a pair of texts. Two neighbours belong to one word where their bytes
/// are adjacent and both sides of the boundary are neither white space nor punctuation.
/// @param second the second text of a pair, whose tokens have the type id 1
/// @throws InvalidArgument when the encoding's parts differ in length, a range is outside its text,
/// or an id is not in the vocabulary.
HEED_API TokenSequence read_tokens(const text::Tokenizer& tokenizer, const text::Encoding& encoding,
                                   std::string_view first, std::string_view second = {});
/// Tokens from ids without a text: none has a word or is punctuation.
/// @throws InvalidArgument when an id is not in the vocabulary.
HEED_API TokenSequence read_tokens(const text::Tokenizer& tokenizer, std::vector<std::int64_t> ids);

/// A pattern: its keys for each query, and the score above which a head has this role.
struct TokenPattern {
  std::string name;      ///< "previous token"
  std::string looks_at;  ///< "the token before"
  double threshold = 0.5;
  std::string source;  ///< the publication with the threshold
  /// Appends the keys of a query, each once, in rising order. Keys that the query does not see are
  /// ignored.
  std::function<void(const TokenSequence& tokens, std::int64_t query,
                     std::vector<std::int64_t>& keys)>
      keys;
};

/// The token before the query, the token after it, and the query's own.
HEED_API TokenPattern previous_token();
HEED_API TokenPattern next_token();
HEED_API TokenPattern same_token();
/// The first token of the text, for example [CLS] or <s>.
HEED_API TokenPattern first_token();
/// Special tokens other than the first token.
HEED_API TokenPattern separators();
/// Punctuation tokens.
HEED_API TokenPattern punctuation();
/// Other tokens of the query's word.
HEED_API TokenPattern same_word();
/// Other occurrences of the query's id, unless it is a special token; earlier ones under a causal
/// mask.
HEED_API TokenPattern duplicate_token();
/// Tokens directly after an earlier occurrence of the query's id, except the query itself: they
/// predict the next token by induction. Source: Olsson et al., "In-context Learning and
/// Induction Heads", 2022.
HEED_API TokenPattern induction();

/// The patterns for any text: all but induction.
HEED_API std::vector<TokenPattern> text_patterns();

}}}  // namespace heed::v0::inspect
