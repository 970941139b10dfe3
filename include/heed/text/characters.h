/// A tokenizer with one token for each character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace text {

/// The characters (code points) of a text, numbered in Unicode order: the vocabulary of a small
/// model that predicts characters. Immutable.
class HEED_API Characters final : public Tokenizer {
 public:
  /// @throws InvalidArgument when `text` is not valid UTF-8, with the offset of the offending byte.
  explicit Characters(std::string_view text);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  std::int64_t vocab_size() const override { return size(); }
  /// All characters in order. Characters(all()) equals this.
  std::string all() const;

  /// There are no special tokens: options have no effect.
  /// @throws InvalidArgument when the text is not valid UTF-8, or naming a character that is not in
  /// the vocabulary.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const override;
  /// encode().ids as 4-byte numbers, without further memory, for long texts. @throws as encode()
  std::vector<std::int32_t> short_ids(std::string_view text) const;
  std::string decode(std::span<const std::int64_t> ids,
                     const DecodeOptions& options = {}) const override;
  std::unique_ptr<DecodeStream> stream(std::span<const std::int64_t> context = {},
                                       const DecodeOptions& options = {}) const override;
  std::string token(std::int64_t id) const override;
  std::optional<std::int64_t> id(std::string_view token) const override;

  /// The character of an id in [0, size()).
  const std::string& operator[](std::int64_t id) const HEED_LIFETIME_BOUND {
    return characters_[static_cast<std::size_t>(id)];
  }

 private:
  std::int32_t known(std::string_view character) const;

  std::vector<std::string> characters_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
};

}}}  // namespace heed::v0::text
