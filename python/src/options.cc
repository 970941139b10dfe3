#include "options.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

namespace heed::python {

template <class Real>
CallOptions<Real>::CallOptions(const char* function, const Options& options) {
  options_.mask = options.mask.mask;
  if (options.score_mod.is_valid()) options_.score_mod = score_mod_of(options.score_mod);
  if (options.scale) options_.scale = static_cast<Real>(*options.scale);
  options_.softcap = static_cast<Real>(options.softcap);
  options_.dropout = options.dropout;
  options_.query_offset = options.query_offset;
  if (options.alibi_slopes) {
    options_.alibi_slopes =
        as_real<Real>(function, "alibi_slopes", *options.alibi_slopes, copies_[0]);
  }
  if (options.bias) options_.bias = as_real<Real>(function, "bias", *options.bias, copies_[1]);
  if (options.sinks) options_.sinks = as_real<Real>(function, "sinks", *options.sinks, copies_[2]);
}

FunctionHandles Options::functions() const {
  FunctionHandles all = mask.functions();
  if (score_mod.is_valid()) all.push_back(score_mod);
  return all;
}

template class CallOptions<float>;
template class CallOptions<double>;

namespace {

nb::object optional_function(const std::string& function, nb::handle object) {
  if (object.is_none()) return {};
  if (!nb::isinstance<nb::callable>(object)) {
    throw InvalidArgument(fmt::format("{}: score_mod is not a function", function));
  }
  return nb::borrow(object);
}

std::optional<Array> optional_array(const std::string& function, const char* name,
                                    nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return to_array(function.c_str(), name, object);
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<Options>(module, "Options", nb::type_slots(collected_slots<Options>))
      .def(
          "__init__",
          [](Options* self, const std::string& function, const MaskObject* mask,
             nb::handle score_mod, nb::handle alibi_slopes, nb::handle bias, nb::handle sinks,
             std::optional<double> scale, double softcap, float dropout, std::uint64_t seed,
             std::int64_t query_offset) {
            new (self)
                Options{.mask = mask == nullptr ? MaskObject{} : *mask,
                        .score_mod = optional_function(function, score_mod),
                        .alibi_slopes = optional_array(function, "alibi_slopes", alibi_slopes),
                        .bias = optional_array(function, "bias", bias),
                        .sinks = optional_array(function, "sinks", sinks),
                        .scale = scale,
                        .softcap = softcap,
                        .dropout = {.probability = dropout, .seed = seed},
                        .query_offset = query_offset};
          },
          nb::arg("function"), nb::kw_only(), nb::arg("mask").none(), nb::arg("score_mod").none(),
          nb::arg("alibi_slopes").none(), nb::arg("bias").none(), nb::arg("sinks").none(),
          nb::arg("scale").none(), nb::arg("softcap"), nb::arg("dropout"), nb::arg("seed"),
          nb::arg("query_offset"));
}

}  // namespace heed::python
