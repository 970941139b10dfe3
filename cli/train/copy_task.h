// The task of `heed train copy`: symbols, a separator, and the same symbols again.
#pragma once

#include <cstdint>

#include "heed/random.h"
#include "train/sequence_task.h"
#include "train/settings.h"

namespace heed::cli {

struct CopyTask {
  std::int64_t length;
  std::int64_t symbols;
  std::int64_t lead = 0;  // blanks before the symbols
  std::int64_t gap = 0;   // blanks between the symbols and the separator

  // That of a model with these sizes, without blanks.
  static CopyTask of(const ModelSettings& sizes) {
    return {sizes.context / 2, sizes.vocab_size - 1};
  }

  std::int64_t separator() const { return symbols; }
  std::int64_t blank() const { return symbols + 1; }
  std::int64_t vocab_size() const { return symbols + (lead + gap > 0 ? 2 : 1); }
  // The first token that predicts a symbol: the separator.
  std::int64_t question() const { return lead + length + gap; }
  // How far a symbol lies behind the token that predicts it.
  std::int64_t distance() const { return length + gap; }
  // The last symbol is never read, only predicted.
  std::int64_t sequence_length() const { return question() + length; }
};

// Nothing before the separator is to be predicted: nobody can know the symbols.
SequenceBatch draw_batch(const CopyTask& task, std::int64_t batch, TorchGenerator& random);

}  // namespace heed::cli
