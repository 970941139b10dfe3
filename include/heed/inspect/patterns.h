/// Patterns of attention that have a name: which keys of a text a query would look at if its head
/// did just that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/text/tokenizer.h"

/// What the heads of a model do.
namespace heed { inline namespace v0 { namespace inspect {

/// What patterns ask of the tokens of a text.
struct TokenSequence {
  std::vector<std::int64_t> ids;
  std::vector<bool> is_special;      ///< of a role, but not "unknown": [CLS], [SEP], <|endoftext|>
  std::vector<bool> is_punctuation;  ///< all its characters are neither letters nor digits
  std::vector<std::int64_t> words;   ///< the number of the word that it belongs to; −1: none

  std::int64_t length() const noexcept { return static_cast<std::int64_t>(ids.size()); }
};

/// The tokens of a text, or of a pair of texts. Two neighbours belong to one word where their bytes
/// touch, and neither an end nor a beginning of them is white space or punctuation.
/// @param second the second text of a pair, whose tokens have the type id 1
/// @throws InvalidArgument when the encoding's parts differ in length, a range is not one of the
/// text, or an id is not in the vocabulary.
HEED_API TokenSequence read_tokens(const text::Tokenizer& tokenizer, const text::Encoding& encoding,
                                   std::string_view first, std::string_view second = {});
/// Ids that are no text: without words and punctuation.
/// @throws InvalidArgument when an id is not in the vocabulary.
HEED_API TokenSequence read_tokens(const text::Tokenizer& tokenizer, std::vector<std::int64_t> ids);

/// A pattern: the keys that it has for each query, and from which score on a head is named by it.
struct TokenPattern {
  std::string name;      ///< "previous token"
  std::string looks_at;  ///< "the token before"
  double threshold = 0.5;
  std::string source;  ///< who says so
  /// Appends the keys of a query, each once, in rising order. Keys that the query does not see do
  /// not matter.
  std::function<void(const TokenSequence& tokens, std::int64_t query,
                     std::vector<std::int64_t>& keys)>
      keys;
};

/// The token before, the token behind, the query's own.
HEED_API TokenPattern previous_token();
HEED_API TokenPattern next_token();
HEED_API TokenPattern same_token();
/// The first token of the text: [CLS], <s>, or whatever stands there.
HEED_API TokenPattern first_token();
/// Special tokens behind the first.
HEED_API TokenPattern separators();
HEED_API TokenPattern punctuation();
/// Other tokens of the query's word.
HEED_API TokenPattern same_word();
/// Other occurrences of the query's id, which is no special one: earlier ones under a causal mask.
HEED_API TokenPattern duplicate_token();
/// Tokens that come directly after an earlier occurrence of the query's id, the query's own place
/// excepted: where induction finds what comes next. Source: Olsson et al., "In-context Learning and
/// Induction Heads", 2022.
HEED_API TokenPattern induction();

/// Those that mean something in any text: all but induction.
HEED_API std::vector<TokenPattern> text_patterns();

}}}  // namespace heed::v0::inspect
