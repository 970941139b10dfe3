#include <fmt/format.h>

#include <set>

#include "heed/error.h"
#include "heed/text/characters.h"
#include "heed/viz/terminal.h"
#include "io/unicode.h"

namespace heed::inline v0::text {

namespace {

// Calls visit(character) for each, one after another. Throws InvalidArgument when it is not UTF-8.
template <class Visit>
void for_each_code_point(std::string_view text, const Visit& visit) {
  if (const auto invalid = unicode::find_invalid(text)) {
    throw InvalidArgument(fmt::format("the text is not valid UTF-8 at byte {}", *invalid));
  }
  const auto is_continuation = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
  };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && is_continuation(text[end])) ++end;
    visit(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace

Characters::Characters(std::string_view text) {
  std::set<std::string_view> occurring;
  for_each_code_point(text, [&](std::string_view character) { occurring.insert(character); });
  // UTF-8 sorts as its code points do.
  for (const std::string_view character : occurring) {
    ids_.emplace(character, static_cast<std::int32_t>(size()));
    characters_.emplace_back(character);
  }
}

std::string Characters::all() const {
  std::string text;
  for (const std::string& character : characters_) text += character;
  return text;
}

std::vector<std::int32_t> Characters::encode(std::string_view text) const {
  std::size_t count = 0;
  for_each_code_point(text, [&](std::string_view) { ++count; });
  std::vector<std::int32_t> ids;
  ids.reserve(count);
  for_each_code_point(text, [&](std::string_view character) {
    const auto found = ids_.find(character);
    if (found == ids_.end()) {
      throw InvalidArgument(fmt::format("the character '{}' did not occur in the model's text",
                                        sanitize_for_terminal(character)));
    }
    ids.push_back(found->second);
  });
  return ids;
}

}  // namespace heed::inline v0::text
