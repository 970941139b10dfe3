#include <fmt/format.h>

#include <set>

#include "heed/core/error.h"
#include "heed/text/characters.h"
#include "io/unicode.h"
#include "text/input_and_streams.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

// Calls visit(character) for each character of a valid text, in order.
template <class Visit>
void for_each_code_point(std::string_view text, const Visit& visit) {
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
  check_utf8("Characters", text);
  std::set<std::string_view> occurring;
  for_each_code_point(text, [&](std::string_view character) { occurring.insert(character); });
  // UTF-8 has the sort order of its code points.
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

std::int32_t Characters::known(std::string_view character) const {
  const auto found = ids_.find(character);
  if (found != ids_.end()) return found->second;
  throw InvalidArgument(fmt::format("the character '{}' did not occur in the model's text",
                                    unicode::legible(character)));
}

Encoding Characters::encode(std::string_view text, const EncodeOptions& /*options*/) const {
  check_utf8("Characters::encode", text);
  Encoding encoding;
  std::int64_t begin = 0;
  for_each_code_point(text, [&](std::string_view character) {
    const auto end = begin + static_cast<std::int64_t>(character.size());
    encoding.ids.push_back(known(character));
    encoding.ranges.push_back({begin, end});
    begin = end;
  });
  encoding.type_ids.assign(encoding.ids.size(), 0);
  return encoding;
}

std::vector<std::int32_t> Characters::short_ids(std::string_view text) const {
  check_utf8("Characters::short_ids", text);
  std::size_t count = 0;
  for_each_code_point(text, [&](std::string_view) { ++count; });
  std::vector<std::int32_t> ids;
  ids.reserve(count);
  for_each_code_point(text, [&](std::string_view character) { ids.push_back(known(character)); });
  return ids;
}

std::string Characters::decode(std::span<const std::int64_t> ids,
                               const DecodeOptions& options) const {
  return decode_by(*stream({}, options), ids);
}

std::unique_ptr<DecodeStream> Characters::stream(std::span<const std::int64_t> context,
                                                 const DecodeOptions& /*options*/) const {
  const auto piece = [this](std::int64_t id) {
    check_id("Characters::decode", id);
    return (*this)[id];
  };
  return after_context(std::make_unique<JoinedStream>(piece), context);
}

std::string Characters::token(std::int64_t id) const {
  check_id("Characters::token", id);
  return (*this)[id];
}

std::optional<std::int64_t> Characters::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}}}  // namespace heed::v0::text
