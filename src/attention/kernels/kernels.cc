#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/kernels.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for each target.
#include "attention/kernels/amx/tiles.h"
#include "attention/kernels/bfloat16/bfloat16.h"
#include "attention/kernels/integers/quads.h"
#include "attention/kernels/kernels.h"
#include "hwy/highway.h"
#include "simd/compiled.h"
#include "simd/processor.h"

#if HEED_HAS_VECTORS
#include "attention/kernels/panel/kernel_table-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE {

#if HEED_HAS_VECTORS

namespace f32 {
const IntegerTable* integer_table();        // in integers.cc
const RecurrenceTable* recurrence_table();  // in recurrence.cc
}
namespace f64 {
const BasicKernelTable<double>* kernel_table();  // in kernels_f64.cc
}

const KernelTable* kernel_table() {
  static const KernelTable table =
      f32::make_kernel_table(f32::integer_table(), f32::recurrence_table(), f64::kernel_table());
  return &table;
}

#else

const KernelTable* kernel_table() { return nullptr; }

#endif

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed { inline namespace v0 { namespace kernels {

namespace {

constexpr Compiled<KernelTable> kCompiledTables[] = HEED_COMPILED(kernel_table);

// The table of AVX-512 or NEON, and the tables that add what only some processors have, the best
// first. Processors with AMX tiles also have products of quads.
std::vector<const KernelTable*> extended(const KernelTable* table) {
  std::vector<const KernelTable*> tables{table};
  if (has_quad_products()) tables.insert(tables.begin(), with_quad_products(*table));
  if (has_bfloat16_products()) {
    const auto at = multiplies_bfloat16_faster() ? tables.begin() : tables.end() - 1;
    tables.insert(at, with_bfloat16_products(*tables.front()));
  }
  if (has_tile_products()) tables.insert(tables.begin(), with_tile_products(*tables.front()));
  return tables;
}

}  // namespace

const std::vector<const KernelTable*>& supported_kernels() {
  static const std::vector<const KernelTable*> tables = [] {
    std::vector<const KernelTable*> found;
    for (const auto& compiled : with_vectors(kCompiledTables)) {
      const KernelTable* const table = compiled.table();
      const bool has_more = compiled.target == HWY_AVX3 || compiled.target == HEED_NEON;
      for (const KernelTable* one : has_more ? extended(table) : std::vector{table}) {
        found.push_back(one);
      }
    }
    return found;
  }();
  return tables;
}

}}}  // namespace heed::v0::kernels

#endif  // HWY_ONCE
