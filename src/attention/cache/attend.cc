// Attention of new queries over cached keys: one call of the engine for all sequences.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/cache/paged_keys.h"
#include "attention/cache/rotation.h"
#include "attention/cache/sequence_state.h"
#include "attention/cache/shared_states.h"
#include "attention/calls/packed_problem.h"
#include "attention/kernels/target.h"
#include "attention/masks/sinks_and_window.h"
#include "attention/plan/plan.h"
#include "core/float_environment.h"
#include "heed/attention/kv_cache.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::PageLayout;
using detail::SequenceState;

constexpr const char* kAttend = "attend";

// The queries of one sequence, and the tensors of their results.
template <class T>
struct Queries {
  const SequenceState* state;
  TensorView<const T> query;  // [1, num_heads, n, head_dim]
  TensorView<T> out;          // [1, num_heads, n, value_dim]
  TensorView<float> lse;      // [1, num_heads, n], like lse_low
  TensorView<float> lse_low;

  std::int64_t count() const { return query.extent(2); }
};

const SequenceState& checked_state(const KvSequence& sequence, std::int64_t num_queries) {
  const SequenceState& state = SequenceState::of(kAttend, sequence);
  const std::int64_t first = state.length - num_queries;
  if (first < 0) {
    throw InvalidArgument(fmt::format("{}: {} queries, but the sequence has {} positions", kAttend,
                                      num_queries, state.length));
  }
  if (num_queries > 0 && !state.keeps_for(first)) {
    throw InvalidArgument(fmt::format(
        "{}: the first query stands at {} and sees from {} on, but positions {} to {} are gone; "
        "max_append is {}",
        kAttend, first, first - state.bounds.window + 1, state.bounds.sinks, state.gone_end - 1,
        state.bounds.max_append));
  }
  return state;
}

template <class T>
void check_query(const TensorView<const T>& query, int rank, const char* expected,
                 const PageLayout& layout) {
  if (query.rank() != rank || (rank == 4 && query.extent(0) != 1)) {
    throw InvalidArgument(fmt::format("{}: query has shape {}, expected {}", kAttend,
                                      to_string(query.shape()), expected));
  }
  if (query.extent(-1) != layout.key.dim) {
    throw InvalidArgument(fmt::format("{}: query head_dim is {} but that of the keys is {}",
                                      kAttend, query.extent(-1), layout.key.dim));
  }
  if (query.extent(-1) > 1 && query.stride(-1) != 1) {
    throw InvalidArgument(
        fmt::format("{}: query has stride {} in its innermost dimension, expected 1", kAttend,
                    query.stride(-1)));
  }
}

// With rotated keys, scores are products with rotated queries; with rotated values, outputs are
// rotated.
void check_rotation(const Request<float>& request, const PageLayout& layout) {
  const auto refuse = [](const char* side) {
    throw InvalidArgument(fmt::format(
        "{}: relative_vectors has vectors for {}s, which int4 storage keeps rotated; expected {}s "
        "stored otherwise",
        kAttend, side, side));
  };
  if (layout.key.is_rotated() && request.terms.read_query()) refuse("key");
  if (layout.value.is_rotated() && request.terms.add_to_values()) refuse("value");
}

// The request for one sequence, as a batch of one.
Request<float> check_one(const SequenceState& state, std::int64_t num_heads, std::int64_t count,
                         DataType type, const AttentionOptions& given) {
  const PageLayout& layout = state.pool->layout();
  // Keys and values of other types are read as the floats that they stand for.
  const bool is_bfloat16 = type == DataType::kBFloat16 &&
                           layout.key.storage == KvStorage::kBFloat16 &&
                           layout.value.storage == KvStorage::kBFloat16;
  const DataType stored = is_bfloat16 ? DataType::kBFloat16 : DataType::kFloat32;
  const AttentionShapes shapes{.batch = 1,
                               .num_heads = num_heads,
                               .num_kv_heads = layout.num_kv_heads,
                               .q_len = count,
                               .kv_len = state.length,
                               .head_dim = layout.key.stored_dim,
                               .value_dim = layout.value.stored_dim,
                               .dtype = type,
                               .key_dtype = stored,
                               .value_dtype = stored};
  AttentionOptions options = given;
  options.query_offset = state.length - count;
  options.scale = given.scale.value_or(default_scale<float>(layout.key.dim));
  if (state.is_bounded()) {
    options.mask = options.mask & sinks_and_window(state.bounds.sinks, state.bounds.window);
  }
  Request<float> request = check_request(kAttend, shapes, options);
  check_rotation(request, layout);
  request.has_key_source = true;
  request.key_storage = layout.key.storage;
  request.value_storage = layout.value.storage;
  return request;
}

template <class T>
void compute(std::vector<Queries<T>> all, const AttentionOptions& options) {
  const FloatEnvironment environment;
  std::erase_if(all, [](const Queries<T>& one) { return one.count() == 0; });
  if (all.empty()) return;
  const PageLayout& layout = all.front().state->pool->layout();
  const bool is_rotated = layout.key.is_rotated() || layout.value.is_rotated();
  const DataType type = is_rotated ? DataType::kFloat32 : data_type_of<T>();
  std::vector<Request<float>> requests;
  std::vector<const Request<float>*> planned;
  std::vector<PagedKeys> keys;
  std::vector<detail::RotatedQueries> rotated;
  std::vector<ForwardCall<float>> calls;
  requests.reserve(all.size());
  planned.reserve(all.size());
  keys.reserve(all.size());
  rotated.reserve(is_rotated ? all.size() : 0);
  calls.reserve(all.size());
  for (const Queries<T>& one : all) {
    requests.push_back(check_one(*one.state, one.query.extent(1), one.count(), type, options));
    keys.emplace_back(kernels_in_use(), *one.state);
    if (is_rotated) rotated.emplace_back(layout, one.query);
    ForwardCall<float> call;
    call.request = &requests.back();
    call.query = is_rotated ? rows_of(rotated.back().query()) : rows_of(one.query);
    call.batches = {0, 1};
    call.keys = &keys.back();
    call.out = is_rotated ? rows_of(rotated.back().out()) : rows_of(one.out);
    call.lse = one.lse;
    call.lse_low = one.lse_low;
    planned.push_back(call.request);
    calls.push_back(call);
  }
  const auto pass = prepare_together<float>(planned, Pass::kForward);
  detail::SharedStates shared;
  shared.compute(calls, keys, *pass);
  pass->forward(calls);
  for (std::size_t i = 0; i < rotated.size(); ++i) rotated[i].finish(all[i].out);
}

void check_options(const AttentionOptions& options) {
  for (const std::int64_t offset : options.query_offset.values()) {
    if (offset == 0) continue;
    throw InvalidArgument(
        fmt::format("{}: query_offset is {}, expected 0: queries are the last positions of their "
                    "sequence",
                    kAttend, offset));
  }
}

template <class T>
AttentionOutput<T, float> attend_one(TensorView<const T> query, const KvSequence& sequence,
                                     const AttentionOptions& options) {
  check_options(options);
  const PageLayout& layout = SequenceState::of(kAttend, sequence).pool->layout();
  check_query(query, 4, "[1, num_heads, n, head_dim]", layout);
  const SequenceState& state = checked_state(sequence, query.extent(2));
  AttentionOutput<T, float> result{
      Tensor<T>::uninitialized({1, query.extent(1), query.extent(2), layout.value.dim}),
      Tensor<float>::uninitialized({1, query.extent(1), query.extent(2)}),
      Tensor<float>::uninitialized({1, query.extent(1), query.extent(2)})};
  compute<T>({{&state, query, result.out, result.lse, result.lse_low}}, options);
  return result;
}

// The states of all sequences, which must share a pool.
std::vector<const SequenceState*> checked_states(const KvBatch& batch, std::int64_t num_queries) {
  check_boundaries(kAttend, "query", batch.boundaries, num_queries);
  if (batch.boundaries.size() != batch.sequences.size() + 1) {
    throw InvalidArgument(fmt::format("{}: query has {} sequences but the batch has {}", kAttend,
                                      batch.boundaries.size() - 1, batch.sequences.size()));
  }
  std::vector<const SequenceState*> states;
  states.reserve(batch.sequences.size());
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    if (batch.sequences[i] == nullptr) {
      throw InvalidArgument(fmt::format("{}: sequences[{}] is null", kAttend, i));
    }
    states.push_back(
        &checked_state(*batch.sequences[i], batch.boundaries[i + 1] - batch.boundaries[i]));
    if (states.back()->pool != states.front()->pool) {
      throw InvalidArgument(
          fmt::format("{}: sequences[{}] is not of the pool of sequences[0]", kAttend, i));
    }
  }
  return states;
}

template <class T>
AttentionOutput<T, float> attend_all(TensorView<const T> query, const KvBatch& batch,
                                     const AttentionOptions& options) {
  check_options(options);
  if (query.rank() != 3) {
    throw InvalidArgument(
        fmt::format("{}: query has shape {}, expected [total_q_len, num_heads, head_dim]", kAttend,
                    to_string(query.shape())));
  }
  const auto states = checked_states(batch, query.extent(0));
  if (states.empty())
    return {Tensor<T>({0, query.extent(1), 0}), Tensor<float>({query.extent(1), 0})};
  const PageLayout& layout = states.front()->pool->layout();
  check_query(query, 3, "[total_q_len, num_heads, head_dim]", layout);
  AttentionOutput<T, float> result{
      Tensor<T>::uninitialized({query.extent(0), query.extent(1), layout.value.dim}),
      Tensor<float>::uninitialized({query.extent(1), query.extent(0)}),
      Tensor<float>::uninitialized({query.extent(1), query.extent(0)})};
  std::vector<Queries<T>> all;
  all.reserve(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const RowRange rows{batch.boundaries[i], batch.boundaries[i + 1]};
    all.push_back({states[i], PackedSequence<T>::entries(query, 1, rows),
                   PackedSequence<T>::entries(result.out.view(), 1, rows),
                   result.lse.view().slice(1, rows.begin, rows.end).to_rank(3),
                   result.lse_low.view().slice(1, rows.begin, rows.end).to_rank(3)});
  }
  compute<T>(std::move(all), options);
  return result;
}

}  // namespace

Tensor<float> attend(FloatView query, const KvSequence& sequence, const AttentionOptions& options) {
  return attend_one(query, sequence, options).out;
}
Tensor<Float16> attend(Float16View query, const KvSequence& sequence,
                       const AttentionOptions& options) {
  return attend_one(query, sequence, options).out;
}
Tensor<BFloat16> attend(BFloat16View query, const KvSequence& sequence,
                        const AttentionOptions& options) {
  return attend_one(query, sequence, options).out;
}

AttentionOutput<float> attend_with_lse(FloatView query, const KvSequence& sequence,
                                       const AttentionOptions& options) {
  return attend_one(query, sequence, options);
}
AttentionOutput<Float16, float> attend_with_lse(Float16View query, const KvSequence& sequence,
                                                const AttentionOptions& options) {
  return attend_one(query, sequence, options);
}
AttentionOutput<BFloat16, float> attend_with_lse(BFloat16View query, const KvSequence& sequence,
                                                 const AttentionOptions& options) {
  return attend_one(query, sequence, options);
}

Tensor<float> attend(FloatView query, const KvBatch& batch, const AttentionOptions& options) {
  return attend_all(query, batch, options).out;
}
Tensor<Float16> attend(Float16View query, const KvBatch& batch, const AttentionOptions& options) {
  return attend_all(query, batch, options).out;
}
Tensor<BFloat16> attend(BFloat16View query, const KvBatch& batch, const AttentionOptions& options) {
  return attend_all(query, batch, options).out;
}

AttentionOutput<float> attend_with_lse(FloatView query, const KvBatch& batch,
                                       const AttentionOptions& options) {
  return attend_all(query, batch, options);
}
AttentionOutput<Float16, float> attend_with_lse(Float16View query, const KvBatch& batch,
                                                const AttentionOptions& options) {
  return attend_all(query, batch, options);
}
AttentionOutput<BFloat16, float> attend_with_lse(BFloat16View query, const KvBatch& batch,
                                                 const AttentionOptions& options) {
  return attend_all(query, batch, options);
}

}}  // namespace heed::v0
