#include "arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "exchange.h"
#include "heed/attention/backward.h"

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

// The name of the type's module, which the type owns; empty if it has none.
std::string_view module_of(nb::handle type) {
  const nb::object module = nb::getattr(type, "__module__", nb::none());
  return nb::isinstance<nb::str>(module) ? nb::borrow<nb::str>(module).c_str() : "";
}

// True for torch.Tensor itself, which is looked up once.
bool is_plain(nb::handle type) {
  static PyObject* const plain =
      nb::object(nb::module_::import_("torch").attr("Tensor")).release().ptr();
  return type.ptr() == plain;
}

std::string python_type(nb::handle object) { return nb::inst_name(object).c_str(); }

// The function of heed.torch that computes the same with gradients; empty if there is none.
std::string recorded_twin(std::string_view function, std::string_view name) {
  for (const char* twin :
       {"attention_packed", "linear_attention", "feature_map_attention", "rotary_embedding"}) {
    if (function.starts_with(twin)) return twin;
  }
  if (function != "attention" && function != "attention_backward") return "";
  // PyTorch's own operator lacks these options: of all that can be learned, it has the bias.
  const std::string_view option = name.substr(0, name.find('.'));
  const bool is_heeds_own =
      option != "bias" &&
      std::any_of(kLearnable<float>.begin(), kLearnable<float>.end(),
                  [&](const Learnable<float>& term) { return option == term.option; });
  return is_heeds_own ? "attention_packed" : "scaled_dot_product_attention";
}

[[noreturn]] void refuse_recorded(const char* function, const char* name) {
  const std::string twin = recorded_twin(function, name);
  throw InvalidArgument(fmt::format(
      "{}: {} requires gradients, which this function does not record: pass {}.detach(){}{}",
      function, name, name, twin.empty() ? "" : ", or call heed.torch.", twin));
}

// Calls a method of a tensor. `name` is an interned string that the caller keeps.
nb::object call_method(nb::handle tensor, PyObject* name) {
  PyObject* result = PyObject_CallMethodObjArgs(tensor.ptr(), name, nullptr);
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

// True if a tensor's elements are the negatives of those in memory.
bool is_negative(nb::handle tensor) {
  static PyObject* const name = PyUnicode_InternFromString("is_neg");
  return call_method(tensor, name).is(nb::bool_(true));
}

// Refuses tensors without elements in memory. Returns the others, with pending negation resolved.
nb::object readable_tensor(const char* function, const char* name, nb::handle tensor) {
  const nb::handle type = tensor.type();
  if (!is_plain(type) && module_of(type) == "torch.nn.attention.bias") {
    throw InvalidArgument(
        fmt::format("{}: {} is a {}, which has no elements: heed.causal(\"top_left\") and "
                    "heed.causal(\"bottom_right\") are these masks",
                    function, name, python_type(tensor)));
  }
  static PyObject* const resolve = PyUnicode_InternFromString("resolve_neg");
  return is_negative(tensor) ? call_method(tensor, resolve) : nb::borrow(tensor);
}

// Throws, with the reason if the object's type shows it.
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

// True if PyTorch records operations on the tensor.
bool is_recorded(nb::handle tensor) {
  return nb::cast<bool>(nb::getattr(tensor, "requires_grad", nb::bool_(false))) &&
         nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")());
}

}  // namespace

Library library_of(nb::handle object) {
  const nb::handle type = object.type();
  // The usual types are recognised by name: looking up a missing attribute takes half a
  // microsecond.
  const std::string_view name = module_of(type);
  if (name == "torch") return Library::kTorch;
  if (name == "numpy") return Library::kNumpy;
  // A subclass of Tensor, such as Parameter, is recognised by an attribute that no array has.
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
  // A placeholder tensor of PyTorch's tracers has a shape, but no elements.
  if (array && array->is_valid() && (array->size() == 0 || array->data_handle() != nullptr)) {
    return *std::move(array);
  }
  refuse_array(function, name, object);
}

std::optional<nb::dlpack::dltensor> usual_tensor(nb::handle object) {
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  if (!is_plain(object.type())) return std::nullopt;
  if (!nb::getattr(object, nb::handle(requires_grad)).is(nb::bool_(false)) || is_negative(object)) {
    return std::nullopt;
  }
  const auto found = exchange::look_at(object);
  if (!found || found->device.device_type != nb::device::cpu::value || found->data == nullptr ||
      found->strides == nullptr || found->ndim == 0) {
    return std::nullopt;
  }
  const std::span<const std::int64_t> shape(found->shape, static_cast<std::size_t>(found->ndim));
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return is_empty || found->strides[found->ndim - 1] != 1 ? std::nullopt : found;
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

std::optional<DataType> float_type(nb::dlpack::dtype type) {
  if (type == nb::dtype<float>()) return DataType::kFloat32;
  if (type == nb::dtype<Float16>()) return DataType::kFloat16;
  if (type == nb::dtype<BFloat16>()) return DataType::kBFloat16;
  if (type == nb::dtype<double>()) return DataType::kFloat64;
  return std::nullopt;
}

DataType data_type_of(const char* function, const char* name, const Array& array) {
  if (const auto type = float_type(array.dtype())) return *type;
  throw InvalidArgument(fmt::format("{}: {} is {}, expected float32, float16, bfloat16 or float64",
                                    function, name, type_name(array)));
}

Shape shape_of(const Array& array) {
  return Shape(std::span<const std::int64_t>(array.shape_ptr(), array.ndim()));
}

template <class Real>
TensorView<const Real> as_real(const char* function, const char* name, const Array& array,
                               std::optional<Tensor<Real>>& copy) {
  if (array.dtype() == nb::dtype<Real>()) return view_of<Real>(array);
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
