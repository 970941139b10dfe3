// The tables of ProductKernels of a type, for float, or for double where HEED_REAL_BITS is 64. To
// be included by a file that hwy/foreach_target.h includes once for each instruction set.
#if defined(HEED_NN_PRODUCT_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_NN_PRODUCT_TABLE_INL_H_
#undef HEED_NN_PRODUCT_TABLE_INL_H_
#else
#define HEED_NN_PRODUCT_TABLE_INL_H_
#endif

#include "attention/kernels/target.h"
#include "hwy/highway.h"
#include "nn/kernels/plain_products.h"
#include "nn/kernels/products.h"
#include "simd/compiled.h"
#if HEED_HAS_VECTORS
#include "nn/kernels/products-inl.h"
#endif

#undef HEED_PRODUCT_REAL
#undef HEED_PRODUCT_TABLE
#if HEED_REAL_BITS == 64
#define HEED_PRODUCT_REAL double
#define HEED_PRODUCT_TABLE products_f64
#else
#define HEED_PRODUCT_REAL float
#define HEED_PRODUCT_TABLE products_f32
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace nn::HWY_NAMESPACE {

const ProductKernels<HEED_PRODUCT_REAL>* HEED_PRODUCT_TABLE() {
  static const ProductKernels<HEED_PRODUCT_REAL> table {
    .vectors = kernels::name_of_target(HWY_TARGET),
#if HEED_HAS_VECTORS
    .columns = HEED_REAL_NAMESPACE::kPanelColumns, .multiply = HEED_REAL_NAMESPACE::multiply
#else
    .columns = kPlainColumns, .multiply = multiply_plainly<HEED_PRODUCT_REAL>
#endif
  };
  return &table;
}

}}}  // namespace heed::v0::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed { inline namespace v0 { namespace nn {

template <>
const ProductKernels<HEED_PRODUCT_REAL>& product_kernels() {
  static constexpr kernels::Compiled<ProductKernels<HEED_PRODUCT_REAL>> kCompiled[] =
      HEED_COMPILED(HEED_PRODUCT_TABLE);
  static const auto& found = *kernels::table_for(vectors_in_use(), kCompiled);
  return found;
}

}}}  // namespace heed::v0::nn

#endif  // HWY_ONCE

#endif  // HEED_NN_PRODUCT_TABLE_INL_H_
