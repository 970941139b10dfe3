// A table of a model's tokens by id, and of ids by token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

struct TokenEntry {
  std::string token;
  std::int64_t id = 0;
};

class TokenTable {
 public:
  // Takes the tokens that the model may produce, and added tokens, each of which is new or one of
  // the model's with the same id. Throws FormatError, naming `file` and `byte`, unless the ids are
  // 0, 1, … without gaps, each id has one token, and each token has one id.
  TokenTable(std::vector<TokenEntry> model, const std::vector<TokenEntry>& added,
             const std::string& file, std::int64_t byte);
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  const std::string& token(std::int64_t id) const { return tokens_[static_cast<std::size_t>(id)]; }
  std::optional<std::int64_t> find(std::string_view token) const;
  // Searches only the tokens that the model may produce.
  std::optional<std::int64_t> find_in_model(std::string_view token) const;
  bool is_in_model(std::int64_t id) const { return in_model_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::string> tokens_;
  std::vector<bool> in_model_;
  std::unordered_map<std::string_view, std::int64_t> ids_;
};

}}}  // namespace heed::v0::text
