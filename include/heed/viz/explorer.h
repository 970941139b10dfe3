/// The explorer: one page in which a reader plays with attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/config.h"
#include "heed/tensor.h"

namespace heed::inline v0 {

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

}  // namespace heed::inline v0
