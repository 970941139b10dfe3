#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "heed/viz/colormap.h"

namespace heed::python {

namespace {

nb::object colors_of(nb::handle weights) {
  const Array array = to_array("show", "weights", weights);
  std::optional<Tensor<float>> copy;
  const FloatView view = as_real("show", "weights", array, copy);
  if (view.rank() != 2) {
    throw InvalidArgument("show: weights has shape " + to_string(view.shape()) +
                          ", expected [queries, keys]");
  }
  auto pixels = Tensor<std::uint8_t>::uninitialized({view.extent(0), view.extent(1), 3});
  std::uint8_t* out = pixels.data();
  for_each_element(view, [&out](float weight) {
    const Rgb color = colormap(ColorMap::kViridis, weight);
    *out++ = color.red;
    *out++ = color.green;
    *out++ = color.blue;
  });
  return to_object(std::move(pixels), Library::kNumpy);
}

}  // namespace

void bind_picture(nb::module_& module) {
  module.def("colors_of", &colors_of, nb::arg("weights").none(),
             "The colour of each weight from 0 to 1: uint8 [queries, keys, 3].");
}

}  // namespace heed::python
