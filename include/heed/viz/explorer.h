/// The explorer: one page in which a reader plays with attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// A sequence of tokens and what attention makes of it. The page needs either query and key, from
/// which it computes everything anew for each temperature and mask, or weights alone; then the
/// scores are taken to be log(weight), which is right up to a constant per row, and what the mask
/// hid stays hidden.
///
/// Texts are shown as text, never read as markup; control characters, bidirectional overrides and
/// bytes that are not UTF-8 become visible escapes (sanitize_for_terminal).
///
/// In cross-attention `keys` names what the T tokens attend to, S of it; without it S = T.
struct ExplorerSentence {
  std::string title;                   ///< on the tab by which it is chosen
  std::string note = {};               ///< a sentence or two: what there is to see
  std::vector<std::string> tokens;     ///< at least one: what asks; T is their number
  std::vector<std::string> keys = {};  ///< what they attend to; empty: to each other

  Tensor<float> query = {};    ///< [num_heads, T, head_dim], with `key`
  Tensor<float> key = {};      ///< [num_heads, S, head_dim]
  Tensor<float> value = {};    ///< [num_heads, S, value_dim], or empty
  Tensor<float> weights = {};  ///< [num_heads, T, S], or empty; beside query and key a check
  Tensor<bool> visible = {};   ///< [T, S], true where the query sees the key; empty: everything

  std::string mask = "none";            ///< what `visible` is called
  std::optional<double> scale = {};     ///< of query · key; 1/√head_dim when not given
  double temperature = 1;               ///< at which the page opens: weights are of scores / T
  std::vector<std::string> heads = {};  ///< what each head is called, or empty
  std::optional<std::int64_t> opening_query = {};  ///< held as the page opens; else the last
  std::int64_t d_model = 64;  ///< width of the position encodings that are shown; even
};

/// What an explorer page contains.
struct ExplorerData {
  std::vector<ExplorerSentence> sentences;  ///< at least one; the page opens with the first
  /// The page has a field for a sentence, which it sends to POST /api/attention of where it came
  /// from and expects explorer_json() back. Otherwise the page makes no request whatever.
  bool has_server = false;
};

/// "the cat sat on the mat" with two heads whose queries and keys were made by hand: in one 'sat'
/// attends to 'cat' and each 'the' to the other, in the other every token to the one before it.
HEED_API ExplorerSentence explorer_example();

/// One HTML file that needs nothing else, from a disk or a server, and that a
/// Content-Security-Policy keeps from loading or running anything but its own script, by SHA-256.
///
/// Arrays are embedded in full precision. Weights beside query and key are left out where they have
/// more than 2¹⁶ elements: the page shows its own, which agree to 1e-6.
/// @throws InvalidArgument when there is no sentence, shapes do not fit each other, a number is not
/// finite, a weight is negative, the temperature is not positive or d_model not even.
HEED_API std::string explorer_page(const ExplorerData& data);

/// One sentence as the page's script reads it: a JSON object in ASCII without <, > and &.
/// @throws InvalidArgument as explorer_page.
HEED_API std::string explorer_json(const ExplorerSentence& sentence);

/// The attention of one layer of a model over a sequence of T tokens: query and key, from which the
/// page computes the weights of a head when it is opened, or weights alone; and what it takes from
/// each token.
///
///     weights = softmax(mask(cap(scale · query · key))),  cap(s) = softcap · tanh(s / softcap)
///
/// A layer that adds anything else to its scores (biases, slopes of ALiBi, sinks) gives weights.
struct LayerAttention {
  /// [num_heads, T, head_dim], what the scores are made of: after rotary embeddings and norms.
  Tensor<float> query = {};
  /// [num_key_heads, T, head_dim]: query head h reads key head h / (num_heads / num_key_heads).
  Tensor<float> key = {};
  /// [num_value_heads, T, value_dim], shared as keys are; or empty: the last step lacks its
  /// numbers.
  Tensor<float> value = {};
  Tensor<float> weights = {};       ///< [num_heads, T, T] instead of query and key
  Mask mask = {};                   ///< the same for all heads; `causal()`, for example
  std::optional<float> scale = {};  ///< 1/√head_dim when not given
  float softcap = 0;                ///< 0 leaves the scores as they are
};

/// A number for each head of a model, by which the page colours and sorts them. Where all of them
/// lie between 0 and 1 the page's bars and colours go from 0 to 1, otherwise from the lowest to the
/// highest.
struct HeadScore {
  std::string name;         ///< "previous token"
  std::string explanation;  ///< one line: what is measured, and what a high number means
  Tensor<float> values;     ///< [num_layers, num_heads], finite
};

/// What a model makes of a sequence of tokens, layer by layer. All layers have the same number of
/// heads. Texts are shown as ExplorerSentence's are.
struct ModelAttention {
  std::string title;
  std::string note = {};            ///< a sentence or two: what there is to see
  std::vector<std::string> tokens;  ///< 1 to 1024 of them; T is their number
  /// The number of the word that each token is part of; negative: of none. Neighbours with the same
  /// number stand together, and their weights are also given as one. Empty: not shown.
  std::vector<std::int64_t> words = {};
  std::vector<LayerAttention> layers;  ///< at least one
  std::vector<HeadScore> scores = {};  ///< empty: those of pattern_scores(layers)
  /// The head that the page opens; what is not given is chosen: the head with the most pattern,
  /// that with the largest mean weight on the previous token, the token itself or the next.
  std::optional<std::int64_t> opening_layer = {};
  std::optional<std::int64_t> opening_head = {};
  std::optional<std::int64_t> opening_query = {};  ///< held as the page opens; else the middle one
};

/// What attention_diagnostics measures of each head: the mean weight on the first token, on the
/// previous token, on the token itself, on the next, and the entropy.
/// @throws InvalidArgument as explorer_model_page.
HEED_API std::vector<HeadScore> pattern_scores(const std::vector<LayerAttention>& layers);

/// One HTML file as explorer_page makes it, with a map of all layers and heads, from which a head
/// is opened.
///
/// Queries, keys and values are stored as 16-bit integers, each vector with a factor of its own. In
/// a layer where that changes a weight of one of eight rows of each head by more than 5e-4 queries
/// and keys are stored as floats. Of each head one row of heed's weights is stored too: the page
/// compares it with its own and says how far they differ. Weights that were given are stored in
/// half precision.
/// @throws InvalidArgument when there is no token or no layer, there are more than 1024 tokens,
/// shapes do not fit each other, a number is not finite, a weight is negative or lies where the
/// mask hides it, or what the page opens with does not exist.
HEED_API std::string explorer_model_page(const ModelAttention& model);

}}  // namespace heed::v0
