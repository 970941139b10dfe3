#include "text/decoders.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "io/unicode.h"
#include "text/byte_level.h"

namespace heed::inline v0::text {
namespace {

void replace_each(std::string& text, std::string_view pattern, std::string_view content) {
  std::string result;
  std::size_t done = 0;
  std::size_t found = text.find(pattern);
  if (found == std::string::npos) return;
  for (; found != std::string::npos; found = text.find(pattern, done)) {
    result.append(text, done, found - done).append(content);
    done = found + pattern.size();
  }
  text = result.append(text, done);
}

// In the order, and with the spelling, of the library that models are decoded with.
void clean_english(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [pattern, content] : kReplacements) replace_each(text, pattern, content);
}

// The byte of "<0x0A>".
std::optional<char> byte_of(std::string_view token) {
  constexpr std::size_t kSize = 6;
  if (token.size() != kSize || !token.starts_with("<0x") || token.back() != '>') {
    return std::nullopt;
  }
  unsigned byte = 0;
  const char* end = token.data() + kSize - 1;
  const auto [stopped, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return static_cast<char>(byte);
}

}  // namespace

TokenTexts decode_word_piece(TokenTexts tokens, const std::string& prefix, bool cleans) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0 && token.starts_with(prefix)) {
      token.erase(0, prefix.size());
    } else if (i > 0) {
      token.insert(0, " ");
    }
    if (cleans) clean_english(token);
  }
  return tokens;
}

TokenTexts decode_byte_level(const TokenTexts& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += bytes_of_visible(token).value_or(token);
  return {text};
}

TokenTexts decode_byte_fallback(const TokenTexts& tokens) {
  constexpr std::string_view kReplacement = "\uFFFD";
  TokenTexts result;
  std::string bytes;
  const auto finish = [&] {
    if (unicode::find_invalid(bytes)) {
      result.insert(result.end(), bytes.size(), std::string(kReplacement));
    } else if (!bytes.empty()) {
      result.push_back(bytes);
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const auto byte = byte_of(token)) {
      bytes += *byte;
    } else {
      finish();
      result.push_back(token);
    }
  }
  finish();
  return result;
}

TokenTexts decode_replaced(TokenTexts tokens, const std::string& pattern,
                           const std::string& content) {
  for (std::string& token : tokens) replace_each(token, pattern, content);
  return tokens;
}

TokenTexts decode_fused(const TokenTexts& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return {text};
}

TokenTexts decode_stripped(TokenTexts tokens, const StripDecoder& strip) {
  const std::string_view character = strip.character;
  for (std::string& token : tokens) {
    std::string_view kept = token;
    for (std::int64_t i = 0; i < strip.begin && kept.starts_with(character); ++i) {
      kept.remove_prefix(character.size());
    }
    for (std::int64_t i = 0; i < strip.end && kept.ends_with(character); ++i) {
      kept.remove_suffix(character.size());
    }
    token = std::string(kept);
  }
  return tokens;
}

TokenTexts decode_spaced(TokenTexts tokens) {
  for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
  return tokens;
}

}  // namespace heed::inline v0::text
