#include "text/jinja/value.h"

#include <algorithm>

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

Value named(Kind kind, std::string_view name) {
  Value value;
  value.kind = kind;
  value.text = std::make_shared<const MarkedText>(std::string(name));
  return value;
}

Value undefined(std::string_view name) { return named(Kind::kUndefined, name); }

Value none() {
  Value value;
  value.kind = Kind::kNone;
  return value;
}

Value boolean(bool truth) {
  Value value;
  value.kind = Kind::kBoolean;
  value.integer = truth ? 1 : 0;
  return value;
}

Value whole(std::int64_t number) {
  Value value;
  value.kind = Kind::kInteger;
  value.integer = number;
  return value;
}

Value real(double number) {
  Value value;
  value.kind = Kind::kFloat;
  value.number = number;
  return value;
}

Value string(MarkedText text) {
  Value value;
  value.kind = Kind::kString;
  value.text = std::make_shared<const MarkedText>(std::move(text));
  return value;
}

Value string(std::string_view text) { return string(MarkedText(std::string(text))); }

int depth_of(const Value& value) { return value.object == nullptr ? 0 : value.object->depth; }

Value sequence(Kind kind, std::vector<Value> items) {
  Value value;
  value.kind = kind;
  value.object = std::make_shared<Object>();
  for (const Value& item : items) {
    value.object->depth = std::max(value.object->depth, depth_of(item) + 1);
  }
  value.object->items = std::move(items);
  return value;
}

Value dictionary(std::vector<Value> keys, std::vector<Value> items) {
  Value value = sequence(Kind::kDict, std::move(items));
  value.object->keys = std::move(keys);
  return value;
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBoolean:
    case Kind::kInteger:
      return value.integer != 0;
    case Kind::kFloat:
      return value.number != 0;
    case Kind::kString:
      return !value.text->empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kDict:
      return !value.object->items.empty();
    default:
      return true;
  }
}

namespace {

bool same_items(const Value& left, const Value& right, std::int64_t& steps) {
  const auto& ours = left.object->items;
  const auto& theirs = right.object->items;
  if (ours.size() != theirs.size()) return false;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const Value* other = &theirs[i];
    if (left.is(Kind::kDict)) {
      other = nullptr;
      for (std::size_t j = 0; j < theirs.size() && other == nullptr; ++j) {
        if (equal(left.object->keys[i], right.object->keys[j], steps)) other = &theirs[j];
      }
    }
    if (other == nullptr || !equal(ours[i], *other, steps)) return false;
  }
  return true;
}

}  // namespace

bool equal(const Value& left, const Value& right, std::int64_t& steps) {
  if (--steps < 0) return false;  // the next step of the evaluation fails
  if (left.is_number() && right.is_number()) {
    return left.is_whole() && right.is_whole() ? left.integer == right.integer
                                               : left.as_double() == right.as_double();
  }
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (left.text->size() != right.text->size()) return false;
      steps -= static_cast<std::int64_t>(left.text->size() / 64);
      return left.bytes() == right.bytes();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kDict:
      return same_items(left, right, steps);
    case Kind::kFunction:
      return left.bytes() == right.bytes();
    default:
      return left.object == right.object;
  }
}

const Value* member(const Value& value, std::string_view key) {
  const auto& keys = value.object->keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].is_string() && keys[i].bytes() == key) return &value.object->items[i];
  }
  return nullptr;
}

std::string_view kind_name(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kInteger:
      return "an integer";
    case Kind::kFloat:
      return "a float";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kGenerator:
      return "a generator";
    case Kind::kView:
      return "a view of a dictionary";
    case Kind::kRange:
      return "a range";
    case Kind::kDict:
      return "a dictionary";
    case Kind::kNamespace:
      return "a namespace";
    case Kind::kLoop:
      return "a loop";
    case Kind::kMacro:
      return "a macro";
    case Kind::kMethod:
      return "a method";
    case Kind::kFunction:
      return "a function";
  }
  return "";
}

}}}}  // namespace heed::v0::text::jinja
