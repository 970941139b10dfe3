/// Long short-term memory: torch.nn.LSTM with the batch as first dimension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/layers.h"

namespace heed { inline namespace v0 { namespace nn {

/// The state of an LSTM between steps. Undefined variables mean zeros.
template <class T>
struct LstmState {
  Variable<T> hidden = {};  ///< of a layer [batch, hidden_size], of an LSTM [layers ·
                            ///< directions, batch, hidden_size]
  Variable<T> cell = {};    ///< in the shape of hidden
};

/// The result of an LSTM.
template <class T>
struct LstmOutput {
  Variable<T> out;     ///< [batch, length, directions · hidden_size]; 0 after a sequence's end
  LstmState<T> state;  ///< after each sequence's last step
};

/// The parameters of one layer and direction; the gates have the order input, forget, cell, output.
/// Both biases are given, or none.
template <class T>
struct LstmParameters {
  Variable<T> weight_ih;     ///< [4 · hidden_size, input_size]
  Variable<T> weight_hh;     ///< [4 · hidden_size, hidden_size]
  Variable<T> bias_ih = {};  ///< [4 · hidden_size]
  Variable<T> bias_hh = {};  ///< [4 · hidden_size]
};

/// The direction in which a layer reads, and the lengths of the sequences.
struct LstmSteps {
  bool is_reverse = false;                 ///< from each sequence's last step to its first
  std::vector<std::int64_t> lengths = {};  ///< of each sequence; empty: all have x's length
};

/// One layer in one direction, as one node of the graph:
///
///     i = σ(W_i x + U_i h + b_i), f = σ(…), g = tanh(…), o = σ(…)
///     c ← f ∘ c + i ∘ g,  h ← o ∘ tanh c
///
/// x is [batch, length, input_size]. After the end of a sequence its state does not change and its
/// output is 0, as with torch.nn.utils.rnn.pack_padded_sequence; a length of 0 is allowed.
/// Sequences are divided among threads, and the bits do not depend on the number of threads.
///
/// Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; Gers et al., "Learning to
/// Forget", 2000.
/// @throws InvalidArgument when shapes or lengths do not fit.
template <class T>
HEED_API LstmOutput<T> lstm(const Variable<T>& x, const LstmParameters<T>& parameters,
                            const LstmState<T>& initial = {}, const LstmSteps& steps = {});

/// The options of LSTM, with PyTorch's names and defaults.
struct LstmOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0;  ///< of the output of every layer but the last
  bool bidirectional = false;
};

/// Stacked layers of LSTM: torch.nn.LSTM(…, batch_first=True), with its parameters' names, order
/// and initialisation, all uniform in ±1/√hidden_size.
template <class T = float>
class HEED_API LSTM : public Module<T> {
 public:
  /// @throws InvalidArgument unless sizes and num_layers are positive and 0 ≤ dropout ≤ 1.
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options = {});

  /// @param x       [batch, length, input_size]
  /// @param lengths of each sequence; empty: all have x's length
  /// @param initial [num_layers · directions, batch, hidden_size], layer by layer
  /// @throws InvalidArgument when shapes or lengths do not fit.
  LstmOutput<T> forward(const Variable<T>& x, const std::vector<std::int64_t>& lengths = {},
                        const LstmState<T>& initial = {});

  std::int64_t hidden_size() const noexcept { return hidden_size_; }
  std::int64_t num_directions() const noexcept { return options_.bidirectional ? 2 : 1; }
  const LstmOptions& options() const noexcept { return options_; }

  std::string class_name() const override { return "LSTM"; }
  std::string extra_repr() const override;

 private:
  void check_initial(const Variable<T>& x, const LstmState<T>& initial) const;

  std::int64_t input_size_;
  std::int64_t hidden_size_;
  LstmOptions options_;
  std::vector<LstmParameters<T>> parameters_;  // the directions of each layer, layer by layer
};

extern template class LSTM<float>;
extern template class LSTM<double>;

}}}  // namespace heed::v0::nn
