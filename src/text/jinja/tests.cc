#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/printable.h"
#include "text/code_points.h"
#include "text/jinja/text_filters.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

template <Kind kKind>
bool is_kind(Evaluator&, const Value& value, const Arguments&) {
  return value.is(kKind);
}

bool is_defined(Evaluator&, const Value& value, const Arguments&) {
  return !value.is(Kind::kUndefined);
}

template <bool kTruth>
bool is_truth(Evaluator&, const Value& value, const Arguments&) {
  return value.is(Kind::kBoolean) && (value.integer != 0) == kTruth;
}

bool is_number_test(Evaluator&, const Value& value, const Arguments&) { return value.is_number(); }

// In Jinja what has a length and items, and thus undefined as well.
bool is_sequence_test(Evaluator&, const Value& value, const Arguments&) {
  return value.is_sequence() || value.is_string() || value.is(Kind::kDict) ||
         value.is(Kind::kUndefined) || value.is(Kind::kRange);
}

bool is_iterable(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return is_sequence_test(evaluator, value, arguments) || value.is(Kind::kGenerator) ||
         value.is(Kind::kLoop) || value.is(Kind::kView);
}

bool is_callable(Evaluator&, const Value& value, const Arguments&) {
  // Jinja's undefined values have a method for calls, which fails.
  return value.is(Kind::kUndefined) || value.is(Kind::kMacro) || value.is(Kind::kMethod) ||
         value.is(Kind::kFunction);
}

// The remainder as Python has it, without its sign.
double remainder_of(Evaluator& evaluator, const Value& value, std::int64_t by) {
  if (!value.is_number()) evaluator.fail(fmt::format("{} divided", kind_name(value)));
  if (by == 0) evaluator.fail("a division by zero");
  if (value.is(Kind::kFloat)) return std::fmod(value.number, static_cast<double>(by));
  return by == -1 ? 0 : static_cast<double>(value.integer % by);
}

bool is_odd(Evaluator& evaluator, const Value& value, const Arguments&) {
  return std::fabs(remainder_of(evaluator, value, 2)) == 1;
}

bool is_even(Evaluator& evaluator, const Value& value, const Arguments&) {
  return remainder_of(evaluator, value, 2) == 0;
}

const Value& other_of(Evaluator& evaluator, const Arguments& arguments) {
  const bool is_named = arguments.positional.empty() && !arguments.named.empty();
  return is_named ? arguments.named[0].second
                  : needed(evaluator, arguments.find(0, ""), "the value to compare with");
}

bool is_divisible(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Value& by = other_of(evaluator, arguments);
  return remainder_of(evaluator, value, whole_argument(evaluator, &by, 0)) == 0;
}

bool is_equal(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return equal(value, other_of(evaluator, arguments), evaluator.steps());
}

bool is_unequal(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return !is_equal(evaluator, value, arguments);
}

bool is_less(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return evaluator.compare(value, other_of(evaluator, arguments)) < 0;
}

bool is_at_most(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return evaluator.compare(value, other_of(evaluator, arguments)) <= 0;
}

bool is_greater(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return !is_at_most(evaluator, value, arguments);
}

bool is_at_least(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return !is_less(evaluator, value, arguments);
}

bool is_in(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return evaluator.contains(other_of(evaluator, arguments), value);
}

// As Python's isupper() and islower(): there is a letter with a case, and none has the other.
template <bool kUpper>
bool is_case(Evaluator& evaluator, const Value& value, const Arguments&) {
  const MarkedText text = evaluator.printed(value);
  evaluator.take(text.size());
  bool has_case = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text.bytes(), at);
    const std::string_view self = std::string_view(text.bytes()).substr(at, character.size);
    if ((kUpper ? upper_of(character.value) : lower_of(character.value)) != self) return false;
    has_case = has_case || (kUpper ? lower_of(character.value) : upper_of(character.value)) != self;
    at += character.size;
  }
  return has_case;
}

struct Test {
  std::string_view name;
  bool (*function)(Evaluator&, const Value&, const Arguments&);
  std::string_view parameters = "";
};

constexpr std::array<Test, 35> kTests{{
    {"defined", &is_defined},
    {"undefined", &is_kind<Kind::kUndefined>},
    {"none", &is_kind<Kind::kNone>},
    {"string", &is_kind<Kind::kString>},
    {"mapping", &is_kind<Kind::kDict>},
    {"sequence", &is_sequence_test},
    {"iterable", &is_iterable},
    {"callable", &is_callable},
    {"number", &is_number_test},
    {"integer", &is_kind<Kind::kInteger>},
    {"float", &is_kind<Kind::kFloat>},
    {"boolean", &is_kind<Kind::kBoolean>},
    {"true", &is_truth<true>},
    {"false", &is_truth<false>},
    {"odd", &is_odd},
    {"even", &is_even},
    {"divisibleby", &is_divisible, "num"},
    {"equalto", &is_equal, "/other"},
    {"eq", &is_equal, "/other"},
    {"==", &is_equal, "/other"},
    {"ne", &is_unequal, "/other"},
    {"!=", &is_unequal, "/other"},
    {"lt", &is_less, "/other"},
    {"lessthan", &is_less, "/other"},
    {"<", &is_less, "/other"},
    {"le", &is_at_most, "/other"},
    {"<=", &is_at_most, "/other"},
    {"gt", &is_greater, "/other"},
    {">", &is_greater, "/other"},
    {"greaterthan", &is_greater, "/other"},
    {"ge", &is_at_least, "/other"},
    {">=", &is_at_least, "/other"},
    {"in", &is_in, "seq"},
    {"upper", &is_case<true>},
    {"lower", &is_case<false>},
}};

const Test* find_test(std::string_view name) {
  const auto* const found = std::find_if(kTests.begin(), kTests.end(),
                                         [&](const Test& test) { return test.name == name; });
  return found == kTests.end() ? nullptr : found;
}

}  // namespace

void check_test(const Node& node) {
  if (find_test(node.text) != nullptr) return;
  fail_at(node.place,
          fmt::format("the test '{}', which heed does not know", io::printable(node.text)));
}

bool Evaluator::tested(const std::string& name, const Value& value, const Arguments& arguments) {
  const Test* const test = find_test(name);
  if (test == nullptr) {
    fail(fmt::format("the test '{}', which heed does not know", io::printable(name)));
  }
  take(1);
  check_arguments(test->name, test->parameters, arguments);
  return test->function(*this, value, arguments);
}

}}}}  // namespace heed::v0::text::jinja
