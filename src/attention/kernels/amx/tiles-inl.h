// AMX tiles: eight registers of 16 rows of 64 bytes, which are 16 floats or 16 pairs of bfloat16.
// With HEED_EMULATE_AMX, vectors compute the same bits, for tests on processors without AMX.
#if defined(HEED_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TILES_INL_H_
#undef HEED_TILES_INL_H_
#else
#define HEED_TILES_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"
#include "simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

constexpr int kTileRows = 16;
static_assert(kTileRows == kLanes);

// The number of pairs whose products one instruction sums: a row of one operand, the rows of the
// other.
constexpr int kTilePairs = 16;

// The upper halves of pairs as floats; lower_of(), the lower halves.
HWY_INLINE Vec upper_of(Vec pairs) {
  return hn::BitCast(kReals, hn::And(hn::BitCast(kBits, pairs), hn::Set(kBits, 0xFFFF0000U)));
}
HWY_INLINE Vec lower_of(Vec pairs) {
  return hn::BitCast(kReals, hn::ShiftLeft<16>(hn::BitCast(kBits, pairs)));
}

// The sums of kTilePairs pairs of products in the order of an AMX tile: the products of upper
// halves one after the other, and likewise those of lower halves. total() adds both, and the result
// to a sum.
struct TileChain {
  Vec upper;
  Vec lower;

  static HWY_INLINE TileChain empty() { return {hn::Zero(kReals), hn::Zero(kReals)}; }
  HWY_INLINE Vec total(Vec sum) const { return hn::Add(sum, hn::Add(upper, lower)); }
};

HWY_INLINE TileChain add_product(Vec a, Vec b, const TileChain& chain) {
  return {hn::MulAdd(upper_of(a), upper_of(b), chain.upper),
          hn::MulAdd(lower_of(a), lower_of(b), chain.lower)};
}

// add_product() that leaves out elements of a that are 0.
HWY_INLINE TileChain add_nonzero_product(Vec a, Vec b, const TileChain& chain) {
  const TileChain added = add_product(a, b, chain);
  const Vec zero = hn::Zero(kReals);
  return {hn::IfThenElse(hn::Eq(upper_of(a), zero), chain.upper, added.upper),
          hn::IfThenElse(hn::Eq(lower_of(a), zero), chain.lower, added.lower)};
}

// add_product() that leaves out weights that are kUnseen.
HWY_INLINE TileChain add_seen_product(Vec value, Vec weight, const TileChain& chain) {
  const TileChain added = add_product(value, weight, chain);
  const Vec unseen = hn::Set(kReals, kUnseen);
  return {hn::IfThenElse(hn::Eq(upper_of(weight), unseen), chain.upper, added.upper),
          hn::IfThenElse(hn::Eq(lower_of(weight), unseen), chain.lower, added.lower)};
}

// The products that a sum includes.
enum class Counted { kAll, kOfSeen, kOfNonzeroA, kOfNonzeroB };

template <Counted kCounted>
HWY_INLINE TileChain add_counted_product(Vec a, Vec b, const TileChain& chain) {
  if constexpr (kCounted == Counted::kOfSeen) return add_seen_product(a, b, chain);
  if constexpr (kCounted == Counted::kOfNonzeroA) return add_nonzero_product(a, b, chain);
  if constexpr (kCounted == Counted::kOfNonzeroB) return add_nonzero_product(b, a, chain);
  return add_product(a, b, chain);
}

// sum + Σ_i a[i] · b[i], for kTilePairs pairs of a in all lanes and rows of b.
template <Counted kCounted>
HWY_INLINE Vec add_tile_row(const Real* a, const Real* b, std::int64_t b_stride, Vec sum) {
  TileChain chain = TileChain::empty();
  for (int i = 0; i < kTilePairs; ++i) {
    const Vec rows = hn::LoadU(kReals, b + i * b_stride);
    chain = add_counted_product<kCounted>(broadcast(a + i), rows, chain);
  }
  return chain.total(sum);
}

#ifdef HEED_EMULATE_AMX

// Only kernels between set_up_tiles() and give_up_tiles() may use these; a processor would raise an
// exception otherwise.
struct TileRegisters {
  alignas(64) Real rows[8][kTileRows][kLanes] = {};
  bool are_set_up = false;
};
inline TileRegisters& all_registers() {
  thread_local TileRegisters registers;
  return registers;
}
inline TileRegisters& tile_registers() {
  HWY_ASSERT(all_registers().are_set_up);
  return all_registers();
}

inline void set_up_tiles() {
  HWY_ASSERT(!all_registers().are_set_up);
  all_registers() = {};
  all_registers().are_set_up = true;
}
inline void give_up_tiles() { tile_registers().are_set_up = false; }

template <int kTile>
HWY_INLINE void tile_zero() {
  std::memset(tile_registers().rows[kTile], 0, sizeof(tile_registers().rows[kTile]));
}
template <int kTile>
HWY_INLINE void tile_load(const Real* rows, std::int64_t stride) {
  for (int i = 0; i < kTileRows; ++i) {
    std::memcpy(tile_registers().rows[kTile][i], static_cast<const void*>(rows + i * stride), 64);
  }
}
template <int kTile>
HWY_INLINE void tile_load_once(const Real* rows, std::int64_t stride) {
  tile_load<kTile>(rows, stride);
}
template <int kTile>
HWY_INLINE void tile_store(Real* rows, std::int64_t stride) {
  for (int i = 0; i < kTileRows; ++i) {
    std::memcpy(rows + i * stride, tile_registers().rows[kTile][i], 64);
  }
}
template <int kSum, int kA, int kB>
HWY_INLINE void tile_multiply() {
  auto& rows = tile_registers().rows;
  for (int i = 0; i < kTileRows; ++i) {
    const Vec sum = hn::Load(kReals, rows[kSum][i]);
    const Vec added = add_tile_row<Counted::kAll>(rows[kA][i], rows[kB][0], kLanes, sum);
    hn::Store(added, kReals, rows[kSum][i]);
  }
}

#else

// Sets all tiles to their full size and to zero.
inline void set_up_tiles() {
  struct alignas(64) Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Configuration) == 64);
  static constexpr Configuration kWhole;
  asm volatile("ldtilecfg %0" ::"m"(kWhole));
}
inline void give_up_tiles() { asm volatile("tilerelease"); }

template <int kTile>
HWY_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
// Loads a tile; `stride` is in floats.
template <int kTile>
HWY_INLINE void tile_load(const Real* rows, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride * 4), "i"(kTile) : "memory");
}
// Loads a tile whose rows are not read again soon, and leaves the nearest cache to other data.
template <int kTile>
HWY_INLINE void tile_load_once(const Real* rows, std::int64_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride * 4), "i"(kTile)
               : "memory");
}
template <int kTile>
HWY_INLINE void tile_store(Real* rows, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride * 4), "i"(kTile)
               : "memory");
}
// sum[i][j] += Σ_p a[i][p] · b[p][j] over pairs, in the order of TileChain. Operands and results
// below 2⁻¹²⁶ count as 0.
template <int kSum, int kA, int kB>
HWY_INLINE void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

#endif

// Tiles are set up during the lifetime of this object.
class TileScope {
 public:
  TileScope() { set_up_tiles(); }
  ~TileScope() { give_up_tiles(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TILES_INL_H_
