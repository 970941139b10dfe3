#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/weight_kernels.cc"
#include "simd/targets.h"
// The list of targets must be known before the includes that iterate over it.
#include "hwy/foreach_target.h"
// foreach_target must be first: it includes this file once for each instruction set.
#include <algorithm>
#include <string_view>

#include "attention/kernels/target.h"
#include "hwy/highway.h"
#include "models/kernels/weight_kernels.h"
#include "simd/compiled.h"

#if HEED_HAS_VECTORS

#include "models/kernels/blocks-inl.h"
#include "models/kernels/panels-inl.h"
#include "models/kernels/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

namespace {

template <class Stored>
void decode_numbers(WeightType type, const std::byte* bytes, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Stored::load(bytes + i * Stored::kBytes), kFloats, out + i);
  }
  models::decode(type, bytes + i * Stored::kBytes, count - i, out + i);
}

// The product of an integer and a scale is exact, so it is rounded once, together with the minimum.
template <class Stored>
void decode_blocks(const std::byte* block, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    const HeadVec head = load_head<Stored::kHeadNumbers>(block);
    const Vec scale = hn::Set(kFloats, hn::GetLane(head));
    const Vec minimum = hn::Set(kFloats, hn::ExtractLane(head, 1));
    Stored::visit(block, [&](int column, Vec integers) HWY_ATTR {
      const Vec weights =
          Stored::kHasMinimum ? hn::MulAdd(integers, scale, minimum) : hn::Mul(integers, scale);
      hn::StoreU(weights, kFloats, out + i + column);
    });
    block += Stored::kBlockBytes;
  }
}

void decode_all(WeightType type, const std::byte* bytes, std::int64_t count, float* out) {
  switch (type) {
    case WeightType::kFloat16:
      return decode_numbers<StoredFloat16>(type, bytes, count, out);
    case WeightType::kBFloat16:
      return decode_numbers<StoredBFloat16>(type, bytes, count, out);
    case WeightType::kQ8_0:
      return decode_blocks<StoredQ80>(bytes, count, out);
    case WeightType::kQ4_0:
      return decode_blocks<StoredQ40>(bytes, count, out);
    case WeightType::kQ4_1:
      return decode_blocks<StoredQ41>(bytes, count, out);
    default:
      break;
  }
  for (const VectorDecoder& decoder : kVectorDecoders) {
    if (decoder.type == type) return decoder.decode(bytes, count, out);
  }
  models::decode(type, bytes, count, out);
}

void sum_all_blocks(const float* x, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    static_assert(kWeightBlock == 2 * kSixteen);
    Vec both[kParts];
    for (int p = 0; p < kParts; ++p) {
      const float* const at = x + i + p * kLanes;
      both[p] = hn::Add(hn::LoadU(kFloats, at), hn::LoadU(kFloats, at + kSixteen));
    }
    *sums++ = sum_of_sixteen(both);
  }
}

void multiply_panel_rows(const WeightRows& w, const InputRows& x, float* out,
                         std::int64_t out_stride) {
  multiply_decoded(w, x, decode_all, out, out_stride);
}

}  // namespace

const WeightKernels* weight_kernels() {
  static const WeightKernels kernels{.name = kernels::name_of_target(HWY_TARGET),
                                     .decode = decode_all,
                                     .sum_blocks = sum_all_blocks,
                                     .multiply = multiply_few_rows,
                                     .panel_rows = kPanelRows,
                                     .multiply_panel = multiply_panel_rows};
  return &kernels;
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#else

namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {
const WeightKernels* weight_kernels() { return nullptr; }
}}}  // namespace heed::v0::models::HWY_NAMESPACE

#endif

#if HWY_ONCE

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr kernels::Compiled<WeightKernels> kCompiledKernels[] = HEED_COMPILED(weight_kernels);

}  // namespace

const std::vector<const WeightKernels*>& supported_weight_kernels() {
  static const std::vector<const WeightKernels*> tables = [] {
    std::vector<const WeightKernels*> found;
    for (const auto& compiled : kernels::with_vectors(kCompiledKernels)) {
      found.push_back(compiled.table());
    }
    found.push_back(&plain_weight_kernels());
    return found;
  }();
  return tables;
}

const WeightKernels& weight_kernels_in_use() {
  static const WeightKernels& kernels = []() -> const WeightKernels& {
    const auto& tables = supported_weight_kernels();
    const auto found = std::find_if(tables.begin(), tables.end(), [](const auto* table) {
      return table->name == vectors_in_use();
    });
    return found == tables.end() ? *tables.back() : **found;
  }();
  return kernels;
}

}}}  // namespace heed::v0::models

#endif  // HWY_ONCE
