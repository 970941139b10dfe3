// What a model has read of a text that it writes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/nn/past.h"

namespace heed { inline namespace v0 { namespace models {

// The prompt and what follows it; or, if the model has an encoder, the prompt as the source, and
// the token that the decoder begins with.
class Reading {
 public:
  // Reads the source if there is one. The model must outlive the result.
  Reading(const Model& model, std::span<const std::int64_t> prompt, const GenerateOptions& options);

  const std::vector<std::int64_t>& ids() const { return ids_; }
  // The number of ids that were read.
  std::int64_t length() const { return past_.length(); }

  // Reads the ids that were not read yet, and returns the hidden state of the last.
  Tensor<float> read_rest();
  // Reads one more id. As in transformers' Phi-3, LongRoPE's factors are those of the length so far
  // for all tokens, so that a text is read anew where they change.
  Tensor<float> read(std::int64_t id);

  // Moves what was read into `kept`. Texts of a source are not kept.
  void keep(KeptText& kept) &&;

 private:
  ForwardOptions forward_options() const { return {.source = source_ ? &*source_ : nullptr}; }

  const Model& model_;
  PastOptions options_;
  std::vector<std::int64_t> ids_;
  std::optional<Source> source_;
  nn::Past past_;
};

}}}  // namespace heed::v0::models
