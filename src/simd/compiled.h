// The tables of functions that one file compiles for each instruction set, the best first and that
// of the baseline last (HEED_COMPILED in targets.h), and the choice among them for a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simd/processor.h"

namespace heed { inline namespace v0 { namespace kernels {

template <class Table>
struct Compiled {
  const char* vectors;      // the instruction set as HEED_TARGET names it
  std::int64_t target;      // its bit in Highway
  const Table* (*table)();  // null if it is not compiled; may return null
};

// The tables for a processor that supports these targets, the best first.
template <class Table, std::size_t kCount>
std::vector<Compiled<Table>> with_vectors(const Compiled<Table> (&all)[kCount],
                                          std::int64_t supported = supported_targets()) {
  std::vector<Compiled<Table>> found;
  for (std::size_t i = 0; i + 1 < kCount; ++i) {
    if (all[i].table != nullptr && (all[i].target & supported) != 0) found.push_back(all[i]);
  }
  return found;
}

// The table for the vectors with this name, or that of the baseline if there is none.
template <class Table, std::size_t kCount>
const Table* table_for(std::string_view vectors, const Compiled<Table> (&all)[kCount]) {
  for (const auto& one : with_vectors(all)) {
    if (one.vectors == vectors) return one.table();
  }
  return all[kCount - 1].table();
}

}}}  // namespace heed::v0::kernels
