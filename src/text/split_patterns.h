// The regular expressions with which published models split texts, as handwritten matchers: heed
// needs no general engine with Unicode's categories.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

struct Span {
  std::size_t begin;
  std::size_t end;

  friend bool operator==(const Span&, const Span&) = default;
};

enum class SplitPattern {
  kGpt2,    // ByteLevel of GPT-2 and models like it
  kLlama3,  // Llama 3, and cl100k of GPT-4: groups of up to three digits
  kQwen2,   // Qwen2 and Qwen3: each digit alone
};

// The pattern's text in files.
std::string_view pattern_text(SplitPattern pattern);

// The pattern with exactly this text; nullptr if there is none.
const SplitPattern* find_pattern(std::string_view text);

// Appends the matches of the pattern in text[part], from its beginning. Every byte is part of one
// match.
void append_matches(std::vector<Span>& matches, std::string_view text, Span part,
                    SplitPattern pattern);

}}}  // namespace heed::v0::text
