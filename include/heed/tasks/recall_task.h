/// Associative recall: pairs of a key and a value, followed by questions for some of the values.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/tasks/token_batch.h"

namespace heed { inline namespace v0 { namespace tasks {

/// A sequence consists of `lead` blanks, `pairs` pairs of a key and a value, each one token, and
/// `questions` questions, each a key of the pairs whose value is the answer. After Arora et al.,
/// "Zoology: Measuring and Improving Recall in Efficient Language Models", 2023, section 3, where a
/// key and its value are two tokens, which a layer must join first.
struct RecallTask {
  std::int64_t pairs;      ///< the number of pairs, with different keys
  std::int64_t questions;  ///< the number of questions, with different keys; at most `pairs`
  std::int64_t keys;       ///< the number of keys to draw from, at least `pairs`
  std::int64_t values;     ///< the number of values to draw from
  std::int64_t lead = 0;   ///< blanks before the pairs

  std::int64_t pair(std::int64_t key, std::int64_t value) const { return key * values + value; }
  std::int64_t question(std::int64_t key) const { return keys * values + key; }
  std::int64_t answer(std::int64_t value) const { return keys * values + keys + value; }
  std::int64_t blank() const { return keys * values + keys + values; }
  std::int64_t vocab_size() const { return blank() + 1; }
  std::int64_t sequence_length() const { return lead + pairs + questions; }
};

/// Random sequences, [batch, task.sequence_length()]. Only questions have a target, their answer.
/// @throws InvalidArgument naming the member of the task that is out of range.
HEED_API TokenBatch draw_batch(const RecallTask& task, std::int64_t batch, TorchGenerator& random);

}}}  // namespace heed::v0::tasks
