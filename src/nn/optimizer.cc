#include "heed/nn/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/core/parallel.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/vector_loops.h"

namespace heed { inline namespace v0 { namespace nn {

// The state of the optimiser for each parameter. It is a module, to share a module's names, saving
// and loading.
template <class T>
class Optimizer<T>::State : public Module<T> {
 public:
  struct OfParameter {
    Variable<T> step;
    std::vector<Variable<T>> tensors;
  };

  State(const std::vector<Variable<T>>& parameters, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string prefix = fmt::format("{}.", i);
      OfParameter state{this->make_buffer(prefix + "step", Tensor<T>({1})), {}};
      for (const auto& name : names) {
        state.tensors.push_back(this->make_buffer(prefix + name, Tensor<T>(parameters[i].shape())));
      }
      of_parameters.push_back(std::move(state));
    }
  }
  std::string class_name() const override { return "the optimiser"; }

  std::vector<OfParameter> of_parameters;
};

namespace {

double checked_learning_rate(double learning_rate) {
  if (!(learning_rate >= 0)) {
    throw InvalidArgument(
        fmt::format("Optimizer: learning_rate is {}, expected at least 0", learning_rate));
  }
  return learning_rate;
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(std::vector<Variable<T>> parameters, double learning_rate,
                        std::vector<std::string> state_names)
    : parameters_(std::move(parameters)),
      state_(std::make_unique<State>(parameters_, state_names)),
      learning_rate_(checked_learning_rate(learning_rate)) {}

template <class T>
Optimizer<T>::~Optimizer() = default;

template <class T>
void Optimizer<T>::step() {
  const FloatEnvironment environment;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Variable<T>& parameter = parameters_[i];
    if (!parameter.has_grad()) continue;
    const auto& state = state_->of_parameters[i];
    T& step = *state.step.writable_value().data();
    ++step;
    Slot slot{parameter.writable_value(), parameter.grad(), {}, static_cast<std::int64_t>(step)};
    for (const auto& tensor : state.tensors) slot.state.push_back(tensor.writable_value());
    update(slot);
  }
}

template <class T>
void Optimizer<T>::zero_grad() const {
  for (const auto& parameter : parameters_) parameter.zero_grad();
}

template <class T>
void Optimizer<T>::set_learning_rate(double learning_rate) {
  learning_rate_ = checked_learning_rate(learning_rate);
}

template <class T>
StateDict Optimizer<T>::state_dict() const {
  return state_->state_dict();
}

template <class T>
void Optimizer<T>::load_state_dict(const StateDict& state) {
  state_->load_state_dict(state);
}

template <class T>
Sgd<T>::Sgd(std::vector<Variable<T>> parameters, double learning_rate, const SgdOptions& options)
    : Optimizer<T>(std::move(parameters), learning_rate,
                   options.momentum == 0 ? std::vector<std::string>{}
                                         : std::vector<std::string>{"momentum_buffer"}),
      options_(options) {}

template <class T>
void Sgd<T>::update(const Slot& slot) {
  const auto decay = static_cast<T>(options_.weight_decay);
  const auto momentum = static_cast<T>(slot.step == 1 ? 0 : options_.momentum);
  const auto rate = static_cast<T>(this->learning_rate());
  T* parameter = slot.parameter.data();
  const T* grad = slot.grad.data();
  T* velocity = slot.state.empty() ? nullptr : slot.state.front().data();
  for (std::int64_t i = 0; i < slot.parameter.num_elements(); ++i) {
    T direction = grad[i] + decay * parameter[i];
    if (velocity != nullptr) direction = velocity[i] = momentum * velocity[i] + direction;
    parameter[i] -= rate * direction;
  }
}

template <class T>
Adam<T>::Adam(std::vector<Variable<T>> parameters, double learning_rate, const AdamOptions& options)
    : Optimizer<T>(std::move(parameters), learning_rate, {"exp_avg", "exp_avg_sq"}),
      options_(options) {}

template <class T>
void Adam<T>::adapt(const Slot& slot, T kept) {
  const auto [beta1, beta2] = options_.betas;
  const auto steps = static_cast<double>(slot.step);
  const auto rate = static_cast<T>(this->learning_rate() / (1 - elementary::pow(beta1, steps)));
  const auto root = static_cast<T>(std::sqrt(1 - elementary::pow(beta2, steps)));
  const AdamFactors<T> factors{.kept = kept,
                               .take = static_cast<T>(1 - beta1),
                               .keep_square = static_cast<T>(beta2),
                               .take_square = static_cast<T>(1 - beta2),
                               .rate = rate,
                               .root = root,
                               .eps = static_cast<T>(options_.eps)};
  T* parameter = slot.parameter.data();
  const T* grad = slot.grad.data();
  T* mean = slot.state[0].data();
  T* square = slot.state[1].data();
  parallel_for(
      0, slot.parameter.num_elements(), kElementGrain, [&](std::int64_t first, std::int64_t last) {
        vector_loops<T>().adam(
            factors, {parameter + first, grad + first, mean + first, square + first, last - first});
      });
}

template <class T>
void Adam<T>::update(const Slot& slot) {
  if (options_.weight_decay == 0) return adapt(slot, 1);
  Tensor<T> grad = to_tensor(slot.grad);
  const auto decay = static_cast<T>(options_.weight_decay);
  const T* parameter = slot.parameter.data();
  for (T& element : grad.elements()) element += decay * *parameter++;
  Slot decayed = slot;
  decayed.grad = grad.view();
  adapt(decayed, 1);
}

template <class T>
AdamW<T>::AdamW(std::vector<Variable<T>> parameters, double learning_rate,
                const AdamOptions& options)
    : Adam<T>(std::move(parameters), learning_rate, options) {}

template <class T>
void AdamW<T>::update(const Slot& slot) {
  this->adapt(slot, static_cast<T>(1 - this->learning_rate() * this->options().weight_decay));
}

namespace {

// Σ x², summed in order over parts of a fixed size.
template <class T>
double sum_of_squares(TensorView<const T> x) {
  std::vector<double> parts(static_cast<std::size_t>((x.num_elements() - 1) / kElementGrain + 1));
  parallel_for(0, x.num_elements(), kElementGrain, [&](std::int64_t first, std::int64_t last) {
    parts[static_cast<std::size_t>(first / kElementGrain)] =
        vector_loops<T>().sum_of_squares(x.data() + first, last - first);
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace

template <class T>
double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm) {
  const FloatEnvironment environment;
  if (!(max_norm >= 0)) {
    throw InvalidArgument(
        fmt::format("clip_grad_norm: max_norm is {}, expected at least 0", max_norm));
  }
  double squares = 0;
  for (const auto& parameter : parameters) {
    if (parameter.has_grad()) squares += sum_of_squares(parameter.grad());
  }
  const double norm = settled(std::sqrt(squares));
  // As PyTorch: a norm of 0 causes no division by 0.
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;
  for (const auto& parameter : parameters) {
    if (!parameter.has_grad()) continue;
    const TensorView<T> grad = parameter.writable_grad();
    parallel_for(0, grad.num_elements(), kElementGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) grad.data()[i] *= static_cast<T>(factor);
    });
  }
  return norm;
}

double WarmupCosine::operator()(std::int64_t step) const {
  const FloatEnvironment environment;
  if (step < warmup_steps) {
    return settled(peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps));
  }
  if (step >= total_steps) return floor;
  const double done =
      static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
  return settled(floor + (peak - floor) * (1 + elementary::cos(M_PI * done)) / 2);
}

template class Optimizer<float>;
template class Optimizer<double>;
template class Sgd<float>;
template class Sgd<double>;
template class Adam<float>;
template class Adam<double>;
template class AdamW<float>;
template class AdamW<double>;
template HEED_API double clip_grad_norm(const std::vector<Variable<float>>&, double);
template HEED_API double clip_grad_norm(const std::vector<Variable<double>>&, double);

}}}  // namespace heed::v0::nn
