// The attention of a sentence as the explorer's page.
#pragma once

#include <string>

#include "heed/viz/explorer.h"
#include "sentence_attention.h"

namespace heed::cli {

// The sentence with its queries, keys and values.
ExplorerSentence to_explorer(const SentenceAttention& attention);

// The page, which opens with the worked example and has the sentence beside it.
std::string explorer_file(const SentenceAttention& attention);

}  // namespace heed::cli
