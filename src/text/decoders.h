// Decoders: how tokens become a text again. Each takes the parts that the one before it left; what
// is left in the end is joined.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heed::inline v0::text {

using TokenTexts = std::vector<std::string>;
using Decoder = std::function<TokenTexts(TokenTexts)>;

// ' ' before each token but the first, unless it begins with `prefix`, which goes. `cleans` takes
// spaces away that English does not have: "do n't ." → "don't."
TokenTexts decode_word_piece(TokenTexts tokens, const std::string& prefix, bool cleans);

// The bytes of all tokens as one text. A token that is not written as such is taken as it is.
TokenTexts decode_byte_level(const TokenTexts& tokens);

// Tokens like <0x0A> as bytes: those that follow each other are one text.
TokenTexts decode_byte_fallback(const TokenTexts& tokens);

// Every occurrence of `pattern`, not empty, in each token.
TokenTexts decode_replaced(TokenTexts tokens, const std::string& pattern,
                           const std::string& content);
TokenTexts decode_fused(const TokenTexts& tokens);

// Without up to so many times `character`, not empty, at the beginning and at the end of each
// token.
struct StripDecoder {
  std::string character;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
TokenTexts decode_stripped(TokenTexts tokens, const StripDecoder& strip);

// ' ' between all tokens: what is done without a decoder.
TokenTexts decode_spaced(TokenTexts tokens);

}  // namespace heed::inline v0::text
