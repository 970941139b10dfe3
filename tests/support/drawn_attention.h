// Attention problems drawn by RapidCheck: sizes, layouts in memory and options.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "support/fused.h"
#include "support/options.h"

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
  std::int64_t offset_step = 0;  // added for each further batch entry
  Options options = {};          // besides query_offset
  std::uint64_t options_seed = 0;
  std::uint32_t contents_seed = 0;  // of query, key and value
};

// The memory, views and options of a case.
class DrawnAttention {
 public:
  explicit DrawnAttention(const AttentionCase& drawn);
  DrawnAttention(const DrawnAttention&) = delete;
  DrawnAttention& operator=(const DrawnAttention&) = delete;

  const InputViews& views() const { return views_; }
  const AttentionOptions& options() const { return *options_; }

 private:
  FloatView laid_out(Layout layout, const Shape& shape, std::uint32_t seed);

  std::vector<Tensor<float>> floats_;
  InputViews views_;
  DrawnOptions<float> options_;
};

// Returns cases without or with options for which the kernels expose their scores. All options are
// rows of the table.
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
