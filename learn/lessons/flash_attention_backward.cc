// The lesson flash-attention: gradients computed tile by tile, without stored weights.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/random.h"
#include "lessons/flash_attention.h"
#include "lessons/numbers.h"

namespace heed::learn::flash_attention_lesson {

constexpr std::int64_t kTokens = 70;
constexpr std::int64_t kDim = 16;
constexpr std::int64_t kTile = 16;
constexpr double kScale = 0.25;  // 1 / √16
Shape operand() { return {1, 1, kTokens, kDim}; }

// One head. Each tensor has the shape of operand().
struct Operands {
  Tensor<double> query;
  Tensor<double> key;
  Tensor<double> value;
  Tensor<double> grad_out;
};

struct Gradients {
  Tensor<double> query{operand()};
  Tensor<double> key{operand()};
  Tensor<double> value{operand()};
};

Operands drawn_operands() {
  TorchGenerator generator(0);
  Operands drawn;
  drawn.query = generator.randn<double>(operand());
  drawn.key = generator.randn<double>(operand());
  drawn.value = generator.randn<double>(operand());
  drawn.grad_out = generator.randn<double>(operand());
  return drawn;
}

double dot(const Tensor<double>& a, std::int64_t row_of_a, const Tensor<double>& b,
           std::int64_t row_of_b) {
  const double* first = &a(0, 0, row_of_a, 0);
  return std::inner_product(first, first + kDim, &b(0, 0, row_of_b, 0), 0.0);
}

void add_scaled(double factor, const double* row, double* sum) {
  for (std::int64_t d = 0; d < kDim; ++d) sum[d] += factor * row[d];
}

// The numbers that the backward pass needs per query: lse from the forward pass, and D = Σ_d
// grad_out · out.
struct QueryNumbers {
  double lse = 0;
  double mean = 0;
};

std::vector<QueryNumbers> of_queries(const Operands& in, const AttentionOutput<double>& forward) {
  std::vector<QueryNumbers> all;
  all.reserve(kTokens);
  for (std::int64_t q = 0; q < kTokens; ++q) {
    all.push_back(
        {forward.lse(0, 0, q) + forward.lse_low(0, 0, q), dot(in.grad_out, q, forward.out, q)});
  }
  return all;
}

// Computes the five products for one pair: two scalar products and three sums of scaled vectors.
void add_pair(const Operands& in, std::int64_t q, std::int64_t k, const QueryNumbers& of_query,
              Gradients& sums) {
  const double weight = std::exp(kScale * dot(in.query, q, in.key, k) - of_query.lse);
  const double grad_weight = dot(in.grad_out, q, in.value, k);
  const double grad_score = kScale * weight * (grad_weight - of_query.mean);
  add_scaled(weight, &in.grad_out(0, 0, q, 0), &sums.value(0, 0, k, 0));
  add_scaled(grad_score, &in.key(0, 0, k, 0), &sums.query(0, 0, q, 0));
  add_scaled(grad_score, &in.query(0, 0, q, 0), &sums.key(0, 0, k, 0));
}

Gradients by_tiles(const Operands& in, const std::vector<QueryNumbers>& queries) {
  Gradients sums;
  for (std::int64_t first_key = 0; first_key < kTokens; first_key += kTile) {
    for (std::int64_t first_query = 0; first_query < kTokens; first_query += kTile) {
      for (std::int64_t q = first_query; q < std::min(first_query + kTile, kTokens); ++q) {
        for (std::int64_t k = first_key; k < std::min(first_key + kTile, kTokens); ++k) {
          add_pair(in, q, k, queries[static_cast<std::size_t>(q)], sums);
        }
      }
    }
  }
  return sums;
}

// Returns softmax(scale · Q Kᵀ), stored.
Tensor<double> weight_matrix(const Operands& in) {
  Tensor<double> weights({kTokens, kTokens});
  for (std::int64_t q = 0; q < kTokens; ++q) {
    double sum = 0;
    for (std::int64_t k = 0; k < kTokens; ++k) {
      weights(q, k) = std::exp(kScale * dot(in.query, q, in.key, k));
      sum += weights(q, k);
    }
    for (std::int64_t k = 0; k < kTokens; ++k) weights(q, k) /= sum;
  }
  return weights;
}

// The gradients by the chain rule of the softmax, where the mean is taken over a stored row of
// weights.
struct Plain {
  Gradients gradients;
  std::vector<double> means;  // Σ_k weight · grad_weight of each query
};
Plain with_stored_weights(const Operands& in) {
  const Tensor<double> weights = weight_matrix(in);
  Plain plain;
  plain.means.assign(kTokens, 0.0);
  for (std::int64_t q = 0; q < kTokens; ++q) {
    double& mean = plain.means[static_cast<std::size_t>(q)];
    for (std::int64_t k = 0; k < kTokens; ++k) {
      mean += weights(q, k) * dot(in.grad_out, q, in.value, k);
    }
    for (std::int64_t k = 0; k < kTokens; ++k) {
      const double grad_weight = dot(in.grad_out, q, in.value, k);
      const double grad_score = kScale * weights(q, k) * (grad_weight - mean);
      add_scaled(weights(q, k), &in.grad_out(0, 0, q, 0), &plain.gradients.value(0, 0, k, 0));
      add_scaled(grad_score, &in.key(0, 0, k, 0), &plain.gradients.query(0, 0, q, 0));
      add_scaled(grad_score, &in.query(0, 0, q, 0), &plain.gradients.key(0, 0, k, 0));
    }
  }
  return plain;
}

Tensor<float> rounded(const Tensor<double>& numbers) {
  Tensor<float> floats(numbers.shape());
  std::transform(numbers.elements().begin(), numbers.elements().end(), floats.elements().begin(),
                 [](double number) { return static_cast<float>(number); });
  return floats;
}

AttentionGradients<float> in_floats(const Operands& in) {
  const auto query = rounded(in.query);
  const auto key = rounded(in.key);
  const auto value = rounded(in.value);
  const auto forward = attention_with_lse(query, key, value);
  return attention_backward(rounded(in.grad_out), query, key, value, forward);
}

template <class Real>
double difference(const Tensor<Real>& a, const Tensor<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.elements().size(); ++i) {
    most = std::max(most, std::abs(double{a.elements()[i]} - b.elements()[i]));
  }
  return most;
}

void show_equations_of_backward(Report& report) {
  report.say("    forward, stored:    out_i,  lse_i");
  report.say("    before the tiles:   D_i  = Σ_d grad_out_id out_id");
  report.say("    in each tile:       p_ij = exp(s_ij − lse_i)           s = scale Q Kᵀ again");
  report.say("                        g_ij = p_ij (grad_out_i · v_j − D_i)");
  report.say("                        grad_v_j += p_ij grad_out_i");
  report.say("                        grad_q_i += scale g_ij k_j");
  report.say("                        grad_k_j += scale g_ij q_i");
  report.say();
}

void show_differences(Report& report, const Operands& in, const AttentionOutput<double>& forward,
                      const Gradients& plain, const Gradients& tiles) {
  const auto heed = attention_backward(in.grad_out, in.query, in.key, in.value, forward);
  const auto floats = in_floats(in);
  report.say("  {:<12} {:>10} {:>10} {:>20} {:>12}", "gradient of", "largest", "by hand",
             "attention_backward()", "in float32");
  auto rows = nlohmann::json::array();
  std::vector<double> largest_entries;
  const auto show_row = [&](const std::string& name, Tensor<double> Gradients::*member,
                            const Tensor<double>& of_heed, const Tensor<float>& of_floats) {
    const Tensor<double>& expected = plain.*member;
    const double largest_entry = difference(Tensor<double>(operand()), expected);
    const double by_hand = difference(tiles.*member, expected);
    const double in_double = difference(of_heed, expected);
    const double in_float = difference(of_floats, expected);
    report.say("  {:<12} {:>10.4f} {:>10.1e} {:>20.1e} {:>12.1e}", name, largest_entry, by_hand,
               in_double, in_float);
    largest_entries.push_back(largest_entry);
    rows.push_back({{"name", name},
                    {"largest", largest_entry},
                    {"by_hand", by_hand},
                    {"heed", in_double},
                    {"heed_float", in_float}});
  };
  show_row("query", &Gradients::query, heed.query, floats.query);
  show_row("key", &Gradients::key, heed.key, floats.key);
  show_row("value", &Gradients::value, heed.value, floats.value);
  report.record("gradients", rows);
  report.record("largest_gradients", largest_entries);
  report.say();
}

void show_work_of_backward(Report& report, const std::vector<QueryNumbers>& queries,
                           const std::vector<double>& means) {
  constexpr std::int64_t kProduct = kTokens * kTokens * kDim;
  double most = 0;
  std::vector<double> of_out;
  of_out.reserve(queries.size());
  for (std::size_t q = 0; q < means.size(); ++q) {
    of_out.push_back(queries[q].mean);
    most = std::max(most, std::abs(queries[q].mean - means[q]));
  }
  report.record("row_means", of_out);
  report.record("row_means_of_weights", means);
  report.record("backward", {{"difference_of_means", most},
                             {"multiply_adds_stored", 4 * kProduct},
                             {"multiply_adds_tiles", 5 * kProduct},
                             {"stored_weights", kTokens * kTokens},
                             {"stored_tiles", 2 * kTokens}});
  report.paragraph(
      "What to notice: the derivative of softmax needs the mean of grad_out_i · v_j, weighted by a "
      "whole row, which a tile does not have; but it is D_i, for out_i is the mean of v_j with the "
      "same weights: {:.4f} both ways for query 0, the largest difference is {:.1e}. Scores are "
      "computed once more: 5 products of N² d multiply-adds instead of 4, here {} instead of {}. "
      "In "
      "return 2 numbers of each query, lse and D, take the place of a row of weights: {} instead "
      "of {}.",
      queries[0].mean, most, grouped(5 * kProduct), grouped(4 * kProduct), grouped(2 * kTokens),
      grouped(kTokens * kTokens));
}

void show_backward(Report& report) {
  report.step("Backward: the weights are computed again");
  report.paragraph(
      "A weight is exp(s − lse), so that lse and a product of q and k bring back any tile of the "
      "matrix. The gradients of a loss whose derivative by out is grad_out:");
  report.say();
  show_equations_of_backward(report);
  const Operands in = drawn_operands();
  const auto forward = attention_with_lse(in.query, in.key, in.value);
  const auto queries = of_queries(in, forward);
  const Plain plain = with_stored_weights(in);
  const Gradients tiles = by_tiles(in, queries);
  report.paragraph(
      "{} tokens of {} dimensions (seed 0, in double), tiles of {} by {}. The largest element of "
      "each gradient, and the largest differences to gradients from a stored matrix of weights:",
      kTokens, kDim, kTile, kTile);
  report.say();
  show_differences(report, in, forward, plain.gradients, tiles);
  show_work_of_backward(report, queries, plain.means);
}

}  // namespace heed::learn::flash_attention_lesson
