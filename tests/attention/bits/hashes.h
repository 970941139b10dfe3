// The hashes of what the public interface computes of a problem.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/bits/hash.h"
#include "attention/bits/packed_problem.h"
#include "attention/bits/problem.h"
#include "heed/attention/backward.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/plan.h"
#include "heed/attention/statistics.h"

namespace heed::bits {

template <class T>
inline std::uint64_t forward(const Setup& setup) {
  const Problem<T> problem(setup);
  const auto result =
      attention_with_lse(problem.query(), problem.key(), problem.value(), problem.options());
  Hash hash;
  hash.add(result.out);
  hash.add(result.lse);
  return hash.value();
}

template <class T, class Real>
void add_gradients(Hash& hash, const AttentionGradients<T, Real>& gradients) {
  for (const auto* gradient : {&gradients.query, &gradients.key, &gradients.value}) {
    hash.add(*gradient);
  }
  for (const auto* gradient : {&gradients.alibi_slopes, &gradients.bias, &gradients.sinks}) {
    hash.add(*gradient);
  }
  for (std::size_t term = 3; term < kLearnable<Real>.size(); ++term) {
    const Tensor<Real>& gradient = gradients.*kLearnable<Real>[term].gradient;
    if (!gradient.empty()) hash.add(gradient);
  }
}

template <class T>
inline std::uint64_t backward(const Setup& setup) {
  const Problem<T> problem(setup);
  const auto result =
      attention_with_lse(problem.query(), problem.key(), problem.value(), problem.options());
  Hash hash;
  add_gradients(hash, attention_backward(problem.grad_out(), problem.query(), problem.key(),
                                         problem.value(), result, problem.options()));
  return hash.value();
}

template <class T>
inline std::uint64_t weights(const Setup& setup) {
  const Problem<T> problem(setup);
  const Sizes& s = setup.sizes;
  Draws draws(setup.seed + 3);
  std::vector<AttentionRow> rows(s.q_len == 0 ? 0 : 20);
  for (AttentionRow& row : rows) {
    row.batch = draws.below(s.batch);
    row.head = draws.below(s.num_heads);
    row.query = draws.below(s.q_len);
  }
  Hash hash;
  hash.add(attention_weights(problem.query(), problem.key(), rows, problem.options()));
  return hash.value();
}

template <class T>
inline std::uint64_t statistics(const Setup& setup) {
  const Problem<T> problem(setup);
  const StatisticsOptions wanted{.top_k = static_cast<std::int64_t>(setup.seed % 5)};
  const auto found =
      attention_statistics(problem.query(), problem.key(), problem.options(), wanted);
  Hash hash;
  for (const auto* numbers :
       {&found.lse, &found.entropy, &found.max_weight, &found.top_weights, &found.key_mass}) {
    hash.add(*numbers);
  }
  hash.add(found.max_key);
  hash.add(found.top_keys);
  return hash.value();
}

template <class T>
inline std::uint64_t diagnostics(const Setup& setup) {
  const Problem<T> problem(setup);
  DiagnosticsOptions wanted;
  if (setup.seed % 2 == 1) {
    wanted.q_lengths.assign(static_cast<std::size_t>(setup.sizes.batch), setup.sizes.q_len / 2);
    wanted.kv_lengths.assign(static_cast<std::size_t>(setup.sizes.batch),
                             setup.sizes.kv_len * 3 / 4);
  }
  const auto found =
      attention_diagnostics(problem.query(), problem.key(), problem.options(), wanted);
  Hash hash;
  hash.add(found.similarity);
  for (const HeadDiagnostics& head : found.heads) {
    for (const std::int64_t count : {head.rows, head.broken_rows, head.offset, head.vertical_key}) {
      hash.add_number(count);
    }
    for (const double mean : {head.entropy, head.total, head.padding, head.first, head.previous,
                              head.same, head.next, head.offset_weight, head.vertical}) {
      hash.add_number(mean);
    }
  }
  return hash.value();
}

// Queries that arrive in chunks, each after as many more keys.
inline std::uint64_t chunks(const Setup& setup) {
  const Problem<float> problem(setup);
  Draws draws(setup.seed + 4);
  AttentionOptions options = problem.options();
  const std::int64_t offset = setup.sizes.kv_len - setup.sizes.q_len;
  Hash hash;
  for (std::int64_t begin = 0; begin < setup.sizes.q_len;) {
    const std::int64_t end =
        std::min(setup.sizes.q_len, begin + draws.one_of<std::int64_t>({1, 2, 3, 16, 50, 130}));
    options.query_offset = offset + begin;
    const auto seen = [&](FloatView view) { return view.slice(2, 0, offset + end); };
    const auto result = attention_with_lse(problem.query().slice(2, begin, end),
                                           seen(problem.key()), seen(problem.value()), options);
    hash.add(result.out);
    hash.add(result.lse);
    begin = end;
  }
  return hash.value();
}

// A plan with a given workspace, from which it must take no values.
template <class T>
inline std::uint64_t planned(const Setup& setup) {
  const Problem<T> problem(setup);
  const Sizes& s = setup.sizes;
  const AttentionPlan made = plan({.batch = s.batch,
                                   .num_heads = s.num_heads,
                                   .num_kv_heads = s.num_kv_heads,
                                   .q_len = s.q_len,
                                   .kv_len = s.kv_len,
                                   .head_dim = s.head_dim,
                                   .value_dim = s.value_dim,
                                   .dtype = data_type_of<T>(),
                                   .key_stride = problem.key().stride(2),
                                   .value_stride = problem.value().stride(2)},
                                  problem.options());
  Tensor<T> out({s.batch, s.num_heads, s.q_len, s.value_dim});
  Tensor<float> lse({s.batch, s.num_heads, s.q_len});
  std::vector<std::byte> workspace(made.workspace_bytes(), std::byte{0xff});
  made.run_into({.out = out, .lse = lse, .workspace = workspace}, problem.query(), problem.key(),
                problem.value());
  Hash hash;
  hash.add(out);
  hash.add(lse);
  return hash.value();
}

inline std::uint64_t packed_forward(const Setup& setup) {
  const PackedProblem<float> problem(setup);
  const auto result = attention_packed_with_lse(problem.query(), problem.key(), problem.value(),
                                                problem.sequences(), problem.options());
  Hash hash;
  hash.add(result.out);
  hash.add(result.lse);
  return hash.value();
}

template <class T>
inline std::uint64_t packed_half(const Setup& setup) {
  const PackedProblem<T> problem(setup);
  Hash hash;
  hash.add(attention_packed(problem.query(), problem.key(), problem.value(), problem.sequences(),
                            problem.options()));
  return hash.value();
}

inline std::uint64_t packed_backward(const Setup& setup) {
  const PackedProblem<float> problem(setup);
  const auto result = attention_packed_with_lse(problem.query(), problem.key(), problem.value(),
                                                problem.sequences(), problem.options());
  Hash hash;
  add_gradients(hash, attention_packed_backward(problem.grad_out(), problem.query(), problem.key(),
                                                problem.value(), problem.sequences(), result,
                                                problem.options()));
  return hash.value();
}

}  // namespace heed::bits
