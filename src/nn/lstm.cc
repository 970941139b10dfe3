#include "heed/nn/lstm.h"

#include <fmt/format.h>

#include <cmath>

#include "heed/core/random.h"
#include "nn/python_repr.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

void check_options(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options) {
  if (input_size < 1 || hidden_size < 1 || options.num_layers < 1) {
    throw InvalidArgument(fmt::format(
        "LSTM: input_size is {}, hidden_size {} and num_layers {}; expected positive numbers",
        input_size, hidden_size, options.num_layers));
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw InvalidArgument(fmt::format("LSTM: dropout is {}, expected 0 to 1", options.dropout));
  }
}

// The states of all layers and directions, concatenated.
template <class T>
LstmState<T> stacked(const std::vector<LstmState<T>>& states) {
  std::vector<Variable<T>> hidden;
  std::vector<Variable<T>> cell;
  for (const auto& state : states) {
    hidden.push_back(state.hidden);
    cell.push_back(state.cell);
  }
  return {stack(hidden), stack(cell)};
}

template <class T>
LstmState<T> state_of(const LstmState<T>& states, std::int64_t index) {
  if (!states.hidden.is_defined()) return {};
  return {select(states.hidden, 0, index), select(states.cell, 0, index)};
}

}  // namespace

template <class T>
LSTM<T>::LSTM(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options)
    : input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  check_options(input_size, hidden_size, options);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto drawn = [&](const std::string& name, const Shape& shape) {
    auto value = Tensor<T>::uninitialized(shape);
    default_generator().uniform(value, -bound, bound);
    return this->make_parameter(name, std::move(value));
  };
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::int64_t width = layer == 0 ? input_size : num_directions() * hidden_size;
    for (std::int64_t direction = 0; direction < num_directions(); ++direction) {
      const std::string suffix = fmt::format("_l{}{}", layer, direction == 0 ? "" : "_reverse");
      LstmParameters<T> parameters{drawn("weight_ih" + suffix, {4 * hidden_size, width}),
                                   drawn("weight_hh" + suffix, {4 * hidden_size, hidden_size})};
      if (options.bias) {
        parameters.bias_ih = drawn("bias_ih" + suffix, {4 * hidden_size});
        parameters.bias_hh = drawn("bias_hh" + suffix, {4 * hidden_size});
      }
      parameters_.push_back(std::move(parameters));
    }
  }
}

template <class T>
void LSTM<T>::check_initial(const Variable<T>& x, const LstmState<T>& initial) const {
  if (x.rank() != 3 || x.extent(2) != input_size_) {
    throw InvalidArgument(fmt::format("LSTM: x has shape {}, expected [batch, length, {}]",
                                      to_string(x.shape()), input_size_));
  }
  if (initial.hidden.is_defined() != initial.cell.is_defined()) {
    throw InvalidArgument("LSTM: initial has one of hidden and cell, expected both or none");
  }
  if (!initial.hidden.is_defined()) return;
  const Shape expected{static_cast<std::int64_t>(parameters_.size()), x.extent(0), hidden_size_};
  for (const auto* state : {&initial.hidden, &initial.cell}) {
    if (state->shape() == expected) continue;
    throw InvalidArgument(fmt::format("LSTM: an initial state has shape {}, expected {}",
                                      to_string(state->shape()), to_string(expected)));
  }
}

template <class T>
LstmOutput<T> LSTM<T>::forward(const Variable<T>& x, const std::vector<std::int64_t>& lengths,
                               const LstmState<T>& initial) {
  check_initial(x, initial);
  Variable<T> input = x;
  std::vector<LstmState<T>> states;
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0 && this->is_training()) input = dropout(input, draw_dropout(options_.dropout));
    std::vector<Variable<T>> outputs;
    for (std::int64_t direction = 0; direction < num_directions(); ++direction) {
      const std::int64_t index = layer * num_directions() + direction;
      LstmOutput<T> read =
          lstm(input, parameters_[static_cast<std::size_t>(index)], state_of(initial, index),
               {.is_reverse = direction == 1, .lengths = lengths});
      outputs.push_back(std::move(read.out));
      states.push_back(std::move(read.state));
    }
    input = outputs.size() == 1 ? outputs.front() : concat(outputs, -1);
  }
  return {input, stacked(states)};
}

template <class T>
std::string LSTM<T>::extra_repr() const {
  std::string text = fmt::format("{}, {}", input_size_, hidden_size_);
  if (options_.num_layers != 1) text += fmt::format(", num_layers={}", options_.num_layers);
  if (!options_.bias) text += ", bias=False";
  text += ", batch_first=True";
  if (options_.dropout != 0) text += ", dropout=" + python_repr(options_.dropout);
  if (options_.bidirectional) text += ", bidirectional=True";
  return text;
}

template class LSTM<float>;
template class LSTM<double>;

}}}  // namespace heed::v0::nn
