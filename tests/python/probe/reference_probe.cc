// reference_probe FOLDER: runs the reference operator on FOLDER/inputs.npz, with members
// CASE/ARRAY, and the options in FOLDER/cases.json, {CASE: {…}}. Writes every step and gradient to
// FOLDER/outputs.npz under names of the same form. One process and three files serve all cases,
// because a process or a synced file per case would take longer than the cases.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "heed/attention/reference.h"
#include "heed/io/npz.h"
#include "options.h"

namespace heed::probe { namespace {

// Returns the tensor with the dimensions of attention(): "bthd" memory is transposed by strides
// only.
template <class Real>
TensorView<const Real> in_layout(TensorView<const Real> view, const std::string& layout) {
  return layout == "bthd" ? view.permute({0, 2, 1, 3}) : view;
}

template <class Real>
Arrays run_case(const nlohmann::json& json, const Arrays& arrays) {
  const auto options = read_options<Real>(json, arrays);
  const std::string layout = json.value("layout", "bhtd");
  const auto input = [&](const char* name) {
    return in_layout(get_array<Real>(arrays, name), layout);
  };
  const auto query = input("query");
  const auto key = input("key");
  const auto value = input("value");
  auto result = reference::attention(query, key, value, options, reference::Keep::kEverything);
  auto gradients = reference::attention_backward(input("grad_out"), query, key, value, options);
  Arrays outputs;
  outputs["out"] = std::move(result.out);
  outputs["lse"] = std::move(result.lse);
  outputs["scores"] = std::move(result.scores);
  outputs["capped"] = std::move(result.capped);
  outputs["modified"] = std::move(result.modified);
  outputs["masked"] = std::move(result.masked);
  outputs["weights"] = std::move(result.weights);
  outputs["dropped"] = std::move(result.dropped);
  outputs["grad_query"] = std::move(gradients.query);
  outputs["grad_key"] = std::move(gradients.key);
  outputs["grad_value"] = std::move(gradients.value);
  outputs["grad_alibi_slopes"] = std::move(gradients.alibi_slopes);
  outputs["grad_bias"] = std::move(gradients.bias);
  outputs["grad_sinks"] = std::move(gradients.sinks);
  return outputs;
}

// Groups members CASE/ARRAY by case.
std::map<std::string, Arrays> by_case(std::map<std::string, AnyTensor>&& members) {
  std::map<std::string, Arrays> cases;
  for (auto& [name, tensor] : members) {
    const std::size_t slash = name.find('/');
    cases[name.substr(0, slash)][name.substr(slash + 1)] = std::move(tensor);
  }
  return cases;
}

void run(const std::filesystem::path& folder) {
  const auto options = nlohmann::json::parse(std::ifstream(folder / "cases.json"));
  const auto cases = by_case(read_npz(folder / "inputs.npz"));
  std::map<std::string, AnyTensor> outputs;
  for (const auto& [name, json] : options.items()) {
    const Arrays& arrays = cases.at(name);
    const bool is_double = std::holds_alternative<Tensor<double>>(arrays.at("query"));
    try {
      Arrays computed = is_double ? run_case<double>(json, arrays) : run_case<float>(json, arrays);
      for (auto& [array, tensor] : computed) {
        outputs[fmt::format("{}/{}", name, array)] = std::move(tensor);
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("case {}: {}", name, error.what()));
    }
  }
  std::map<std::string, AnyView> views;
  for (const auto& [name, tensor] : outputs) views.emplace(name, view(tensor));
  write_npz(folder / "outputs.npz", views);
}

}  // namespace

}  // namespace heed::probe

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: reference_probe FOLDER\n");
    return 2;
  }
  try {
    heed::probe::run(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reference_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
