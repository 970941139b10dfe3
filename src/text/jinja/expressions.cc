#include <fmt/format.h>

#include <algorithm>

#include "core/printable.h"
#include "text/code_points.h"
#include "text/jinja/evaluator.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

Value Evaluator::evaluate(const Node& node) {
  take(1);
  place_ = node.place;
  switch (node.kind) {
    case NodeKind::kString:
      take_text(node.text.size());
      return string(node.text);
    case NodeKind::kInteger:
      return whole(node.integer);
    case NodeKind::kFloat:
      return real(node.number);
    case NodeKind::kTrue:
      return boolean(true);
    case NodeKind::kFalse:
      return boolean(false);
    case NodeKind::kNone:
      return none();
    case NodeKind::kName:
      return variable(node.text);
    case NodeKind::kCaptured:
      return string(captured_);
    default:
      break;
  }
  if (depth_ >= kMaxEvaluationDepth) fail("calls are nested too deeply");
  ++depth_;  // an error ends the evaluation, so nothing needs to count down then
  Value value;
  switch (node.kind) {
    case NodeKind::kList:
      value = evaluate_items(node, Kind::kList);
      break;
    case NodeKind::kTuple:
      value = evaluate_items(node, Kind::kTuple);
      break;
    case NodeKind::kDict:
      value = evaluate_dict(node);
      break;
    case NodeKind::kAttribute: {
      const Value object = evaluate(*node.children[0]);
      place_ = node.place;
      value = attribute(object, node.text);
      break;
    }
    case NodeKind::kItem: {
      const Value object = evaluate(*node.children[0]);
      const Value key = evaluate(*node.children[1]);
      place_ = node.place;
      value = item(object, key);
      break;
    }
    case NodeKind::kSlice:
      value = evaluate_slice(node);
      break;
    case NodeKind::kCall:
      value = evaluate_call(node);
      break;
    case NodeKind::kFilter: {
      const Value object = evaluate(*node.children[0]);
      const Arguments arguments = evaluate_arguments(node);
      place_ = node.place;
      value = filtered(node.text, object, arguments);
      break;
    }
    case NodeKind::kTest: {
      const Value object = evaluate(*node.children[0]);
      const Arguments arguments = evaluate_arguments(node);
      place_ = node.place;
      value = boolean(tested(node.text, object, arguments));
      break;
    }
    case NodeKind::kConditional:
      value = evaluate_conditional(node);
      break;
    case NodeKind::kNot:
      value = boolean(!is_true(evaluate(*node.children[0])));
      break;
    case NodeKind::kNegative:
    case NodeKind::kPositive:
      value = evaluate_sign(node);
      break;
    case NodeKind::kAnd:
    case NodeKind::kOr:
      value = evaluate(*node.children[0]);
      if (is_true(value) == (node.kind == NodeKind::kAnd)) value = evaluate(*node.children[1]);
      break;
    case NodeKind::kBinary: {
      const Value left = evaluate(*node.children[0]);
      const Value right = evaluate(*node.children[1]);
      place_ = node.place;
      value = binary(node.text, left, right);
      break;
    }
    case NodeKind::kCompare:
      value = evaluate_compare(node);
      break;
    case NodeKind::kConcat:
      value = evaluate_concat(node);
      break;
    default:
      fail("a statement in place of an expression");
  }
  --depth_;
  return value;
}

Value Evaluator::evaluate_items(const Node& node, Kind kind) {
  std::vector<Value> items;
  for (const NodePtr& child : node.children) items.push_back(evaluate(*child));
  return checked(sequence(kind, std::move(items)));
}

Value Evaluator::evaluate_dict(const Node& node) {
  std::vector<Value> keys;
  std::vector<Value> items;
  for (std::size_t i = 0; i < node.children.size(); i += 2) {
    Value key = evaluate(*node.children[i]);
    Value value = evaluate(*node.children[i + 1]);
    if (key.is(Kind::kList) || key.is(Kind::kDict)) {
      fail(fmt::format("{} as the key of a dictionary", kind_name(key)));
    }
    const auto same = std::find_if(keys.begin(), keys.end(),
                                   [&](const Value& other) { return equal(other, key, steps_); });
    if (same != keys.end()) {
      items[static_cast<std::size_t>(same - keys.begin())] = std::move(value);
      continue;
    }
    keys.push_back(std::move(key));
    items.push_back(std::move(value));
  }
  return checked(dictionary(std::move(keys), std::move(items)));
}

Value Evaluator::evaluate_conditional(const Node& node) {
  if (is_true(evaluate(*node.children[1]))) return evaluate(*node.children[0]);
  if (node.children[2] != nullptr) return evaluate(*node.children[2]);
  return undefined("the value of an if without else");
}

Value Evaluator::evaluate_compare(const Node& node) {
  Value left = evaluate(*node.children[0]);
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(*node.children[i + 1]);
    place_ = node.place;
    if (!compared(node.names[i], left, right)) return boolean(false);
    left = std::move(right);
  }
  return boolean(true);
}

Value Evaluator::evaluate_concat(const Node& node) {
  MarkedText text;
  for (const NodePtr& child : node.children) {
    const MarkedText part = printed(evaluate(*child));
    take_text(text.size() + part.size() > kMaxBytes ? kMaxBytes + 1 : part.size());
    text.append(part);
  }
  return string(std::move(text));
}

Value Evaluator::evaluate_sign(const Node& node) {
  const Value value = evaluate(*node.children[0]);
  if (!value.is_number()) fail(fmt::format("the sign of {}", kind_name(value)));
  const bool is_negative = node.kind == NodeKind::kNegative;
  if (value.is(Kind::kFloat)) return real(is_negative ? -value.number : value.number);
  return is_negative ? whole_arithmetic("-", 0, value.integer) : whole(value.integer);
}

Arguments Evaluator::evaluate_arguments(const Node& node) {
  Arguments arguments;
  const std::size_t first_named = node.children.size() - node.argument_names.size();
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    Value value = evaluate(*node.children[i]);
    if (i < first_named) {
      arguments.positional.push_back(std::move(value));
    } else {
      arguments.named.emplace_back(node.argument_names[i - first_named], std::move(value));
    }
  }
  return arguments;
}

Value Evaluator::evaluate_call(const Node& node) {
  const Node& callee = *node.children[0];
  const Value function = evaluate(callee);
  const Arguments arguments = evaluate_arguments(node);
  place_ = node.place;
  if (function.is(Kind::kMacro)) return call_macro(*function.object->macro, arguments);
  if (function.is(Kind::kFunction)) {
    return called(*find_function(function.bytes()), function, arguments);
  }
  if (function.is(Kind::kMethod)) {
    const Value& self = function.object->items[0];
    const Callable* const method = find_method(self, function.bytes());
    if (method == nullptr) {
      fail(fmt::format("the method '{}' of {}, which heed does not know",
                       io::printable(function.bytes()), kind_name(self)));
    }
    return called(*method, self, arguments);
  }
  if (callee.kind == NodeKind::kAttribute && function.is(Kind::kUndefined)) {
    fail(fmt::format("the method '{}', which heed does not know", io::printable(callee.text)));
  }
  if (function.is(Kind::kUndefined)) {
    fail(fmt::format("the function '{}', which is not defined", io::printable(function.bytes())));
  }
  fail(fmt::format("a call of {}", kind_name(function)));
}

}}}}  // namespace heed::v0::text::jinja
