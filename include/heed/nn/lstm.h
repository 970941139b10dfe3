/// Long short-term memory: torch.nn.LSTM, whose batch always comes first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/layers.h"

namespace heed { inline namespace v0 { namespace nn {

/// What an LSTM carries from step to step. Not defined: zeros.
template <class T>
struct LstmState {
  Variable<T> hidden = {};  ///< of a layer [batch, hidden_size], of an LSTM [layers ·
                            ///< directions, batch, hidden_size]
  Variable<T> cell = {};    ///< of the same shape
};

/// What an LSTM computed.
template <class T>
struct LstmOutput {
  Variable<T> out;     ///< [batch, length, directions · hidden_size]; 0 behind a sequence's end
  LstmState<T> state;  ///< after each sequence's last step
};

/// The parameters of one layer and direction; the gates lie in the order input, forget, cell,
/// output. Both biases or none.
template <class T>
struct LstmParameters {
  Variable<T> weight_ih;     ///< [4 · hidden_size, input_size]
  Variable<T> weight_hh;     ///< [4 · hidden_size, hidden_size]
  Variable<T> bias_ih = {};  ///< [4 · hidden_size]
  Variable<T> bias_hh = {};  ///< [4 · hidden_size]
};

/// Which way a layer reads, and how far.
struct LstmSteps {
  bool is_reverse = false;                 ///< from each sequence's last step to its first
  std::vector<std::int64_t> lengths = {};  ///< of each sequence; none: all are as long as x
};

/// One layer in one direction, as one node of the graph:
///
///     i = σ(W_i x + U_i h + b_i), f = σ(…), g = tanh(…), o = σ(…)
///     c ← f ∘ c + i ∘ g,  h ← o ∘ tanh c
///
/// x is [batch, length, input_size]. Where a sequence has ended its state stays and its output is
/// 0, as torch.nn.utils.rnn.pack_padded_sequence has it; a length of 0 is allowed. Sequences are
/// divided among threads, so that the bits do not depend on their number.
///
/// Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; Gers et al., "Learning to
/// Forget", 2000.
/// @throws InvalidArgument when shapes or lengths do not fit.
template <class T>
HEED_API LstmOutput<T> lstm(const Variable<T>& x, const LstmParameters<T>& parameters,
                            const LstmState<T>& initial = {}, const LstmSteps& steps = {});

struct LstmOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0;  ///< of every layer's output but the last one's
  bool bidirectional = false;
};

/// Layers of LSTM, one reading the other's output: torch.nn.LSTM(…, batch_first=True), with its
/// parameters' names, order and initialisation, all uniform in ±1/√hidden_size.
template <class T = float>
class HEED_API LSTM : public Module<T> {
 public:
  /// @throws InvalidArgument unless sizes and num_layers are positive and 0 ≤ dropout ≤ 1.
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options = {});

  /// @param x       [batch, length, input_size]
  /// @param lengths of each sequence, or none
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
  std::vector<LstmParameters<T>> parameters_;  // of each layer's directions, one after another
};

extern template class LSTM<float>;
extern template class LSTM<double>;

}}}  // namespace heed::v0::nn
