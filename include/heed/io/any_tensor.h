/// Tensors whose element type is known only once a file has been read.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

namespace detail {

template <template <class> class Holder>
using AnyOf = std::variant<Holder<float>, Holder<double>, Holder<Float16>, Holder<bool>,
                           Holder<std::int8_t>, Holder<std::int16_t>, Holder<std::int32_t>,
                           Holder<std::int64_t>, Holder<std::uint8_t>, Holder<std::uint16_t>,
                           Holder<std::uint32_t>, Holder<std::uint64_t>, Holder<BFloat16>>;

template <class T>
using ConstView = TensorView<const T>;

}  // namespace detail

/// A tensor of any of the element types of array files. Read it with std::visit, std::get_if or the
/// functions below.
using AnyTensor = detail::AnyOf<Tensor>;

/// A view of elements of any of those types. Tensor<T> and TensorView<T> convert to it.
using AnyView = detail::AnyOf<detail::ConstView>;

/// A view of `tensor`, which must outlive it.
HEED_API AnyView view(const AnyTensor& tensor);
AnyView view(const AnyTensor&&) HEED_DELETED("name the tensor first: it ends before the view");

/// The element type: "float32", "float64", "float16", "bool", "int8" … "uint64" as in NumPy, or
/// "bfloat16".
HEED_API std::string_view dtype_name(const AnyTensor& tensor);

/// The shape, for any element type.
HEED_API const Shape& shape(const AnyTensor& tensor);
HEED_API Shape shape(const AnyTensor&& tensor);

/// The elements as float; false is 0 and true is 1. Exact for float32, float16, bfloat16, bool,
/// integers of 8 and 16 bits and those of magnitude up to 2²⁴; everything else is rounded to the
/// nearest float, ties to even, and a float64 beyond the largest float becomes infinity.
HEED_API Tensor<float> to_float(const AnyTensor& tensor);

/// The elements as double. Exact for everything but 64-bit integers of magnitude beyond 2⁵³, which
/// are rounded to the nearest double, ties to even.
HEED_API Tensor<double> to_double(const AnyTensor& tensor);

}}  // namespace heed::v0
