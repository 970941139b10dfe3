#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/printable.h"
#include "text/jinja/parser.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

NodePtr Parser::parse_expression() { return parse_conditional(); }

NodePtr Parser::parse_conditional() {
  const Nesting nesting(*this);
  NodePtr value = parse_or();
  while (is_name("if")) {
    NodePtr node = make(NodeKind::kConditional);
    ++at_;
    adopt(*node, std::move(value));
    adopt(*node, parse_or());
    adopt(*node, skip_name("else") ? parse_conditional() : nullptr);
    value = std::move(node);
  }
  return value;
}

NodePtr Parser::parse_or() {
  NodePtr left = parse_and();
  while (is_name("or")) {
    NodePtr node = make(NodeKind::kOr);
    ++at_;
    adopt(*node, std::move(left));
    adopt(*node, parse_and());
    left = std::move(node);
  }
  return left;
}

NodePtr Parser::parse_and() {
  NodePtr left = parse_not();
  while (is_name("and")) {
    NodePtr node = make(NodeKind::kAnd);
    ++at_;
    adopt(*node, std::move(left));
    adopt(*node, parse_not());
    left = std::move(node);
  }
  return left;
}

NodePtr Parser::parse_not() {
  const Nesting nesting(*this);
  if (!is_name("not")) return parse_compare();
  NodePtr node = make(NodeKind::kNot);
  ++at_;
  adopt(*node, parse_not());
  return node;
}

NodePtr Parser::parse_compare() {
  constexpr std::array<std::string_view, 6> kOperators{"==", "!=", "<", "<=", ">", ">="};
  NodePtr first = parse_sum();
  NodePtr node = make(NodeKind::kCompare);
  for (;;) {
    std::string name;
    if (now().kind == Token::Kind::kOperator &&
        std::find(kOperators.begin(), kOperators.end(), now().text) != kOperators.end()) {
      name = now().text;
      ++at_;
    } else if (skip_name("in")) {
      name = "in";
    } else if (is_name("not") && following().text == "in") {
      name = "not in";
      at_ += 2;
    } else {
      break;
    }
    if (first != nullptr) adopt(*node, std::move(first));
    node->names.push_back(name);
    adopt(*node, parse_sum());
  }
  return node->names.empty() ? std::move(first) : std::move(node);
}

NodePtr Parser::binary(NodePtr left, std::string operation, NodePtr right) const {
  NodePtr node = make(NodeKind::kBinary, std::move(operation));
  adopt(*node, std::move(left));
  adopt(*node, std::move(right));
  return node;
}

NodePtr Parser::parse_sum() {
  NodePtr left = parse_concat();
  while (is_operator("+") || is_operator("-")) {
    std::string operation = tokens_[at_++].text;
    left = binary(std::move(left), std::move(operation), parse_concat());
  }
  return left;
}

NodePtr Parser::parse_concat() {
  NodePtr first = parse_product();
  if (!is_operator("~")) return first;
  NodePtr node = make(NodeKind::kConcat);
  adopt(*node, std::move(first));
  while (skip_operator("~")) adopt(*node, parse_product());
  return node;
}

NodePtr Parser::parse_product() {
  NodePtr left = parse_power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    std::string operation = tokens_[at_++].text;
    left = binary(std::move(left), std::move(operation), parse_power());
  }
  return left;
}

NodePtr Parser::parse_power() {
  NodePtr left = parse_unary(true);
  while (skip_operator("**")) left = binary(std::move(left), "**", parse_unary(true));
  return left;
}

NodePtr Parser::parse_unary(bool takes_filters) {
  const Nesting nesting(*this);
  NodePtr node;
  if (is_operator("-") || is_operator("+")) {
    node = make(is_operator("-") ? NodeKind::kNegative : NodeKind::kPositive);
    ++at_;
    adopt(*node, parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return takes_filters ? parse_filters(std::move(node)) : std::move(node);
}

NodePtr Parser::parse_primary() {
  if (now().kind == Token::Kind::kString) return parse_string();
  if (now().kind == Token::Kind::kInteger || now().kind == Token::Kind::kFloat) {
    return parse_number();
  }
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  if (skip_operator("(")) {
    NodePtr node = parse_tuple_or_expression(")");
    expect_operator(")");
    return node;
  }
  if (now().kind != Token::Kind::kName) fail_unexpected("an expression");
  NodePtr node = make(NodeKind::kName, now().text);
  const std::string& name = node->text;
  if (name == "true" || name == "True") node->kind = NodeKind::kTrue;
  if (name == "false" || name == "False") node->kind = NodeKind::kFalse;
  if (name == "none" || name == "None") node->kind = NodeKind::kNone;
  ++at_;
  return node;
}

NodePtr Parser::parse_string() {
  NodePtr node = make(NodeKind::kString);
  while (now().kind == Token::Kind::kString) node->text += tokens_[at_++].text;
  return node;
}

NodePtr Parser::parse_number() {
  const bool is_float = now().kind == Token::Kind::kFloat;
  NodePtr node = make(is_float ? NodeKind::kFloat : NodeKind::kInteger);
  const std::string& text = now().text;
  const char* const end = text.data() + text.size();
  const auto result = is_float ? std::from_chars(text.data(), end, node->number)
                               : std::from_chars(text.data(), end, node->integer);
  if (result.ec != std::errc())
    fail(fmt::format("the number {} is too large", io::printable(text)));
  ++at_;
  return node;
}

// Reads an expression, or several with commas between them, up to `end`.
NodePtr Parser::parse_tuple_or_expression(std::string_view end) {
  NodePtr tuple = make(NodeKind::kTuple);
  if (!end.empty() && is_operator(end)) return tuple;
  NodePtr first = parse_expression();
  if (!is_operator(",")) return first;
  adopt(*tuple, std::move(first));
  while (skip_operator(",")) {
    const bool is_end =
        end.empty() ? now().kind == Token::Kind::kBlockEnd || now().kind == Token::Kind::kOutputEnd
                    : is_operator(end);
    if (is_end) break;
    adopt(*tuple, parse_expression());
  }
  return tuple;
}

NodePtr Parser::parse_list() {
  NodePtr node = make(NodeKind::kList);
  expect_operator("[");
  while (!is_operator("]")) {
    adopt(*node, parse_expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("]");
  return node;
}

NodePtr Parser::parse_dict() {
  NodePtr node = make(NodeKind::kDict);
  expect_operator("{");
  while (!is_operator("}")) {
    adopt(*node, parse_expression());
    expect_operator(":");
    adopt(*node, parse_expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("}");
  return node;
}

}}}}  // namespace heed::v0::text::jinja
