#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/json_value.h"
#include "text/code_points.h"
#include "text/jinja/text_filters.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

// Writes as Python's json.dumps().
class JsonWriter {
 public:
  JsonWriter(Evaluator& evaluator, const Arguments& arguments) : evaluator_(evaluator) {
    is_ascii_ = truth_argument(arguments.find(0, "ensure_ascii"), false);
    const Value* const indent = arguments.find(1, "indent");
    has_lines_ = indent != nullptr && !indent->is(Kind::kNone);
    if (has_lines_) {
      if (indent->is_string()) {
        margin_ = short_text(*indent);
      } else {
        const std::int64_t width = whole_argument(evaluator, indent, 0);
        if (width > 100) evaluator.fail("indentation that is too wide");
        margin_.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
      }
      comma_ = ",";
    }
    set_separators(arguments.find(2, "separators"));
    sorts_ = truth_argument(arguments.find(3, "sort_keys"), false);
  }

  MarkedText write(const Value& value) {
    add(value, 0);
    return std::move(text_);
  }

 private:
  void set_separators(const Value* separators) {
    if (separators == nullptr || separators->is(Kind::kNone)) return;
    const std::vector<Value> items = evaluator_.items_of(*separators);
    if (items.size() != 2 || !items[0].is_string() || !items[1].is_string()) {
      evaluator_.fail("separators that are not two strings");
    }
    comma_ = short_text(items[0]);
    colon_ = short_text(items[1]);
  }

  // So that what is repeated for each value stays in proportion.
  std::string short_text(const Value& value) const {
    if (value.text->size() > 100) evaluator_.fail("an indentation or separator that is too long");
    return value.bytes();
  }

  void add(const Value& value, std::size_t level) {
    evaluator_.take_text(text_.size() > kMaxBytes ? kMaxBytes + 1 : 1);
    switch (value.kind) {
      case Kind::kNone:
        text_.append("null");
        break;
      case Kind::kBoolean:
        text_.append(value.integer != 0 ? "true" : "false");
        break;
      case Kind::kInteger:
        text_.append(fmt::format("{}", value.integer));
        break;
      case Kind::kFloat:
        text_.append(number(value.number));
        break;
      case Kind::kString:
        add_string(*value.text);
        break;
      case Kind::kList:
      case Kind::kTuple:
        add_all(value, '[', ']', level);
        break;
      case Kind::kDict:
        add_all(value, '{', '}', level);
        break;
      default:
        evaluator_.fail(fmt::format("{} as JSON", kind_name(value)));
    }
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return repr_of(value);
  }

  void add_line(std::size_t level) {
    if (!has_lines_) return;
    text_.append("\n");
    for (std::size_t i = 0; i < level; ++i) text_.append(margin_);
  }

  void add_all(const Value& value, char begin, char end, std::size_t level) {
    const Object& object = *value.object;
    text_.append(std::string_view(&begin, 1));
    std::vector<std::size_t> order(object.items.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (sorts_ && begin == '{') {
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return evaluator_.compare(object.keys[a], object.keys[b]) < 0;
      });
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) text_.append(comma_);
      add_line(level + 1);
      if (begin == '{') {
        add_key(object.keys[order[i]]);
        text_.append(colon_);
      }
      add(object.items[order[i]], level + 1);
    }
    if (!order.empty()) add_line(level);
    text_.append(std::string_view(&end, 1));
  }

  void add_key(const Value& key) {
    if (key.is_string()) return add_string(*key.text);
    text_.append("\"");
    if (key.is(Kind::kTuple)) evaluator_.fail("a tuple as a key in JSON");
    add(key, 0);
    text_.append("\"");
  }

  void add_string(const MarkedText& value) {
    evaluator_.take(value.size());
    text_.append("\"");
    for (std::size_t at = 0; at < value.size();) {
      const Character character = character_at(value.bytes(), at);
      text_.append_like(escaped(character.value), value, at);
      at += character.size;
    }
    text_.append("\"");
  }

  std::string escaped(char32_t value) const {
    constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
    constexpr std::string_view kLetters = "\"\\nrtbf";
    const auto unit = [](std::uint32_t code) { return fmt::format("\\u{:04x}", code); };
    if (value < 0x80) {
      const std::size_t known = kShort.find(static_cast<char>(value));
      if (known != std::string_view::npos) return std::string("\\") + kLetters[known];
      if (value < 0x20 || (is_ascii_ && value == 0x7F)) return unit(value);
    } else if (is_ascii_ && value > 0xFFFF) {
      const std::uint32_t rest = static_cast<std::uint32_t>(value) - 0x10000;
      return unit(0xD800 + (rest >> 10)) + unit(0xDC00 + (rest & 0x3FF));
    } else if (is_ascii_) {
      return unit(value);
    }
    std::string result;
    append_character(result, value);
    return result;
  }

  Evaluator& evaluator_;
  MarkedText text_;
  std::string margin_;
  std::string comma_ = ", ";
  std::string colon_ = ": ";
  bool has_lines_ = false;
  bool is_ascii_ = false;
  bool sorts_ = false;
};

Value converted(const io::JsonValue& json) {
  switch (json.kind) {
    case io::JsonKind::kNull:
      return none();
    case io::JsonKind::kBoolean:
      return boolean(json.boolean);
    case io::JsonKind::kInteger:
      return whole(json.integer);
    case io::JsonKind::kNumber:
      return real(json.number);
    case io::JsonKind::kString:
      return string(MarkedText::foreign(json.text));
    default:
      break;
  }
  std::vector<Value> items;
  for (const io::JsonValue& item : json.items) items.push_back(converted(item));
  if (json.kind == io::JsonKind::kArray) return sequence(Kind::kList, std::move(items));
  std::vector<Value> keys;
  for (const std::string& key : json.keys) keys.push_back(string(MarkedText::foreign(key)));
  return dictionary(std::move(keys), std::move(items));
}

}  // namespace

Value to_json(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return string(JsonWriter(evaluator, arguments).write(value));
}

Value value_from_json(const std::string& text, const std::string& source) {
  return converted(io::parse_json(text, source));
}

}}}}  // namespace heed::v0::text::jinja
