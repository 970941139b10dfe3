#include "options.h"

#include <cstdint>
#include <set>
#include <vector>

namespace heed::probe {

namespace {

using nlohmann::json;

const std::set<std::string> kNames = {"scale",       "softcap",   "query_offset", "dropout",
                                      "alignment",   "causal",    "window",       "prefix",
                                      "key_lengths", "documents", "padding_id",   "layout"};

// Refuses unknown names: otherwise a misspelt option would compare two runs without it.
void check_names(const json& options) {
  for (const auto& [name, value] : options.items()) {
    if (!kNames.contains(name)) throw std::invalid_argument("there is no option '" + name + "'");
  }
}

Alignment read_alignment(const json& options) {
  const json alignment = options.value("alignment", json("square"));
  if (alignment.is_number()) return Alignment::offset(alignment.get<std::int64_t>());
  if (alignment == "top_left") return Alignment::top_left();
  if (alignment == "bottom_right") return Alignment::bottom_right();
  return Alignment::square();
}

std::int64_t read_side(const json& side) {
  return side.is_null() ? kUnbounded : side.get<std::int64_t>();
}

Mask structural_mask(const json& options) {
  const Alignment alignment = read_alignment(options);
  const auto lengths = [&](const char* name) {
    return options[name].get<std::vector<std::int64_t>>();
  };
  Mask mask;
  if (options.value("causal", false)) mask = mask & causal(alignment);
  if (options.contains("window")) {
    const json& sides = options["window"];
    mask = mask & sliding_window(read_side(sides.at(0)), read_side(sides.at(1)), alignment);
  }
  if (options.contains("prefix"))
    mask = mask & prefix(options["prefix"].get<std::int64_t>(), alignment);
  if (options.contains("key_lengths")) mask = mask & key_lengths(lengths("key_lengths"));
  if (options.contains("documents")) mask = mask & documents(lengths("documents"));
  return mask;
}

Mask tensor_mask(const json& options, const Arrays& arrays) {
  Mask mask;
  if (const auto view = find_array<bool>(arrays, "mask_allow")) mask = mask & Mask::allow(*view);
  if (const auto view = find_array<bool>(arrays, "mask_block")) mask = mask & Mask::block(*view);
  if (const auto view = find_array<float>(arrays, "mask_additive")) {
    mask = mask & Mask::additive(*view);
  }
  if (const auto view = find_array<std::int64_t>(arrays, "token_ids")) {
    mask = mask & key_padding(*view, options.at("padding_id").get<std::int64_t>());
  }
  return mask;
}

}  // namespace

template <class Real>
BasicAttentionOptions<Real> read_options(const json& options, const Arrays& arrays) {
  check_names(options);
  BasicAttentionOptions<Real> result;
  result.mask = structural_mask(options) & tensor_mask(options, arrays);
  result.alibi_slopes = find_array<Real>(arrays, "alibi_slopes");
  result.bias = find_array<Real>(arrays, "bias");
  result.sinks = find_array<Real>(arrays, "sinks");
  if (options.contains("scale")) result.scale = options["scale"].get<Real>();
  result.softcap = options.value("softcap", Real{0});
  result.query_offset = options.value("query_offset", std::int64_t{0});
  if (options.contains("dropout")) {
    const json& dropout = options["dropout"];
    result.dropout = {dropout.at("probability").get<float>(),
                      dropout.at("seed").get<std::uint64_t>()};
  }
  return result;
}

template BasicAttentionOptions<float> read_options(const json&, const Arrays&);
template BasicAttentionOptions<double> read_options(const json&, const Arrays&);

}  // namespace heed::probe
