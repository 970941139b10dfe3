// The kernels that multiply bfloat16 in pairs: those of AVX-512, compiled once more with
// AVX512_BF16, and those of NEON with FEAT_BF16. Highway has targets for neither.
#define HEED_OF_BFLOAT16
#define HEED_TARGETS (HWY_AVX3 | HEED_NEON)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/bfloat16/bfloat16.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for AVX-512 or for
// NEON, whichever there is.
#include "attention/kernels/bfloat16/bfloat16.h"
#include "attention/kernels/kernels.h"
#include "core/platform.h"
#include "hwy/highway.h"

// On ARM, only GCC can compile some functions for more than the baseline processor, and only Linux
// can be asked about the processor.
#if HWY_ARCH_ARM_A64 && HWY_HAVE_RUNTIME_DISPATCH
#define HEED_HAS_NEON_PAIRS 1
#else
#define HEED_HAS_NEON_PAIRS 0
#endif

#if HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HEED_NEON && HEED_HAS_NEON_PAIRS)

#undef HWY_TARGET_STR
#if HWY_TARGET == HWY_AVX3
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16"
#else
#define HWY_TARGET_STR "+crypto+bf16"
#endif

#include "attention/kernels/decode/attend_rows-inl.h"
#include "attention/kernels/panel/attend-inl.h"
#include "attention/kernels/panel/backward_table-inl.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::bf16 {

namespace {

void pack_pairs(const Real* const* rows, std::int32_t width, std::int32_t head_dim, Real* query) {
  const std::int32_t packed = pack_in_vectors(rows, width, head_dim / 2, NoFactor{}, query);
  auto* const target = reinterpret_cast<std::byte*>(query);
  for (std::int32_t r = 0; r < width; ++r) {
    const auto* const row = reinterpret_cast<const std::byte*>(rows[r]);
    for (std::int32_t d = 2 * packed; d < head_dim; d += 2) {
      std::byte pair[sizeof(Real)] = {};
      if (row != nullptr) std::memcpy(pair, row + 2 * d, d + 1 < head_dim ? 4 : 2);
      std::memcpy(target + (d / 2 * width + r) * sizeof(pair), pair, sizeof(pair));
    }
  }
}

void pair_panel(Real* numbers, std::int32_t dim, std::int32_t width) {
  pair_rows<First::kLower>(numbers, dim, width, 0, numbers);
}

std::int64_t pair_keys(const Real* rows, std::int64_t stride, std::int32_t count, std::int32_t dim,
                       Real* pairs) {
  const auto word = [](const Real* row, std::int32_t d) {
    std::uint16_t bits;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(row) + 2 * std::int64_t{d}, sizeof(bits));
    return bits;
  };
  for (std::int32_t key = 0; key < count; key += 2, pairs += dim) {
    const Real* const upper = rows + key * stride;
    const Real* const lower = key + 1 < count ? upper + stride : nullptr;
    std::int32_t d = 0;
    for (; lower != nullptr && d + kLanes <= dim; d += kLanes) {
      hn::StoreU(pair_of_rows(upper + d / 2, lower + d / 2), kReals, pairs + d);
    }
    for (; d < dim; ++d) {
      const std::uint16_t pair[] = {lower == nullptr ? std::uint16_t{0} : word(lower, d),
                                    word(upper, d)};
      std::memcpy(pairs + d, pair, sizeof(pair));
    }
  }
  return dim;
}

}  // namespace

KernelTable table_of(const KernelTable& numbers) {
  KernelTable table = numbers;
  table.in_numbers = &numbers;
  table.keys_together = kAddsPairsFirst ? 2 : 1;
  table.backward = backward_table();
  table.loops.gradients = &table.backward->loops;
  table.attend = attend;
  table.attend_rows = attend_rows;
  table.score = score;
  table.absorb = absorb;
  table.pack_pairs = pack_pairs;
  table.pair_panel = pair_panel;
  table.pair_keys = pair_keys;
  return table;
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::bf16
HWY_AFTER_NAMESPACE();

namespace heed { inline namespace v0 { namespace kernels {

#if HWY_TARGET == HWY_AVX3
bool has_bfloat16_products() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") != 0;
}
#else
bool has_bfloat16_products() { return platform::is_arm_with_bfloat16(); }
#endif

const KernelTable* with_bfloat16_products(const KernelTable& table) {
  struct Tables {
    KernelTable numbers;
    KernelTable pairs;

    explicit Tables(const KernelTable& from) : numbers(from) {
      numbers.name = HWY_TARGET == HWY_AVX3 ? "AVX512_BF16" : "NEON_BF16";
      pairs = HWY_NAMESPACE::bf16::table_of(numbers);
      numbers.in_pairs = &pairs;
    }
  };
  static const Tables tables(table);
  return &tables.numbers;
}

}}}  // namespace heed::v0::kernels

#elif HWY_ONCE && !(HWY_TARGETS & HWY_AVX3) && !HEED_HAS_NEON_PAIRS

namespace heed { inline namespace v0 { namespace kernels {

bool has_bfloat16_products() { return false; }
const KernelTable* with_bfloat16_products(const KernelTable& table) { return &table; }

}}}  // namespace heed::v0::kernels

#endif
