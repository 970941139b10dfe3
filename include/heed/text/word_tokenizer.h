/// A tokenizer with words and punctuation as tokens, and bytes for unknown words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 {

namespace text {

/// Splits UTF-8 text into words, punctuation and whitespace, and numbers them. Ids 0 … 255 are the
/// single bytes; the ids after them are the pieces of the texts it was built from, in order of
/// first appearance. A piece that is not in the vocabulary is encoded as its bytes, so every text
/// is encoded, and decode(encode(text)) is text, byte for byte.
///
/// A piece is one of:
///   - a word: letters, marks and numbers, with apostrophes and hyphens between them
///     ("don't", "self-attention", "1st"; "3.14" is three pieces);
///   - one Han, Hiragana or Katakana character, because these scripts do not mark words;
///   - one punctuation mark or symbol, which may be a whole emoji sequence;
///   - a run of whitespace.
/// A single space before a word or symbol belongs to it. The text is tokenised as if it began with
/// a space (unless it starts with a Han, Hiragana or Katakana character), so that a word is the
/// same token at the start of a text as inside it; decode removes that space.
///
/// Immutable: any number of threads may use one tokenizer.
class HEED_API WordTokenizer final : public Tokenizer {
 public:
  /// The vocabulary of one text, or of several. Without a text it is the 256 bytes alone.
  /// @throws InvalidArgument when a text is not valid UTF-8, with the offset of the offending byte.
  explicit WordTokenizer(std::string_view text);
  WordTokenizer(std::initializer_list<std::string_view> texts);
  explicit WordTokenizer(std::span<const std::string_view> texts);

  /// The number of bytes, 256, plus the number of pieces.
  std::int64_t vocab_size() const override;
  /// NUL bytes are ordinary characters. There are no special tokens: options have no effect.
  /// @throws InvalidArgument when the text is not valid UTF-8 (truncated, overlong, a surrogate,
  /// beyond U+10FFFF), with the offset of the offending byte.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const override;
  /// The concatenated tokens, without the space of a piece at the very start. Ids of bytes become
  /// these bytes, whether or not they are valid UTF-8.
  std::string decode(std::span<const std::int64_t> ids,
                     const DecodeOptions& options = {}) const override;
  std::unique_ptr<DecodeStream> stream(std::span<const std::int64_t> context = {},
                                       const DecodeOptions& options = {}) const override;
  /// The bytes of `id`, with the attached space: " cat".
  std::string token(std::int64_t id) const override;
  /// The token for display, "cat": no attached space, spaces of a whitespace run as ␣, control
  /// characters and bytes outside ASCII as escapes (\n, \x1B, \u{202E}, \xE2).
  std::string label(std::int64_t id) const override;
  std::optional<std::int64_t> id(std::string_view token) const override;

 private:
  std::vector<std::string> pieces_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

}  // namespace text

/// The four tokens of the running example "I love AI !".
inline constexpr std::array<std::string_view, 4> kVocab{"I", "love", "AI", "!"};

/// The position of each token in `vocab`: shape [tokens.size()].
/// @throws InvalidArgument when a token is not in the vocabulary; the text names it and lists the
/// vocabulary.
HEED_API Tensor<std::int64_t> to_ids(std::span<const std::string_view> tokens,
                                     std::span<const std::string_view> vocab = kVocab);
HEED_API Tensor<std::int64_t> to_ids(std::initializer_list<std::string_view> tokens,
                                     std::span<const std::string_view> vocab = kVocab);

}}  // namespace heed::v0
