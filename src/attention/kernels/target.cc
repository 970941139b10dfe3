#include "attention/kernels/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

constexpr std::string_view kReferenceName = "reference";

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

}  // namespace

const kernels::KernelTable* kernels_in_use() {
  static const kernels::KernelTable* const table = chosen_kernels();
  return table;
}

std::string_view vectors_in_use() {
  const auto* table = kernels_in_use();
  return table == nullptr ? kReferenceName : table->vectors;
}

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

std::string attention_bits(Precision precision) {
  const auto* table = kernels_in_use();
  if (table == nullptr) return std::string(kReferenceName);
  if (precision == Precision::kFast && table->in_pairs != nullptr) return table->in_pairs->name;
  // The only vectors without fused multiply-adds.
  return std::string_view(table->vectors) == "SSE4" ? table->vectors : "exact";
}

}}  // namespace heed::v0
