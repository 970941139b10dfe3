// Normalisers, which change a text before it is split. Each keeps track of the origin of bytes in
// the original.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "text/aligned_text.h"

namespace heed { inline namespace v0 { namespace text {

using Normalizer = std::function<AlignedText(AlignedText)>;

// Unicode's normalisation forms. The origin of a composed character covers all characters that it
// is composed of. Source: https://www.unicode.org/reports/tr15/
struct UnicodeForm {
  bool composes = false;    // NFC, NFKC
  bool compatible = false;  // NFKC, NFKD
};
AlignedText normalize_unicode(AlignedText text, UnicodeForm form);

// Converts each character to lower case.
AlignedText lower_case(AlignedText text);

// Removes characters of category M.
AlignedText strip_marks(const AlignedText& text);

// Replaces every occurrence of `pattern`, which is not empty, from left to right.
AlignedText replace_all(const AlignedText& text, const std::string& pattern,
                        const std::string& content);

// Puts `prefix` before a text that is not empty. The prefix has no bytes in the original.
AlignedText prepend(AlignedText text, const std::string& prefix);

// BERT's normalisation. Source: BasicTokenizer of
// https://github.com/google-research/bert/blob/master/tokenization.py
struct BertNormalization {
  bool cleans = true;          // removes control characters and turns white space into ' '
  bool spaces_han = true;      // puts ' ' around each character of the CJK blocks
  bool strips_accents = true;  // decomposes (NFD) and removes characters of category Mn
  bool lowers = true;
};
AlignedText normalize_bert(AlignedText text, const BertNormalization& options);

}}}  // namespace heed::v0::text
