// The kernels that tests go through.
#pragma once

#include <vector>

#include "attention/kernels/kernels.h"

namespace heed::testing_support {

// Those that compute numbers differently: one that multiplies bfloat16 in pairs computes all others
// as the one beside it does. bfloat16_test.cc has the pairs.
inline std::vector<const kernels::KernelTable*> kernels_of_numbers() {
  std::vector<const kernels::KernelTable*> tables;
  for (const auto* table : kernels::supported_kernels()) {
    if (table->in_pairs == nullptr) tables.push_back(table);
  }
  return tables;
}

// The others: their products of floats are those of one of these, those of bfloat16 and of
// quantised numbers are not.
inline std::vector<const kernels::KernelTable*> kernels_of_pairs() {
  std::vector<const kernels::KernelTable*> found;
  for (const auto* table : kernels::supported_kernels()) {
    if (table->in_pairs != nullptr) found.push_back(table);
  }
  return found;
}

}  // namespace heed::testing_support
