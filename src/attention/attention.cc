// Chooses who computes: the fused kernels of this processor, or the reference.
#include "heed/attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/fused/forward.h"
#include "attention/kernels/kernels.h"
#include "attention/problem.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

constexpr std::string_view kReferenceName = "reference";

// The table that HEED_TARGET names, or the best one; null for the reference.
const kernels::KernelTable* chosen_kernels() {
  const auto& supported = kernels::supported_kernels();
  const char* wanted = std::getenv("HEED_TARGET");
  if (wanted == nullptr || *wanted == '\0') return supported.empty() ? nullptr : supported.front();
  std::vector<std::string_view> names{kReferenceName};
  for (const auto* table : supported) {
    if (std::string_view(table->name) == wanted) return table;
    names.emplace_back(table->name);
  }
  if (wanted == kReferenceName) return nullptr;
  throw InvalidArgument(fmt::format("HEED_TARGET is '{}', but this processor has only: {}", wanted,
                                    fmt::join(names, ", ")));
}

const kernels::KernelTable* kernels_in_use() {
  static const kernels::KernelTable* const table = chosen_kernels();
  return table;
}

// Whether the kernels count as far as these rows are wide. Wrong ranks are reported later.
bool fits(FloatView query, FloatView value) {
  return query.rank() != 4 || value.rank() != 4 ||
         std::max(query.extent(3), value.extent(3)) <= kernels::kMaxDim;
}

AttentionOutput<float> compute(FloatView query, FloatView key, FloatView value,
                               const AttentionOptions& options, bool wants_lse) {
  const auto* table = kernels_in_use();
  if (table == nullptr || !fits(query, value)) {
    auto result = reference::attention(query, key, value, options);
    return {std::move(result.out), std::move(result.lse)};
  }
  const auto problem = check_attention("attention", query, key, value, options);
  const ScoreShape& shape = problem.shape;
  AttentionOutput<float> result;
  result.out = Tensor<float>({shape.batch, shape.num_heads, shape.q_len, problem.value_dim});
  if (wants_lse) result.lse = Tensor<float>({shape.batch, shape.num_heads, shape.q_len});
  fused::forward(problem, *table, result.out, result.lse);
  return result;
}

}  // namespace

std::vector<std::string> attention_targets() {
  std::vector<std::string> names;
  for (const auto* table : kernels::supported_kernels()) names.emplace_back(table->name);
  names.emplace_back(kReferenceName);
  return names;
}

std::string attention_target() {
  const auto* table = kernels_in_use();
  return std::string(table == nullptr ? kReferenceName : table->name);
}

Tensor<float> attention(FloatView query, FloatView key, FloatView value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, false).out;
}

Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options) {
  return reference::attention(query, key, value, options).out;
}

AttentionOutput<float> attention_with_lse(FloatView query, FloatView key, FloatView value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, true);
}

AttentionOutput<double> attention_with_lse(DoubleView query, DoubleView key, DoubleView value,
                                           const AttentionOptions64& options) {
  auto result = reference::attention(query, key, value, options);
  return {std::move(result.out), std::move(result.lse)};
}

}  // namespace heed::inline v0
