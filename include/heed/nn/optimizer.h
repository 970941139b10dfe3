/// Optimisers, with the same steps as PyTorch's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/module.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// Changes parameters by their gradients.
template <class T = float>
class HEED_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Makes one step. Parameters without a gradient do not change.
  void step();
  /// Removes the gradients of all parameters.
  void zero_grad() const;

  double learning_rate() const noexcept { return learning_rate_; }
  /// Sets the learning rate of later steps. @throws InvalidArgument when it is negative or NaN.
  void set_learning_rate(double learning_rate);

  /// The state of the optimiser between steps, to be saved with the model: for parameter i,
  /// "i.step" [1] and "i.<name>" of the parameter's shape. It is 0 before the first step.
  StateDict state_dict() const;
  /// @throws InvalidArgument, before anything is written, naming every tensor that does not fit.
  void load_state_dict(const StateDict& state);

 protected:
  /// @param state_names the names of the state tensors of each parameter
  /// @throws InvalidArgument when learning_rate is negative or NaN.
  Optimizer(std::vector<Variable<T>> parameters, double learning_rate,
            std::vector<std::string> state_names);

  /// One parameter, its gradient, and its state tensors.
  struct Slot {
    TensorView<T> parameter;
    TensorView<const T> grad;
    std::vector<TensorView<T>> state;
    std::int64_t step = 0;  ///< counts from 1
  };
  virtual void update(const Slot& slot) = 0;

 private:
  class State;
  std::vector<Variable<T>> parameters_;
  std::unique_ptr<State> state_;
  double learning_rate_;
};

/// The options of Sgd, with PyTorch's names and defaults.
struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
};

/// v ← momentum · v + g, p ← p − learning_rate · v with g = grad + weight_decay · p, and v = g at
/// the first step: torch.optim.SGD.
template <class T = float>
class HEED_API Sgd : public Optimizer<T> {
 public:
  Sgd(std::vector<Variable<T>> parameters, double learning_rate, const SgdOptions& options = {});

 private:
  using typename Optimizer<T>::Slot;
  void update(const Slot& slot) override;
  SgdOptions options_;
};

/// The options of Adam and AdamW, with PyTorch's names and defaults.
struct AdamOptions {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  /// Adam adds weight_decay · parameter to the gradient; AdamW shrinks the parameter itself.
  double weight_decay = 0;
};

/// m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², p ← p − learning_rate · m̂ / (√v̂ + eps), where
/// m̂ = m / (1 − β₁ᵗ) and v̂ = v / (1 − β₂ᵗ) at step t: torch.optim.Adam.
///
/// Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014.
template <class T = float>
class HEED_API Adam : public Optimizer<T> {
 public:
  explicit Adam(std::vector<Variable<T>> parameters, double learning_rate = 1e-3,
                const AdamOptions& options = {});

 protected:
  using typename Optimizer<T>::Slot;
  /// A step of Adam without weight decay, from kept · p instead of p.
  void adapt(const Slot& slot, T kept);
  const AdamOptions& options() const noexcept { return options_; }

 private:
  void update(const Slot& slot) override;
  AdamOptions options_;
};

/// Adam after p ← p − learning_rate · weight_decay · p: torch.optim.AdamW, whose default
/// weight_decay is 0.01.
///
/// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2017.
template <class T = float>
class HEED_API AdamW : public Adam<T> {
 public:
  explicit AdamW(std::vector<Variable<T>> parameters, double learning_rate = 1e-3,
                 const AdamOptions& options = {.weight_decay = 0.01});

 private:
  using typename Optimizer<T>::Slot;
  void update(const Slot& slot) override;
};

/// Scales the gradients of all parameters so that their norm √Σ grad² is at most max_norm:
/// torch.nn.utils.clip_grad_norm_. Returns the norm before scaling.
/// @throws InvalidArgument when max_norm is negative or NaN.
template <class T>
HEED_API double clip_grad_norm(const std::vector<Variable<T>>& parameters, double max_norm);

/// A learning rate that rises linearly for `warmup_steps` steps and then falls like a cosine.
struct WarmupCosine {
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  double floor = 0;

  /// The learning rate of step 0, 1, …: peak · (step + 1) / warmup_steps during warmup, then
  ///
  ///     floor + (peak − floor) · (1 + cos(π · x)) / 2,
  ///     x = (step − warmup_steps) / (total_steps − warmup_steps),
  ///
  /// and `floor` from total_steps on. torch.optim.lr_scheduler's LinearLR, then CosineAnnealingLR.
  HEED_API double operator()(std::int64_t step) const;
};

extern template class Optimizer<float>;
extern template class Optimizer<double>;
extern template class Sgd<float>;
extern template class Sgd<double>;
extern template class Adam<float>;
extern template class Adam<double>;
extern template class AdamW<float>;
extern template class AdamW<double>;

}}}  // namespace heed::v0::nn
