#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/kernels/products_f32.cc"
#include "simd/targets.h"
// The list of targets must be known before the includes that iterate over it.
#include "hwy/foreach_target.h"
// foreach_target must be first: it includes this file once for each instruction set.
#include "attention/kernels/target.h"
#include "hwy/highway.h"
#include "nn/kernels/plain_products.h"
#include "nn/kernels/products.h"
#include "simd/compiled.h"

#if HEED_HAS_VECTORS

#include "nn/kernels/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace nn::HWY_NAMESPACE {

const ProductKernels<float>* products_f32() {
  static const ProductKernels<float> table{.vectors = kernels::name_of_target(HWY_TARGET),
                                           .columns = kPanelColumns,
                                           .multiply = multiply};
  return &table;
}

}}}  // namespace heed::v0::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#else

namespace heed { inline namespace v0 { namespace nn::HWY_NAMESPACE {

const ProductKernels<float>* products_f32() {
  static const ProductKernels<float> table{.vectors = kernels::name_of_target(HWY_TARGET),
                                           .columns = kPlainColumns,
                                           .multiply = multiply_plainly<float>};
  return &table;
}

}}}  // namespace heed::v0::nn::HWY_NAMESPACE

#endif

#if HWY_ONCE

namespace heed { inline namespace v0 { namespace nn {

namespace {

constexpr kernels::Compiled<ProductKernels<float>> kCompiledProducts[] =
    HEED_COMPILED(products_f32);

}  // namespace

template <>
const ProductKernels<float>& product_kernels() {
  static const auto& found = *kernels::table_for(vectors_in_use(), kCompiledProducts);
  return found;
}

}}}  // namespace heed::v0::nn

#endif  // HWY_ONCE
