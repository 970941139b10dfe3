#include "text/jinja/evaluator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/printable.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

// Bounds how deep evaluation calls itself.
class Evaluator::Deeper {
 public:
  explicit Deeper(Evaluator& evaluator) : evaluator_(evaluator) {
    if (evaluator_.depth_ >= kMaxEvaluationDepth) evaluator_.fail("calls are nested too deeply");
    ++evaluator_.depth_;
  }
  ~Deeper() { --evaluator_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Evaluator& evaluator_;
};

Evaluator::Evaluator(Variables variables, std::int64_t steps) : steps_(steps) {
  scopes_.push_back(std::move(variables));
}

MarkedText Evaluator::run(const Node& root) {
  execute(root);
  return std::move(output_);
}

void Evaluator::fail(const std::string& problem) const { fail_at(place_, problem); }

void Evaluator::take(std::size_t steps) {
  steps_ -= static_cast<std::int64_t>(std::min(steps, kMaxBytes));
  if (steps_ < 0) fail("the template takes too many steps");
}

void Evaluator::take_text(std::size_t bytes) {
  if (bytes > kMaxBytes) fail("a text is too long");
  take(bytes / 16 + 1);
}

Value Evaluator::checked(Value value) const {
  if (depth_of(value) > kMaxValueDepth) {
    fail("a value is nested too deeply, or is a namespace or a loop in another value");
  }
  return value;
}

Evaluator::Flow Evaluator::execute_all(const Node& node) {
  for (const NodePtr& child : node.children) {
    const Flow flow = execute(*child);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Evaluator::Flow Evaluator::execute(const Node& node) {
  const Deeper deeper(*this);
  place_ = node.place;
  take(1);
  switch (node.kind) {
    case NodeKind::kText:
      output(MarkedText(node.text));
      break;
    case NodeKind::kOutput:
      output(printed(evaluate(*node.children[0])));
      break;
    case NodeKind::kIf:
      return execute_if(node);
    case NodeKind::kFor:
      return execute_for(node);
    case NodeKind::kSet:
      assign(node, evaluate(*node.children[0]));
      break;
    case NodeKind::kSetMember:
      assign_member(node, evaluate(*node.children[0]));
      break;
    case NodeKind::kMacro:
      define_macro(node);
      break;
    case NodeKind::kSetBlock:
    case NodeKind::kFilterBlock:
      execute_set_block(node);
      break;
    case NodeKind::kScope:
    case NodeKind::kWith:
      execute_scope(node);
      break;
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      return execute_all(node);
  }
  return Flow::kNormal;
}

void Evaluator::output(const MarkedText& text) {
  take_text(output_.size() + text.size() > kMaxBytes ? kMaxBytes + 1 : text.size());
  output_.append(text);
}

Evaluator::Flow Evaluator::execute_if(const Node& node) {
  const std::size_t size = node.children.size();
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    if (is_true(evaluate(*node.children[i]))) return execute(*node.children[i + 1]);
  }
  return size % 2 == 1 ? execute(*node.children.back()) : Flow::kNormal;
}

// The items, without those that the loop's condition leaves out.
std::vector<Value> Evaluator::items_of_loop(const Node& node) {
  std::vector<Value> items = items_of(evaluate(*node.children[0]));
  if (node.children[1] == nullptr) return items;
  std::vector<Value> chosen;
  for (Value& value : items) {
    scopes_.emplace_back();
    assign(node, value);
    if (is_true(evaluate(*node.children[1]))) chosen.push_back(std::move(value));
    scopes_.pop_back();
  }
  return chosen;
}

Evaluator::Flow Evaluator::execute_for(const Node& node) {
  Value loop = sequence(Kind::kLoop, items_of_loop(node));
  loop.object->depth = kMaxValueDepth;
  loop.object->level = loops_;
  if (loop.object->items.empty()) {
    if (node.children[3] == nullptr) return Flow::kNormal;
    scopes_.emplace_back();
    const Flow flow = execute(*node.children[3]);
    scopes_.pop_back();
    return flow;
  }
  ++loops_;
  for (std::size_t i = 0; i < loop.object->items.size(); ++i) {
    loop.object->index = i;
    scopes_.emplace_back();
    scopes_.back().emplace_back("loop", loop);
    assign(node, loop.object->items[i]);
    const Flow flow = execute(*node.children[2]);
    scopes_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  --loops_;
  return Flow::kNormal;
}

MarkedText Evaluator::captured(const Node& body) {
  MarkedText outer = std::exchange(output_, {});
  scopes_.emplace_back();
  execute(body);
  scopes_.pop_back();
  return std::exchange(output_, std::move(outer));
}

void Evaluator::execute_set_block(const Node& node) {
  captured_ = captured(*node.children[0]);
  const Node* const filters = node.children[1].get();
  Value value = filters == nullptr ? string(captured_) : evaluate(*filters);
  if (node.kind == NodeKind::kSetBlock) {
    set(node.names[0], std::move(value));
  } else {
    output(printed(value));
  }
}

void Evaluator::execute_scope(const Node& node) {
  Scope scope;
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    scope.emplace_back(node.names[i], evaluate(*node.children[i]));
  }
  scopes_.push_back(std::move(scope));
  execute(*node.children.back());
  scopes_.pop_back();
}

void Evaluator::define_macro(const Node& node) {
  Value macro = sequence(Kind::kMacro, {});
  macro.object->macro = &node;
  set(node.text, std::move(macro));
}

void Evaluator::set(const std::string& name, Value value) {
  for (auto& [known, old] : scopes_.back()) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  scopes_.back().emplace_back(name, std::move(value));
}

void Evaluator::assign(const Node& node, Value value) {
  if (node.names.size() == 1) return set(node.names[0], std::move(value));
  std::vector<Value> items = items_of(value);
  if (items.size() != node.names.size()) {
    fail(fmt::format("{} names for {} values", node.names.size(), items.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) set(node.names[i], std::move(items[i]));
}

void Evaluator::assign_member(const Node& node, Value value) {
  const Value target = variable(node.names[0]);
  if (!target.is(Kind::kNamespace)) {
    fail(fmt::format("'{}' is {}, but only attributes of a namespace can be set",
                     io::printable(node.names[0]), kind_name(target)));
  }
  if (node.names[1].starts_with('_')) fail("an attribute of a namespace that begins with '_'");
  if (depth_of(value) >= kMaxValueDepth) {
    fail("a value in a namespace is nested too deeply, or is a namespace or a loop");
  }
  Object& object = *target.object;
  for (std::size_t i = 0; i < object.keys.size(); ++i) {
    if (object.keys[i].bytes() == node.names[1]) {
      object.items[i] = std::move(value);
      return;
    }
  }
  object.keys.push_back(string(node.names[1]));
  object.items.push_back(std::move(value));
}

Value Evaluator::variable(const std::string& name) {
  const auto find_in = [&](const Scope& scope) -> const Value* {
    take(scope.size() / 8);
    for (const auto& [known, value] : scope) {
      if (known == name) return &value;
    }
    return nullptr;
  };
  for (std::size_t i = scopes_.size(); i > visible_; --i) {
    if (const Value* value = find_in(scopes_[i - 1])) return *value;
  }
  if (const Value* value = find_in(scopes_[0])) return *value;
  if (find_function(name) != nullptr) return named(Kind::kFunction, name);
  for (const std::string_view known :
       {"varargs", "kwargs", "caller", "self", "super", "lipsum", "cycler", "joiner"}) {
    if (name == known) fail(fmt::format("the name '{}', which heed does not know", name));
  }
  return undefined(name);
}

Value Evaluator::call_macro(const Node& macro, const Arguments& arguments) {
  const Deeper deeper(*this);
  const std::size_t count = macro.names.size();
  check_arguments(macro.text, fmt::format("{}", fmt::join(macro.names, " ")), arguments);
  const std::size_t visible = std::exchange(visible_, scopes_.size());
  const int loops = std::exchange(loops_, 0);
  MarkedText outer = std::exchange(output_, {});
  scopes_.emplace_back();
  for (std::size_t i = 0; i < count; ++i) {
    const Node* const otherwise = macro.children[i + 1].get();
    const Value* const given = arguments.find(i, macro.names[i]);
    set(macro.names[i], given != nullptr       ? *given
                        : otherwise != nullptr ? evaluate(*otherwise)
                                               : undefined(macro.names[i]));
  }
  execute(*macro.children[0]);
  scopes_.pop_back();
  visible_ = visible;
  loops_ = loops;
  return string(std::exchange(output_, std::move(outer)));
}

}}}}  // namespace heed::v0::text::jinja
