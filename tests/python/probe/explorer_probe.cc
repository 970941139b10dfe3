// explorer_probe ARRAYS.npz PAGE.html [MASK…]: writes the explorer's page of a model. The members
// "query" [layers, heads, T, head_dim] and "key", or "weights" [layers, heads, T, T], are the
// layers' arrays. "value" [layers, heads, T, value_dim], "scores" [layers, heads], "words" [T] and
// "softcap" [1] are optional. Layers use the masks in turn. tests/browser/test_model.py checks the
// pages.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "heed/attention/mask_text.h"
#include "heed/heed.h"
#include "heed/io/npz.h"
#include "heed/viz/explorer.h"

namespace heed::probe { namespace {

using Arrays = std::map<std::string, AnyTensor>;

// Returns one layer of an array of all layers, or nothing if the array is missing.
Tensor<float> layer_of(const Arrays& arrays, const std::string& name, std::int64_t layer) {
  const auto found = arrays.find(name);
  if (found == arrays.end()) return {};
  const Tensor<float> all = to_float(found->second);
  return to_tensor(all.view().select(0, layer));
}

ModelAttention model_of(const Arrays& arrays, const std::vector<Mask>& masks) {
  ModelAttention model;
  model.title = "A model";
  model.note = "Made-up numbers.";
  const Shape& all = shape(arrays.at(arrays.contains("query") ? "query" : "weights"));
  for (std::int64_t t = 0; t < all[2]; ++t) model.tokens.push_back(fmt::format("t{}", t));
  for (std::int64_t layer = 0; layer < all[0]; ++layer) {
    LayerAttention attention;
    attention.query = layer_of(arrays, "query", layer);
    attention.key = layer_of(arrays, "key", layer);
    attention.value = layer_of(arrays, "value", layer);
    attention.weights = layer_of(arrays, "weights", layer);
    if (!masks.empty()) attention.mask = masks[static_cast<std::size_t>(layer) % masks.size()];
    if (arrays.contains("softcap")) attention.softcap = to_float(arrays.at("softcap"))(0);
    model.layers.push_back(std::move(attention));
  }
  if (arrays.contains("scores")) {
    model.scores.push_back({"made up", "A number for each head.", to_float(arrays.at("scores"))});
  }
  if (arrays.contains("words")) {
    const Tensor<double> words = to_double(arrays.at("words"));
    for (const double word : words.elements()) {
      model.words.push_back(static_cast<std::int64_t>(word));
    }
  }
  return model;
}

}  // namespace

}  // namespace heed::probe

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: explorer_probe ARRAYS.npz PAGE.html [MASK…]\n");
    return 2;
  }
  try {
    std::vector<heed::Mask> masks;
    for (int i = 3; i < argc; ++i) masks.push_back(heed::parse_mask(argv[i]));
    const auto arrays = heed::read_npz(argv[1]);
    std::ofstream(argv[2]) << heed::explorer_model_page(heed::probe::model_of(arrays, masks));
  } catch (const std::exception& error) {
    fmt::print(stderr, "explorer_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
