/// Text as numbers, one for each character.
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

/// The characters (code points) that occur in a text, numbered in their order in Unicode: the
/// vocabulary of a small model that writes letter by letter. Immutable.
class HEED_API Characters final : public Tokenizer {
 public:
  /// @throws InvalidArgument when `text` is not valid UTF-8, with the offset of the offending byte.
  explicit Characters(std::string_view text);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  std::int64_t vocab_size() const override { return size(); }
  /// All of them in order: Characters(all()) is the same again.
  std::string all() const;

  /// There are no special tokens: options say nothing.
  /// @throws InvalidArgument when the text is not valid UTF-8, or naming a character that is not
  /// among them.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const override;
  /// encode().ids in four bytes each and no memory besides, for texts are long. @throws as encode()
  std::vector<std::int32_t> short_ids(std::string_view text) const;
  std::string decode(std::span<const std::int64_t> ids,
                     const DecodeOptions& options = {}) const override;
  std::unique_ptr<DecodeStream> stream(std::span<const std::int64_t> context = {},
                                       const DecodeOptions& options = {}) const override;
  std::string token(std::int64_t id) const override;
  std::optional<std::int64_t> id(std::string_view token) const override;

  /// The character of a number, which is in [0, size()).
  const std::string& operator[](std::int64_t id) const HEED_LIFETIME_BOUND {
    return characters_[static_cast<std::size_t>(id)];
  }

 private:
  std::int32_t known(std::string_view character) const;

  std::vector<std::string> characters_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
};

}}}  // namespace heed::v0::text
