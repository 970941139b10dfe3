// What the heads of each layer of a model did on some sequences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "heed/diagnostics.h"
#include "heed/nn/seq2seq.h"
#include "heed/nn/seq2seq_training.h"
#include "train/causal_model.h"

namespace heed::cli {

struct MeasuredLayer {
  std::string name;
  AttentionDiagnostics diagnostics;
  Tensor<float> weights = {};  // of the first sequence without padding: [num_heads, q_len, kv_len]
};

// The layers of self-attention of a model that reads ids [batch, length], of which so many of each
// sequence are real (none: all).
std::vector<MeasuredLayer> measure_layers(CausalModel& model, TensorView<const std::int64_t> ids,
                                          const std::vector<std::int64_t>& lengths = {});

// Every layer that looks at sources or targets, the targets given: self-attention and
// cross-attention, or what aligns the decoder of a recurrent model. None where there is none.
std::vector<MeasuredLayer> measure_layers(nn::Seq2Seq<>& model, const nn::SequenceBatch& batch);

// A saved model on sequences.
struct ModelMeasurement {
  std::string task = {};  // of `heed train`
  std::string sequences;  // in words: what was read
  std::vector<MeasuredLayer> layers;
  std::vector<std::string> source = {};  // the tokens of the first sequence, or of its source
  std::vector<std::string> target = {};  // what the decoder is given, where there is one
};

// What a model is shown: sentences, or the text of a file, or, with neither, what its task has.
struct ModelInput {
  std::vector<std::string> sentences;
  std::string text_file;
};

// The model in a folder, or in a file of it. Throws std::runtime_error, naming the file, when there
// is none that this knows, and InvalidArgument when the input does not suit it.
ModelMeasurement measure_model(const std::filesystem::path& model, const ModelInput& input);

}  // namespace heed::cli
