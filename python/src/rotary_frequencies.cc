// Frequencies of rotary embeddings, with the names of scalings in model configurations.
#include "heed/attention/rotary_frequencies.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "bindings.h"

namespace heed::python {

namespace {

// The parameters of a scaling, each read once by name. None counts as not given.
class ScalingParameters {
 public:
  ScalingParameters(const std::string& rope_type, const nb::dict& given)
      : rope_type_(rope_type), given_(given) {}

  // Does not change `field` if the parameter is not given.
  template <class T>
  void read(const char* name, T& field) {
    known_.emplace_back(name);
    if (!has(name)) return;
    const nb::object value = given_[name];
    if (nb::try_cast(value, field)) return;
    throw InvalidArgument(fmt::format("rotary_frequencies: {} is {}, expected {}", name,
                                      nb::repr(value).c_str(), description(field)));
  }

  template <class T>
  void read_needed(const char* name, T& field) {
    read(name, field);
    if (has(name)) return;
    throw InvalidArgument(
        fmt::format("rotary_frequencies: rope_type \"{}\" needs {}", rope_type_, name));
  }

  // Refuses parameters that were not read.
  void check_all_read() const {
    for (const auto [key, value] : given_) {
      const auto name = nb::cast<std::string>(key);
      if (value.is_none() || std::find(known_.begin(), known_.end(), name) != known_.end())
        continue;
      throw InvalidArgument(fmt::format(
          "rotary_frequencies: rope_type \"{}\" has no parameter {}, expected {}", rope_type_, name,
          known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", "))));
    }
  }

 private:
  bool has(const char* name) const { return given_.contains(name) && !given_[name].is_none(); }

  static const char* description(const std::vector<double>&) { return "a list of numbers"; }
  static const char* description(std::int64_t) { return "an integer"; }
  static const char* description(bool) { return "a bool"; }
  static const char* description(const std::optional<double>&) { return "a number"; }
  static const char* description(double) { return "a number"; }

  const std::string& rope_type_;
  const nb::dict& given_;
  std::vector<std::string> known_;
};

constexpr const char* kOriginalMaxLen = "original_max_position_embeddings";

RotaryScaling linear_scaling(ScalingParameters& given) {
  LinearScaling scaling;
  given.read_needed("factor", scaling.factor);
  return scaling;
}

RotaryScaling dynamic_ntk_scaling(ScalingParameters& given) {
  DynamicNtkScaling scaling;
  given.read_needed("factor", scaling.factor);
  given.read_needed(kOriginalMaxLen, scaling.original_max_len);
  return scaling;
}

RotaryScaling yarn_scaling(ScalingParameters& given) {
  YarnScaling scaling;
  given.read_needed("factor", scaling.factor);
  given.read_needed(kOriginalMaxLen, scaling.original_max_len);
  given.read("beta_fast", scaling.beta_fast);
  given.read("beta_slow", scaling.beta_slow);
  given.read("truncate", scaling.truncate);
  given.read("attention_factor", scaling.attention_factor);
  given.read("mscale", scaling.mscale);
  given.read("mscale_all_dim", scaling.mscale_all_dim);
  return scaling;
}

RotaryScaling long_rope_scaling(ScalingParameters& given) {
  LongRopeScaling scaling;
  given.read_needed("short_factor", scaling.short_factor);
  given.read_needed("long_factor", scaling.long_factor);
  given.read_needed(kOriginalMaxLen, scaling.original_max_len);
  given.read("attention_factor", scaling.attention_factor);
  if (scaling.attention_factor) {
    given.read("factor", scaling.factor);
  } else {
    given.read_needed("factor", scaling.factor);
  }
  return scaling;
}

RotaryScaling llama3_scaling(ScalingParameters& given) {
  Llama3Scaling scaling;
  given.read_needed("factor", scaling.factor);
  given.read_needed(kOriginalMaxLen, scaling.original_max_len);
  given.read("low_freq_factor", scaling.low_freq_factor);
  given.read("high_freq_factor", scaling.high_freq_factor);
  return scaling;
}

struct ScalingKind {
  const char* rope_type;
  RotaryScaling (*read)(ScalingParameters& given);
};

constexpr ScalingKind kScalingKinds[] = {
    {"default", [](ScalingParameters&) -> RotaryScaling { return {}; }},
    {"linear", linear_scaling},
    {"dynamic", dynamic_ntk_scaling},
    {"yarn", yarn_scaling},
    {"longrope", long_rope_scaling},
    {"su", long_rope_scaling},
    {"llama3", llama3_scaling},
};

RotaryScaling scaling_of(const std::string& rope_type, const nb::dict& parameters) {
  for (const auto& [name, read] : kScalingKinds) {
    if (rope_type != name) continue;
    ScalingParameters given(rope_type, parameters);
    RotaryScaling scaling = read(given);
    given.check_all_read();
    return scaling;
  }
  throw InvalidArgument(fmt::format(
      "rotary_frequencies: rope_type is \"{}\", expected default, linear, dynamic, yarn, longrope, "
      "su or llama3",
      rope_type));
}

nb::tuple frequencies(std::int64_t rotary_dim, const std::string& rope_type, double rope_theta,
                      std::optional<std::int64_t> length, const nb::dict& parameters) {
  auto [inv_freq, attention_factor] =
      rotary_frequencies(rotary_dim, rope_theta, scaling_of(rope_type, parameters), length);
  return nb::make_tuple(to_object(std::move(inv_freq), Library::kNumpy), attention_factor);
}

}  // namespace

void bind_rotary_frequencies(nb::module_& module) {
  module.def("rotary_frequencies", &frequencies, nb::arg("rotary_dim"), nb::arg("rope_type"),
             nb::arg("rope_theta"), nb::arg("length").none(), nb::arg("parameters"));
}

}  // namespace heed::python
