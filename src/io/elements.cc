// Tensors of any element type, and elements as bytes.
#include "io/elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "heed/core/error.h"
#include "heed/io/any_tensor.h"

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

namespace heed { inline namespace v0 { namespace io {

void check_bools(std::span<const std::byte> bytes, const std::string& file, std::int64_t offset) {
  const auto wrong =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw FormatError(file, offset + (wrong - bytes.begin()),
                    fmt::format("a bool is {}, expected 0 or 1", std::to_integer<int>(*wrong)));
}

}}}  // namespace heed::v0::io
