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

// The module's name, which the type owns; empty where it has none.
std::string_view module_of(nb::handle type) {
  const nb::object module = nb::getattr(type, "__module__", nb::none());
  return nb::isinstance<nb::str>(module) ? nb::borrow<nb::str>(module).c_str() : "";
}

// Whether the type is torch.Tensor itself, looked for once.
bool is_plain(nb::handle type) {
  static PyObject* const plain =
      nb::object(nb::module_::import_("torch").attr("Tensor")).release().ptr();
  return type.ptr() == plain;
}

std::string python_type(nb::handle object) { return nb::inst_name(object).c_str(); }

// The function of heed.torch that records what this one computes; empty where there is none.
std::string recorded_twin(std::string_view function, std::string_view name) {
  for (const char* twin :
       {"attention_packed", "linear_attention", "feature_map_attention", "rotary_embedding"}) {
    if (function.starts_with(twin)) return twin;
  }
  if (function != "attention" && function != "attention_backward") return "";
  // PyTorch's own operator has no words for these.
  const bool is_heeds_own =
      name == "alibi_slopes" || name == "sinks" || name.starts_with("relative_");
  return is_heeds_own ? "attention_packed" : "scaled_dot_product_attention";
}

[[noreturn]] void refuse_recorded(const char* function, const char* name) {
  const std::string twin = recorded_twin(function, name);
  throw InvalidArgument(fmt::format(
      "{}: {} requires gradients, which this function does not record: pass {}.detach(){}{}",
      function, name, name, twin.empty() ? "" : ", or call heed.torch.", twin));
}

// Refuses tensors whose memory is not what they stand for, and returns the others as their elements
// say.
nb::object readable_tensor(const char* function, const char* name, nb::handle tensor) {
  const nb::handle type = tensor.type();
  if (!is_plain(type) && module_of(type) == "torch.nn.attention.bias") {
    throw InvalidArgument(
        fmt::format("{}: {} is a {}, which has no elements: heed.causal(\"top_left\") and "
                    "heed.causal(\"bottom_right\") are these masks",
                    function, name, python_type(tensor)));
  }
  // The sign of some tensors is not in their memory. Both names are made once, and kept.
  static PyObject* const is_negative = PyUnicode_InternFromString("is_neg");
  static PyObject* const resolve = PyUnicode_InternFromString("resolve_neg");
  const auto call = [&](PyObject* method) {
    PyObject* result = PyObject_CallMethodObjArgs(tensor.ptr(), method, nullptr);
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
  };
  return call(is_negative).is(nb::bool_(true)) ? call(resolve) : nb::borrow(tensor);
}

// Why an array cannot be looked at, as far as its type says so.
[[noreturn]] void refuse_array(const char* function, const char* name, nb::handle object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  if (library_of(object) == Library::kNumpy && !dtype.is_none()) {
    throw InvalidArgument(fmt::format(
        "{}: {} is a {} of dtype {}, expected booleans, integers or floating-point numbers of at "
        "most 64 bits in the processor's byte order",
        function, name, python_type(object), nb::str(dtype).c_str()));
  }
  throw InvalidArgument(
      fmt::format("{}: {} is a {}, expected an array in the processor's memory that offers DLPack "
                  "or the buffer protocol, such as a NumPy array or a PyTorch tensor",
                  function, name, python_type(object)));
}

// Whether PyTorch would want to know what becomes of its tensor.
bool is_recorded(nb::handle tensor) {
  return nb::cast<bool>(nb::getattr(tensor, "requires_grad", nb::bool_(false))) &&
         nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")());
}

}  // namespace

Library library_of(nb::handle object) {
  const nb::handle type = object.type();
  // The usual ones by their names, for looking for what is not there takes half a microsecond.
  const std::string_view name = module_of(type);
  if (name == "torch") return Library::kTorch;
  if (name == "numpy") return Library::kNumpy;
  // A subclass of Tensor, such as Parameter, is known by the attribute that no array has.
  return nb::hasattr(type, "__torch_function__") ? Library::kTorch : Library::kNumpy;
}

Array to_array(const char* function, const char* name, nb::handle object) {
  std::optional<Array> array;
  if (library_of(object) == Library::kTorch) {
    if (is_recorded(object)) refuse_recorded(function, name);
    const nb::object tensor = readable_tensor(function, name, object);
    array = exchange::to_array(tensor);
    if (!array && !nb::try_cast(tensor, array.emplace(), false)) array.reset();
  } else if (!nb::try_cast(object, array.emplace(), false)) {
    array.reset();
  }
  // A tensor that a tracer of PyTorch's made up has a shape, but no elements.
  if (array && array->is_valid() && (array->size() == 0 || array->data_handle() != nullptr)) {
    return *std::move(array);
  }
  refuse_array(function, name, object);
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
