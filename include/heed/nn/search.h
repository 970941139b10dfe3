/// How a model writes: token by token, always the likeliest, or with several hypotheses at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/seq2seq.h"

namespace heed { inline namespace v0 { namespace nn {

/// What a model says of the tokens that may come next in each of its targets.
template <class T>
struct NextScores {
  Variable<T> logits;  ///< [targets, vocab_size]
  Tensor<T> weights;   ///< [targets, num_heads, src_len]: where each looked; empty if nowhere
};

/// How a target goes on: as target `target` of those before, with a token behind it.
struct NextToken {
  std::int64_t target = 0;
  std::int64_t token = 0;
};

/// Tokens that stand for no text.
struct ReservedTokens {
  std::optional<std::int64_t> end = std::nullopt;  ///< ends a target
  std::vector<std::int64_t> never = {};            ///< are not written
};

/// A model and the targets that it is writing side by side, all of the same length: what both
/// searches work with. What it keeps of its targets is computed once for each token.
template <class T = float>
class HEED_API Writer {
 public:
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  virtual ~Writer() = default;

  virtual ReservedTokens reserved() const = 0;
  /// How many targets it begins.
  virtual std::int64_t num_targets() const = 0;
  /// Scores of the first token of each.
  virtual NextScores<T> begin() = 0;
  /// Target i becomes the target next[i].target of those before, and next[i].token behind it; those
  /// that no one goes on with are forgotten. Scores of what may follow.
  virtual NextScores<T> go_on(std::span<const NextToken> next) = 0;
};

/// One target that a model wrote.
template <class T>
struct Hypothesis {
  std::vector<std::int64_t> tokens;  ///< without kBosId and kEosId
  /// [num_heads, tokens, src_len]: where each token looked. Empty when the model has no attention.
  Tensor<T> alignment;
  double log_probability = 0;  ///< of the tokens, and of the end if it was reached
  bool is_complete = false;    ///< whether the model ended it, not the limit
};

/// Nothing is recorded while searching. A Seq2Seq is run in evaluation, whatever its mode, which is
/// restored; kPadId and kBosId are never written.
struct SearchOptions {
  std::int64_t max_len = 100;    ///< of a target in tokens
  bool return_alignment = true;  ///< or the hypotheses have none, and are found sooner
};

/// The likeliest token at each step, for each target of a writer.
/// @throws InvalidArgument when max_len is negative or there is no token to be written.
template <class T>
HEED_API std::vector<Hypothesis<T>> greedy_search(Writer<T>& writer,
                                                  const SearchOptions& options = {});

/// The same for each source of a batch.
/// @param src     token ids [batch, src_len]
/// @param lengths of each source, or none
/// @throws InvalidArgument as Seq2Seq::encode, too.
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

/// The `beam` best hypotheses of the target of a writer, the best first. A beam of 1 finds what
/// greedy_search finds.
/// @throws InvalidArgument when beam is not positive, max_len is negative, the writer begins other
/// than one target or there is no token to be written.
template <class T>
HEED_API std::vector<Hypothesis<T>> beam_search(Writer<T>& writer, const BeamOptions& options = {});

/// The same for one source [src_len].
/// @throws InvalidArgument when src is not of rank 1, too.
template <class T>
HEED_API std::vector<Hypothesis<T>> beam_search(Seq2Seq<T>& model,
                                                TensorView<const std::int64_t> src,
                                                const BeamOptions& options = {});

}}}  // namespace heed::v0::nn
