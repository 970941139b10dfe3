// The parts of the lesson flash-attention, one file each: the running softmax, memory and traffic,
// the backward pass, and the picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "heed/attention/plan.h"
#include "lessons/report.h"

namespace heed::learn::flash_attention_lesson {

// The running softmax of a row after some of its keys.
struct RowState {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;  // Σ exp(score − largest)
  double out = 0;  // Σ exp(score − largest) · value
};

// Returns the state after one more tile of keys with scalar values.
RowState with_tile(const RowState& before, std::span<const double> scores,
                   std::span<const double> values);

// The bytes of one head of 64 dimensions in float32.
struct Bytes {
  std::int64_t length = 0;
  std::int64_t matrices = 0;   // scores and weights
  std::int64_t arguments = 0;  // query, key, value and out
  std::int64_t forward = 0;    // the plan's workspace on one thread
  std::int64_t backward = 0;
};
std::vector<Bytes> bytes_of_lengths();

// Returns the plan of one head with `length` queries and keys, on one thread.
AttentionPlan plan_of(std::int64_t length, std::int64_t head_dim, const Mask& mask = {});

void show_running_softmax(Report& report);
void show_parts(Report& report);
void show_overflow(Report& report);
void show_memory(Report& report);
void show_traffic(Report& report);
void show_backward(Report& report);
void show_causal_tiles(Report& report);
Figure draw_tiles(Theme theme);

}  // namespace heed::learn::flash_attention_lesson
