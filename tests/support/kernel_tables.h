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

}  // namespace heed::testing_support
