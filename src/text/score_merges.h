// Merges of vocabularies that have a score for each token in place of a list of merges.
#pragma once

#include <vector>

#include "text/byte_pairs.h"
#include "text/token_table.h"

namespace heed { inline namespace v0 { namespace text {

// As SentencePiece's BPE has them: any two neighbours that make a token may be merged, those of the
// highest score first, among equal scores the leftmost.
// Source: https://github.com/google/sentencepiece/blob/master/src/bpe_model.cc
//
// `scores` has one for each token, none of them NaN; tokens that are not `is_made` are no
// result of a merge.
std::vector<BytePairs::Merge> merges_of_scores(const TokenTable& tokens,
                                               const std::vector<double>& scores,
                                               const std::vector<bool>& is_made);

}}}  // namespace heed::v0::text
