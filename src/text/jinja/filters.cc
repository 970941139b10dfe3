#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/printable.h"
#include "text/code_points.h"
#include "text/jinja/text_filters.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

Value trim(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return string(
      stripped_part(evaluator, evaluator.printed(value), Sides::kBoth, arguments.find(0, "chars")));
}

Value length(Evaluator& evaluator, const Value& value, const Arguments&) {
  if (value.is(Kind::kUndefined)) return whole(0);
  if (value.is_string()) {
    evaluator.take(value.text->size() / 16);
    return whole(static_cast<std::int64_t>(count_characters(value.bytes())));
  }
  if (value.is_sequence() || value.is(Kind::kDict) || value.is(Kind::kView) ||
      value.is(Kind::kRange)) {
    return whole(static_cast<std::int64_t>(value.object->items.size()));
  }
  evaluator.fail(fmt::format("the length of {}", kind_name(value)));
}

Value defaulted(Evaluator&, const Value& value, const Arguments& arguments) {
  const bool is_replaced = value.is(Kind::kUndefined) ||
                           (truth_argument(arguments.find(1, "boolean"), false) && !is_true(value));
  if (!is_replaced) return value;
  const Value* const otherwise = arguments.find(0, "default_value");
  return otherwise == nullptr ? string("") : *otherwise;
}

Value to_text(Evaluator& evaluator, const Value& value, const Arguments&) {
  return string(evaluator.printed(value));
}

// As Python's float() of a text: digits, a point, an exponent.
std::optional<double> number_in(const Value& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_string()) return std::nullopt;
  std::string_view digits = stripped(value.bytes(), Sides::kBoth);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

const Value& number_source(Evaluator& evaluator, const Value& value) {
  if (value.is(Kind::kUndefined)) {
    evaluator.fail(
        fmt::format("'{}' is undefined, so it is no number", io::printable(value.bytes())));
  }
  if (value.is_string() && value.bytes().find_first_of("_()") != std::string::npos) {
    evaluator.fail("a number with '_' or a bracket in it, which heed does not know");
  }
  return value;
}

Value to_whole(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  if (value.is_whole()) return whole(value.integer);
  const auto number = number_in(number_source(evaluator, value));
  if (number && std::isinf(*number)) evaluator.fail("an infinite number as an integer");
  if (number && !std::isnan(*number)) {
    if (std::fabs(*number) >= 9e15) evaluator.fail("a number that is too large");
    return whole(static_cast<std::int64_t>(*number));
  }
  const Value* const otherwise = arguments.find(0, "default");
  return otherwise == nullptr ? whole(0) : *otherwise;
}

Value to_real(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  if (const auto number = number_in(number_source(evaluator, value))) return real(*number);
  const Value* const otherwise = arguments.find(0, "default");
  return otherwise == nullptr ? real(0) : *otherwise;
}

Value absolute(Evaluator& evaluator, const Value& value, const Arguments&) {
  if (value.is(Kind::kFloat)) return real(std::fabs(value.number));
  if (!value.is_whole() || value.integer == INT64_MIN) evaluator.fail("the size of no number");
  return whole(std::abs(value.integer));
}

Value rounded(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  if (!value.is_number()) evaluator.fail(fmt::format("{} rounded", kind_name(value)));
  const std::int64_t digits = whole_argument(evaluator, arguments.find(0, "precision"), 0);
  const Value* const method = arguments.find(1, "method");
  const std::string name = method == nullptr ? "common" : string_argument(evaluator, method, "it");
  if (digits < 0 || digits > 15) evaluator.fail("a precision that heed does not know");
  if (name == "common") {
    if (value.is_whole()) return whole(value.integer);
    const std::string shown = fmt::format("{:.{}f}", value.number, static_cast<int>(digits));
    double number = 0;
    std::from_chars(shown.data(), shown.data() + shown.size(), number);
    return real(number);
  }
  double scale = 1;
  for (std::int64_t i = 0; i < digits; ++i) scale *= 10;
  if (name == "ceil") return real(std::ceil(value.as_double() * scale) / scale);
  if (name == "floor") return real(std::floor(value.as_double() * scale) / scale);
  evaluator.fail("a method of rounding that heed does not know");
}

constexpr std::array<Callable, 18> kFilters{{
    {"trim", &trim, "chars"},
    {"length", &length, ""},
    {"upper", &upper, ""},
    {"lower", &lower, ""},
    {"title", &title_filter, ""},
    {"capitalize", &capitalized, ""},
    {"default", &defaulted, "default_value boolean"},
    {"d", &defaulted, "default_value boolean"},
    {"replace", &replaced, "old new count"},
    {"tojson", &to_json, "ensure_ascii indent separators sort_keys"},
    {"string", &to_text, ""},
    {"int", &to_whole, "default"},
    {"float", &to_real, "default"},
    {"abs", &absolute, ""},
    {"safe", &to_text, ""},
    {"indent", &indented, "width first blank"},
    {"round", &rounded, "precision method"},
    {"count", &length, ""},
}};

}  // namespace

const Callable* find_filter(std::string_view name) {
  const Callable* const found = found_in(kFilters, name);
  return found != nullptr ? found : find_sequence_filter(name);
}

void check_filter(const Node& node) {
  if (find_filter(node.text) != nullptr) return;
  fail_at(node.place,
          fmt::format("the filter '{}', which heed does not know", io::printable(node.text)));
}

Value Evaluator::filtered(const std::string& name, const Value& value, const Arguments& arguments) {
  const Callable* const filter = find_filter(name);
  if (filter == nullptr) {
    fail(fmt::format("the filter '{}', which heed does not know", io::printable(name)));
  }
  take(1);
  return called(*filter, value, arguments);
}

}}}}  // namespace heed::v0::text::jinja
