// Records the results of layers for the tests in Python.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/heed.h"

namespace heed::probe {

using nn::Variable;

struct Report {
  std::map<std::string, AnyTensor> arrays;
  std::map<std::string, std::string> summaries;

  void add(const std::string& name, FloatView array) { arrays[name] = to_tensor(array); }
  void add(const std::string& name, const nn::StateDict& state) {
    for (const auto& [entry, value] : state) {
      if (const auto* view = std::get_if<FloatView>(&value))
        add(fmt::format("{}/{}", name, entry), *view);
    }
  }
  // Writes FOLDER/layers.npz and FOLDER/summaries.json.
  void write(const std::filesystem::path& folder) const {
    std::map<std::string, AnyView> views;
    for (const auto& [name, tensor] : arrays) views.emplace(name, view(tensor));
    write_npz(folder / "layers.npz", views);
    std::ofstream(folder / "summaries.json") << nlohmann::json(summaries);
  }
};

// Returns an input of the next normal numbers, whose gradient is computed.
inline Variable<float> draw(const Shape& shape) { return {default_generator().randn(shape), true}; }

// Runs forward(), runs backward from normal numbers, and reports everything.
template <class Layer, class Forward>
void report_layer(Report& report, const std::string& name, Layer& layer,
                  const std::vector<Variable<float>>& inputs, const Forward& forward) {
  report.summaries[name] = layer.summary();
  report.add(name + "/state", layer.state_dict());
  const Variable<float> out = forward();
  report.add(name + "/out", out.value());
  out.backward(default_generator().randn(out.shape()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    report.add(fmt::format("{}/grad_{}", name, i), inputs[i].grad());
  }
  for (const auto& [parameter, variable] : layer.named_parameters()) {
    report.add(fmt::format("{}/grad/{}", name, parameter), variable.grad());
  }
}

}  // namespace heed::probe
