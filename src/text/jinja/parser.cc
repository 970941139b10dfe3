#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

NodePtr parse_template(std::string_view source) { return Parser(source).parse(); }

NodePtr Parser::parse() {
  NodePtr body = parse_body({});
  if (now().kind != Token::Kind::kEnd) {
    fail(fmt::format("the tag '{}' ends nothing", io::printable(following().text)));
  }
  check_safe();
  return body;
}

bool Parser::is_operator(std::string_view text) const {
  return now().kind == Token::Kind::kOperator && now().text == text;
}

bool Parser::is_name(std::string_view text) const {
  return now().kind == Token::Kind::kName && now().text == text;
}

bool Parser::skip_operator(std::string_view text) {
  const bool is_there = is_operator(text);
  at_ += is_there ? 1 : 0;
  return is_there;
}

bool Parser::skip_name(std::string_view text) {
  const bool is_there = is_name(text);
  at_ += is_there ? 1 : 0;
  return is_there;
}

void Parser::fail_unexpected(std::string_view expected) const {
  const bool is_end = now().text.empty();
  fail(fmt::format("found {}, expected {}",
                   is_end ? "the end of a tag" : "'" + io::printable(now().text) + "'", expected));
}

void Parser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_unexpected(fmt::format("'{}'", text));
}

void Parser::expect_block_end() {
  if (now().kind != Token::Kind::kBlockEnd) fail_unexpected("the end of the tag");
  ++at_;
}

std::string Parser::expect_name() {
  if (now().kind != Token::Kind::kName) fail_unexpected("a name");
  return tokens_[at_++].text;
}

NodePtr Parser::make(NodeKind kind, std::string text) const {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->place = now().place;
  node->text = std::move(text);
  return node;
}

void Parser::adopt(Node& parent, NodePtr child) {
  if (child != nullptr) {
    parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kMaxTreeDepth) fail_at(child->place, "nested too deeply");
  }
  parent.children.push_back(std::move(child));
}

// Reads up to a tag whose name is one of `ends`, which it leaves.
NodePtr Parser::parse_body(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(*this);
  NodePtr body = make(NodeKind::kBody);
  for (;;) {
    const Token& token = now();
    if (token.kind == Token::Kind::kEnd) {
      if (ends.size() > 0) fail(fmt::format("the template ends without {}", *(ends.end() - 1)));
      return body;
    }
    if (token.kind == Token::Kind::kText) {
      adopt(*body, make(NodeKind::kText, token.text));
      ++at_;
    } else if (token.kind == Token::Kind::kOutputBegin) {
      adopt(*body, parse_output());
    } else {
      const std::string& name = following().text;
      if (std::find(ends.begin(), ends.end(), name) != ends.end()) return body;
      if (name.starts_with("end") || name == "else" || name == "elif") return body;
      ++at_;
      adopt(*body, parse_statement());
    }
  }
}

// Skips {% end %}, which must be next.
void Parser::finish(std::string_view end) {
  if (now().kind == Token::Kind::kBlockBegin) ++at_;
  if (!skip_name(end)) fail_unexpected(fmt::format("'{}'", end));
  expect_block_end();
}

// At the end of an output it changes nothing; in a sum Jinja would escape the other side.
void Parser::check_safe() const {
  if (safe_ != 0) fail("the filter 'safe' within an expression, which heed does not know");
}

NodePtr Parser::parse_output() {
  ++at_;
  NodePtr node = make(NodeKind::kOutput);
  NodePtr value = parse_tuple_or_expression("");
  while (value->kind == NodeKind::kFilter && value->text == "safe") {
    value = std::move(value->children[0]);
    --safe_;
  }
  adopt(*node, std::move(value));
  check_safe();
  if (now().kind != Token::Kind::kOutputEnd) fail_unexpected("'}}'");
  ++at_;
  return node;
}

NodePtr Parser::parse_statement() {
  const std::string name = now().text;
  if (name == "if") return parse_if();
  if (name == "for") return parse_for();
  if (name == "set") return parse_set();
  if (name == "macro") return parse_macro();
  if (name == "generation") return parse_generation();
  if (name == "with") return parse_with();
  if (name == "filter") return parse_filter_block();
  if (name == "break") return parse_jump(NodeKind::kBreak);
  if (name == "continue") return parse_jump(NodeKind::kContinue);
  fail(fmt::format("the tag '{}', which heed does not know", io::printable(name)));
}

NodePtr Parser::parse_if() {
  NodePtr node = make(NodeKind::kIf);
  do {
    ++at_;
    adopt(*node, parse_or());
    expect_block_end();
    adopt(*node, parse_body({"elif", "else", "endif"}));
    ++at_;
  } while (is_name("elif"));
  if (skip_name("else")) {
    expect_block_end();
    adopt(*node, parse_body({"endif"}));
  }
  finish("endif");
  return node;
}

std::vector<std::string> Parser::parse_targets() {
  std::vector<std::string> names;
  const bool is_enclosed = skip_operator("(");
  do {
    if (is_name("in") || now().kind != Token::Kind::kName) break;
    names.push_back(expect_name());
  } while (skip_operator(","));
  if (names.empty()) fail_unexpected("a name");
  if (is_enclosed) expect_operator(")");
  for (const std::string& name : names) {
    if (name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
        name == "None") {
      fail(fmt::format("'{}' cannot be set", name));
    }
  }
  return names;
}

NodePtr Parser::parse_for() {
  NodePtr node = make(NodeKind::kFor);
  ++at_;
  node->names = parse_targets();
  if (!skip_name("in")) fail_unexpected("'in'");
  NodePtr iterable = parse_or();
  if (is_operator(",")) {
    NodePtr tuple = make(NodeKind::kTuple);
    adopt(*tuple, std::move(iterable));
    while (skip_operator(",") && now().kind != Token::Kind::kBlockEnd) adopt(*tuple, parse_or());
    iterable = std::move(tuple);
  }
  adopt(*node, std::move(iterable));
  adopt(*node, skip_name("if") ? parse_expression() : nullptr);
  if (is_name("recursive")) fail("a recursive loop, which heed does not know");
  expect_block_end();
  ++loops_;
  adopt(*node, parse_body({"else", "endfor"}));
  --loops_;
  ++at_;
  if (skip_name("else")) {
    expect_block_end();
    adopt(*node, parse_body({"endfor"}));
  } else {
    adopt(*node, nullptr);
  }
  finish("endfor");
  return node;
}

NodePtr Parser::parse_set() {
  NodePtr node = make(NodeKind::kSet);
  ++at_;
  if (following().kind == Token::Kind::kOperator && following().text == ".") {
    node->kind = NodeKind::kSetMember;
    node->names.push_back(expect_name());
    expect_operator(".");
    node->names.push_back(expect_name());
    if (!is_operator("=")) fail("a block set of an attribute, which heed does not know");
  } else {
    node->names = parse_targets();
  }
  if (skip_operator("=")) {
    adopt(*node, parse_tuple_or_expression(""));
    expect_block_end();
    return node;
  }
  return parse_set_block(std::move(node));
}

NodePtr Parser::parse_set_block(NodePtr node) {
  node->kind = NodeKind::kSetBlock;
  if (node->names.size() != 1) fail_unexpected("'='");
  NodePtr filters = nullptr;
  if (is_operator("|")) filters = parse_filters(make(NodeKind::kCaptured));
  expect_block_end();
  adopt(*node, parse_body({"endset"}));
  adopt(*node, std::move(filters));
  finish("endset");
  return node;
}

NodePtr Parser::parse_macro() {
  ++at_;
  NodePtr node = make(NodeKind::kMacro, expect_name());
  expect_operator("(");
  std::vector<NodePtr> defaults;
  while (!is_operator(")")) {
    node->names.push_back(expect_name());
    defaults.push_back(skip_operator("=") ? parse_expression() : nullptr);
    if (!skip_operator(",")) break;
  }
  expect_operator(")");
  expect_block_end();
  const int loops = std::exchange(loops_, 0);
  adopt(*node, parse_body({"endmacro"}));
  loops_ = loops;
  for (NodePtr& value : defaults) adopt(*node, std::move(value));
  finish("endmacro");
  return node;
}

// {% generation %} marks the answers for training: only its scope matters here.
NodePtr Parser::parse_generation() {
  NodePtr node = make(NodeKind::kScope);
  ++at_;
  expect_block_end();
  const int loops = std::exchange(loops_, 0);
  adopt(*node, parse_body({"endgeneration"}));
  loops_ = loops;
  finish("endgeneration");
  return node;
}

NodePtr Parser::parse_with() {
  NodePtr node = make(NodeKind::kWith);
  ++at_;
  while (now().kind != Token::Kind::kBlockEnd) {
    node->names.push_back(expect_name());
    expect_operator("=");
    adopt(*node, parse_expression());
    if (!skip_operator(",")) break;
  }
  expect_block_end();
  adopt(*node, parse_body({"endwith"}));
  finish("endwith");
  return node;
}

NodePtr Parser::parse_filter_block() {
  NodePtr node = make(NodeKind::kFilterBlock);
  ++at_;
  NodePtr filters = parse_filters(parse_filter(make(NodeKind::kCaptured)));
  expect_block_end();
  adopt(*node, parse_body({"endfilter"}));
  adopt(*node, std::move(filters));
  finish("endfilter");
  return node;
}

NodePtr Parser::parse_jump(NodeKind kind) {
  NodePtr node = make(kind);
  if (loops_ == 0) fail(fmt::format("'{}' outside of a loop", now().text));
  ++at_;
  expect_block_end();
  return node;
}

}}}}  // namespace heed::v0::text::jinja
