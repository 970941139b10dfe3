#include "array_figure.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

namespace heed::cli {

namespace {

constexpr std::int64_t kMaxHeads = 64;  // more are not told apart

// Float weights, [batch, num_heads, q_len, kv_len].
Tensor<float> float_weights(const ArrayResult& result) {
  Tensor<float> weights(shape(result.weights));
  const auto copy = [&weights](auto view) {
    float* out = weights.data();
    for_each_element(view, [&out](auto value) { *out++ = static_cast<float>(value); });
  };
  if (std::holds_alternative<Tensor<double>>(result.weights)) {
    copy(std::get<Tensor<double>>(result.weights).view());
  } else {
    copy(std::get<Tensor<float>>(result.weights).view());
  }
  const Shape& extents = weights.shape();
  const Shape four{extents.rank() < 4 ? 1 : extents[0], extents.rank() < 3 ? 1 : extents[-3],
                   extents[-2], extents[-1]};
  return std::move(weights).reshaped(four);
}

Figure draw(const ArrayProblem& problem, const ArrayResult& result,
            const PictureArguments& arguments) {
  const Tensor<float> weights = float_weights(result);
  if (weights.empty()) {
    throw InvalidArgument(
        fmt::format("the weights are {}: there is nothing to draw", to_string(weights.shape())));
  }
  const std::int64_t num_heads = std::min(weights.extent(1), kMaxHeads);
  const ScoreShape scores{.batch = weights.extent(0),
                          .num_heads = weights.extent(1),
                          .q_len = weights.extent(2),
                          .kv_len = weights.extent(3),
                          .query_offset = problem.query_offset};
  const Tensor<bool> visible = materialize_allow(problem.mask, scores);
  AttentionFigureOptions options = figure_options(arguments);
  options.title = "Attention weights";
  options.note = fmt::format("Row: a query; column: a key. Mask {}.", problem.mask.description());
  if (weights.extent(0) > 1) {
    options.note += fmt::format(" Batch entry 0 of {}.", weights.extent(0));
  }
  if (weights.extent(1) > num_heads) {
    options.note += fmt::format(" Heads 0 to {} of {}.", num_heads - 1, weights.extent(1));
  }
  const auto shown = visible.view().select(0, 0).slice(0, 0, num_heads);
  const FloatView heads = weights.view().select(0, 0).slice(0, 0, num_heads);
  options.visible = num_heads == 1 ? shown.select(0, 0) : shown;
  return attention_figure(num_heads == 1 ? heads.select(0, 0) : heads, options);
}

// Nested lists, as deep as the tensor's rank.
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
              }};
}

}  // namespace heed::cli
