// The syntax tree of a template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace text { namespace jinja {

// A place in the template, for errors.
struct Place {
  int line = 1;
  std::size_t byte = 0;
};

// Throws FormatError, which names the line.
[[noreturn]] void fail_at(const Place& place, const std::string& problem);

enum class NodeKind {
  // statements
  kText,         // text
  kOutput,       // children[0]
  kIf,           // condition, body, condition, body, …; an odd child at the end is the else
  kFor,          // names: targets; iterable, filter or null, body, else or null
  kSet,          // names: targets; the value
  kSetMember,    // names: of the namespace and of its attribute; the value
  kSetBlock,     // names[0]; body, then filters as a chain around a kCaptured, or null
  kMacro,        // text: its name; names: parameters; body, then a default or null for each
  kScope,        // children in a scope of their own
  kWith,         // names; values, then the body
  kFilterBlock,  // body, the chain of filters around a kCaptured
  kBody,         // children in order
  kBreak,
  kContinue,
  // expressions
  kString,
  kInteger,
  kFloat,
  kTrue,
  kFalse,
  kNone,
  kName,
  kList,
  kTuple,
  kDict,         // key, value, …
  kAttribute,    // children[0].text
  kItem,         // children[0][children[1]]
  kSlice,        // children[0][1:2:3], each may be null
  kCall,         // children[0](arguments)
  kFilter,       // children[0] | text(arguments)
  kTest,         // children[0] is text(arguments)
  kConditional,  // then, condition, otherwise or null
  kNot,
  kNegative,
  kPositive,
  kAnd,
  kOr,
  kBinary,    // text is the operator
  kCompare,   // first, then one for each of names, which are the operators
  kConcat,    // children, joined as text
  kCaptured,  // the text of the block around
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  NodeKind kind = NodeKind::kBody;
  Place place;
  int depth = 1;  // of the tree below
  std::string text;
  std::int64_t integer = 0;
  double number = 0;
  std::vector<std::string> names;
  std::vector<NodePtr> children;
  // Of calls, filters and tests: the last children are the values of named arguments.
  std::vector<std::string> argument_names;
};

// More levels are refused, so that walking a tree needs little stack.
inline constexpr int kMaxTreeDepth = 120;

// Throw FormatError unless heed knows the filter or the test.
void check_filter(const Node& node);
void check_test(const Node& node);

// Throws FormatError if the template is not valid, or uses what heed does not know.
NodePtr parse_template(std::string_view source);

}}}}  // namespace heed::v0::text::jinja
