#include "heed/nn/trainer.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "heed/error.h"
#include "heed/random.h"

namespace heed::inline v0::nn {

namespace {

constexpr const char* kModel = "model.";
constexpr const char* kOptimizer = "optimizer.";
constexpr const char* kRandom = "random";
constexpr const char* kStep = "step";

void add_with_prefix(StateDict& to, const char* prefix, const StateDict& from) {
  for (const auto& [name, value] : from) to.push_back({prefix + name, value});
}

std::int64_t step_of(const Safetensors& file) {
  const auto found = file.metadata.find(kStep);
  if (found == file.metadata.end()) throw InvalidArgument("it has no step");
  const std::string& text = found->second;
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size() || step < 0) {
    throw InvalidArgument("its step is not a number");
  }
  return step;
}

const Tensor<std::uint64_t>& random_of(const Safetensors& file) {
  const auto found = file.tensors.find(kRandom);
  const auto* state =
      found == file.tensors.end() ? nullptr : std::get_if<Tensor<std::uint64_t>>(&found->second);
  if (state == nullptr) throw InvalidArgument("it has no state of a generator");
  TorchGenerator().set_state(*state);  // throws when it does not fit
  return *state;
}

// Copies of the tensors of a state dict.
class Copies {
 public:
  explicit Copies(const StateDict& state) {
    tensors_.reserve(state.size());
    for (const auto& [name, view] : state) {
      tensors_.push_back(
          std::visit([](const auto& tensor) { return AnyTensor(to_tensor(tensor)); }, view));
      state_.push_back({name, view_of(tensors_.back())});
    }
  }

  // Refers to the copies.
  const StateDict& state() const { return state_; }

 private:
  static AnyView view_of(const AnyTensor& any) {
    return std::visit([](const auto& tensor) { return AnyView(tensor.view()); }, any);
  }

  std::vector<AnyTensor> tensors_;
  StateDict state_;
};

}  // namespace

template <class T>
Trainer<T>::Trainer(Module<T>& model, Optimizer<T>& optimizer, TrainerOptions options)
    : model_(model), optimizer_(optimizer), options_(std::move(options)) {
  if (options_.schedule.total_steps < 1 || options_.save_every < 1) {
    throw InvalidArgument(
        fmt::format("Trainer: schedule.total_steps is {} and save_every is {}, expected at least 1",
                    options_.schedule.total_steps, options_.save_every));
  }
}

template <class T>
void Trainer<T>::save() const {
  if (options_.checkpoint.empty()) return;
  StateDict state;
  add_with_prefix(state, kModel, model_.state_dict());
  add_with_prefix(state, kOptimizer, optimizer_.state_dict());
  const Tensor<std::uint64_t> random = default_generator().state();
  state.push_back({kRandom, random.view()});
  Metadata metadata = options_.notes;
  metadata[kStep] = std::to_string(step_);
  nn::save(options_.checkpoint, state, metadata);
}

template <class T>
void Trainer<T>::resume() {
  const Safetensors file = read_safetensors(options_.checkpoint);
  try {
    const std::int64_t step = step_of(file);
    const Tensor<std::uint64_t>& random = random_of(file);
    const Copies before(model_.state_dict());
    model_.load_state_dict(state_dict(file, kModel));
    try {
      optimizer_.load_state_dict(state_dict(file, kOptimizer));
    } catch (const InvalidArgument&) {
      model_.load_state_dict(before.state());
      throw;
    }
    default_generator().set_state(random);
    step_ = step;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("Trainer::resume: '{}' is no checkpoint of this run: {}",
                                      options_.checkpoint.string(), error.what()));
  }
}

template <class T>
TrainingStep Trainer<T>::train_step(const Loss& loss) {
  optimizer_.set_learning_rate(options_.schedule(step_));
  optimizer_.zero_grad();
  const Variable<T> loss_now = loss();
  const double value = loss_now.item();
  if (!std::isfinite(value)) {
    throw InvalidArgument(
        fmt::format("Trainer::run: the loss of step {} is {}, expected a finite number; a lower "
                    "learning rate may help",
                    step_ + 1, value));
  }
  loss_now.backward();
  const double norm = clip_grad_norm(model_.parameters(), options_.max_grad_norm);
  optimizer_.step();
  return {++step_, value, norm};
}

template <class T>
bool Trainer<T>::run(const Loss& loss, const AfterStep& after_step) {
  model_.train();
  while (step_ < options_.schedule.total_steps) {
    const TrainingStep done = train_step(loss);
    const bool goes_on = !after_step || after_step(done);
    const bool is_last = step_ == options_.schedule.total_steps;
    if (is_last || !goes_on || step_ % options_.save_every == 0) save();
    if (!goes_on && !is_last) return false;
  }
  return true;
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace heed::inline v0::nn
