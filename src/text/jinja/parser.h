// Reads expressions and statements from tokens, by the grammar of Jinja.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)) {}

  NodePtr parse();

 private:
  class Nesting;

  // Tokens.
  const Token& now() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_block_end();
  std::string expect_name();
  [[noreturn]] void fail(const std::string& problem) const { fail_at(now().place, problem); }
  [[noreturn]] void fail_unexpected(std::string_view expected) const;

  // Nodes.
  NodePtr make(NodeKind kind, std::string text = {}) const;
  static void adopt(Node& parent, NodePtr child);

  // Statements.
  NodePtr parse_body(std::initializer_list<std::string_view> ends);
  NodePtr parse_statement();
  NodePtr parse_output();
  void check_safe() const;
  NodePtr parse_if();
  NodePtr parse_for();
  NodePtr parse_set();
  NodePtr parse_set_block(NodePtr node);
  NodePtr parse_macro();
  NodePtr parse_generation();
  NodePtr parse_with();
  NodePtr parse_filter_block();
  NodePtr parse_jump(NodeKind kind);
  std::vector<std::string> parse_targets();
  void finish(std::string_view end);

  // Expressions, from the weakest operator to the strongest.
  NodePtr parse_expression();
  NodePtr parse_conditional();
  NodePtr parse_or();
  NodePtr parse_and();
  NodePtr parse_not();
  NodePtr parse_compare();
  NodePtr parse_sum();
  NodePtr parse_concat();
  NodePtr parse_product();
  NodePtr parse_power();
  NodePtr parse_unary(bool takes_filters);
  NodePtr parse_primary();
  NodePtr parse_postfix(NodePtr node);
  NodePtr parse_filters(NodePtr node);
  NodePtr parse_filter(NodePtr node);
  NodePtr parse_test(NodePtr node);
  NodePtr parse_attribute(NodePtr node);
  NodePtr parse_subscript(NodePtr node);
  NodePtr parse_tuple_or_expression(std::string_view end);
  NodePtr parse_list();
  NodePtr parse_dict();
  NodePtr parse_string();
  NodePtr parse_number();
  NodePtr parse_call(NodePtr node);
  void parse_arguments(Node& node);
  NodePtr binary(NodePtr left, std::string operation, NodePtr right) const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;
  int safe_ = 0;  // uses of the filter 'safe' other than at the end of an output
};

inline constexpr int kMaxNesting = 200;

// Bounds how deep the functions of the parser call each other.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) parser_.fail("nested too deeply");
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

}}}}  // namespace heed::v0::text::jinja
