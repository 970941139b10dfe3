// Attributes, items and slices of values.
#include <fmt/format.h>

#include <algorithm>

#include "core/printable.h"
#include "text/code_points.h"
#include "text/jinja/evaluator.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

Value Evaluator::loop_attribute(const Value& loop, std::string_view name) {
  const Object& object = *loop.object;
  const auto index = static_cast<std::int64_t>(object.index);
  const auto length = static_cast<std::int64_t>(object.items.size());
  if (name == "index") return whole(index + 1);
  if (name == "index0") return whole(index);
  if (name == "revindex") return whole(length - index);
  if (name == "revindex0") return whole(length - index - 1);
  if (name == "first") return boolean(index == 0);
  if (name == "last") return boolean(index + 1 == length);
  if (name == "length") return whole(length);
  if (name == "depth") return whole(object.level + 1);
  if (name == "depth0") return whole(object.level);
  if (name == "previtem") return index == 0 ? undefined(name) : object.items[object.index - 1];
  if (name == "nextitem") {
    return index + 1 == length ? undefined(name) : object.items[object.index + 1];
  }
  fail(fmt::format("'loop.{}', which heed does not know", io::printable(name)));
}

Value Evaluator::attribute(const Value& value, std::string_view name) {
  if (value.is(Kind::kUndefined)) {
    fail(fmt::format("'{}' is undefined, so it has no attribute '{}'", io::printable(value.bytes()),
                     io::printable(name)));
  }
  if (value.is(Kind::kLoop) && find_method(value, name) == nullptr) {
    return loop_attribute(value, name);
  }
  if (find_method(value, name) != nullptr) {
    Value method = sequence(Kind::kMethod, {value});
    method.text = std::make_shared<const MarkedText>(std::string(name));
    if (!value.is(Kind::kLoop)) checked(method);
    return method;
  }
  if (value.is(Kind::kDict) || value.is(Kind::kNamespace)) {
    take(value.object->keys.size() / 8);
    if (const Value* found = member(value, name)) return *found;
  }
  return undefined(name);
}

Value Evaluator::item(const Value& value, const Value& key) {
  if (value.is(Kind::kUndefined)) {
    fail(fmt::format("'{}' is undefined, so it has no items", io::printable(value.bytes())));
  }
  if (value.is(Kind::kDict)) {
    take(value.object->keys.size() / 8);
    for (std::size_t i = 0; i < value.object->keys.size(); ++i) {
      if (equal(value.object->keys[i], key, steps_)) return value.object->items[i];
    }
  }
  if (key.is_string() && !value.is(Kind::kLoop)) return attribute(value, key.bytes());
  if (!key.is_whole()) return undefined("an item");
  const bool is_text = value.is_string();
  if (!is_text && !value.is_sequence() && !value.is(Kind::kRange)) return undefined("an item");
  if (is_text) take(value.text->size() / 16);
  const auto size = static_cast<std::int64_t>(is_text ? count_characters(value.bytes())
                                                      : value.object->items.size());
  const std::int64_t index = key.integer < 0 ? key.integer + size : key.integer;
  if (index < 0 || index >= size) return undefined("an item");
  if (!is_text) return value.object->items[static_cast<std::size_t>(index)];
  std::size_t begin = 0;
  for (std::int64_t i = 0; i < index; ++i) begin += character_at(value.bytes(), begin).size;
  return string(value.text->part(begin, begin + character_at(value.bytes(), begin).size));
}

Value Evaluator::evaluate_slice(const Node& node) {
  const Value value = evaluate(*node.children[0]);
  Value bounds[3] = {none(), none(), none()};
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    if (node.children[i] != nullptr) bounds[i - 1] = evaluate(*node.children[i]);
  }
  place_ = node.place;
  if (!value.is_string() && !value.is_sequence() && !value.is(Kind::kRange)) {
    fail(fmt::format("a slice of {}", kind_name(value)));
  }
  const std::int64_t step = whole_argument(*this, &bounds[2], 1);
  if (step == 0) fail("a slice with the step 0");
  std::vector<std::size_t> starts;  // of the characters
  if (value.is_string()) {
    take(value.text->size());
    for (std::size_t at = 0; at < value.text->size();) {
      starts.push_back(at);
      at += character_at(value.bytes(), at).size;
    }
  }
  const auto size =
      static_cast<std::int64_t>(value.is_string() ? starts.size() : value.object->items.size());
  starts.push_back(value.is_string() ? value.text->size() : 0);
  const auto bound = [&](const Value& given, std::int64_t otherwise) {
    if (given.is(Kind::kNone)) return otherwise;
    const std::int64_t at = whole_argument(*this, &given, 0);
    return std::clamp(at < 0 ? at + size : at, step < 0 ? -1 : std::int64_t{0},
                      step < 0 ? size - 1 : size);
  };
  const std::int64_t begin = bound(bounds[0], step < 0 ? size - 1 : 0);
  const std::int64_t end = bound(bounds[1], step < 0 ? -1 : size);
  MarkedText text;
  std::vector<Value> items;
  const std::int64_t stride = std::clamp(step, -size - 1, size + 1);
  for (std::int64_t i = begin; step < 0 ? i > end : i < end; i += stride) {
    take(1);
    const auto at = static_cast<std::size_t>(i);
    if (value.is_string()) {
      text.append(value.text->part(starts[at], starts[at + 1]));
    } else {
      items.push_back(value.object->items[at]);
    }
  }
  return value.is_string() ? string(std::move(text)) : sequence(value.kind, std::move(items));
}

}}}}  // namespace heed::v0::text::jinja
