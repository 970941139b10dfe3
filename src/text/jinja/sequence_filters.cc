// Filters of lists, dictionaries and what else has items.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/text_filters.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

// An item of an item: "a.b".
Value path_of(Evaluator& evaluator, Value value, const Value& path) {
  if (!path.is_string()) return evaluator.item(value, path);
  std::string_view rest = path.bytes();
  for (;;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view name = rest.substr(0, dot);
    const bool is_index = !name.empty() && name.size() < 10 &&
                          name.find_first_not_of("0123456789") == std::string_view::npos;
    value = evaluator.item(value, is_index ? whole(std::stoll(std::string(name))) : string(name));
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
  if (value.is(Kind::kGenerator)) evaluator.fail("the last item of a generator");
  const std::vector<Value> items = evaluator.items_of(value);
  return items.empty() ? undefined("the last item") : items.back();
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
  if (!value.is(Kind::kDict)) evaluator.fail(fmt::format("dictsort of {}", kind_name(value)));
  const Value* const by = arguments.find(1, "by");
  const std::string order = by == nullptr ? "key" : string_argument(evaluator, by, "the order");
  if (order != "key" && order != "value") evaluator.fail("dictsort() by neither key nor value");
  const std::size_t part = order == "value" ? 1 : 0;
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
    const Value part = path == nullptr ? item : path_of(evaluator, item, *path);
    Value key = key_for(evaluator, part, arguments, 1);
    // As Jinja, which compares lists of attributes: equal ones need no order.
    keys.push_back(path == nullptr ? key : sequence(Kind::kList, {std::move(key)}));
  }
  const bool is_reversed = truth_argument(arguments.find(0, "reverse"), false);
  return sequence(Kind::kList, sorted(evaluator, std::move(all), keys, is_reversed));
}

Value unique(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Value* const path = arguments.find(1, "attribute");
  std::vector<Value> result;
  std::vector<Value> keys;
  for (const Value& item : evaluator.items_of(value)) {
    Value key =
        key_for(evaluator, path == nullptr ? item : path_of(evaluator, item, *path), arguments, 0);
    if (key.is(Kind::kDict) || key.is(Kind::kList)) {
      evaluator.fail(fmt::format("{} among unique values", kind_name(key)));
    }
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
  const bool is_copied = value.is(Kind::kGenerator);
  return sequence(is_copied ? Kind::kList : Kind::kGenerator, std::move(all));
}

// The arguments behind the first `count`.
Arguments behind(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  const auto first = rest.positional.begin();
  rest.positional.erase(
      first, first + static_cast<std::ptrdiff_t>(std::min(count, rest.positional.size())));
  return rest;
}

// As Jinja, without looking at what is false, such as none.
std::vector<Value> items_if_true(Evaluator& evaluator, const Value& value) {
  return is_true(value) ? evaluator.items_of(value) : std::vector<Value>();
}

Value map(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  std::vector<Value> all = items_if_true(evaluator, value);
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
  for (const Value& item : items_if_true(evaluator, value)) {
    const Value tested = kHasAttribute ? path_of(evaluator, item, arguments.positional[0]) : item;
    const bool passes = has_test ? evaluator.tested(test, tested, rest) : is_true(tested);
    if (passes == kPasses) result.push_back(item);
  }
  return sequence(Kind::kGenerator, std::move(result));
}

constexpr std::array<Callable, 14> kSequenceFilters{{
    {"join", &join, "d attribute"},
    {"first", &first, ""},
    {"last", &last, ""},
    {"list", &list, ""},
    {"items", &items, ""},
    {"dictsort", &dictsort, "case_sensitive by reverse"},
    {"map", &map, kAnyParameters},
    {"select", &selected<true, false>, kAnyParameters},
    {"reject", &selected<false, false>, kAnyParameters},
    {"selectattr", &selected<true, true>, kAnyParameters},
    {"rejectattr", &selected<false, true>, kAnyParameters},
    {"sort", &sort, "reverse case_sensitive attribute"},
    {"unique", &unique, "case_sensitive attribute"},
    {"reverse", &reverse, ""},
}};

}  // namespace

const Callable* find_sequence_filter(std::string_view name) {
  return found_in(kSequenceFilters, name);
}

}}}}  // namespace heed::v0::text::jinja
