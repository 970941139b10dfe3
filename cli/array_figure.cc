#include "array_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "heed/inspect/explorer.h"
#include "heed/io/any_tensor.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kMaxShownHeads = 64;  // more cannot be distinguished in a figure

// Float weights, [batch, num_heads, q_len, kv_len].
Tensor<float> float_weights(const ArrayResult& result) {
  Tensor<float> weights = to_float(result.weights);
  const Shape& extents = weights.shape();
  const Shape four{extents.rank() < 4 ? 1 : extents[0], extents.rank() < 3 ? 1 : extents[-3],
                   extents[-2], extents[-1]};
  return std::move(weights).reshaped(four);
}

[[noreturn]] void refuse_empty(const Tensor<float>& weights) {
  throw InvalidArgument(
      fmt::format("the weights are {}: there is nothing to draw", to_string(weights.shape())));
}

// Returns which keys each query sees, in the shape of the weights.
Tensor<bool> visible_keys(const ArrayProblem& problem, const Shape& weights) {
  return materialize_allow(problem.mask, {.batch = weights[0],
                                          .num_heads = weights[1],
                                          .q_len = weights[2],
                                          .kv_len = weights[3],
                                          .query_offset = problem.query_offset});
}

// Returns in words which part of the weights a picture of `num_heads` heads shows; empty where it
// shows all.
std::string shown_part(const Tensor<float>& weights, std::int64_t num_heads) {
  std::string text;
  if (weights.extent(0) > 1) text = fmt::format(" Batch entry 0 of {}.", weights.extent(0));
  if (weights.extent(1) > num_heads) {
    text += fmt::format(" Heads 0 to {} of {}.", num_heads - 1, weights.extent(1));
  }
  return text;
}

Figure draw(const ArrayProblem& problem, const ArrayResult& result,
            const PictureArguments& arguments) {
  const Tensor<float> weights = float_weights(result);
  if (weights.empty()) refuse_empty(weights);
  const std::int64_t num_heads = std::min(weights.extent(1), kMaxShownHeads);
  const Tensor<bool> visible = visible_keys(problem, weights.shape());
  AttentionFigureOptions options = figure_options(arguments);
  options.title = "Attention weights";
  options.note = fmt::format("Row: a query; column: a key. Mask {}.{}", problem.mask.description(),
                             shown_part(weights, num_heads));
  const auto shown = visible.view().select(0, 0).slice(0, 0, num_heads);
  const FloatView heads = weights.view().select(0, 0).slice(0, 0, num_heads);
  options.visible = num_heads == 1 ? shown.select(0, 0) : shown;
  return attention_figure(num_heads == 1 ? heads.select(0, 0) : heads, options);
}

// Returns the first `shown` heads of batch entry 0, [shown, length, width]. A key/value head is
// repeated for each query head that shares it.
Tensor<float> heads_of(const ArrayFile& file, std::int64_t num_heads, std::int64_t shown) {
  const Tensor<float> array = to_float(file.array);
  const FloatView all = array.view().to_rank(4).select(0, 0);
  const std::int64_t sharing = num_heads / all.extent(0);
  Tensor<float> heads({shown, all.extent(1), all.extent(2)});
  float* out = heads.data();
  for (std::int64_t head = 0; head < shown; ++head) {
    const auto elements = all.select(0, head / sharing).elements();
    out = std::copy(elements.begin(), elements.end(), out);
  }
  return heads;
}

bool is_same_in_all_heads(TensorView<const bool> visible) {
  const auto first = visible.select(0, 0).elements();
  for (std::int64_t head = 1; head < visible.extent(0); ++head) {
    const auto other = visible.select(0, head).elements();
    if (!std::equal(first.begin(), first.end(), other.begin())) return false;
  }
  return true;
}

// Gives the page queries, keys and values, from which it recomputes the weights, only where its
// formula matches: one mask for all heads, no bias and no softcap. Otherwise the page gets the
// weights alone.
std::string explore(const ArrayProblem& problem, const ArrayResult& result) {
  const Tensor<float> weights = float_weights(result);
  if (weights.empty()) refuse_empty(weights);
  const std::int64_t num_heads = weights.extent(1);
  const std::int64_t shown = std::min(num_heads, kMaxShownHeads);
  ExplorerSentence sentence = inspect::to_explorer(
      "Attention weights", to_tensor(weights.view().select(0, 0).slice(0, 0, shown)), {});
  sentence.note = fmt::format("What `heed run` computed.{}", shown_part(weights, shown));
  const Tensor<bool> all_visible = visible_keys(problem, weights.shape());
  const auto visible = all_visible.view().select(0, 0).slice(0, 0, shown);
  if (!is_same_in_all_heads(visible)) return explorer_page({{std::move(sentence)}});
  sentence.visible = to_tensor(visible.select(0, 0));
  sentence.mask = problem.mask.description();
  if (problem.bias || problem.softcap != 0) return explorer_page({{std::move(sentence)}});
  sentence.query = heads_of(problem.query, num_heads, shown);
  sentence.key = heads_of(problem.key, num_heads, shown);
  sentence.value = heads_of(problem.value, num_heads, shown);
  sentence.scale = problem.scale;
  return explorer_page({{std::move(sentence)}});
}

// Returns nested lists, as deep as the tensor's rank.
nlohmann::json nested_lists(FloatView view) {
  if (view.rank() == 0) return *view.data();
  auto list = nlohmann::json::array();
  for (std::int64_t i = 0; i < view.extent(0); ++i) list.push_back(nested_lists(view.select(0, i)));
  return list;
}

}  // namespace

Picture picture_of(const ArrayProblem& problem, const ArrayResult& result,
                   const PictureArguments& arguments) {
  return {.figure = [&] { return draw(problem, result, arguments); },
          .json =
              [&] {
                const nlohmann::json json{{"mask", problem.mask.description()},
                                          {"weights", nested_lists(float_weights(result))}};
                return json.dump() + '\n';
              },
          .page = [&] { return explore(problem, result); }};
}

}  // namespace heed::cli
