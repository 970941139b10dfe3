// Normalisers: what is done to a text before it is split. Each keeps track of where the original's
// bytes went.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "text/aligned_text.h"

namespace heed { inline namespace v0 { namespace text {

using Normalizer = std::function<AlignedText(AlignedText)>;

// Unicode's normalisation forms. A composed character stands for all that it was composed of.
// Source: https://www.unicode.org/reports/tr15/
struct UnicodeForm {
  bool composes = false;    // NFC, NFKC
  bool compatible = false;  // NFKC, NFKD
};
AlignedText normalize_unicode(AlignedText text, UnicodeForm form);

// Each character's lower case.
AlignedText lower_case(AlignedText text);

// Without characters of category M.
AlignedText strip_marks(const AlignedText& text);

// Every occurrence of `pattern`, not empty, from left to right.
AlignedText replace_all(const AlignedText& text, const std::string& pattern,
                        const std::string& content);

// `prefix` before a text that is not empty; it stands for no byte of the original.
AlignedText prepend(AlignedText text, const std::string& prefix);

// What BERT does to texts. Source: BasicTokenizer of
// https://github.com/google-research/bert/blob/master/tokenization.py
struct BertNormalization {
  bool cleans = true;          // control characters go, white space becomes ' '
  bool spaces_han = true;      // ' ' around each character of the CJK blocks
  bool strips_accents = true;  // NFD without characters of category Mn
  bool lowers = true;
};
AlignedText normalize_bert(AlignedText text, const BertNormalization& options);

}}}  // namespace heed::v0::text
