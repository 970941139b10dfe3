#include "options.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <string>
#include <tuple>

namespace heed::python {

template <class Real>
CallOptions<Real>::CallOptions(const char* function, const Options& options) {
  options_.mask = options.mask.mask;
  if (options.score_mod.is_valid()) options_.score_mod = score_mod_of(options.score_mod);
  if (options.scale) options_.scale = static_cast<Real>(*options.scale);
  options_.softcap = static_cast<Real>(options.softcap);
  options_.dropout = options.dropout;
  options_.query_offset = options.query_offset;
  options_.precision = options.precision;
  std::size_t count = 0;
  const auto real = [&](const char* name, const std::optional<Array>& array) {
    std::optional<TensorView<const Real>> view;
    if (array) view = as_real<Real>(function, name, *array, copies_[count++]);
    return view;
  };
  options_.alibi_slopes = real("alibi_slopes", options.alibi_slopes);
  options_.bias = real("bias", options.bias);
  options_.sinks = real("sinks", options.sinks);
  if (const auto& bias = options.relative_bias) {
    options_.relative_bias = {*real("relative_bias.table", bias->table), bias->buckets};
  }
  if (const auto& vectors = options.relative_vectors) {
    options_.relative_vectors = {real("relative_vectors.key", vectors->key),
                                 real("relative_vectors.value", vectors->value), vectors->buckets};
  }
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

Precision precision_of(const std::string& function, const std::string& name) {
  if (name == "fast") return Precision::kFast;
  if (name == "exact") return Precision::kExact;
  throw InvalidArgument(
      fmt::format("{}: precision is '{}', expected 'fast' or 'exact'", function, name));
}

// Tuples of tables and buckets; make_options() has checked the types.
using TableTuple = std::tuple<nb::object, RelativeBuckets>;
using VectorTuple = std::tuple<nb::object, nb::object, RelativeBuckets>;

std::optional<RelativeTable> relative_table(const std::string& function,
                                            const std::optional<TableTuple>& given) {
  if (!given) return std::nullopt;
  const auto& [table, buckets] = *given;
  return RelativeTable{to_array(function.c_str(), "relative_bias.table", table), buckets};
}

std::optional<RelativeVectorTables> relative_vectors(const std::string& function,
                                                     const std::optional<VectorTuple>& given) {
  if (!given) return std::nullopt;
  const auto& [key, value, buckets] = *given;
  return RelativeVectorTables{optional_array(function, "relative_vectors.key", key),
                              optional_array(function, "relative_vectors.value", value), buckets};
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<Options>(module, "Options", nb::type_slots(collected_slots<Options>))
      .def(
          "__init__",
          [](Options* self, const std::string& function, const MaskObject* mask,
             nb::handle score_mod, nb::handle alibi_slopes, nb::handle bias, nb::handle sinks,
             const std::optional<TableTuple>& bias_table,
             const std::optional<VectorTuple>& vector_tables, std::optional<double> scale,
             double softcap, float dropout, std::uint64_t seed, const QueryOffsets& query_offset,
             const std::string& precision) {
            new (self)
                Options{.mask = mask == nullptr ? MaskObject{} : *mask,
                        .score_mod = optional_function(function, score_mod),
                        .alibi_slopes = optional_array(function, "alibi_slopes", alibi_slopes),
                        .bias = optional_array(function, "bias", bias),
                        .relative_bias = relative_table(function, bias_table),
                        .relative_vectors = relative_vectors(function, vector_tables),
                        .sinks = optional_array(function, "sinks", sinks),
                        .scale = scale,
                        .softcap = softcap,
                        .dropout = {.probability = dropout, .seed = seed},
                        .query_offset = query_offset_of(query_offset),
                        .precision = precision_of(function, precision)};
          },
          nb::arg("function"), nb::kw_only(), nb::arg("mask").none(), nb::arg("score_mod").none(),
          nb::arg("alibi_slopes").none(), nb::arg("bias").none(), nb::arg("sinks").none(),
          nb::arg("relative_bias").none(), nb::arg("relative_vectors").none(),
          nb::arg("scale").none(), nb::arg("softcap"), nb::arg("dropout"), nb::arg("seed"),
          nb::arg("query_offset"), nb::arg("precision"));
}

}  // namespace heed::python
