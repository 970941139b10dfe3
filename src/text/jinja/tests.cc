#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/printable.h"
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
         value.is(Kind::kUndefined);
}

bool is_iterable(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return is_sequence_test(evaluator, value, arguments) || value.is(Kind::kGenerator) ||
         value.is(Kind::kLoop);
}

bool is_callable(Evaluator&, const Value& value, const Arguments&) {
  return value.is(Kind::kMacro) || value.is(Kind::kMethod) || value.is(Kind::kFunction);
}

std::int64_t divided(Evaluator& evaluator, const Value& value, std::int64_t by) {
  if (!value.is_whole()) evaluator.fail(fmt::format("{} divided", kind_name(value)));
  if (by == 0) evaluator.fail("a division by zero");
  return by == -1 ? 0 : value.integer % by;
}

bool is_odd(Evaluator& evaluator, const Value& value, const Arguments&) {
  return divided(evaluator, value, 2) != 0;
}

bool is_even(Evaluator& evaluator, const Value& value, const Arguments&) {
  return divided(evaluator, value, 2) == 0;
}

const Value& other_of(Evaluator& evaluator, const Arguments& arguments) {
  return needed(evaluator, arguments.find(0, "other"), "the value to compare with");
}

bool is_divisible(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Value& by = other_of(evaluator, arguments);
  return divided(evaluator, value, whole_argument(evaluator, &by, 0)) == 0;
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

template <Value (*kRecased)(Evaluator&, const Value&, const Arguments&)>
bool is_case(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const MarkedText text = evaluator.printed(value);
  return !text.empty() && kRecased(evaluator, value, arguments).bytes() == text.bytes();
}

struct Test {
  std::string_view name;
  TestFunction function;
};

constexpr std::array<Test, 33> kTests{{
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
    {"divisibleby", &is_divisible},
    {"equalto", &is_equal},
    {"eq", &is_equal},
    {"==", &is_equal},
    {"ne", &is_unequal},
    {"!=", &is_unequal},
    {"lt", &is_less},
    {"lessthan", &is_less},
    {"<", &is_less},
    {"le", &is_at_most},
    {"<=", &is_at_most},
    {"gt", &is_greater},
    {">", &is_greater},
    {"ge", &is_at_least},
    {"in", &is_in},
    {"upper", &is_case<&upper>},
    {"lower", &is_case<&lower>},
}};

}  // namespace

TestFunction find_test(std::string_view name) {
  const auto* const found = std::find_if(kTests.begin(), kTests.end(),
                                         [&](const Test& test) { return test.name == name; });
  return found == kTests.end() ? nullptr : found->function;
}

void check_test(const Node& node) {
  if (find_test(node.text) != nullptr) return;
  fail_at(node.place,
          fmt::format("the test '{}', which heed does not know", io::printable(node.text)));
}

bool Evaluator::tested(const std::string& name, const Value& value, const Arguments& arguments) {
  const TestFunction test = find_test(name);
  if (test == nullptr) {
    fail(fmt::format("the test '{}', which heed does not know", io::printable(name)));
  }
  take(1);
  return test(*this, value, arguments);
}

}}}}  // namespace heed::v0::text::jinja
