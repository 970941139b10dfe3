/// How a sequence-to-sequence model writes: token by token, always the likeliest, or with several
/// hypotheses at once.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/config.h"
#include "heed/nn/seq2seq.h"

namespace heed::inline v0::nn {

/// One target that a model wrote.
template <class T>
struct Hypothesis {
  std::vector<std::int64_t> tokens;  ///< without kBosId and kEosId
  /// [num_heads, tokens, src_len]: where each token looked. Empty when the model has no attention.
  Tensor<T> alignment;
  double log_probability = 0;  ///< of the tokens, and of the end if it was reached
  bool is_complete = false;    ///< whether the model ended it, not the limit
};

/// Both searches run the model in evaluation, whatever its mode, and restore the mode; nothing is
/// recorded. kPadId and kBosId are never written.
struct SearchOptions {
  std::int64_t max_len = 100;    ///< of a target in tokens
  bool return_alignment = true;  ///< or the hypotheses have none, and are found sooner
};

/// The likeliest token at each step, for each source of a batch.
/// @param src     token ids [batch, src_len]
/// @param lengths of each source, or none
/// @throws InvalidArgument when max_len is negative, or as Seq2Seq::encode.
template <class T>
HEED_API std::vector<Hypothesis<T>> greedy_search(Seq2Seq<T>& model,
                                                  TensorView<const std::int64_t> src,
                                                  const std::vector<std::int64_t>& lengths = {},
                                                  const SearchOptions& options = {});

struct BeamOptions {
  std::int64_t beam = 4;  ///< how many hypotheses go on at each step
  std::int64_t max_len = 100;
  /// Hypotheses are ranked by log_probability / ((5 + length) / 6)^length_penalty. Source: Wu et
  /// al., "Google's Neural Machine Translation System", 2016, section 7.
  double length_penalty = 1;
};

/// The `beam` best hypotheses of one source [src_len], the best first. A beam of 1 finds what
/// greedy_search finds.
/// @throws InvalidArgument when beam is not positive, max_len is negative or src is not of rank 1.
template <class T>
HEED_API std::vector<Hypothesis<T>> beam_search(Seq2Seq<T>& model,
                                                TensorView<const std::int64_t> src,
                                                const BeamOptions& options = {});

}  // namespace heed::inline v0::nn
