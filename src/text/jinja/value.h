// Values of expressions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/marked_text.h"
#include "text/jinja/syntax.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

struct Object;

struct Value {
  enum class Kind {
    kUndefined,  // text: its name
    kNone,
    kBoolean,
    kInteger,
    kFloat,
    kString,
    kList,
    kTuple,
    kGenerator,  // gives its items once
    kView,       // the keys, values or items of a dictionary
    kRange,
    kDict,
    kNamespace,
    kLoop,
    kMacro,
    kMethod,    // text: its name; of object->items[0]
    kFunction,  // text: its name
  } kind = Kind::kUndefined;
  std::int64_t integer = 0;  // also of a boolean
  double number = 0;
  std::shared_ptr<const MarkedText> text;
  std::shared_ptr<Object> object;

  bool is(Kind other) const noexcept { return kind == other; }
  bool is_string() const noexcept { return kind == Kind::kString; }
  bool is_sequence() const noexcept { return kind == Kind::kList || kind == Kind::kTuple; }
  bool is_whole() const noexcept { return kind == Kind::kInteger || kind == Kind::kBoolean; }
  bool is_number() const noexcept { return is_whole() || kind == Kind::kFloat; }
  double as_double() const noexcept {
    return kind == Kind::kFloat ? number : static_cast<double>(integer);
  }
  const std::string& bytes() const noexcept { return text->bytes(); }
};

// The contents of values that are more than a number or a text. Lists and dictionaries never
// change; namespaces and loops do.
struct Object {
  std::vector<Value> keys;  // of dictionaries and namespaces
  std::vector<Value> items;
  int depth = 1;          // levels of values below
  std::size_t index = 0;  // of the current item of a loop
  int level = 0;          // the loops around a loop
  const Node* macro = nullptr;
};

// Deeper values are refused, and those that cannot be in others have this depth: so there are no
// cycles, and destroying values needs little stack.
inline constexpr int kMaxValueDepth = 64;

Value undefined(std::string_view name);
Value none();
Value boolean(bool value);
Value whole(std::int64_t value);
Value real(double value);
Value string(MarkedText text);
Value string(std::string_view text);
// Each returns a value whose depth exceeds kMaxValueDepth if an item's depth is that.
Value sequence(Value::Kind kind, std::vector<Value> items);
Value dictionary(std::vector<Value> keys, std::vector<Value> items);
Value named(Value::Kind kind, std::string_view name);

int depth_of(const Value& value);

// As Python's bool().
bool is_true(const Value& value);
// As Python's ==; comparing values takes `steps`, one for each pair.
bool equal(const Value& left, const Value& right, std::int64_t& steps);
// Returns the member of a dictionary or a namespace; nullptr if there is none.
const Value* member(const Value& value, std::string_view key);

// The kind, as in "a list".
std::string_view kind_name(const Value& value);

}}}}  // namespace heed::v0::text::jinja
