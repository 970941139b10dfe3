// Kept plans: the checks and decisions of attention() and attention_backward(), made once.
#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <utility>
#include <variant>

#include "attention/calls/run.h"
#include "attention/plan/plan_text.h"
#include "core/float_environment.h"
#include "heed/attention/plan.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace detail {

template <class Real>
struct Planned {
  Request<Real> request;
  PreparedPass<Real> forward;
  PreparedPass<Real> backward;
  std::string refusals;  // the reasons of backends that do not compute the request

  std::size_t workspace_bytes(Pass pass) const {
    if (pass == Pass::kWeights) return prepare(request, pass)->bytes(request);
    return (pass == Pass::kForward ? forward : backward)->bytes(request);
  }
  std::int64_t kept_size() const { return forward->kept_size(request); }
  std::string text() const;
};

// The request and how it is computed, in a few lines.
template <class Real>
std::string Planned<Real>::text() const {
  std::string text = request_text(request) + forward->describe(request);
  if (!refusals.empty()) text += fmt::format("reason      {}\n", refusals);
  const std::size_t bytes[] = {workspace_bytes(Pass::kForward), workspace_bytes(Pass::kBackward),
                               workspace_bytes(Pass::kWeights)};
  if (bytes[0] + bytes[1] + bytes[2] == 0) return text;
  return text + fmt::format("workspace   {} bytes; backward {}, weights {}\n", bytes[0], bytes[1],
                            bytes[2]);
}

using AnyPlanned = std::variant<Planned<float>, Planned<double>>;

}  // namespace detail

struct AttentionPlan::Decision {
  detail::AnyPlanned planned;

  // Applies `get` to the plan, which is in float or in double.
  template <class Get>
  auto operator()(const Get& get) const {
    const auto* in_float = std::get_if<detail::Planned<float>>(&planned);
    return in_float != nullptr ? get(*in_float)
                               : get(*std::get_if<detail::Planned<double>>(&planned));
  }
};

namespace {

constexpr const char* kRun = "AttentionPlan::run";
constexpr const char* kRunBackward = "AttentionPlan::run_backward";

void check_equal(const char* function, const char* name, std::int64_t found, std::int64_t planned) {
  if (found == planned) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, but {} was planned", function, name, found, planned));
}

void check_planned(const char* function, const AttentionShapes& found,
                   const AttentionShapes& planned) {
  if (found.dtype != planned.dtype || found.type_of_keys() != planned.type_of_keys() ||
      found.type_of_values() != planned.type_of_values()) {
    throw InvalidArgument(fmt::format("{}: the tensors are {}, but {} was planned", function,
                                      to_string(found.dtype), to_string(planned.dtype)));
  }
  check_equal(function, "batch", found.batch, planned.batch);
  check_equal(function, "num_heads", found.num_heads, planned.num_heads);
  check_equal(function, "num_kv_heads", found.num_kv_heads, planned.num_kv_heads);
  check_equal(function, "q_len", found.q_len, planned.q_len);
  check_equal(function, "kv_len", found.kv_len, planned.kv_len);
  check_equal(function, "head_dim", found.head_dim, planned.head_dim);
  check_equal(function, "value_dim", found.value_dim, planned.value_dim);
}

// Returns the plan if it fits these tensors; throws otherwise.
template <class T>
const detail::Planned<Computed<T>>& planned_for(const char* function,
                                                const detail::AnyPlanned& planned,
                                                TensorView<const T> query, TensorView<const T> key,
                                                TensorView<const T> value) {
  const AttentionShapes found = check_shapes(function, query, key, value);
  std::visit([&](const auto& any) { check_planned(function, found, any.request.shape); }, planned);
  return std::get<detail::Planned<Computed<T>>>(planned);
}

void check_workspace(const char* function, std::span<std::byte> workspace, std::size_t needed) {
  if (workspace.empty() || workspace.size() >= needed) return;
  throw InvalidArgument(fmt::format("{}: workspace has {} bytes, expected at least {}", function,
                                    workspace.size(), needed));
}

// Kernels write whole vectors into `kept`.
void check_alignment(const void* kept) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t rest = reinterpret_cast<std::uintptr_t>(kept) % kAlignment;
  if (rest == 0) return;
  throw InvalidArgument(fmt::format(
      "{}: kept begins {} bytes behind a multiple of {}, expected at one", kRun, rest, kAlignment));
}

template <class T>
void run_planned_into(const detail::AnyPlanned& any, const AttentionBuffers<T>& buffers,
                      TensorView<const T> query, TensorView<const T> key,
                      TensorView<const T> value) {
  const FloatEnvironment environment;
  using Real = Computed<T>;
  const auto& planned = planned_for(kRun, any, query, key, value);
  const AttentionShapes& shapes = planned.request.shape;
  check_tensor<T>(kRun, "out", buffers.out,
                  {shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  const auto check_lse = [&](const char* name, const TensorView<Real>& view) {
    if (view.empty()) return;
    check_tensor<Real>(kRun, name, view, {shapes.batch, shapes.num_heads, shapes.q_len});
  };
  check_lse("lse", buffers.lse);
  check_lse("lse_low", buffers.lse_low);
  if (!buffers.out_low.empty()) {
    check_tensor<T>(kRun, "out_low", buffers.out_low, buffers.out.shape());
    if (std::is_same_v<T, Real>) for_each_element(buffers.out_low, [](T& number) { number = {}; });
  }
  if (!buffers.kept.empty()) {
    check_kept<Real>(kRun, "kept", buffers.kept, planned.kept_size());
    check_alignment(buffers.kept.data());
  }
  check_workspace(kRun, buffers.workspace, planned.workspace_bytes(Pass::kForward));
  ForwardCall<Real> call{call_of(planned.request, query, key, value), rows_of(buffers.out),
                         buffers.lse, buffers.lse_low, rows_or_none(buffers.out_low)};
  call.kept = data_or_null(buffers.kept);
  planned.forward->forward({&call, 1}, buffers.workspace);
}

template <class T>
Tensor<T> run_planned(const detail::AnyPlanned& any, TensorView<const T> query,
                      TensorView<const T> key, TensorView<const T> value) {
  const AttentionShapes& shapes = planned_for(kRun, any, query, key, value).request.shape;
  auto out =
      Tensor<T>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  run_planned_into<T>(any, {.out = out}, query, key, value);
  return out;
}

template <class T>
AttentionGradients<T, Computed<T>> run_planned_backward(const detail::AnyPlanned& any,
                                                        const BackwardTensors<T>& in,
                                                        std::span<std::byte> workspace) {
  const FloatEnvironment environment;
  const auto& planned = planned_for(kRunBackward, any, in.query, in.key, in.value);
  check_workspace(kRunBackward, workspace, planned.workspace_bytes(Pass::kBackward));
  return run_backward<T>(kRunBackward, planned.request, *planned.backward, in, workspace);
}

template <class Real>
detail::AnyPlanned make_planned(const AttentionShapes& shapes,
                                const BasicAttentionOptions<Real>& options) {
  const FloatEnvironment environment;
  Request<Real> request = check_request("plan", shapes, options);
  std::string refusals;
  PreparedPass<Real> forward = prepare(request, Pass::kForward, &refusals);
  PreparedPass<Real> backward = prepare(request, Pass::kBackward);
  return detail::Planned<Real>{std::move(request), std::move(forward), std::move(backward),
                               std::move(refusals)};
}

// Half precision is computed in float; doubles go with doubles only.
void check_types(const AttentionShapes& shapes, bool options_are_double) {
  const std::pair<const char*, DataType> types[] = {{"dtype", shapes.dtype},
                                                    {"key_dtype", shapes.type_of_keys()},
                                                    {"value_dtype", shapes.type_of_values()}};
  for (const auto& [name, type] : types) {
    if ((type == DataType::kFloat64) == options_are_double) continue;
    throw InvalidArgument(
        fmt::format("plan: {} is {} but the options are {}, expected {}", name, to_string(type),
                    options_are_double ? "AttentionOptions64" : "AttentionOptions",
                    options_are_double ? "float64"
                                       : "float32, float16 or bfloat16 (AttentionOptions64 are "
                                         "those of float64)"));
  }
}

}  // namespace

AttentionPlan::AttentionPlan(std::shared_ptr<const Decision> decision)
    : decision_(std::move(decision)) {}

AttentionPlan plan(const AttentionShapes& shapes, const AttentionOptions& options) {
  check_types(shapes, false);
  return AttentionPlan(std::make_shared<AttentionPlan::Decision>(
      AttentionPlan::Decision{make_planned(shapes, options)}));
}

AttentionPlan plan_in_double(const AttentionShapes& shapes, const AttentionOptions64& options) {
  check_types(shapes, true);
  return AttentionPlan(std::make_shared<AttentionPlan::Decision>(
      AttentionPlan::Decision{make_planned(shapes, options)}));
}

const AttentionShapes& AttentionPlan::shapes() const noexcept {
  return *(*decision_)([](const auto& planned) { return &planned.request.shape; });
}

std::string AttentionPlan::target() const {
  return (*decision_)([](const auto& planned) { return planned.forward->target(); });
}

int AttentionPlan::num_threads() const noexcept {
  return (*decision_)([](const auto& planned) { return planned.forward->num_threads(); });
}

bool AttentionPlan::splits_keys() const noexcept {
  return (*decision_)([](const auto& planned) { return planned.forward->splits_keys(); });
}

std::size_t AttentionPlan::workspace_bytes() const {
  return (*decision_)([](const auto& planned) { return planned.workspace_bytes(Pass::kForward); });
}

std::size_t AttentionPlan::backward_workspace_bytes() const {
  return (*decision_)([](const auto& planned) { return planned.workspace_bytes(Pass::kBackward); });
}

std::size_t AttentionPlan::weights_workspace_bytes() const {
  return (*decision_)([](const auto& planned) { return planned.workspace_bytes(Pass::kWeights); });
}

std::int64_t AttentionPlan::kept_size() const {
  return (*decision_)([](const auto& planned) { return planned.kept_size(); });
}

TileCounts AttentionPlan::tiles() const {
  return (*decision_)([](const auto& planned) { return planned.forward->tiles(planned.request); });
}

std::string AttentionPlan::to_string() const {
  return (*decision_)([](const auto& planned) { return planned.text(); });
}

Tensor<float> AttentionPlan::run(FloatView query, FloatView key, FloatView value) const {
  return run_planned(decision_->planned, query, key, value);
}

Tensor<Float16> AttentionPlan::run(Float16View query, Float16View key, Float16View value) const {
  return run_planned(decision_->planned, query, key, value);
}

Tensor<BFloat16> AttentionPlan::run(BFloat16View query, BFloat16View key,
                                    BFloat16View value) const {
  return run_planned(decision_->planned, query, key, value);
}

Tensor<double> AttentionPlan::run(DoubleView query, DoubleView key, DoubleView value) const {
  return run_planned(decision_->planned, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<float>& buffers, FloatView query, FloatView key,
                             FloatView value) const {
  run_planned_into(decision_->planned, buffers, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<Float16>& buffers, Float16View query,
                             Float16View key, Float16View value) const {
  run_planned_into(decision_->planned, buffers, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<BFloat16>& buffers, BFloat16View query,
                             BFloat16View key, BFloat16View value) const {
  run_planned_into(decision_->planned, buffers, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<double>& buffers, DoubleView query,
                             DoubleView key, DoubleView value) const {
  run_planned_into(decision_->planned, buffers, query, key, value);
}

AttentionGradients<float> AttentionPlan::run_backward(FloatView grad_out, FloatView query,
                                                      FloatView key, FloatView value,
                                                      const AttentionOutputView<float>& forward,
                                                      std::span<std::byte> workspace) const {
  return run_planned_backward<float>(decision_->planned, {grad_out, query, key, value, forward},
                                     workspace);
}

AttentionGradients<Float16, float> AttentionPlan::run_backward(
    Float16View grad_out, Float16View query, Float16View key, Float16View value,
    const AttentionOutputView<Float16, float>& forward, std::span<std::byte> workspace) const {
  return run_planned_backward<Float16>(decision_->planned, {grad_out, query, key, value, forward},
                                       workspace);
}

AttentionGradients<BFloat16, float> AttentionPlan::run_backward(
    BFloat16View grad_out, BFloat16View query, BFloat16View key, BFloat16View value,
    const AttentionOutputView<BFloat16, float>& forward, std::span<std::byte> workspace) const {
  return run_planned_backward<BFloat16>(decision_->planned, {grad_out, query, key, value, forward},
                                        workspace);
}

AttentionGradients<double> AttentionPlan::run_backward(DoubleView grad_out, DoubleView query,
                                                       DoubleView key, DoubleView value,
                                                       const AttentionOutputView<double>& forward,
                                                       std::span<std::byte> workspace) const {
  return run_planned_backward<double>(decision_->planned, {grad_out, query, key, value, forward},
                                      workspace);
}

std::ostream& operator<<(std::ostream& stream, const AttentionPlan& plan) {
  return stream << plan.to_string();
}

}}  // namespace heed::v0
