#include "heed/io/any_tensor.h"

#include <algorithm>

#include "io/element_type.h"

namespace heed { inline namespace v0 {

namespace {

template <class To>
Tensor<To> convert(const AnyTensor& tensor) {
  return std::visit(
      [](const auto& from) {
        auto to = Tensor<To>::uninitialized(from.shape());
        std::transform(from.elements().begin(), from.elements().end(), to.data(),
                       [](auto element) { return static_cast<To>(element); });
        return to;
      },
      tensor);
}

}  // namespace

AnyView view(const AnyTensor& tensor) {
  return std::visit([](const auto& typed) -> AnyView { return typed.view(); }, tensor);
}

std::string_view dtype_name(const AnyTensor& tensor) {
  return io::kElementTypes[tensor.index()].name;
}

const Shape& shape(const AnyTensor& tensor) {
  return std::visit([](const auto& typed) -> const Shape& { return typed.shape(); }, tensor);
}

Shape shape(const AnyTensor&& tensor) { return shape(tensor); }

Tensor<float> to_float(const AnyTensor& tensor) { return convert<float>(tensor); }

Tensor<double> to_double(const AnyTensor& tensor) { return convert<double>(tensor); }

}}  // namespace heed::v0
