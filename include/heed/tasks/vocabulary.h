/// Words or characters and their numbers.
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

/// What models are trained on, and how well they do.
namespace heed { inline namespace v0 { namespace tasks {

/// What a token is.
enum class Units {
  kWords,       ///< what stands between whitespace
  kCharacters,  ///< a grapheme cluster: what a reader calls one character
};

/// The tokens of valid UTF-8. @throws InvalidArgument naming the offset of an invalid byte.
HEED_API std::vector<std::string> split_units(std::string_view text, Units units);
/// Words with a space between them, or characters one behind the other.
HEED_API std::string join_units(std::span<const std::string> tokens, Units units);

/// kSpecialTokens, and then every token of the texts it was built from: the frequent ones first,
/// those of equal frequency in the order of their bytes. Immutable.
class HEED_API Vocabulary final : public text::Tokenizer {
 public:
  /// @throws InvalidArgument when a text is not valid UTF-8.
  Vocabulary(std::span<const std::string> texts, Units units);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t vocab_size() const override { return size(); }
  Units units() const noexcept { return units_; }

  /// Without kBosId and kEosId, which batches add. What is not in the vocabulary is kUnknownId, and
  /// so are the names of special tokens: no text is read as one, whatever the options say.
  text::Encoding encode(std::string_view text,
                        const text::EncodeOptions& options = {}) const override;
  /// Words with a space between them, or characters one behind the other. Padding, begin and end
  /// are left out if special tokens are to be skipped; what is unknown is "<unk>".
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
  /// @param name what errors call the text
  /// @throws FormatError when the text is not what to_json() writes.
  static Vocabulary from_json(std::string_view text, const std::string& name = "vocabulary");
  /// Writes to_json(), whole or not at all. @throws IoError when that fails.
  void save(const std::filesystem::path& path) const;
  /// @throws FormatError, IoError
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
