/// What was computed or measured, as sentences of the explorer's page (explorer_page()).
#pragma once

#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/inspect/saved_model.h"
#include "heed/inspect/sentence.h"
#include "heed/viz/explorer.h"

namespace heed { inline namespace v0 { namespace inspect {

/// The sentence with its queries, keys and values.
HEED_API ExplorerSentence to_explorer(const SentenceAttention& attention);

/// What its tokens are called; where nothing is said they are numbered. In self-attention there are
/// queries alone.
struct TokenNames {
  std::vector<std::string> queries = {};
  std::vector<std::string> keys = {};
};

/// Weights [num_heads, q_len, kv_len], as a tab of a page. Keys are other tokens than the queries
/// where they have names, or where there are not as many.
/// @throws InvalidArgument where there are more than a page can hold, 1024 queries or keys.
HEED_API ExplorerSentence to_explorer(const std::string& title, Tensor<float> weights,
                                      const TokenNames& names = {});

/// A sentence for each layer: where its heads looked in the first sequence.
/// @throws InvalidArgument as to_explorer().
HEED_API std::vector<ExplorerSentence> to_explorer(const ModelMeasurement& measured);

}}}  // namespace heed::v0::inspect
