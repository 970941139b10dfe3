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

std::int64_t whole_argument(Evaluator& evaluator, const Value* value, std::int64_t otherwise) {
  if (value == nullptr || value->is(Kind::kNone)) return otherwise;
  if (!value->is_whole()) evaluator.fail(fmt::format("{} for an integer", kind_name(*value)));
  return value->integer;
}

bool truth_argument(const Value* value, bool otherwise) {
  return value == nullptr ? otherwise : is_true(*value);
}

const Value& needed(Evaluator& evaluator, const Value* value, std::string_view name) {
  if (value == nullptr) evaluator.fail(fmt::format("{} is missing", name));
  return *value;
}

const std::string& string_argument(Evaluator& evaluator, const Value* value,
                                   std::string_view name) {
  if (!needed(evaluator, value, name).is_string()) {
    evaluator.fail(fmt::format("{} is {}, expected a string", name, kind_name(*value)));
  }
  return value->bytes();
}

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
  if (value.is_sequence() || value.is(Kind::kDict)) {
    return whole(static_cast<std::int64_t>(value.object->items.size()));
  }
  evaluator.fail(fmt::format("the length of {}", kind_name(value)));
}

// An item of an item: "a.b".
Value path_of(Evaluator& evaluator, Value value, const Value& path) {
  if (!path.is_string()) return evaluator.item(value, path);
  std::string_view rest = path.bytes();
  for (;;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    value = evaluator.item(value, string(rest.substr(0, dot)));
    if (dot == rest.size()) return value;
    rest.remove_prefix(dot + 1);
  }
}

Value join(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  std::vector<Value> items = evaluator.items_of(value);
  const Value* const separator = arguments.find(0, "d");
  if (const Value* path = arguments.find(1, "attribute")) {
    for (Value& item : items) item = path_of(evaluator, item, *path);
  }
  return string(joined_texts(evaluator, items,
                             separator == nullptr ? MarkedText() : evaluator.printed(*separator)));
}

Value first(Evaluator& evaluator, const Value& value, const Arguments&) {
  const std::vector<Value> items = evaluator.items_of(value);
  return items.empty() ? undefined("the first item") : items.front();
}

Value last(Evaluator& evaluator, const Value& value, const Arguments&) {
  const std::vector<Value> items = evaluator.items_of(value);
  return items.empty() ? undefined("the last item") : items.back();
}

Value defaulted(Evaluator&, const Value& value, const Arguments& arguments) {
  const bool is_replaced = value.is(Kind::kUndefined) ||
                           (truth_argument(arguments.find(1, "boolean"), false) && !is_true(value));
  if (!is_replaced) return value;
  const Value* const otherwise = arguments.find(0, "default_value");
  return otherwise == nullptr ? string("") : *otherwise;
}

Value list(Evaluator& evaluator, const Value& value, const Arguments&) {
  return sequence(Kind::kList, evaluator.items_of(value));
}

Value items(Evaluator& evaluator, const Value& value, const Arguments&) {
  std::vector<Value> result;
  if (!value.is(Kind::kUndefined) && !value.is(Kind::kDict)) {
    evaluator.fail(fmt::format("the items of {}", kind_name(value)));
  }
  if (value.is(Kind::kDict)) result = evaluator.items_of(value);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = sequence(Kind::kTuple, {result[i], value.object->items[i]});
  }
  return sequence(Kind::kGenerator, std::move(result));
}

// Strings in lower case unless case matters.
Value key_for(Evaluator& evaluator, const Value& value, const Arguments& arguments,
              std::size_t position) {
  const bool is_exact = truth_argument(arguments.find(position, "case_sensitive"), false);
  return value.is_string() && !is_exact ? lower(evaluator, value, {}) : value;
}

std::vector<Value> sorted(Evaluator& evaluator, std::vector<Value> values,
                          const std::vector<Value>& keys, bool is_reversed) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = evaluator.compare(keys[a], keys[b]);
    return is_reversed ? compared > 0 : compared < 0;
  });
  std::vector<Value> result;
  result.reserve(order.size());
  for (const std::size_t i : order) result.push_back(std::move(values[i]));
  return result;
}

Value dictsort(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Value* const by = arguments.find(1, "by");
  const std::size_t part = by != nullptr && by->is_string() && by->bytes() == "value" ? 1 : 0;
  std::vector<Value> all = evaluator.items_of(items(evaluator, value, {}));
  std::vector<Value> keys;
  for (const Value& pair : all) {
    keys.push_back(key_for(evaluator, pair.object->items[part], arguments, 0));
  }
  const bool is_reversed = truth_argument(arguments.find(2, "reverse"), false);
  return sequence(Kind::kList, sorted(evaluator, std::move(all), keys, is_reversed));
}

Value sort(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  std::vector<Value> all = evaluator.items_of(value);
  const Value* const path = arguments.find(2, "attribute");
  std::vector<Value> keys;
  for (const Value& item : all) {
    keys.push_back(key_for(evaluator, path == nullptr ? item : path_of(evaluator, item, *path),
                           arguments, 1));
  }
  const bool is_reversed = truth_argument(arguments.find(0, "reverse"), false);
  return sequence(Kind::kList, sorted(evaluator, std::move(all), keys, is_reversed));
}

Value unique(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Value* const path = arguments.find(1, "attribute");
  std::vector<Value> result;
  std::vector<Value> keys;
  for (const Value& item : evaluator.items_of(value)) {
    Value key = key_for(evaluator, path == nullptr ? item : path_of(evaluator, item, *path),
                        arguments, 0);
    const bool is_known = std::any_of(keys.begin(), keys.end(), [&](const Value& other) {
      evaluator.take(1);
      return equal(other, key, evaluator.steps());
    });
    if (is_known) continue;
    keys.push_back(std::move(key));
    result.push_back(item);
  }
  return sequence(Kind::kGenerator, std::move(result));
}

Value reverse(Evaluator& evaluator, const Value& value, const Arguments&) {
  std::vector<Value> all = evaluator.items_of(value);
  std::reverse(all.begin(), all.end());
  if (value.is_string()) return string(joined_texts(evaluator, all, {}));
  return sequence(Kind::kGenerator, std::move(all));
}

// The arguments behind the first `count`.
Arguments behind(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  const auto first = rest.positional.begin();
  rest.positional.erase(
      first, first + static_cast<std::ptrdiff_t>(std::min(count, rest.positional.size())));
  return rest;
}

Value map(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  std::vector<Value> all = evaluator.items_of(value);
  if (arguments.positional.empty()) {
    const Value& path = needed(evaluator, arguments.find(0, "attribute"), "map's attribute");
    const Value* const otherwise = arguments.find(1, "default");
    for (Value& item : all) {
      item = path_of(evaluator, item, path);
      if (item.is(Kind::kUndefined) && otherwise != nullptr) item = *otherwise;
    }
  } else {
    const std::string& name = string_argument(evaluator, arguments.find(0, ""), "map's filter");
    const Arguments rest = behind(arguments, 1);
    for (Value& item : all) item = evaluator.filtered(name, item, rest);
  }
  return sequence(Kind::kGenerator, std::move(all));
}

// The items that pass a test, or those that do not; of their attribute if there is one.
template <bool kPasses, bool kHasAttribute>
Value selected(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  constexpr std::size_t kAt = kHasAttribute ? 1 : 0;
  if (kHasAttribute) needed(evaluator, arguments.find(0, ""), "the attribute");
  const bool has_test = arguments.positional.size() > kAt;
  const std::string test =
      has_test ? string_argument(evaluator, &arguments.positional[kAt], "the test") : "";
  const Arguments rest = behind(arguments, kAt + 1);
  std::vector<Value> result;
  for (const Value& item : evaluator.items_of(value)) {
    const Value tested = kHasAttribute ? path_of(evaluator, item, arguments.positional[0]) : item;
    const bool passes = has_test ? evaluator.tested(test, tested, rest) : is_true(tested);
    if (passes == kPasses) result.push_back(item);
  }
  return sequence(Kind::kGenerator, std::move(result));
}

Value to_text(Evaluator& evaluator, const Value& value, const Arguments&) {
  return string(evaluator.printed(value));
}

std::optional<double> number_in(const Value& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_string()) return std::nullopt;
  const std::string_view digits = stripped(value.bytes(), Sides::kBoth);
  double number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

Value to_whole(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  if (value.is_whole()) return whole(value.integer);
  const auto number = number_in(value);
  if (number && std::isfinite(*number)) {
    if (std::fabs(*number) >= 9e15) evaluator.fail("a number that is too large");
    return whole(static_cast<std::int64_t>(*number));
  }
  const Value* const otherwise = arguments.find(0, "default");
  return otherwise == nullptr ? whole(0) : *otherwise;
}

Value to_real(Evaluator&, const Value& value, const Arguments& arguments) {
  if (const auto number = number_in(value)) return real(*number);
  const Value* const otherwise = arguments.find(0, "default");
  return otherwise == nullptr ? real(0) : *otherwise;
}

Value absolute(Evaluator& evaluator, const Value& value, const Arguments&) {
  if (value.is(Kind::kFloat)) return real(std::fabs(value.number));
  if (!value.is_whole() || value.integer == INT64_MIN) evaluator.fail("the size of no number");
  return whole(std::abs(value.integer));
}

Value safe(Evaluator& evaluator, const Value& value, const Arguments&) {
  return string(evaluator.printed(value));
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

struct Filter {
  std::string_view name;
  FilterFunction function;
};

constexpr std::array<Filter, 32> kFilters{{
    {"trim", &trim},
    {"length", &length},
    {"count", &length},
    {"upper", &upper},
    {"lower", &lower},
    {"title", &title_filter},
    {"capitalize", &capitalized},
    {"join", &join},
    {"first", &first},
    {"last", &last},
    {"default", &defaulted},
    {"d", &defaulted},
    {"replace", &replaced},
    {"list", &list},
    {"items", &items},
    {"dictsort", &dictsort},
    {"map", &map},
    {"select", &selected<true, false>},
    {"reject", &selected<false, false>},
    {"selectattr", &selected<true, true>},
    {"rejectattr", &selected<false, true>},
    {"tojson", &to_json},
    {"string", &to_text},
    {"int", &to_whole},
    {"float", &to_real},
    {"abs", &absolute},
    {"safe", &safe},
    {"indent", &indented},
    {"sort", &sort},
    {"unique", &unique},
    {"reverse", &reverse},
    {"round", &rounded},
}};

}  // namespace

FilterFunction find_filter(std::string_view name) {
  const auto* const found = std::find_if(kFilters.begin(), kFilters.end(),
                                         [&](const Filter& filter) { return filter.name == name; });
  return found == kFilters.end() ? nullptr : found->function;
}

void check_filter(const Node& node) {
  if (find_filter(node.text) != nullptr) return;
  fail_at(node.place,
          fmt::format("the filter '{}', which heed does not know", io::printable(node.text)));
}

Value Evaluator::filtered(const std::string& name, const Value& value,
                          const Arguments& arguments) {
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr) {
    fail(fmt::format("the filter '{}', which heed does not know", io::printable(name)));
  }
  take(1);
  return checked(filter(*this, value, arguments));
}

}}}}  // namespace heed::v0::text::jinja
