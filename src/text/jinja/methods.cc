#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/code_points.h"
#include "text/jinja/text_filters.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

template <Sides kSides>
Value strip(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  return string(stripped_part(evaluator, *self.text, kSides, arguments.find(0, "chars")));
}

// The words between white space.
std::vector<Value> words_of(const MarkedText& text, std::int64_t most) {
  std::vector<Value> words;
  std::size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < text.size()) {
      const Character character = character_at(text.bytes(), at);
      if (is_python_space(character.value) != spaces) return;
      at += character.size;
    }
  };
  for (;;) {
    skip(true);
    if (at == text.size()) return words;
    const std::size_t begin = at;
    if (most >= 0 && words.size() == static_cast<std::size_t>(most)) {
      words.push_back(string(text.part(begin, text.size())));
      return words;
    }
    skip(false);
    words.push_back(string(text.part(begin, at)));
  }
}

Value split(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const MarkedText& text = *self.text;
  evaluator.take(text.size());
  const Value* const separator = arguments.find(0, "sep");
  std::int64_t left = whole_argument(evaluator, arguments.find(1, "maxsplit"), -1);
  if (separator == nullptr || separator->is(Kind::kNone)) {
    return sequence(Kind::kList, words_of(text, left));
  }
  const std::string& bytes = string_argument(evaluator, separator, "the separator");
  if (bytes.empty()) evaluator.fail("an empty separator");
  std::vector<Value> parts;
  std::size_t begin = 0;
  for (; left != 0; --left) {
    const std::size_t found = evaluator.find(text.bytes(), bytes, begin);
    if (found == std::string::npos) break;
    parts.push_back(string(text.part(begin, found)));
    begin = found + bytes.size();
  }
  parts.push_back(string(text.part(begin, text.size())));
  return sequence(Kind::kList, std::move(parts));
}

Value rsplit(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const MarkedText& text = *self.text;
  evaluator.take(text.size());
  const std::string& bytes = string_argument(evaluator, arguments.find(0, "sep"), "the separator");
  std::int64_t left = whole_argument(evaluator, arguments.find(1, "maxsplit"), -1);
  if (bytes.empty()) evaluator.fail("an empty separator");
  std::vector<Value> parts;
  std::size_t end = text.size();
  for (; left != 0 && end >= bytes.size(); --left) {
    const std::size_t found = evaluator.find_last(text.bytes(), bytes, end - bytes.size());
    if (found == std::string::npos) break;
    parts.push_back(string(text.part(found + bytes.size(), end)));
    end = found;
  }
  parts.push_back(string(text.part(0, end)));
  std::reverse(parts.begin(), parts.end());
  return sequence(Kind::kList, std::move(parts));
}

Value splitlines(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const bool keeps_ends = truth_argument(arguments.find(0, "keepends"), false);
  return sequence(Kind::kList, lines_of(evaluator, *self.text, keeps_ends));
}

// True if the text has one of the beginnings, or ends.
template <bool kIsEnd>
Value has_affix(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Value& affix = needed(evaluator, arguments.find(0, "prefix"), "a text");
  if (arguments.positional.size() > 1) evaluator.fail("a range of the text");
  const std::vector<Value> all = affix.is(Kind::kTuple) ? affix.object->items : std::vector{affix};
  evaluator.take(all.size());
  return boolean(std::any_of(all.begin(), all.end(), [&](const Value& one) {
    const std::string& bytes = string_argument(evaluator, &one, "a text");
    evaluator.take(bytes.size() / 64);
    return kIsEnd ? self.bytes().ends_with(bytes) : self.bytes().starts_with(bytes);
  }));
}

template <bool kIsEnd>
Value without_affix(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const std::string& bytes = string_argument(evaluator, arguments.find(0, "prefix"), "a text");
  evaluator.take_text(self.text->size());
  const std::size_t size = self.text->size();
  if (kIsEnd && self.bytes().ends_with(bytes))
    return string(self.text->part(0, size - bytes.size()));
  if (!kIsEnd && self.bytes().starts_with(bytes))
    return string(self.text->part(bytes.size(), size));
  return self;
}

template <bool kIsLast>
Value find_text(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const std::string& bytes = string_argument(evaluator, arguments.find(0, "sub"), "a text");
  if (arguments.positional.size() > 1) evaluator.fail("a range of the text");
  evaluator.take(self.text->size() / 16);
  const std::size_t found = kIsLast ? evaluator.find_last(self.bytes(), bytes, self.text->size())
                                    : evaluator.find(self.bytes(), bytes, 0);
  if (found == std::string::npos) return whole(-1);
  const std::string_view before = std::string_view(self.bytes()).substr(0, found);
  return whole(static_cast<std::int64_t>(count_characters(before)));
}

Value count_text(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const std::string& bytes = string_argument(evaluator, arguments.find(0, "sub"), "a text");
  evaluator.take(self.text->size() / 16);
  if (bytes.empty()) return whole(static_cast<std::int64_t>(count_characters(self.bytes()) + 1));
  std::int64_t count = 0;
  for (std::size_t at = 0;; at += bytes.size(), ++count) {
    at = evaluator.find(self.bytes(), bytes, at);
    if (at == std::string::npos) break;
  }
  return whole(count);
}

Value join_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const std::vector<Value> items =
      evaluator.items_of(needed(evaluator, arguments.find(0, "iterable"), "a list"));
  for (const Value& item : items) string_argument(evaluator, &item, "an item");
  return string(joined_texts(evaluator, items, *self.text));
}

Value replace_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  string_argument(evaluator, arguments.find(0, "old"), "the old text");
  string_argument(evaluator, arguments.find(1, "new"), "the new text");
  return replaced(evaluator, self, arguments);
}

Value get(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Value& key = needed(evaluator, arguments.find(0, "key"), "a key");
  evaluator.take(self.object->keys.size() / 8);
  for (std::size_t i = 0; i < self.object->keys.size(); ++i) {
    if (equal(self.object->keys[i], key, evaluator.steps())) return self.object->items[i];
  }
  const Value* const otherwise = arguments.find(1, "default");
  return otherwise != nullptr ? *otherwise : none();
}

Value keys(Evaluator& evaluator, const Value& self, const Arguments&) {
  return sequence(Kind::kView, evaluator.items_of(self));
}

Value values(Evaluator& evaluator, const Value& self, const Arguments&) {
  evaluator.take(self.object->items.size());
  return sequence(Kind::kView, self.object->items);
}

Value pairs(Evaluator& evaluator, const Value& self, const Arguments&) {
  std::vector<Value> result = evaluator.items_of(self);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = sequence(Kind::kTuple, {result[i], self.object->items[i]});
  }
  return sequence(Kind::kView, std::move(result));
}

Value index_of(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Value& wanted = needed(evaluator, arguments.find(0, "value"), "a value");
  const auto& items = self.object->items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(items[i], wanted, evaluator.steps())) return whole(static_cast<std::int64_t>(i));
  }
  evaluator.fail("a value that is not in the list");
}

Value count_items(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Value& wanted = needed(evaluator, arguments.find(0, "value"), "a value");
  const auto& items = self.object->items;
  return whole(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(item, wanted, evaluator.steps());
  }));
}

Value refused(Evaluator& evaluator, const Value& self, const Arguments&) {
  evaluator.fail(fmt::format("a method that changes {}, which templates may not do, or formats it",
                             kind_name(self)));
}

Value cycle(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) evaluator.fail("a cycle of nothing");
  return arguments.positional[self.object->index % arguments.positional.size()];
}

constexpr std::array<Callable, 21> kTextMethods{{
    {"strip", &strip<Sides::kBoth>, "/chars"},
    {"lstrip", &strip<Sides::kLeft>, "/chars"},
    {"rstrip", &strip<Sides::kRight>, "/chars"},
    {"split", &split, "sep maxsplit"},
    {"rsplit", &rsplit, "sep maxsplit"},
    {"splitlines", &splitlines, "keepends"},
    {"startswith", &has_affix<false>, "/prefix"},
    {"endswith", &has_affix<true>, "/prefix"},
    {"removeprefix", &without_affix<false>, "/prefix"},
    {"removesuffix", &without_affix<true>, "/prefix"},
    {"upper", &upper, ""},
    {"lower", &lower, ""},
    {"title", &title_method, ""},
    {"capitalize", &capitalized, ""},
    {"replace", &replace_method, "/old new count"},
    {"join", &join_method, "/iterable"},
    {"find", &find_text<false>, "/sub"},
    {"rfind", &find_text<true>, "/sub"},
    {"count", &count_text, "/sub"},
    {"format", &refused, kAnyParameters},
    {"format_map", &refused, kAnyParameters},
}};
constexpr std::array<Callable, 9> kDictMethods{{
    {"get", &get, "/key default"},
    {"keys", &keys, ""},
    {"values", &values, ""},
    {"items", &pairs, ""},
    {"update", &refused, kAnyParameters},
    {"pop", &refused, kAnyParameters},
    {"popitem", &refused, kAnyParameters},
    {"clear", &refused, kAnyParameters},
    {"setdefault", &refused, kAnyParameters},
}};
constexpr std::array<Callable, 10> kListMethods{{
    {"index", &index_of, "/value"},
    {"count", &count_items, "/value"},
    {"append", &refused, kAnyParameters},
    {"extend", &refused, kAnyParameters},
    {"insert", &refused, kAnyParameters},
    {"pop", &refused, kAnyParameters},
    {"remove", &refused, kAnyParameters},
    {"clear", &refused, kAnyParameters},
    {"sort", &refused, kAnyParameters},
    {"reverse", &refused, kAnyParameters},
}};
constexpr std::array<Callable, 1> kLoopMethods{{{"cycle", &cycle, kAnyParameters}}};

}  // namespace

const Callable* find_method(const Value& value, std::string_view name) {
  if (value.is_string()) return found_in(kTextMethods, name);
  if (value.is(Kind::kDict)) return found_in(kDictMethods, name);
  if (value.is_sequence() || value.is(Kind::kRange)) return found_in(kListMethods, name);
  if (value.is(Kind::kLoop)) return found_in(kLoopMethods, name);
  return nullptr;
}

}}}}  // namespace heed::v0::text::jinja
