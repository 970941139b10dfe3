#include "attention/recurrent/attention.h"

#include <algorithm>
#include <utility>

#include "attention/kernels/recurrence/recurrence.h"
#include "attention/kernels/target.h"
#include "core/float_environment.h"
#include "heed/attention/reference.h"
#include "heed/core/cancellation.h"
#include "heed/core/convert.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 { namespace recurrent {

namespace {

using kernels::Recurrence;

// Consecutive columns of the state of one key head in one batch entry.
struct Slice {
  std::int64_t batch;
  std::int64_t kv_head;
  std::int64_t first_column;
  std::int32_t columns;
};

const float* row_of(FloatView view, std::int64_t batch, std::int64_t head) {
  return view.data() + batch * view.stride(0) + head * view.stride(1);
}

// The division of the columns of all states among threads.
class Slices {
 public:
  Slices(const Sizes& sizes, std::int32_t lanes) : sizes_(sizes), lanes_(lanes) {
    const std::int64_t states = sizes.batch * sizes.num_kv_heads;
    while (vectors_ > 1 &&
           (vectors_ / 2 * lanes >= sizes.value_dim || states * per_state() < num_threads())) {
      vectors_ /= 2;
    }
    count_ = states * per_state();
  }

  std::int32_t vectors() const { return vectors_; }
  std::int64_t width() const { return std::int64_t{vectors_} * lanes_; }
  std::int64_t count() const { return count_; }

  Slice operator[](std::int64_t index) const {
    const std::int64_t first = index % per_state() * width();
    const std::int64_t state = index / per_state();
    return {state / sizes_.num_kv_heads, state % sizes_.num_kv_heads, first,
            static_cast<std::int32_t>(std::min(width(), sizes_.value_dim - first))};
  }

 private:
  std::int64_t per_state() const { return (sizes_.value_dim + width() - 1) / width(); }

  Sizes sizes_;
  std::int32_t lanes_;
  std::int32_t vectors_ = kernels::kStateVectors;
  std::int64_t count_ = 0;
};

// The columns of a slice of [head_dim, value_dim] as rows of whole vectors, and scratch memory for
// gates.
class Scratch {
 public:
  Scratch(const Sizes& sizes, const Slices& slices, std::int32_t lanes)
      : head_dim_(sizes.head_dim),
        width_(slices.width()),
        memory_({sizes.head_dim * width_ + (sizes.head_dim + lanes - 1) / lanes * lanes}) {}

  float* state() { return memory_.data(); }
  float* gates() { return memory_.data() + head_dim_ * width_; }

  void load(TensorView<const float> state, const Slice& slice) {
    std::fill_n(memory_.data(), head_dim_ * width_, 0.0F);
    if (state.empty()) return;
    for (std::int64_t i = 0; i < head_dim_; ++i) {
      const float* row = row_of(state, slice.batch, slice.kv_head) + i * state.stride(2);
      std::copy_n(row + slice.first_column, slice.columns, memory_.data() + i * width_);
    }
  }

  void store(const Slice& slice, TensorView<float> state) const {
    for (std::int64_t i = 0; i < head_dim_; ++i) {
      std::copy_n(memory_.data() + i * width_, slice.columns,
                  &state(slice.batch, slice.kv_head, i, slice.first_column));
    }
  }

 private:
  std::int64_t head_dim_;
  std::int64_t width_;
  Tensor<float> memory_;
};

// Sets the tensors that the tokens of a slice write to the state.
void set_writes(const Problem<float>& problem, const Slice& slice, Recurrence& recurrence) {
  recurrence.key = row_of(problem.key, slice.batch, problem.key_head(slice.kv_head));
  recurrence.key_stride = problem.key.stride(2);
  recurrence.value = row_of(problem.value, slice.batch, slice.kv_head) + slice.first_column;
  recurrence.value_stride = problem.value.stride(2);
  if (problem.decay) {
    recurrence.decay = row_of(*problem.decay, slice.batch, slice.kv_head);
    recurrence.decay_stride = problem.decay->stride(2);
    recurrence.decay_is_scalar = problem.decay->stride(3) == 0;
  }
  if (problem.beta) {
    recurrence.beta = row_of(*problem.beta, slice.batch, slice.kv_head);
    recurrence.beta_stride = problem.beta->stride(2);
  }
}

// Sets the tensors that the tokens of a slice read from the state, and their outputs.
void set_reads(const Problem<float>& problem, const Slice& slice, TensorView<float> out,
               Recurrence& recurrence) {
  const std::int64_t first_head = slice.kv_head * problem.heads_per_kv_head;
  recurrence.num_heads = static_cast<std::int32_t>(problem.heads_per_kv_head);
  recurrence.scale = problem.scale;
  recurrence.query = row_of(problem.query, slice.batch, problem.query_head(first_head));
  recurrence.query_stride = problem.query.stride(2);
  recurrence.query_head_stride = problem.query.stride(1);
  recurrence.out =
      out.data() + slice.batch * out.stride(0) + first_head * out.stride(1) + slice.first_column;
  recurrence.out_stride = out.stride(2);
  recurrence.out_head_stride = out.stride(1);
}

// Runs a recurrence some tokens at a time. This costs nothing, as the state is in memory between
// tokens anyway.
void run(const kernels::KernelTable& table, std::int32_t vectors, Recurrence recurrence) {
  constexpr std::int64_t kTokens = 1024;
  const auto advance = [](auto*& row, std::int64_t stride) {
    if (row != nullptr) row += kTokens * stride;
  };
  for (std::int64_t left = recurrence.length; left > 0; left -= kTokens) {
    check_cancelled();
    recurrence.length = std::min(left, kTokens);
    table.recurrence->run(vectors, recurrence);
    if (left <= kTokens) return;
    advance(recurrence.key, recurrence.key_stride);
    advance(recurrence.value, recurrence.value_stride);
    advance(recurrence.decay, recurrence.decay_stride);
    advance(recurrence.beta, recurrence.beta_stride);
    advance(recurrence.query, recurrence.query_stride);
    advance(recurrence.out, recurrence.out_stride);
  }
}

// Runs `use(slice, vectors, recurrence)` for every slice in parallel, starting from the initial
// state. `recurrence` has the state and its sizes; the final state is written to `states`.
template <class Use>
void for_each_slice(const kernels::KernelTable& table, const Problem<float>& problem,
                    TensorView<float> states, const Use& use) {
  const Slices slices(problem, table.lanes);
  parallel_for(0, slices.count(), 1, [&](std::int64_t first, std::int64_t last) {
    Scratch scratch(problem, slices, table.lanes);
    for (std::int64_t i = first; i < last; ++i) {
      const Slice slice = slices[i];
      scratch.load(problem.initial_state.value_or(FloatView{}), slice);
      Recurrence recurrence;
      recurrence.head_dim = static_cast<std::int32_t>(problem.head_dim);
      recurrence.columns = slice.columns;
      recurrence.state = scratch.state();
      recurrence.gates = scratch.gates();
      use(slice, slices.vectors(), recurrence);
      scratch.store(slice, states);
    }
  });
}

Tensor<float> features_of(const kernels::KernelTable& table, FeatureMap map, FloatView view) {
  auto result = Tensor<float>::uninitialized(view.shape());
  const std::int64_t rows = view.extent(1) * view.extent(2);
  const std::int64_t dim = view.extent(3);
  if (result.empty()) return result;
  parallel_for(0, view.extent(0) * rows, std::max<std::int64_t>(1, 16384 / dim),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) {
                   const std::int64_t batch = row / rows;
                   const std::int64_t head = row / view.extent(2) % view.extent(1);
                   const float* numbers =
                       row_of(view, batch, head) + row % view.extent(2) * view.stride(2);
                   table.recurrence->features(map, numbers, dim, result.data() + row * dim);
                 }
               });
  return result;
}

// Σ_k (query · key_k) value_k over all keys or, if causal, those up to the query's own. The number
// of keys may differ from that of queries, which is `length`.
Tensor<float> attend_without_softmax(const kernels::KernelTable& table,
                                     const Problem<float>& problem, bool causal) {
  auto out = Tensor<float>::uninitialized(problem.out());
  Tensor<float> states(problem.state());
  const auto attend = [&](const Slice& slice, std::int32_t vectors, Recurrence& recurrence) {
    Recurrence reads = recurrence;
    set_reads(problem, slice, out, causal ? recurrence : reads);
    set_writes(problem, slice, recurrence);
    recurrence.length = problem.key.extent(2);
    run(table, vectors, recurrence);
    if (causal) return;
    reads.length = problem.query.extent(2);
    run(table, vectors, reads);
  };
  for_each_slice(table, problem, states, attend);
  return out;
}

// Divides each row by its sum of weights.
void normalize(const Tensor<float>& sums, Tensor<float>& out) {
  const std::int64_t dim = out.extent(3);
  if (out.empty()) return;
  parallel_for(0, sums.num_elements(), std::max<std::int64_t>(1, 16384 / dim),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) {
                   const float sum = sums.data()[row];
                   float* elements = out.data() + row * dim;
                   for (std::int64_t j = 0; j < dim; ++j) {
                     elements[j] = sum == 0 ? 0 : elements[j] / sum;
                   }
                 }
               });
}

template <class T>
LinearAttentionOutput<T, float> attend_as_floats(TensorView<const T> query, TensorView<const T> key,
                                                 TensorView<const T> value,
                                                 const LinearAttentionOptions& options) {
  const FloatEnvironment environment;
  check_sizes("linear_attention", query, key, value);
  auto result = linear_attention(converted<float>(query), converted<float>(key),
                                 converted<float>(value), options);
  auto out = Tensor<T>::uninitialized(result.out.shape());
  std::transform(result.out.elements().begin(), result.out.elements().end(), out.elements().begin(),
                 [](float number) { return T(number); });
  return {std::move(out), std::move(result.state)};
}

}  // namespace

LinearAttentionOutput<float> attend_by_kernels(const kernels::KernelTable& table,
                                               const Problem<float>& problem) {
  // If value_dim is 0 there are no slices, and nothing to write.
  LinearAttentionOutput<float> result{Tensor<float>::uninitialized(problem.out()),
                                      Tensor<float>::uninitialized(problem.state())};
  const auto attend = [&](const Slice& slice, std::int32_t vectors, Recurrence& recurrence) {
    recurrence.length = problem.length;
    set_writes(problem, slice, recurrence);
    set_reads(problem, slice, result.out, recurrence);
    run(table, vectors, recurrence);
  };
  for_each_slice(table, problem, result.state, attend);
  return result;
}

Tensor<float> attend_by_features(const kernels::KernelTable& table, FloatView query, FloatView key,
                                 FloatView value, const FeatureMapOptions& options) {
  const Tensor<float> query_features = features_of(table, options.feature_map, query);
  const Tensor<float> key_features = features_of(table, options.feature_map, key);
  const Sizes sizes{.batch = query.extent(0),
                    .num_heads = query.extent(1),
                    .num_kv_heads = key.extent(1),
                    .length = query.extent(2),
                    .head_dim = query.extent(3),
                    .value_dim = value.extent(3),
                    .heads_per_kv_head = key.extent(1) == 0 ? 0 : query.extent(1) / key.extent(1)};
  Problem<float> problem{sizes,
                         {.scale = 1, .decay = {}, .beta = {}, .initial_state = {}},
                         query_features,
                         key_features,
                         value};
  Tensor<float> out = attend_without_softmax(table, problem, options.causal);
  if (!options.normalized) return out;
  // The sum of a query's weights is its result for values that are 1.
  const float one = 1;
  problem.value_dim = 1;
  problem.value = FloatView(&one, Shape{sizes.batch, sizes.num_kv_heads, key.extent(2), 1}, {});
  normalize(attend_without_softmax(table, problem, options.causal), out);
  return out;
}

}}}  // namespace heed::v0::recurrent

namespace heed { inline namespace v0 {

LinearAttentionOutput<float> linear_attention(FloatView query, FloatView key, FloatView value,
                                              const LinearAttentionOptions& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "linear_attention";
  const recurrent::Sizes sizes = recurrent::check_sizes(kFunction, query, key, value);
  const recurrent::Problem<float> problem{sizes, recurrent::check_terms(kFunction, sizes, options),
                                          query, key, value};
  const auto* table = kernels_in_use();
  return table == nullptr ? recurrent::attend_by_reference(problem)
                          : recurrent::attend_by_kernels(*table, problem);
}

LinearAttentionOutput<Float16, float> linear_attention(Float16View query, Float16View key,
                                                       Float16View value,
                                                       const LinearAttentionOptions& options) {
  const FloatEnvironment environment;
  return recurrent::attend_as_floats(query, key, value, options);
}

LinearAttentionOutput<BFloat16, float> linear_attention(BFloat16View query, BFloat16View key,
                                                        BFloat16View value,
                                                        const LinearAttentionOptions& options) {
  const FloatEnvironment environment;
  return recurrent::attend_as_floats(query, key, value, options);
}

LinearAttentionOutput<double> linear_attention(DoubleView query, DoubleView key, DoubleView value,
                                               const LinearAttentionOptions64& options) {
  const FloatEnvironment environment;
  return reference::linear_attention(query, key, value, options);
}

Tensor<float> feature_map_attention(FloatView query, FloatView key, FloatView value,
                                    const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  recurrent::check_feature_map("feature_map_attention", query, key, value, options);
  const auto* table = kernels_in_use();
  return table == nullptr ? reference::feature_map_attention(query, key, value, options)
                          : recurrent::attend_by_features(*table, query, key, value, options);
}

Tensor<double> feature_map_attention(DoubleView query, DoubleView key, DoubleView value,
                                     const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  return reference::feature_map_attention(query, key, value, options);
}

}}  // namespace heed::v0
