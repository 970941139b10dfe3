/// The copy task: symbols, a separator, and the same symbols again.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/tasks/token_batch.h"

namespace heed { inline namespace v0 { namespace tasks {

/// A sequence consists of `lead` blanks, `length` symbols, `gap` blanks, the separator, and the
/// same symbols except the last. Symbols are the tokens 0, …, symbols − 1.
struct CopyTask {
  std::int64_t length;
  std::int64_t symbols;
  std::int64_t lead = 0;  ///< blanks before the symbols
  std::int64_t gap = 0;   ///< blanks between the symbols and the separator

  std::int64_t separator() const { return symbols; }
  std::int64_t blank() const { return symbols + 1; }
  std::int64_t vocab_size() const { return symbols + (lead + gap > 0 ? 2 : 1); }
  /// The position of the first token that predicts a symbol: the separator's.
  std::int64_t question() const { return lead + length + gap; }
  /// The distance from a symbol to the token that predicts it.
  std::int64_t distance() const { return length + gap; }
  /// The last symbol is only predicted, not an input.
  std::int64_t sequence_length() const { return question() + length; }
};

/// Random sequences of symbols, [batch, task.sequence_length()]. Tokens before the separator have
/// no target, because the symbols are unpredictable.
/// @throws InvalidArgument when the batch is negative, or a member of the task is, or length or
/// symbols are 0.
HEED_API TokenBatch draw_batch(const CopyTask& task, std::int64_t batch, TorchGenerator& random);

}}}  // namespace heed::v0::tasks
