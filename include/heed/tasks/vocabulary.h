/// Vocabularies of words or characters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/special_tokens.h"
#include "heed/text/tokenizer.h"

/// Training data and scores.
namespace heed { inline namespace v0 { namespace tasks {

/// The kinds of tokens.
enum class Units {
  kWords,       ///< text between whitespace
  kCharacters,  ///< grapheme clusters, which readers see as single characters
};

/// The tokens of valid UTF-8. @throws InvalidArgument naming the offset of an invalid byte.
HEED_API std::vector<std::string> split_units(std::string_view text, Units units);
/// Joins words with a space between them, or characters without.
HEED_API std::string join_units(std::span<const std::string> tokens, Units units);

/// kSpecialTokens, followed by every token of the texts it was built from: by falling frequency,
/// then in the order of their bytes. Immutable.
class HEED_API Vocabulary final : public text::Tokenizer {
 public:
  /// @throws InvalidArgument when a text is not valid UTF-8.
  Vocabulary(std::span<const std::string> texts, Units units);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t vocab_size() const override { return size(); }
  Units units() const noexcept { return units_; }

  /// The ids of a text without kBosId and kEosId, which batches add. Tokens that are not in the
  /// vocabulary become kUnknownId, and so do the names of special tokens, whatever the options are.
  text::Encoding encode(std::string_view text,
                        const text::EncodeOptions& options = {}) const override;
  /// The tokens joined as by join_units(). Padding, begin and end are left out if special tokens
  /// are skipped; an unknown token is "<unk>".
  std::string decode(std::span<const std::int64_t> ids,
                     const text::DecodeOptions& options = {}) const override;
  std::unique_ptr<text::DecodeStream> stream(
      std::span<const std::int64_t> context = {},
      const text::DecodeOptions& options = {}) const override;
  std::string token(std::int64_t id) const override;
  std::optional<std::int64_t> id(std::string_view token) const override;
  bool is_special(std::int64_t id) const override;
  const text::SpecialTokens& special_tokens() const override;

  /// {"format": "heed.vocabulary", "version": 1, "units": "words", "tokens": ["<pad>", …]}
  std::string to_json() const;
  /// @param name the name of the text in errors
  /// @throws FormatError when the text is not what to_json() writes.
  static Vocabulary from_json(std::string_view text, const std::string& name = "vocabulary");
  /// Writes to_json() to a file, which is replaced as a whole. @throws IoError when that fails.
  void save(const std::filesystem::path& path) const;
  /// Reads a file that save() wrote. @throws FormatError, IoError
  static Vocabulary load(const std::filesystem::path& path);

  friend bool operator==(const Vocabulary& a, const Vocabulary& b) {
    return a.units_ == b.units_ && a.tokens_ == b.tokens_;
  }

 private:
  Vocabulary(Units units, std::vector<std::string> tokens);

  Units units_;
  std::vector<std::string> tokens_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

}}}  // namespace heed::v0::tasks
