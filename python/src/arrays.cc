#include "arrays.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "exchange.h"

namespace heed::python {

namespace {

template <class From, class Real>
Tensor<Real> converted(const Array& array) {
  auto result = Tensor<Real>::uninitialized(shape_of(array));
  Real* out = result.data();
  for_each_element(view_of<From>(array), [&out](const From& element) {
    if constexpr (std::is_same_v<From, double>) {
      *out++ = static_cast<Real>(element);
    } else {
      *out++ = static_cast<Real>(static_cast<float>(element));
    }
  });
  return result;
}

template <class T>
constexpr bool has_type(const Array& array) {
  return array.dtype() == nb::dtype<T>();
}

std::string python_type(nb::handle object) { return nb::inst_name(object).c_str(); }

// Whether PyTorch would want to know what becomes of its tensor.
bool is_recorded(nb::handle tensor) {
  return nb::cast<bool>(nb::getattr(tensor, "requires_grad", nb::bool_(false))) &&
         nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")());
}

}  // namespace

Library library_of(nb::handle object) {
  const nb::handle type = object.type();
  const nb::object module = nb::getattr(type, "__module__", nb::str(""));
  // The usual ones by their names, for looking for what is not there takes half a microsecond.
  if (nb::isinstance<nb::str>(module)) {
    const std::string_view name = nb::borrow<nb::str>(module).c_str();
    if (name == "torch") return Library::kTorch;
    if (name == "numpy") return Library::kNumpy;
  }
  // A subclass of Tensor, such as Parameter, is known by the attribute that no array has.
  return nb::hasattr(type, "__torch_function__") ? Library::kTorch : Library::kNumpy;
}

Array to_array(const char* function, const char* name, nb::handle object) {
  const bool is_tensor = library_of(object) == Library::kTorch;
  if (is_tensor && is_recorded(object)) {
    throw InvalidArgument(
        fmt::format("{}: {} requires gradients, which this function does not record: pass "
                    "{}.detach(), or call heed.torch.scaled_dot_product_attention",
                    function, name, name));
  }
  std::optional<Array> array;
  if (is_tensor) array = exchange::to_array(object);
  if (!array && !nb::try_cast(object, array.emplace(), false)) array.reset();
  // A tensor that a tracer of PyTorch's made up has a shape, but no elements.
  if (array && array->is_valid() && (array->size() == 0 || array->data_handle() != nullptr)) {
    return *std::move(array);
  }
  throw InvalidArgument(
      fmt::format("{}: {} is a {}, expected an array in the processor's memory that offers DLPack "
                  "or the buffer protocol, such as a NumPy array or a PyTorch tensor",
                  function, name, python_type(object)));
}

std::string type_name(const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Bool:
      return "bool";
    case nb::dlpack::dtype_code::Int:
      return fmt::format("int{}", type.bits);
    case nb::dlpack::dtype_code::UInt:
      return fmt::format("uint{}", type.bits);
    case nb::dlpack::dtype_code::Float:
      return fmt::format("float{}", type.bits);
    case nb::dlpack::dtype_code::Bfloat:
      return fmt::format("bfloat{}", type.bits);
    case nb::dlpack::dtype_code::Complex:
      return fmt::format("complex{}", type.bits);
    default:
      return fmt::format("type {} of {} bits", type.code, type.bits);
  }
}

DataType data_type_of(const char* function, const char* name, const Array& array) {
  if (has_type<float>(array)) return DataType::kFloat32;
  if (has_type<Float16>(array)) return DataType::kFloat16;
  if (has_type<BFloat16>(array)) return DataType::kBFloat16;
  if (has_type<double>(array)) return DataType::kFloat64;
  throw InvalidArgument(fmt::format("{}: {} is {}, expected float32, float16, bfloat16 or float64",
                                    function, name, type_name(array)));
}

Shape shape_of(const Array& array) {
  return Shape(std::span<const std::int64_t>(array.shape_ptr(), array.ndim()));
}

template <class Real>
TensorView<const Real> as_real(const char* function, const char* name, const Array& array,
                               std::optional<Tensor<Real>>& copy) {
  if (has_type<Real>(array)) return view_of<Real>(array);
  switch (data_type_of(function, name, array)) {
    case DataType::kFloat32:
      copy = converted<float, Real>(array);
      break;
    case DataType::kFloat16:
      copy = converted<Float16, Real>(array);
      break;
    case DataType::kBFloat16:
      copy = converted<BFloat16, Real>(array);
      break;
    case DataType::kFloat64:
      copy = converted<double, Real>(array);
      break;
  }
  return *copy;
}

template TensorView<const float> as_real(const char*, const char*, const Array&,
                                         std::optional<Tensor<float>>&);
template TensorView<const double> as_real(const char*, const char*, const Array&,
                                          std::optional<Tensor<double>>&);

}  // namespace heed::python
