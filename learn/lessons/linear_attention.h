// The parts of the lesson linear-attention, one file each: features instead of the exponential, the
// state that replaces the past, the capacity of a state, and the picture.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/attention/linear_attention.h"
#include "lessons/report.h"

namespace heed::learn::linear_attention_lesson {

// Returns φ of one number.
double feature(FeatureMap map, double x);

// The multiply-adds of one head of 64 dimensions over T tokens, in both orders of the products.
struct Products {
  std::int64_t length = 0;
  std::int64_t weights_first = 0;  // (φ(Q) φ(K)ᵀ) V
  std::int64_t state_first = 0;    // φ(Q) (φ(K)ᵀ V)
};
std::vector<Products> products_of_lengths();

// The stores of (key, value) pairs that are compared.
constexpr std::array<std::string_view, 5> kStores{"softmax", "elu+1", "relu", "linear", "delta"};

// The part of values that each store returns correctly when it holds `pairs` pairs.
struct Recall {
  std::int64_t pairs = 0;
  std::array<double, kStores.size()> share{};
};
std::vector<Recall> recall_of_pairs();

void show_features(Report& report);
void show_orders(Report& report);
void show_recurrence(Report& report);
void show_state_and_cache(Report& report);
void show_recall(Report& report);
Figure draw_linear_attention(Theme theme);

}  // namespace heed::learn::linear_attention_lesson
