// Translations by encoder-decoders that others trained.
#pragma once

#include <string>

#include "heed/models/model.h"
#include "heed/train/translator.h"

namespace heed::cli {

// The likeliest tokens in turn. The alignment has the heads of all layers, those of the first layer
// first: [num_layers · num_heads, tokens, src_len]. Throws InvalidArgument if the model cannot read
// the sentence.
train::Translation translate(const models::Model& model, const std::string& sentence);

}  // namespace heed::cli
