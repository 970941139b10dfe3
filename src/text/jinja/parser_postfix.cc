// What stands behind an expression: attributes, items, calls, filters and tests.
#include <utility>

#include "text/jinja/parser.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

NodePtr Parser::parse_postfix(NodePtr node) {
  for (;;) {
    if (is_operator(".")) {
      node = parse_attribute(std::move(node));
    } else if (is_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr Parser::parse_attribute(NodePtr node) {
  ++at_;
  if (now().kind == Token::Kind::kInteger) {
    NodePtr item = make(NodeKind::kItem);
    adopt(*item, std::move(node));
    adopt(*item, parse_number());
    return item;
  }
  NodePtr attribute = make(NodeKind::kAttribute);
  attribute->text = expect_name();
  adopt(*attribute, std::move(node));
  return attribute;
}

NodePtr Parser::parse_subscript(NodePtr node) {
  NodePtr item = make(NodeKind::kItem);
  adopt(*item, std::move(node));
  expect_operator("[");
  if (!is_operator(":")) adopt(*item, parse_expression());
  if (is_operator(":")) {
    item->kind = NodeKind::kSlice;
    if (item->children.size() == 1) adopt(*item, nullptr);
    while (item->children.size() < 4 && skip_operator(":")) {
      const bool is_left_out = is_operator(":") || is_operator("]");
      adopt(*item, is_left_out ? nullptr : parse_expression());
    }
  }
  expect_operator("]");
  return item;
}

NodePtr Parser::parse_filters(NodePtr node) {
  for (;;) {
    if (skip_operator("|")) {
      node = parse_filter(std::move(node));
    } else if (is_name("is")) {
      node = parse_test(std::move(node));
    } else if (is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr Parser::parse_filter(NodePtr node) {
  NodePtr filter = make(NodeKind::kFilter);
  filter->text = expect_name();
  adopt(*filter, std::move(node));
  if (is_operator("(")) parse_arguments(*filter);
  check_filter(*filter);
  if (filter->text == "safe") ++safe_;
  return filter;
}

NodePtr Parser::parse_test(NodePtr node) {
  ++at_;
  const bool is_negated = skip_name("not");
  NodePtr test = make(NodeKind::kTest);
  // The words of operators are names of tests as well.
  test->text = expect_name();
  adopt(*test, std::move(node));
  const auto kind = now().kind;
  const bool begins = kind == Token::Kind::kName || kind == Token::Kind::kString ||
                      kind == Token::Kind::kInteger || kind == Token::Kind::kFloat ||
                      is_operator("[") || is_operator("{");
  if (is_operator("(")) {
    parse_arguments(*test);
  } else if (begins && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail("two tests, one of the other, need brackets");
    adopt(*test, parse_postfix(parse_primary()));
  }
  check_test(*test);
  if (!is_negated) return test;
  NodePtr negated = make(NodeKind::kNot);
  adopt(*negated, std::move(test));
  return negated;
}

NodePtr Parser::parse_call(NodePtr node) {
  NodePtr call = make(NodeKind::kCall);
  adopt(*call, std::move(node));
  parse_arguments(*call);
  return call;
}

void Parser::parse_arguments(Node& node) {
  expect_operator("(");
  while (!is_operator(")")) {
    if (is_operator("*") || is_operator("**")) {
      fail("arguments from a list or a dictionary, which heed does not know");
    }
    const Token& next = following();
    if (now().kind == Token::Kind::kName && next.kind == Token::Kind::kOperator &&
        next.text == "=") {
      node.argument_names.push_back(expect_name());
      ++at_;
    } else if (!node.argument_names.empty()) {
      fail("an argument without a name behind those with names");
    }
    adopt(node, parse_expression());
    if (!skip_operator(",")) break;
  }
  expect_operator(")");
}

}}}}  // namespace heed::v0::text::jinja
