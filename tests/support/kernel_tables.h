// The kernel tables that tests use.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "attention/kernels/kernels.h"
#include "heed/attention.h"

namespace heed::testing_support {

// Returns the supported tables in which `member` differs: of equal ones the last, which needs the
// fewest instructions.
template <class Member>
std::vector<const kernels::KernelTable*> kernels_that_differ_in(Member member) {
  std::vector<const kernels::KernelTable*> found;
  const auto& tables = kernels::supported_kernels();
  for (auto table = tables.rbegin(); table != tables.rend(); ++table) {
    const auto is_same = [&](const auto* other) { return other->*member == (*table)->*member; };
    if (std::none_of(found.begin(), found.end(), is_same)) found.insert(found.begin(), *table);
  }
  return found;
}

// Returns the tables that compute numbers differently. bfloat16_test.cc tests products of bfloat16
// pairs.
inline std::vector<const kernels::KernelTable*> kernels_of_numbers() {
  return kernels_that_differ_in(&kernels::KernelTable::attend);
}

// Returns further tables whose products of quantised numbers differ.
inline std::vector<const kernels::KernelTable*> kernels_of_other_integers() {
  const auto numbers = kernels_of_numbers();
  auto found = kernels_that_differ_in(&kernels::KernelTable::integers);
  std::erase_if(found, [&](const auto* table) {
    return std::find(numbers.begin(), numbers.end(), table) != numbers.end();
  });
  return found;
}

// True if calls of bfloat16 are computed as pairs, for all sizes.
inline bool multiplies_pairs() {
  const std::string target = attention_target();
  return target.ends_with("_BF16") && target != "AMX_BF16";
}

}  // namespace heed::testing_support
