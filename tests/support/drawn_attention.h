// Attention problems drawn by RapidCheck: sizes, layouts in memory and options.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <random>
#include <string>
#include <vector>

#include "support/fused.h"

namespace heed::testing_support {

// The memory layout of a [batch, heads, length, dim] tensor.
enum class Layout {
  kContiguous,
  kLengthBeforeHeads,    // [batch, length, heads, dim]
  kPadded,               // surrounded by NaN: rows of length + 3, dims of dim + 5
  kBroadcastOverBatch,   // stride 0
  kReversed,             // a negative stride along length
  kBroadcastOverLength,  // stride 0
};

// Everything that determines a problem. Seeds determine contents.
struct AttentionCase {
  Sizes sizes;
  Layout query_layout = Layout::kContiguous;
  Layout key_layout = Layout::kContiguous;
  Layout value_layout = Layout::kContiguous;
  float magnitude = 1;  // of the queries
  std::int64_t query_offset = 0;
  std::int64_t offset_step = 0;      // added for each further batch entry
  std::vector<std::uint32_t> masks;  // up to three: a kind of mask and its contents
  int score_mod = 0;                 // 0 for none
  std::uint32_t bias = 0;            // 0 for none
  bool has_sinks = false;
  bool has_alibi = false;
  std::uint32_t relative = 0;  // which tables of relative positions exist; 0 for none
  int scale = 0;               // 0 for the default
  float softcap = 0;
  float dropout = 0;
};

// The memory, views and options of a case.
class DrawnAttention {
 public:
  explicit DrawnAttention(const AttentionCase& drawn);
  DrawnAttention(const DrawnAttention&) = delete;
  DrawnAttention& operator=(const DrawnAttention&) = delete;

  const InputViews& views() const { return views_; }
  const AttentionOptions& options() const { return options_; }

 private:
  using Random = std::mt19937;

  FloatView laid_out(Layout layout, const Shape& shape, std::uint32_t seed);
  Mask mask(std::uint32_t seed);
  Mask structural_mask(Random& random) const;
  Mask irregular_mask(Random& random);
  Mask blocks_mask(Random& random) const;
  template <class T, class Draw>
  TensorView<const T> broadcastable(Random& random, std::vector<Tensor<T>>& memory, Draw draw);
  void set_options(const AttentionCase& drawn);
  void set_relative(const AttentionCase& drawn);

  std::vector<Tensor<float>> floats_;
  std::vector<Tensor<bool>> flags_;
  ScoreShape shape_;
  InputViews views_;
  AttentionOptions options_;
};

// Returns cases without or with options for which the kernels expose their scores: softcap,
// score_mod, ALiBi, bias and irregular masks.
rc::Gen<AttentionCase> attention_case(bool modifies_scores);

// Draws cases and expects faults(case) to be empty.
void expect_no_faults(const char* what, bool modifies_scores,
                      const std::function<std::string(const AttentionCase&)>& faults);

// Returns the allowed error of a score of a drawn case in roundings of its size: those of a chain
// of additions, most smaller than the score, and one of a modified score, where the plain
// computation may be exact.
double score_roundings_of(const AttentionCase& drawn);

// Prints the case and its options.
std::ostream& operator<<(std::ostream& out, const AttentionCase& drawn);

}  // namespace heed::testing_support
