// Divides a template into text and the tokens of its tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/syntax.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

struct Token {
  enum class Kind {
    kText,        // between tags
    kBlockBegin,  // {%
    kBlockEnd,
    kOutputBegin,  // {{
    kOutputEnd,
    kName,
    kString,  // unescaped
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  } kind = Kind::kEnd;
  std::string text;
  Place place;
};

// Throws FormatError. The last token is a kEnd.
std::vector<Token> tokens_of(std::string_view source);

}}}}  // namespace heed::v0::text::jinja
