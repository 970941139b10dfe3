// The regular expressions by which published models split texts, as matchers written by hand: a
// general engine that knows Unicode's categories is more than heed needs.
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
  kGpt2,    // ByteLevel of GPT-2 and its kin
  kLlama3,  // Llama 3, and cl100k of GPT-4: numbers in groups of three digits
  kQwen2,   // Qwen2 and Qwen3: each digit alone
};

// The pattern as files write it.
std::string_view pattern_text(SplitPattern pattern);

// The pattern with that text, which must be the same to the character; nullptr when there is none.
const SplitPattern* find_pattern(std::string_view text);

// Calls the pattern on text[part], from its beginning. Every byte is part of one match.
void append_matches(std::vector<Span>& matches, std::string_view text, Span part,
                    SplitPattern pattern);

}}}  // namespace heed::v0::text
