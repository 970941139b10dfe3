#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/weight_kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first: it includes this file once for each instruction set.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "attention/kernels/has_vectors.h"
#include "attention/target.h"
#include "hwy/highway.h"
#include "models/decode.h"
#include "models/kernels/weight_kernels.h"

#if HEED_HAS_VECTORS

#include "models/kernels/panels-inl.h"
#include "models/kernels/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::models::HWY_NAMESPACE {

namespace {

template <class Stored>
void decode_numbers(WeightType type, const std::byte* bytes, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Stored::load(bytes + i * Stored::kBytes), kFloats, out + i);
  }
  models::decode(type, bytes + i * Stored::kBytes, count - i, out + i);
}

// The product of an integer and a scale is exact, and so rounded once with the minimum.
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
    case WeightType::kFloat32:
      return models::decode(type, bytes, count, out);
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
  }
}

void sum_all_blocks(const float* x, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    Vec sum = hn::LoadU(kFloats, x + i);
    for (int j = kLanes; j < kWeightBlock; j += kLanes) {
      sum = hn::Add(sum, hn::LoadU(kFloats, x + i + j));
    }
    *sums++ = sum_of_lanes(sum);
  }
}

void multiply_panel_rows(const WeightRows& w, const InputRows& x, float* out,
                         std::int64_t out_stride) {
  multiply_decoded(w, x, decode_all, out, out_stride);
}

// As attention's kernels are called.
const char* name_of_target() {
  return HWY_TARGET == HWY_AVX3 ? "AVX512" : hwy::TargetName(HWY_TARGET);
}

}  // namespace

const WeightKernels* weight_kernels() {
  static const WeightKernels kernels{.name = name_of_target(),
                                     .decode = decode_all,
                                     .sum_blocks = sum_all_blocks,
                                     .multiply = multiply_few_rows,
                                     .panel_rows = kPanelRows,
                                     .multiply_panel = multiply_panel_rows};
  return &kernels;
}

}  // namespace heed::inline v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#else

namespace heed::inline v0::models::HWY_NAMESPACE {
const WeightKernels* weight_kernels() { return nullptr; }
}  // namespace heed::inline v0::models::HWY_NAMESPACE

#endif

#if HWY_ONCE

namespace heed::inline v0::models {

namespace {

HWY_EXPORT(weight_kernels);

// The table of one instruction set, whichever the processor likes best.
const WeightKernels* kernels_of(std::int64_t target) {
  const auto& table = HWY_DISPATCH_TABLE(weight_kernels);
  if (std::size(table) == 1) return table[0]();  // compiled for one
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return table[chosen.GetIndex()]();
}

}  // namespace

const std::vector<const WeightKernels*>& supported_weight_kernels() {
  static const std::vector<const WeightKernels*> tables = [] {
    std::vector<const WeightKernels*> found;
    std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS & ~(HWY_SCALAR | HWY_EMU128);
    while (targets != 0) {
      // The better the instruction set, the lower its bit.
      found.push_back(kernels_of(targets & -targets));
      targets &= targets - 1;
    }
    found.push_back(&plain_weight_kernels());
    return found;
  }();
  return tables;
}

const WeightKernels& weight_kernels_in_use() {
  static const WeightKernels& kernels = []() -> const WeightKernels& {
    const auto* const attention = heed::kernels_in_use();
    const auto& tables = supported_weight_kernels();
    if (attention == nullptr) return *tables.back();
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const auto* table) {
      return std::string_view(table->name) == attention->vectors;
    });
    return found == tables.end() ? *tables.back() : **found;
  }();
  return kernels;
}

}  // namespace heed::inline v0::models

#endif  // HWY_ONCE
