/// Converts attention results to sentences of the explorer's page (explorer_page()).
#pragma once

#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/inspect/saved_model.h"
#include "heed/inspect/sentence.h"
#include "heed/viz/explorer.h"

namespace heed { inline namespace v0 { namespace inspect {

/// The sentence of the page, with its queries, keys and values.
HEED_API ExplorerSentence to_explorer(const SentenceAttention& attention);

/// Names of tokens; without names tokens are numbered. Self-attention has query names only.
struct TokenNames {
  std::vector<std::string> queries = {};
  std::vector<std::string> keys = {};
};

/// Weights [num_heads, q_len, kv_len] as a sentence of the page. Keys count as tokens other than
/// the queries where they have names, or where q_len ≠ kv_len.
/// @throws InvalidArgument where there are more than 1024 queries or keys.
HEED_API ExplorerSentence to_explorer(const std::string& title, Tensor<float> weights,
                                      const TokenNames& names = {});

/// One sentence per layer: the weights of its heads in the first sequence.
/// @throws InvalidArgument as to_explorer().
HEED_API std::vector<ExplorerSentence> to_explorer(const ModelMeasurement& measured);

}}}  // namespace heed::v0::inspect
