#include "heed/nn/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/float_environment.h"
#include "distributed/agreement.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "nn/node.h"
#include "nn/rank_gradients.h"

namespace heed { inline namespace v0 { namespace nn {

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
  TorchGenerator().set_state(*state);  // throws if it does not fit
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

  // A state dict with views of the copies.
  const StateDict& state() const { return state_; }

  // Replaces the copies by those of rank 0.
  void share(Communicator& ranks) {
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (AnyTensor& any : tensors_) {
      std::visit(
          [&](auto& tensor) {
            const auto elements = tensor.view().elements();
            transfers.push_back(ranks.broadcast(
                {reinterpret_cast<std::byte*>(elements.data()), elements.size_bytes()}, 0));
          },
          any);
    }
    for (const auto& transfer : transfers) transfer->wait();
  }

  // The names and shapes.
  std::string description() const {
    std::string text;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      text += fmt::format("{} {} {}\n", state_[i].name, dtype_name(tensors_[i]),
                          to_string(shape(tensors_[i])));
    }
    return text;
  }

 private:
  static AnyView view_of(const AnyTensor& any) {
    return std::visit([](const auto& tensor) { return AnyView(tensor.view()); }, any);
  }

  std::vector<AnyTensor> tensors_;
  StateDict state_;
};

// Sets the generator of all ranks to that of rank 0.
void share_generator(Communicator& ranks) {
  const Tensor<std::uint64_t> random = default_generator().state();
  Copies copies({{kRandom, random.view()}});
  copies.share(ranks);
  default_generator().set_state(std::get<TensorView<const std::uint64_t>>(copies.state()[0].value));
}

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
  if (options_.ranks == nullptr) return write_checkpoint();
  run_on_all(*options_.ranks, [this] {
    if (options_.ranks->rank() == 0) write_checkpoint();
  });
}

template <class T>
void Trainer<T>::write_checkpoint() const {
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
  if (options_.ranks == nullptr) return read_checkpoint();
  run_on_all(*options_.ranks, [this] {
    if (options_.ranks->rank() == 0) read_checkpoint();
  });
  share_state();
}

template <class T>
void Trainer<T>::read_checkpoint() {
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

// Sends rank 0's model, optimiser, generator and step to all ranks.
template <class T>
void Trainer<T>::share_state() {
  Communicator& ranks = *options_.ranks;
  const Tensor<std::int64_t> step({1}, {step_});
  const Tensor<std::uint64_t> random = default_generator().state();
  Copies model(model_.state_dict());
  Copies optimizer(optimizer_.state_dict());
  Copies others({{kStep, step.view()}, {kRandom, random.view()}});
  const auto texts = gather_texts(ranks, model.description() + optimizer.description());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    throw InvalidArgument(fmt::format(
        "Trainer: rank {} trains another model than rank 0, expected the same tensors", rank));
  }
  for (Copies* const copies : {&model, &optimizer, &others}) copies->share(ranks);
  if (ranks.rank() == 0) return;
  model_.load_state_dict(model.state());
  optimizer_.load_state_dict(optimizer.state());
  step_ = std::get<TensorView<const std::int64_t>>(others.state()[0].value)(0);
  default_generator().set_state(std::get<TensorView<const std::uint64_t>>(others.state()[1].value));
}

// Computes the loss of this rank's part, which must be finite. Returns no loss if there is no
// backward pass to do.
template <class T>
BatchLoss<T> Trainer<T>::part_of_batch(const Loss& loss) const {
  BatchLoss<T> batch = loss();
  if (batch.weight == 0 && !options_.is_context_parallel) return {{}, 0};
  const double value = batch.loss.item();
  if (!std::isfinite(value)) {
    throw InvalidArgument(
        fmt::format("Trainer::run: the loss of step {} is {}, expected a finite number; a lower "
                    "learning rate may help",
                    step_ + 1, value));
  }
  return batch;
}

template <class T>
BatchMean Trainer<T>::learn_alone(const Loss& loss) const {
  const BatchLoss<T> batch = part_of_batch(loss);
  if (!batch.loss.is_defined()) return {};
  batch.loss.backward();
  return {batch.loss.item(), batch.weight};
}

// For divided sequences, each rank's backward pass begins with its share of the loss, so that the
// gradients are parts of one sum. For divided batches, gradients of means are summed with shares.
template <class T>
BatchMean Trainer<T>::learn_together(const Loss& loss) const {
  Communicator& ranks = *options_.ranks;
  BatchLoss<T> part({}, 0);
  run_on_all(ranks, [&] { part = part_of_batch(loss); });
  const double value = part.loss.is_defined() ? part.loss.item() : 0;
  SharedBatch batch = share_batch(ranks, model_.parameters(), {value, part.weight});
  const double own_share = batch.shares[static_cast<std::size_t>(ranks.rank())];
  if (options_.is_context_parallel) std::ranges::fill(batch.shares, 1.0);
  RankGradients<T> gradients(ranks, model_.parameters(), std::move(batch.shares));
  std::exception_ptr failure;
  try {
    run_on_all(ranks, [&] {
      if (!part.loss.is_defined()) return;
      const double first = options_.is_context_parallel ? own_share : 1;
      detail::run_backward<T>(part.loss, Tensor<T>(part.loss.shape(), {static_cast<T>(first)}), {},
                              [&](const detail::Node<T>& leaf) { gradients.take(leaf); });
    });
  } catch (const CommunicationError&) {
    throw;
  } catch (...) {  // All ranks throw it, after the messages in transit have arrived.
    failure = std::current_exception();
  }
  gradients.finish();
  if (failure) std::rethrow_exception(failure);
  if (!batch.mean.every_rank_has_part) share_generator(ranks);
  return batch.mean;
}

template <class T>
TrainingStep Trainer<T>::train_step(const Loss& loss) {
  const FloatEnvironment environment;
  optimizer_.set_learning_rate(options_.schedule(step_));
  optimizer_.zero_grad();
  const BatchMean batch = options_.ranks == nullptr ? learn_alone(loss) : learn_together(loss);
  const double norm = clip_grad_norm(model_.parameters(), options_.max_grad_norm);
  optimizer_.step();
  return {++step_, batch.loss, norm, batch.weight};
}

template <class T>
bool Trainer<T>::goes_on(const TrainingStep& done, const AfterStep& after_step) const {
  if (!after_step) return true;
  if (options_.ranks == nullptr) return after_step(done);
  bool this_goes_on = true;
  run_on_all(*options_.ranks, [&] { this_goes_on = after_step(done); });
  const std::vector<std::uint8_t> ends{static_cast<std::uint8_t>(this_goes_on ? 0 : 1)};
  return !distributed::any_rank_says(*options_.ranks, ends).front();
}

template <class T>
bool Trainer<T>::run(const Loss& loss, const AfterStep& after_step) {
  if (options_.ranks != nullptr) share_state();
  model_.train();
  while (step_ < options_.schedule.total_steps) {
    const TrainingStep done = train_step(loss);
    const bool is_wanted = goes_on(done, after_step);
    const bool is_last = step_ == options_.schedule.total_steps;
    if (is_last || !is_wanted || step_ % options_.save_every == 0) save();
    if (!is_wanted && !is_last) return false;
  }
  return true;
}

template class Trainer<float>;
template class Trainer<double>;

}}}  // namespace heed::v0::nn
