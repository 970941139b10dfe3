// The text of values.
#include <fmt/format.h>

#include "text/code_points.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/python_text.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

void append_repr(MarkedText& result, const MarkedText& text) {
  const char quote = quote_for(text.bytes());
  result.append(std::string_view(&quote, 1));
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text.bytes(), at);
    result.append_like(escaped_for_repr(character.value, quote), text, at);
    at += character.size;
  }
  result.append(std::string_view(&quote, 1));
}

}  // namespace

MarkedText Evaluator::printed(const Value& value) {
  if (value.is_string()) return *value.text;
  MarkedText text;
  print(text, value, false);
  return text;
}

// Appends str() of the value, or repr() inside of others.
void Evaluator::print(MarkedText& text, const Value& value, bool is_inside) {
  take(1);
  if (text.size() > kMaxBytes) fail("a text is too long");
  const auto print_all = [&](std::string_view begin, std::string_view end) {
    const Object& object = *value.object;
    text.append(begin);
    for (std::size_t i = 0; i < object.items.size(); ++i) {
      if (i > 0) text.append(", ");
      if (value.is(Kind::kDict)) {
        print(text, object.keys[i], true);
        text.append(": ");
      }
      print(text, object.items[i], true);
    }
    if (value.is(Kind::kTuple) && object.items.size() == 1) text.append(",");
    text.append(end);
  };
  switch (value.kind) {
    case Kind::kUndefined:
      text.append(is_inside ? "Undefined" : "");
      break;
    case Kind::kNone:
      text.append("None");
      break;
    case Kind::kBoolean:
      text.append(value.integer != 0 ? "True" : "False");
      break;
    case Kind::kInteger:
      text.append(fmt::format("{}", value.integer));
      break;
    case Kind::kFloat:
      text.append(repr_of(value.number));
      break;
    case Kind::kString:
      take(value.text->size());
      append_repr(text, *value.text);
      break;
    case Kind::kList:
      print_all("[", "]");
      break;
    case Kind::kTuple:
      print_all("(", ")");
      break;
    case Kind::kDict:
      print_all("{", "}");
      break;
    default:
      fail(fmt::format("{} printed", kind_name(value)));
  }
}

}}}}  // namespace heed::v0::text::jinja
