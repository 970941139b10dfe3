// Merges for vocabularies that have a score for each token instead of a list of merges.
#pragma once

#include <vector>

#include "text/byte_pairs.h"
#include "text/token_table.h"

namespace heed { inline namespace v0 { namespace text {

// The merges of SentencePiece's BPE: any two adjacent tokens that form a token may be merged, those
// with the highest score first, at equal scores the leftmost. Source:
// https://github.com/google/sentencepiece/blob/master/src/bpe_model.cc
//
// `scores` has one number for each token, none of them NaN. Tokens that are not `is_made` never
// result from a merge.
std::vector<BytePairs::Merge> merges_of_scores(const TokenTable& tokens,
                                               const std::vector<double>& scores,
                                               const std::vector<bool>& is_made);

}}}  // namespace heed::v0::text
