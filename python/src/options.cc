#include "options.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

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
  if (const auto& buckets = options.bias_buckets) options_.relative_bias = {{}, *buckets};
  if (const auto& buckets = options.vector_buckets) options_.relative_vectors = {{}, {}, *buckets};
  for (std::size_t i = 0; i < kNumLearned; ++i) {
    const auto& learned = options.learned[i];
    if (!learned) continue;
    kLearnable<Real>[i].set(
        options_, as_real<Real>(function, learned->name.c_str(), learned->array, copies_[i]));
  }
}

bool Options::have_terms() const {
  return score_mod.is_valid() || softcap != 0 || bias_buckets || vector_buckets ||
         std::any_of(learned.begin(), learned.end(),
                     [](const auto& array) { return array.has_value(); });
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

Precision precision_of(const std::string& function, const std::string& name) {
  if (name == "fast") return Precision::kFast;
  if (name == "exact") return Precision::kExact;
  throw InvalidArgument(
      fmt::format("{}: precision is '{}', expected 'fast' or 'exact'", function, name));
}

// True if the option of the term says more than the tensor: buckets of distances.
bool has_buckets(const Learnable<float>& term) {
  static const AttentionOptions none;
  return !term.is_option_set(none);
}

// The name of a term in errors: "bias", "relative_vectors.key" of relative_key, and
// "relative_bias.table" of the only table of an option.
std::string name_in_errors(const Learnable<float>& term) {
  const std::string_view name = term.name;
  if (!has_buckets(term)) return term.name;
  const bool is_only = name == term.option;
  return fmt::format("{}.{}", term.option, is_only ? "table" : name.substr(name.find('_') + 1));
}

// Reads an option with tensors that can be learned: an array, or a tuple of tables, where of
// several ones each may be None, and buckets. make_options() has checked the tuples.
void read_learned(const std::string& function, std::string_view option, nb::handle given,
                  Options& options) {
  std::size_t table = 0;
  for (std::size_t i = 0; i < kNumLearned; ++i) {
    const Learnable<float>& term = kLearnable<float>[i];
    if (option != term.option) continue;
    const nb::object object = has_buckets(term) ? nb::object(given[table++]) : nb::borrow(given);
    if (object.is_none() && option != term.name) continue;
    std::string name = name_in_errors(term);
    Array array = to_array(function.c_str(), name.c_str(), object);
    options.learned[i] = {std::move(name), std::move(array)};
  }
  if (table == 0) return;
  auto& buckets = option == "relative_bias" ? options.bias_buckets : options.vector_buckets;
  buckets = nb::cast<RelativeBuckets>(given[table]);
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<Options>(module, "Options", nb::type_slots(collected_slots<Options>))
      .def(
          "__init__",
          [](Options* self, const std::string& function, const MaskObject* mask,
             nb::handle score_mod, const nb::dict& learned, std::optional<double> scale,
             double softcap, float dropout, std::uint64_t seed, const QueryOffsets& query_offset,
             const std::string& precision) {
            Options options{.mask = mask == nullptr ? MaskObject{} : *mask,
                            .score_mod = optional_function(function, score_mod),
                            .learned = {},
                            .bias_buckets = {},
                            .vector_buckets = {},
                            .scale = scale,
                            .softcap = softcap,
                            .dropout = {.probability = dropout, .seed = seed},
                            .query_offset = query_offset_of(query_offset),
                            .precision = precision_of(function, precision)};
            for (const auto& [option, given] : learned) {
              if (given.is_none()) continue;
              read_learned(function, nb::cast<std::string_view>(option), given, options);
            }
            new (self) Options(std::move(options));
          },
          nb::arg("function"), nb::kw_only(), nb::arg("mask").none(), nb::arg("score_mod").none(),
          nb::arg("learned"), nb::arg("scale").none(), nb::arg("softcap"), nb::arg("dropout"),
          nb::arg("seed"), nb::arg("query_offset"), nb::arg("precision"));
}

}  // namespace heed::python
