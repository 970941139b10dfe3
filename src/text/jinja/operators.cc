#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/printable.h"
#include "text/code_points.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/python_text.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

std::vector<Value> Evaluator::items_of(const Value& value) {
  std::vector<Value> items;
  switch (value.kind) {
    case Kind::kUndefined:
      break;
    case Kind::kGenerator:
      items = std::exchange(value.object->items, {});
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
    case Kind::kRange:
      items = value.object->items;
      break;
    case Kind::kDict:
      items = value.object->keys;
      break;
    case Kind::kString:
      take(value.text->size());
      for (std::size_t at = 0; at < value.text->size();) {
        const std::size_t end = at + character_at(value.bytes(), at).size;
        items.push_back(string(value.text->part(at, end)));
        at = end;
      }
      break;
    default:
      fail(fmt::format("{} has no items", kind_name(value)));
  }
  take(items.size());
  return items;
}

bool Evaluator::contains(const Value& container, const Value& value) {
  if (container.is_string()) {
    if (!value.is_string()) fail(fmt::format("{} in a string", kind_name(value)));
    return find(container.bytes(), value.bytes(), 0) != std::string::npos;
  }
  if (container.is(Kind::kDict) && (value.is(Kind::kList) || value.is(Kind::kDict))) {
    fail(fmt::format("{} as the key of a dictionary", kind_name(value)));
  }
  const std::vector<Value> items = items_of(container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return equal(item, value, steps_); });
}

int Evaluator::compare(const Value& left, const Value& right) {
  take(1);
  const auto order = [](const auto& a, const auto& b) { return a < b ? -1 : b < a ? 1 : 0; };
  if (left.is_whole() && right.is_whole()) return order(left.integer, right.integer);
  if (left.is_number() && right.is_number()) return order(left.as_double(), right.as_double());
  if (left.is_string() && right.is_string()) {
    take(std::min(left.text->size(), right.text->size()) / 16);
    return order(left.bytes(), right.bytes());
  }
  if (!left.is_sequence() || left.kind != right.kind) {
    fail(fmt::format("{} and {} have no order", kind_name(left), kind_name(right)));
  }
  const auto& ours = left.object->items;
  const auto& theirs = right.object->items;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (!equal(ours[i], theirs[i], steps_)) return compare(ours[i], theirs[i]);
  }
  return order(ours.size(), theirs.size());
}

bool Evaluator::compared(const std::string& operation, const Value& left, const Value& right) {
  if (operation == "==") return equal(left, right, steps_);
  if (operation == "!=") return !equal(left, right, steps_);
  if (operation == "in") return contains(right, left);
  if (operation == "not in") return !contains(right, left);
  const bool has_nan = (left.is(Kind::kFloat) && std::isnan(left.number)) ||
                       (right.is(Kind::kFloat) && std::isnan(right.number));
  const int order = compare(left, right);
  if (has_nan) return false;
  if (operation == "<") return order < 0;
  if (operation == "<=") return order <= 0;
  return operation == ">" ? order > 0 : order >= 0;
}

Value Evaluator::joined(const Value& left, const Value& right) {
  if (left.is_string()) {
    take_text(left.text->size() + right.text->size());
    MarkedText text = *left.text;
    text.append(*right.text);
    return string(std::move(text));
  }
  take(left.object->items.size() + right.object->items.size());
  std::vector<Value> items = left.object->items;
  items.insert(items.end(), right.object->items.begin(), right.object->items.end());
  return sequence(left.kind, std::move(items));
}

Value Evaluator::repeated(const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  const std::size_t size = value.is_string() ? value.text->size() : value.object->items.size();
  if (times > 0 && size > kMaxBytes / times) fail("a text or a list is too long");
  if (!value.is_string()) {
    take(size * times);
    std::vector<Value> items;
    for (std::size_t i = 0; i < times && size > 0; ++i) {
      items.insert(items.end(), value.object->items.begin(), value.object->items.end());
    }
    return sequence(value.kind, std::move(items));
  }
  take_text(size * times);
  MarkedText text;
  for (std::size_t i = 0; i < times && size > 0; ++i) text.append(*value.text);
  return string(std::move(text));
}

Value Evaluator::binary(const std::string& operation, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return arithmetic(operation, left, right);
  const bool are_alike = left.kind == right.kind && (left.is_string() || left.is_sequence());
  if (operation == "+" && are_alike) return joined(left, right);
  if (operation == "*" && right.is_whole() && (left.is_string() || left.is_sequence())) {
    return repeated(left, right.integer);
  }
  if (operation == "*" && left.is_whole() && (right.is_string() || right.is_sequence())) {
    return repeated(right, left.integer);
  }
  if (operation == "%" && left.is_string()) {
    fail("a string formatted by '%', which heed does not know");
  }
  fail(fmt::format("'{}' between {} and {}", operation, kind_name(left), kind_name(right)));
}

Value Evaluator::arithmetic(const std::string& operation, const Value& left, const Value& right) {
  if (operation == "**") return power(left, right);
  const double a = left.as_double();
  const double b = right.as_double();
  const bool divides = operation == "/" || operation == "//" || operation == "%";
  if (divides && b == 0) fail("a division by zero");
  if (operation == "/") return real(a / b);
  if (left.is_whole() && right.is_whole()) {
    return whole_arithmetic(operation, left.integer, right.integer);
  }
  if (operation == "+") return real(a + b);
  if (operation == "-") return real(a - b);
  if (operation == "*") return real(a * b);
  // As Python's float_divmod().
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (operation == "%") return real(rest);
  if (quotient == 0) return real(std::copysign(0.0, a / b));
  const double floor = std::floor(quotient);
  return real(quotient - floor > 0.5 ? floor + 1 : floor);
}

Value Evaluator::whole_arithmetic(const std::string& operation, std::int64_t left,
                                  std::int64_t right) {
  std::int64_t result = 0;
  bool overflows = false;
  if (operation == "+") {
    overflows = __builtin_add_overflow(left, right, &result);
  } else if (operation == "-") {
    overflows = __builtin_sub_overflow(left, right, &result);
  } else if (operation == "*") {
    overflows = __builtin_mul_overflow(left, right, &result);
  } else if (right == -1) {
    if (operation == "//") return whole_arithmetic("-", 0, left);
  } else {
    const std::int64_t rest = left % right;
    const bool is_below = rest != 0 && (rest < 0) != (right < 0);
    result =
        operation == "%" ? (is_below ? rest + right : rest) : left / right - (is_below ? 1 : 0);
  }
  if (overflows) fail("a number beyond 63 bits");
  return whole(result);
}

Value Evaluator::power(const Value& base, const Value& exponent) {
  if (!base.is_whole() || !exponent.is_whole() || exponent.integer < 0) {
    fail("a power that is not of integers, which heed does not know");
  }
  const bool is_trivial = base.integer >= -1 && base.integer <= 1;
  if (exponent.integer > 64 && !is_trivial) fail("a number beyond 63 bits");
  Value result = whole(1);
  const std::int64_t count =
      is_trivial && exponent.integer > 2 ? 2 - exponent.integer % 2 : exponent.integer;
  for (std::int64_t i = 0; i < count; ++i) {
    result = whole_arithmetic("*", result.integer, base.integer);
  }
  return result;
}

}}}}  // namespace heed::v0::text::jinja
