// Chooses who computes: the fused kernels of this processor, or the reference.
#include "heed/attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>
#include <string_view>
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
  const auto* table = kernels_in_use();
  if (table == nullptr) return reference::attention(query, key, value, options).out;
  const auto problem = check_attention("attention", query, key, value, options);
  Tensor<float> out({query.extent(0), query.extent(1), query.extent(2), value.extent(3)});
  fused::forward(problem, *table, out, {});
  return out;
}

Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options) {
  return reference::attention(query, key, value, options).out;
}

}  // namespace heed::inline v0
