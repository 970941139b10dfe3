/// The explorer: an interactive HTML page about attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// A sequence of tokens and its attention. The page needs either query and key, from which it
/// computes everything for each temperature and mask, or weights alone; it then uses log(weight) as
/// scores, which is right up to a constant per row, and hidden keys stay hidden.
///
/// Texts are shown as text, never read as markup; control characters, bidirectional overrides and
/// bytes that are not UTF-8 become visible escapes (sanitize_for_terminal).
///
/// In cross-attention `keys` names the S tokens that the T tokens attend to; without it S = T.
struct ExplorerSentence {
  std::string title;                   ///< on the tab that selects it
  std::string note = {};               ///< a sentence or two about what the page shows
  std::vector<std::string> tokens;     ///< the T queries, at least one
  std::vector<std::string> keys = {};  ///< the S keys; empty: the tokens themselves

  Tensor<float> query = {};    ///< [num_heads, T, head_dim], with `key`
  Tensor<float> key = {};      ///< [num_heads, S, head_dim]
  Tensor<float> value = {};    ///< [num_heads, S, value_dim], or empty
  Tensor<float> weights = {};  ///< [num_heads, T, S], or empty; with query and key, for comparison
  Tensor<bool> visible = {};   ///< [T, S], true where the query sees the key; empty: everything

  std::string mask = "none";            ///< the name of `visible`
  std::optional<double> scale = {};     ///< of query · key; 1/√head_dim when not given
  double temperature = 1;               ///< the initial temperature: weights are of scores / T
  std::vector<std::string> heads = {};  ///< the names of the heads, or empty
  std::optional<std::int64_t> opening_query = {};  ///< selected initially; by default the last
  std::int64_t d_model = 64;  ///< width of the displayed position encodings; even
};

/// The contents of an explorer page.
struct ExplorerData {
  std::vector<ExplorerSentence> sentences;  ///< at least one; the first is shown initially
  /// If true, the page has a field for a sentence, which it sends to POST /api/attention of its
  /// server and to which it expects explorer_json() as the answer. Otherwise the page makes no
  /// request at all.
  bool has_server = false;
};

/// "the cat sat on the mat" with two heads whose queries and keys were constructed by hand: in one
/// 'sat' attends to 'cat' and each 'the' to the other, in the other every token attends to the one
/// before it.
HEED_API ExplorerSentence explorer_example();

/// One self-contained HTML file, for a disk or a server. A Content-Security-Policy prevents it from
/// loading or running anything but its own script, identified by its SHA-256.
///
/// Arrays are embedded in full precision. Weights given with query and key are left out where they
/// have more than 2¹⁶ elements: the page shows its own, which agree to 1e-6.
/// @throws InvalidArgument when there is no sentence, shapes do not fit each other, a number is not
/// finite, a weight is negative, the temperature is not positive or d_model not even.
HEED_API std::string explorer_page(const ExplorerData& data);

/// One sentence as the input of the page's script: a JSON object in ASCII without <, > and &.
/// @throws InvalidArgument as explorer_page.
HEED_API std::string explorer_json(const ExplorerSentence& sentence);

/// The attention of one layer of a model over a sequence of T tokens: query and key, from which the
/// page computes the weights of a selected head, or weights alone; and the values.
///
///     weights = softmax(mask(cap(scale · query · key))),  cap(s) = softcap · tanh(s / softcap)
///
/// A layer with other terms in its scores (biases, slopes of ALiBi, sinks) must give weights.
struct LayerAttention {
  /// [num_heads, T, head_dim], the operand of the scores: after rotary embeddings and norms.
  Tensor<float> query = {};
  /// [num_key_heads, T, head_dim]: query head h reads key head h / (num_heads / num_key_heads).
  Tensor<float> key = {};
  /// [num_value_heads, T, value_dim], shared as keys are; or empty: the page then shows no numbers
  /// of the last step.
  Tensor<float> value = {};
  Tensor<float> weights = {};       ///< [num_heads, T, T] instead of query and key
  Mask mask = {};                   ///< of all heads, for example causal()
  std::optional<float> scale = {};  ///< 1/√head_dim when not given
  float softcap = 0;                ///< 0: none
};

/// A number for each head of a model, by which the page colours and sorts them. If all are in [0,
/// 1], the page's bars and colours go from 0 to 1, otherwise from the lowest to the highest.
struct HeadScore {
  std::string name;         ///< "previous token"
  std::string explanation;  ///< one line: the measurement, and the meaning of a high number
  Tensor<float> values;     ///< [num_layers, num_heads], finite
};

/// The attention of a model over a sequence of tokens, layer by layer. All layers have the same
/// number of heads. Texts are escaped as in ExplorerSentence.
struct ModelAttention {
  std::string title;
  std::string note = {};            ///< a sentence or two about what the page shows
  std::vector<std::string> tokens;  ///< 1 to 1024 of them; T is their number
  /// The number of each token's word; negative: none. Neighbours with the same number are drawn
  /// together, and the sum of their weights is shown too. Empty: words are not shown.
  std::vector<std::int64_t> words = {};
  std::vector<LayerAttention> layers;  ///< at least one
  std::vector<HeadScore> scores = {};  ///< empty: those of pattern_scores(layers)
  /// The head and query that are shown initially. By default the head with the most pattern: the
  /// largest mean weight on the previous token, the token itself or the next.
  std::optional<std::int64_t> opening_layer = {};
  std::optional<std::int64_t> opening_head = {};
  std::optional<std::int64_t> opening_query = {};  ///< by default the middle one
};

/// Scores of each head from attention_diagnostics: the mean weight on the first token, on the
/// previous token, on the token itself and on the next, and the entropy.
/// @throws InvalidArgument as explorer_model_page.
HEED_API std::vector<HeadScore> pattern_scores(const std::vector<LayerAttention>& layers);

/// One self-contained HTML file like that of explorer_page, with a map of all layers and heads,
/// from which a head is selected.
///
/// Queries, keys and values are stored as 16-bit integers, each vector with a factor of its own. A
/// layer where this changes a weight in one of eight rows of each head by more than 5e-4 stores
/// queries and keys as floats. One row of heed's weights is stored for each head: the page compares
/// it with its own and shows the difference. Given weights are stored in half precision.
/// @throws InvalidArgument when there is no token or no layer, there are more than 1024 tokens,
/// shapes do not fit each other, a number is not finite, a weight is negative or not 0 where the
/// mask hides it, or the initial head or query does not exist.
HEED_API std::string explorer_model_page(const ModelAttention& model);

}}  // namespace heed::v0
