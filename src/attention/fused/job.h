// One attention problem with its tensors, and how it is divided into pieces of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "attention/kernels/kernels.h"
#include "attention/problem.h"
#include "attention/rows.h"
#include "heed/plan.h"
#include "heed/tensor.h"

namespace heed::inline v0::fused {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Job {
  const Terms<float>* terms = nullptr;
  Rows query;
  Rows key;
  Rows value;
  MutableRows out;
  TensorView<float> lse;  // empty when not wanted
  RowRange batches;       // the batch entries to compute

  std::int64_t rows_per_kv_head() const { return terms->shape.q_len * terms->heads_per_kv_head; }
};

// Rows of one key head of one batch entry: what a thread takes at a time.
struct Block {
  const Job& job;
  std::int64_t batch;
  std::int64_t kv_head;
  RowRange rows;
};

// Whoever only wants to know how much memory he needs.
inline constexpr std::byte* kMeasureOnly = nullptr;

// Where the pieces of a workspace begin: a vector then lies in one line.
inline constexpr std::size_t kCacheLine = 64;

// Memory carved into pieces that start at such boundaries.
class Workspace {
 public:
  explicit Workspace(std::byte* memory) : memory_(memory) {}

  // Room for `count` objects, which the taker constructs.
  template <class T>
  T* take(std::int64_t count) {
    T* taken = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ +=
        (static_cast<std::size_t>(count) * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
    return taken;
  }

  float* floats(std::int64_t count) { return take<float>(count); }

  // What was taken so far: a workspace without memory only measures.
  std::size_t bytes() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

// How problems of one shape are computed: decided before a number is looked at. A block is some
// panels of rows.
struct Schedule {
  const kernels::KernelTable* table = nullptr;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t kv_len = 0;  // at most
  bool has_irregular_mask = false;
  std::int32_t panel_rows = 0;
  std::int32_t panels_per_block = 0;
  bool stages_key = false;
  bool stages_value = false;
  bool widens_query = false;
  bool narrows_out = false;
  // Scores are written in natural units even where nobody modifies them: for whoever looks at them
  // twice, and wants to find the same.
  bool keeps_scores = false;
  // Where there are fewer blocks than threads, these share the keys of a block: every chunk of keys
  // gets a state of its own, which are merged in order. 1 where they do not.
  std::int64_t key_chunks = 1;
  std::int64_t saved_chunks = 0;  // the states to keep for all blocks
  int workers = 1;
  std::size_t bytes_per_worker = 0;
  std::size_t bytes_per_chunk = 0;

  std::int64_t block_rows() const { return std::int64_t{panel_rows} * panels_per_block; }
  std::int64_t blocks(std::int64_t rows) const { return (rows + block_rows() - 1) / block_rows(); }
  // One cache line more, so that any memory can be aligned.
  std::size_t workspace_bytes() const;
};

// `threads` may be used. The terms must be those of the largest problem that is computed with it.
// With `splits_panels`, a panel may be a single row.
Schedule make_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                       const AttentionShapes& shapes, int threads, bool splits_panels = false);

// Makes threads share the keys of every panel, of which there are so many.
void divide_keys(Schedule& schedule, std::int64_t panels);

}  // namespace heed::inline v0::fused
