/// Decoding strategies: greedy search and beam search.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/seq2seq.h"

namespace heed { inline namespace v0 { namespace nn {

/// A model's scores of the next token of each target.
template <class T>
struct NextScores {
  Variable<T> logits;  ///< [targets, vocab_size]
  Tensor<T> weights;   ///< [targets, num_heads, src_len]: attention to the source; empty if none
};

/// The continuation of a target: the earlier target with this index, followed by a token.
struct NextToken {
  std::int64_t target = 0;
  std::int64_t token = 0;
};

/// Tokens without text.
struct ReservedTokens {
  std::optional<std::int64_t> end = std::nullopt;  ///< ends a target
  std::vector<std::int64_t> never = {};            ///< are never chosen
};

/// A model together with the targets that it writes in parallel, all of the same length. Both
/// searches use this interface. Its caches are computed once for each token.
template <class T = float>
class HEED_API Writer {
 public:
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  virtual ~Writer() = default;

  virtual ReservedTokens reserved() const = 0;
  /// The number of initial targets.
  virtual std::int64_t num_targets() const = 0;
  /// Returns the scores of the first token of each target.
  virtual NextScores<T> begin() = 0;
  /// Replaces target i by the earlier target next[i].target followed by next[i].token; targets
  /// without a continuation are dropped. Returns the scores of the tokens after these.
  virtual NextScores<T> go_on(std::span<const NextToken> next) = 0;
};

/// One target that a model wrote.
template <class T>
struct Hypothesis {
  std::vector<std::int64_t> tokens;  ///< without kBosId and kEosId
  /// [num_heads, tokens, src_len]: the attention of each token to the source. Empty for a model
  /// without attention.
  Tensor<T> alignment;
  double log_probability = 0;  ///< of the tokens, and of the end if it was reached
  bool is_complete = false;    ///< true if it has its end token, false if the limit ended it
};

/// Nothing is recorded for backward() during a search. A Seq2Seq is run in evaluation mode, and its
/// mode is restored; kPadId and kBosId are never written.
struct SearchOptions {
  std::int64_t max_len = 100;    ///< the most tokens of a target
  bool return_alignment = true;  ///< false: hypotheses have no alignment; faster
};

/// Chooses the most likely token at each step, for each target of a writer.
/// @throws InvalidArgument when max_len is negative or there is no token to be written.
template <class T>
HEED_API std::vector<Hypothesis<T>> greedy_search(Writer<T>& writer,
                                                  const SearchOptions& options = {});

/// greedy_search() for each source of a batch.
/// @param src     token ids [batch, src_len]
/// @param lengths of each source; empty: all have src_len
/// @throws InvalidArgument as Seq2Seq::encode, too.
template <class T>
HEED_API std::vector<Hypothesis<T>> greedy_search(Seq2Seq<T>& model,
                                                  TensorView<const std::int64_t> src,
                                                  const std::vector<std::int64_t>& lengths = {},
                                                  const SearchOptions& options = {});

/// The options of beam_search().
struct BeamOptions {
  std::int64_t beam = 4;  ///< hypotheses that continue at each step
  std::int64_t max_len = 100;
  /// Hypotheses are ranked by log_probability / ((5 + length) / 6)^length_penalty. Source: Wu et
  /// al., "Google's Neural Machine Translation System", 2016, section 7.
  double length_penalty = 1;
};

/// The `beam` best hypotheses of the target of a writer, the best first. With beam = 1 it is
/// greedy_search().
/// @throws InvalidArgument when beam is not positive, max_len is negative, the writer begins other
/// than one target or there is no token to be written.
template <class T>
HEED_API std::vector<Hypothesis<T>> beam_search(Writer<T>& writer, const BeamOptions& options = {});

/// beam_search() for one source [src_len].
/// @throws InvalidArgument when src is not of rank 1, too.
template <class T>
HEED_API std::vector<Hypothesis<T>> beam_search(Seq2Seq<T>& model,
                                                TensorView<const std::int64_t> src,
                                                const BeamOptions& options = {});

}}}  // namespace heed::v0::nn
