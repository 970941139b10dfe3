// Evaluates a template.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/syntax.h"
#include "text/jinja/value.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

// What raise_exception() was called with.
struct Refusal {
  std::string message;
};

using Variables = std::vector<std::pair<std::string, Value>>;

struct Arguments {
  std::vector<Value> positional;
  Variables named;

  // The argument at a position or with a name; nullptr if it is not given.
  const Value* find(std::size_t position, std::string_view name) const;
};

// Bounds, so that a hostile template ends with an error.
inline constexpr std::int64_t kMaxSteps = 4'000'000;  // and more for what comes from outside
inline constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // of one text
inline constexpr std::int64_t kMaxRange = 100'000;               // as in Jinja's sandbox
inline constexpr int kMaxEvaluationDepth = 400;

class Evaluator;

// A filter, a method or a function. The value is what a filter is applied to, or whose method it
// is.
struct Callable {
  std::string_view name;
  Value (*function)(Evaluator&, const Value&, const Arguments&);
  // The names of its parameters in order, with spaces between them; behind '/' they cannot be
  // given by name.
  std::string_view parameters;
};

inline constexpr std::string_view kAnyParameters = "*";

template <std::size_t kSize>
const Callable* found_in(const std::array<Callable, kSize>& table, std::string_view name) {
  for (const Callable& callable : table) {
    if (callable.name == name) return &callable;
  }
  return nullptr;
}

class Evaluator {
 public:
  Evaluator(Variables variables, std::int64_t steps);

  // Throws FormatError, or Refusal.
  MarkedText run(const Node& root);

  // For filters, tests, methods and functions.
  [[noreturn]] void fail(const std::string& problem) const;
  void take(std::size_t steps);       // fails when there are no more
  void take_text(std::size_t bytes);  // for a text of this size
  std::int64_t& steps() noexcept { return steps_; }
  Value checked(Value value) const;  // fails if it is nested too deeply
  std::vector<Value> items_of(const Value& value);
  Value attribute(const Value& value, std::string_view name);
  Value item(const Value& value, const Value& key);
  // The text of a value as it is printed.
  MarkedText printed(const Value& value);
  // The result of a filter, a method or a function, whose arguments are checked.
  Value called(const Callable& callable, const Value& value, const Arguments& arguments);
  void check_arguments(std::string_view name, std::string_view parameters,
                       const Arguments& arguments) const;
  // As find() and rfind() of std::string, in steps that grow with the bytes compared.
  std::size_t find(std::string_view text, std::string_view part, std::size_t from);
  std::size_t find_last(std::string_view text, std::string_view part, std::size_t from);
  Value filtered(const std::string& name, const Value& value, const Arguments& arguments);
  bool tested(const std::string& name, const Value& value, const Arguments& arguments);
  bool contains(const Value& container, const Value& value);
  // Negative, zero or positive.
  int compare(const Value& left, const Value& right);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class Deeper;
  using Scope = Variables;

  // Statements.
  Flow execute(const Node& node);
  Flow execute_all(const Node& node);
  Flow execute_if(const Node& node);
  Flow execute_for(const Node& node);
  std::vector<Value> items_of_loop(const Node& node);
  void execute_set_block(const Node& node);
  void execute_scope(const Node& node);
  void define_macro(const Node& node);
  MarkedText captured(const Node& body);
  void assign(const Node& node, Value value);
  void assign_member(const Node& node, Value value);
  void set(const std::string& name, Value value);
  void output(const MarkedText& text);

  // Expressions.
  Value evaluate(const Node& node);
  Value variable(const std::string& name);
  Value evaluate_items(const Node& node, Value::Kind kind);
  Value evaluate_dict(const Node& node);
  Value evaluate_slice(const Node& node);
  Value evaluate_conditional(const Node& node);
  Value evaluate_compare(const Node& node);
  bool compared(const std::string& operation, const Value& left, const Value& right);
  Value evaluate_concat(const Node& node);
  Value evaluate_sign(const Node& node);
  Value evaluate_call(const Node& node);
  Value call_macro(const Node& macro, const Arguments& arguments);
  Arguments evaluate_arguments(const Node& node);
  Value binary(const std::string& operation, const Value& left, const Value& right);
  Value arithmetic(const std::string& operation, const Value& left, const Value& right);
  Value whole_arithmetic(const std::string& operation, std::int64_t left, std::int64_t right);
  Value power(const Value& base, const Value& exponent);
  Value repeated(const Value& value, std::int64_t count);
  Value joined(const Value& left, const Value& right);
  Value loop_attribute(const Value& loop, std::string_view name);
  void print(MarkedText& text, const Value& value, bool is_inside);

  std::vector<Scope> scopes_;
  std::size_t visible_ = 1;  // scopes from here on, and the first, are visible
  std::int64_t steps_;
  int depth_ = 0;
  int loops_ = 0;
  Place place_;
  MarkedText output_;
  MarkedText captured_;
};

// The tables; nullptr if there is none of the name.
const Callable* find_filter(std::string_view name);
const Callable* find_sequence_filter(std::string_view name);
const Callable* find_function(std::string_view name);
// Methods of a value.
const Callable* find_method(const Value& value, std::string_view name);

// Reads JSON text, whose strings come from outside. Throws FormatError, naming `source`.
Value value_from_json(const std::string& text, const std::string& source);

// The argument as a number or a text; fails for other values.
std::int64_t whole_argument(Evaluator& evaluator, const Value* value, std::int64_t otherwise);
bool truth_argument(const Value* value, bool otherwise);
const Value& needed(Evaluator& evaluator, const Value* value, std::string_view name);
const std::string& string_argument(Evaluator& evaluator, const Value* value, std::string_view name);

}}}}  // namespace heed::v0::text::jinja
