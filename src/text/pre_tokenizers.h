// Pre-tokenizers, which cut a text into the pieces that the model encodes one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "text/normalizers.h"
#include "text/pattern.h"
#include "text/span.h"

namespace heed { inline namespace v0 { namespace text {

struct PreTokenized {
  AlignedText text;
  std::vector<Span> pieces;  // ranges of the text, in order; none is empty
};

using PreTokenizer = std::function<void(PreTokenized&)>;

// The treatment of a match by a split.
enum class SplitBehavior {
  kRemoved,             // the match is dropped
  kIsolated,            // each match is a piece
  kMergedWithPrevious,  // the match ends the piece before it
  kMergedWithNext,      // the match begins the piece after it
  kContiguous,          // adjacent matches are one piece
};

// Cuts at characters of a class.
void split_characters(PreTokenized& text, bool (*is_match)(char32_t) noexcept,
                      SplitBehavior behavior);

// Cuts at every occurrence of `literal`, which is not empty. With `inverts`, the text between
// occurrences is the match.
struct LiteralSplit {
  std::string literal;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool inverts = false;
};
void split_literal(PreTokenized& text, const LiteralSplit& split);

// Cuts at the matches of a pattern. With `inverts`, the text between them is the match.
struct PatternSplit {
  std::shared_ptr<const Pattern> pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool inverts = false;
};
void split_pattern(PreTokenized& text, const PatternSplit& split);

// Turns spaces into `mark`, puts one before each piece that does not begin with one, or before the
// piece at the beginning of the original text, and cuts before the marks.
struct SpaceMarking {
  enum class Prefix { kAlways, kFirst, kNever } prefix = Prefix::kAlways;
  std::string mark = "▁";  // one character
  bool splits = true;
};
void mark_spaces(PreTokenized& text, const SpaceMarking& options);

// Splits at white space, and makes each punctuation character a piece.
void split_bert(PreTokenized& text);

// Keeps runs of \w and runs of characters that are neither \w nor white space.
void split_words(PreTokenized& text);

// Turns the bytes of each piece into visible characters, after GPT-2's split if `splits`.
// `adds_space` puts ' ' before pieces that do not begin with one.
struct ByteLevelSplit {
  bool adds_space = true;
  bool splits = true;
};
void split_byte_level(PreTokenized& text, const ByteLevelSplit& options);

}}}  // namespace heed::v0::text
