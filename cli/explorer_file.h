// Attention as the explorer's page.
#pragma once

#include <string>
#include <vector>

#include "heed/viz/explorer.h"
#include "sentence_attention.h"

namespace heed::cli {

// The sentence with its queries, keys and values.
ExplorerSentence to_explorer(const SentenceAttention& attention);

// The page, which opens with the worked example and has the sentence beside it.
std::string explorer_file(const SentenceAttention& attention);

// What its tokens are called; where nothing is said they are numbered. In self-attention there are
// queries alone.
struct TokenNames {
  std::vector<std::string> queries = {};
  std::vector<std::string> keys = {};
};

// Weights [num_heads, q_len, kv_len], as a tab of a page. Keys are other tokens than the queries
// where they have names, or where there are not as many. Throws InvalidArgument where there are
// more than a page can hold.
ExplorerSentence to_explorer(const std::string& title, Tensor<float> weights,
                             const TokenNames& names);

}  // namespace heed::cli
