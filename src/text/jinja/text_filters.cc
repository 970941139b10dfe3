#include "text/jinja/text_filters.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

namespace {

enum class Case { kKept, kUpper, kLower };

// `case_of` gives the case of each character, in order.
template <typename CaseOf>
Value recased(Evaluator& evaluator, const Value& value, CaseOf&& case_of) {
  const MarkedText source = evaluator.printed(value);
  evaluator.take(source.size());
  MarkedText result;
  for (std::size_t at = 0; at < source.size();) {
    const Character character = character_at(source.bytes(), at);
    const Case to = case_of(character.value);
    const std::string changed = to == Case::kUpper   ? upper_of(character.value)
                                : to == Case::kLower ? lower_of(character.value)
                                                     : source.bytes().substr(at, character.size);
    result.append_like(changed, source, at);
    at += character.size;
  }
  return string(std::move(result));
}

}  // namespace

Value upper(Evaluator& evaluator, const Value& value, const Arguments&) {
  return recased(evaluator, value, [](char32_t) { return Case::kUpper; });
}

Value lower(Evaluator& evaluator, const Value& value, const Arguments&) {
  return recased(evaluator, value, [](char32_t) { return Case::kLower; });
}

Value capitalized(Evaluator& evaluator, const Value& value, const Arguments&) {
  bool is_first = true;
  return recased(evaluator, value, [&](char32_t) {
    return std::exchange(is_first, false) ? Case::kUpper : Case::kLower;
  });
}

// The words of the filter begin behind white space, '-' and opening brackets.
Value title_filter(Evaluator& evaluator, const Value& value, const Arguments&) {
  bool is_first = true;
  return recased(evaluator, value, [&](char32_t character) {
    const bool divides =
        is_python_space(character) ||
        (character < 0x80 &&
         std::string_view("-({[<").find(static_cast<char>(character)) != std::string_view::npos);
    const bool begins = std::exchange(is_first, divides);
    return begins && !divides ? Case::kUpper : Case::kLower;
  });
}

Value title_method(Evaluator& evaluator, const Value& value, const Arguments&) {
  bool follows_letter = false;
  return recased(evaluator, value, [&](char32_t character) {
    return std::exchange(follows_letter, is_letter(character)) ? Case::kLower : Case::kUpper;
  });
}

std::size_t Evaluator::find(std::string_view text, std::string_view part, std::size_t from) {
  if (part.empty() || from > text.size()) return from > text.size() ? std::string::npos : from;
  std::size_t compared = 0;
  for (std::size_t at = from; at + part.size() <= text.size(); ++at) {
    at = std::min(text.find(part[0], at), text.size());
    if (at + part.size() > text.size()) break;
    const auto differs =
        std::mismatch(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(at));
    compared += static_cast<std::size_t>(differs.first - part.begin()) + 1;
    if (compared > 4096) take(std::exchange(compared, 0) / 16);
    if (differs.first == part.end()) {
      take((at - from + compared) / 16);
      return at;
    }
  }
  take((text.size() - from + compared) / 16);
  return std::string::npos;
}

std::size_t Evaluator::find_last(std::string_view text, std::string_view part, std::size_t from) {
  if (part.size() > text.size()) return std::string::npos;
  std::size_t at = std::min(from, text.size() - part.size());
  for (std::size_t left = at + 1; left > 0; --left, --at) {
    const auto differs =
        std::mismatch(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(at));
    take(static_cast<std::size_t>(differs.first - part.begin()) / 16 + (left % 16 == 0 ? 1 : 0));
    if (differs.first == part.end()) return at;
  }
  return std::string::npos;
}

Value replaced(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const MarkedText source = evaluator.printed(value);
  const MarkedText old =
      evaluator.printed(needed(evaluator, arguments.find(0, "old"), "the old text"));
  const MarkedText fresh =
      evaluator.printed(needed(evaluator, arguments.find(1, "new"), "the new text"));
  std::int64_t left = whole_argument(evaluator, arguments.find(2, "count"), -1);
  MarkedText result;
  std::size_t done = 0;
  for (std::size_t from = 0; left != 0; --left) {
    const std::size_t found = evaluator.find(source.bytes(), old.bytes(), from);
    if (found == std::string::npos) break;
    evaluator.take_text(result.size() + fresh.size() > kMaxBytes ? kMaxBytes + 1 : fresh.size());
    result.append(source.part(done, found));
    result.append(fresh);
    done = found + old.size();
    if (old.empty() && found == source.size()) break;
    from = old.empty() ? found + character_at(source.bytes(), found).size : done;
  }
  evaluator.take_text(source.size());
  result.append(source.part(done, source.size()));
  return string(std::move(result));
}

MarkedText stripped_part(Evaluator& evaluator, const MarkedText& text, Sides sides,
                         const Value* characters) {
  evaluator.take_text(text.size());
  const bool are_given = characters != nullptr && !characters->is(Value::Kind::kNone);
  const std::string* const set =
      are_given ? &string_argument(evaluator, characters, "the characters") : nullptr;
  if (set != nullptr && set->size() > 1000) evaluator.fail("too many characters to strip");
  if (set != nullptr) evaluator.take(text.size() * set->size() / 64);
  const std::string_view part = stripped(text.bytes(), sides, set);
  if (part.empty()) return {};
  const auto begin = static_cast<std::size_t>(part.data() - text.bytes().data());
  return text.part(begin, begin + part.size());
}

MarkedText joined_texts(Evaluator& evaluator, const std::vector<Value>& items,
                        const MarkedText& separator) {
  MarkedText result;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const MarkedText part = evaluator.printed(items[i]);
    const std::size_t size = part.size() + separator.size();
    evaluator.take_text(result.size() + size > kMaxBytes ? kMaxBytes + 1 : size);
    if (i > 0) result.append(separator);
    result.append(part);
  }
  return result;
}

std::vector<Value> lines_of(Evaluator& evaluator, const MarkedText& text, bool keeps_ends) {
  const auto ends_line = [](char32_t value) {
    return (value >= 0x0A && value <= 0x0D) || (value >= 0x1C && value <= 0x1E) || value == 0x85 ||
           value == 0x2028 || value == 0x2029;
  };
  evaluator.take(text.size());
  std::vector<Value> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text.bytes(), at);
    const std::size_t end = at;
    at += character.size;
    if (!ends_line(character.value)) continue;
    if (character.value == '\r' && at < text.size() && text.bytes()[at] == '\n') ++at;
    lines.push_back(string(text.part(begin, keeps_ends ? at : end)));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(string(text.part(begin, text.size())));
  return lines;
}

Value indented(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  string_argument(evaluator, &value, "the text");
  MarkedText text = *value.text;
  const Value* const width = arguments.find(0, "width");
  MarkedText margin;
  if (width != nullptr && width->is_string()) {
    margin = *width->text;
  } else {
    const std::int64_t count = whole_argument(evaluator, width, 4);
    if (count > 1000) evaluator.fail("indentation that is too wide");
    margin.append(std::string(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), ' '));
  }
  const bool indents_first = truth_argument(arguments.find(1, "first"), false);
  const bool indents_blank = truth_argument(arguments.find(2, "blank"), false);
  text.append("\n");  // as Jinja does, so that the last line keeps its end
  const std::vector<Value> lines = lines_of(evaluator, text, false);
  MarkedText result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const MarkedText& line = *lines[i].text;
    const std::size_t size = line.size() + margin.size();
    evaluator.take_text(result.size() + size > kMaxBytes ? kMaxBytes + 1 : size);
    if (i > 0) result.append("\n");
    const bool has_margin = i == 0 ? indents_first : indents_blank || !line.empty();
    if (has_margin) result.append(margin);
    result.append(line);
  }
  return string(std::move(result));
}

}}}}  // namespace heed::v0::text::jinja
