#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "heed/attention/statistics.h"
#include "heed/core/data_type.h"
#include "viz/explorer/model_layers.h"
#include "viz/explorer/page.h"

namespace heed { inline namespace v0 { namespace explorer {

namespace {

constexpr std::int64_t kComparedRows = 8;   // per head
constexpr float kMostStorageError = 5e-4F;  // of a weight

using Members = std::map<std::string, std::string>;

template <class T>
std::string encoded_numbers(const std::vector<T>& numbers) {
  return encoded(std::as_bytes(std::span(numbers)));
}

// The last row and others evenly spaced between the first and it.
std::vector<std::int64_t> compared_rows(std::int64_t num_tokens) {
  const std::int64_t count = std::min(num_tokens, kComparedRows);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 1; i <= count; ++i) rows.push_back(num_tokens * i / count - 1);
  return rows;
}

// Weights computed by heed for the given rows: [num_rows · num_heads, T].
Tensor<float> weights_of_rows(const LayerAttention& layer, FloatView query, FloatView key,
                              const std::vector<std::int64_t>& rows) {
  std::vector<AttentionRow> wanted;
  for (const std::int64_t row : rows) {
    for (std::int64_t head = 0; head < query.extent(0); ++head) {
      wanted.push_back({.head = head, .query = row});
    }
  }
  AttentionOptions options{.mask = layer.mask};
  options.scale = layer.scale;
  options.softcap = layer.softcap;
  return attention_weights(query.to_rank(4), key.to_rank(4), wanted, options);
}

// True if no weight differs by more than allowed. NaN, from scores that no float holds, differs.
bool are_close(const Tensor<float>& a, const Tensor<float>& b) {
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    if (!(std::abs(a.data()[i] - b.data()[i]) <= kMostStorageError)) return false;
  }
  return true;
}

// Adds vectors as "name", integers, and their scales as "nameScales".
void add_stored(Members& members, const std::string& name, const StoredVectors& stored) {
  members[name] = encoded_numbers(stored.numbers);
  members[name + "Scales"] = encoded_numbers(stored.scales);
}

void add_query_and_key(Members& members, const LayerAttention& layer, std::int64_t index) {
  const auto rows = compared_rows(layer.query.extent(1));
  const Tensor<float> weights = weights_of_rows(layer, layer.query, layer.key, rows);
  const auto shown = static_cast<std::size_t>(index % static_cast<std::int64_t>(rows.size()));
  const auto last = rows.size() - 1 - shown;
  const std::int64_t heads = layer.query.extent(0);
  const auto first_row = static_cast<std::int64_t>(last) * heads;
  members["checkRow"] = fmt::to_string(rows[last]);
  members["checkWeights"] =
      encoded(std::as_bytes(weights.view().slice(0, first_row, first_row + heads).elements()));

  const StoredVectors query = store_vectors(layer.query);
  const StoredVectors key = store_vectors(layer.key);
  const Tensor<float> shown_weights = weights_of_rows(layer, restored(query, layer.query.shape()),
                                                      restored(key, layer.key.shape()), rows);
  if (!are_close(weights, shown_weights)) {
    members["query"] = encoded(layer.query);
    members["key"] = encoded(layer.key);
    return;
  }
  add_stored(members, "query", query);
  add_stored(members, "key", key);
}

// For each head, the weights of the visible keys, row after row, in half precision.
std::string encoded_weights(const LayerAttention& layer) {
  const std::int64_t num_tokens = layer.weights.extent(1);
  const Tensor<bool> visible = visible_keys(layer, num_tokens);
  const std::int64_t cells = visible.num_elements();
  std::string heads;
  for (std::int64_t head = 0; head < layer.weights.extent(0); ++head) {
    std::vector<std::uint16_t> halves;
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      if (!visible.data()[cell]) continue;
      halves.push_back(Float16(layer.weights.data()[head * cells + cell]).bits());
    }
    heads += (heads.empty() ? "" : ",") + encoded_numbers(halves);
  }
  return fmt::format("[{}]", heads);
}

}  // namespace

StoredVectors store_vectors(const Tensor<float>& vectors) {
  const std::int64_t width = vectors.extent(-1);
  StoredVectors stored;
  stored.numbers.reserve(static_cast<std::size_t>(vectors.num_elements()));
  for (std::int64_t first = 0; first < vectors.num_elements(); first += width) {
    const auto row = vectors.elements().subspan(static_cast<std::size_t>(first),
                                                static_cast<std::size_t>(width));
    float largest = 0;
    for (const float number : row) largest = std::max(largest, std::abs(number));
    const float scale = largest / 32767;
    stored.scales.push_back(scale);
    for (const float number : row) {
      // In double, where dividing by a tiny scale gives no infinity.
      const double steps = scale > 0 ? static_cast<double>(number) / static_cast<double>(scale) : 0;
      stored.numbers.push_back(
          static_cast<std::int16_t>(std::clamp(std::nearbyint(steps), -32767.0, 32767.0)));
    }
  }
  return stored;
}

Tensor<float> restored(const StoredVectors& stored, const Shape& shape) {
  Tensor<float> vectors(shape);
  const auto width = static_cast<std::size_t>(shape[-1]);
  for (std::size_t i = 0; i < stored.numbers.size(); ++i) {
    vectors.data()[i] = stored.scales[i / width] * static_cast<float>(stored.numbers[i]);
  }
  return vectors;
}

std::string layer_json(const LayerAttention& layer, std::int64_t index) {
  Members members;
  if (layer.query.empty()) {
    members["weights"] = encoded_weights(layer);
  } else {
    add_query_and_key(members, layer, index);
  }
  if (!layer.value.empty()) add_stored(members, "value", store_vectors(layer.value));
  return to_json(members);
}

}}}  // namespace heed::v0::explorer
