// A case as the Python tests describe it: arrays by name, and options as JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "heed/attention.h"
#include "heed/io/any_tensor.h"

namespace heed::probe {

using Arrays = std::map<std::string, AnyTensor>;

/// Returns the array `name`, if the case has one. @throws std::bad_variant_access when its elements
/// are not T.
template <class T>
std::optional<TensorView<const T>> find_array(const Arrays& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  if (found == arrays.end()) return std::nullopt;
  return std::get<Tensor<T>>(found->second).view();
}

/// Returns an array that every case has. @throws std::out_of_range when it is missing.
template <class T>
TensorView<const T> get_array(const Arrays& arrays, const std::string& name) {
  return std::get<Tensor<T>>(arrays.at(name)).view();
}

/// Returns the options that `json` names, with the arrays bias, sinks and mask_*. Other options
/// keep heed's defaults. The result refers to the arrays.
/// @throws std::invalid_argument for a name that options.cc does not know.
template <class Real>
BasicAttentionOptions<Real> read_options(const nlohmann::json& json, const Arrays& arrays);

}  // namespace heed::probe
