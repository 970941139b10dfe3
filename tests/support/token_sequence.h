// Token sequences written as text.
#pragma once

#include <cctype>
#include <map>
#include <sstream>
#include <string>

#include "heed/inspect/patterns.h"

namespace heed::testing_support {

// Returns the tokens between spaces: "[CLS] un ##known word . [SEP]". Equal tokens have equal ids;
// "##" continues a word.
inline inspect::TokenSequence tokens_of(const std::string& text) {
  inspect::TokenSequence tokens;
  std::map<std::string, std::int64_t> ids;
  std::istringstream stream(text);
  std::int64_t word = -1;
  for (std::string token; stream >> token;) {
    const bool is_special = token.front() == '[';
    const bool is_word = std::isalnum(static_cast<unsigned char>(token.back())) != 0;
    tokens.ids.push_back(ids.emplace(token, static_cast<std::int64_t>(ids.size())).first->second);
    tokens.is_special.push_back(is_special);
    tokens.is_punctuation.push_back(!is_special && !is_word);
    if (is_word && token.rfind("##", 0) != 0) ++word;
    tokens.words.push_back(is_word ? word : -1);
  }
  return tokens;
}

}  // namespace heed::testing_support
