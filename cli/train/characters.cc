#include "train/characters.h"

#include <fmt/format.h>

#include <set>

#include "heed/error.h"
#include "heed/io/tokenizer.h"
#include "heed/viz/terminal.h"

namespace heed::cli {

namespace {

// The characters of a text, which encode() of any tokenizer checks.
std::vector<std::string_view> split(std::string_view text) {
  static const Tokenizer bytes("");
  bytes.encode(text);
  const auto is_continuation = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
  };
  std::vector<std::string_view> result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && is_continuation(text[end])) ++end;
    result.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

}  // namespace

Characters::Characters(std::string_view text) {
  const auto all = split(text);
  // UTF-8 sorts as its code points do.
  for (const std::string_view character : std::set<std::string_view>(all.begin(), all.end())) {
    ids_.emplace(character, size());
    characters_.emplace_back(character);
  }
}

std::string Characters::all() const {
  std::string text;
  for (const std::string& character : characters_) text += character;
  return text;
}

std::vector<std::int64_t> Characters::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const std::string_view character : split(text)) {
    const auto found = ids_.find(character);
    if (found == ids_.end()) {
      throw InvalidArgument(fmt::format("the character '{}' did not occur in the model's text",
                                        sanitize_for_terminal(character)));
    }
    ids.push_back(found->second);
  }
  return ids;
}

}  // namespace heed::cli
