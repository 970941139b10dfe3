// The parts of the lesson kv-cache, one file each: what is stored, its cost, and its uses.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/core/tensor.h"
#include "lessons/report.h"

namespace heed::learn::kv_cache_lesson {

// Queries, keys and values of a text, drawn from PyTorch's generator with seed 0.
struct Tokens {
  Tokens(std::int64_t num_heads, std::int64_t num_kv_heads, std::int64_t length,
         std::int64_t head_dim);

  // Returns the queries of positions begin ≤ t < end.
  FloatView queries(std::int64_t begin, std::int64_t end) const {
    return query.view().slice(2, begin, end);
  }
  void append_to(KvSequence& sequence, std::int64_t begin, std::int64_t end) const {
    sequence.append(key.view().slice(2, begin, end), value.view().slice(2, begin, end));
  }

  Tensor<float> query;  // [1, num_heads, length, head_dim]
  Tensor<float> key;    // [1, num_kv_heads, length, head_dim]
  Tensor<float> value;
};

// Copies rows [1, heads, n, dim] to the positions of `into` from `begin` on.
void put_rows(FloatView rows, std::int64_t begin, Tensor<float>& into);

// Returns the number of elements that differ in any bit between two tensors of one shape.
std::int64_t count_differing(const Tensor<float>& a, const Tensor<float>& b);

// The cost of one more token at several positions, with and without a cache.
struct Costs {
  std::vector<double> positions;
  std::vector<double> without;
  std::vector<double> with;
};

Costs show_operations(Report& report);  // multiply-adds
Costs show_times(Report& report);       // milliseconds
Drawing drawing_of_costs(const Costs& operations, const Costs& times);

void show_storages(Report& report);
void show_forks(Report& report);
void show_bounds(Report& report);

}  // namespace heed::learn::kv_cache_lesson
