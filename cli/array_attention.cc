#include "array_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "heed/attention.h"
#include "heed/attention/reference.h"
#include "heed/core/error.h"
#include "heed/inspect/explorer.h"
#include "heed/io/any_tensor.h"
#include "heed/io/npy.h"

namespace heed::cli {

namespace {

constexpr int kOperatorRank = 4;

template <class T>
bool holds(const AnyTensor& array) {
  return std::holds_alternative<Tensor<T>>(array);
}

bool holds_floats(const AnyTensor& array) {
  return holds<Float16>(array) || holds<float>(array) || holds<double>(array);
}

template <class Real>
Tensor<Real> converted(const AnyTensor& array) {
  if constexpr (std::is_same_v<Real, double>) {
    return to_double(array);
  } else {
    return to_float(array);
  }
}

template <class To, class From>
Tensor<To> rounded(const Tensor<From>& tensor) {
  auto result = Tensor<To>::uninitialized(tensor.shape());
  std::transform(tensor.elements().begin(), tensor.elements().end(), result.elements().begin(),
                 [](From element) { return static_cast<To>(element); });
  return result;
}

// Returns the tensor without its `count` outermost dimensions, which are 1.
template <class Real>
Tensor<Real> without_leading(Tensor<Real> tensor, int count) {
  const Shape shape(std::span(tensor.shape().begin() + count, tensor.shape().end()));
  return std::move(tensor).reshaped(shape);
}

template <class Real>
ArrayResult compute(const ArrayProblem& problem) {
  const Tensor<Real> query = converted<Real>(problem.query.array);
  const Tensor<Real> key = converted<Real>(problem.key.array);
  const Tensor<Real> value = converted<Real>(problem.value.array);
  BasicAttentionOptions<Real> options;
  options.mask = problem.mask;
  if (problem.scale) options.scale = static_cast<Real>(*problem.scale);
  options.softcap = static_cast<Real>(problem.softcap);
  options.query_offset = problem.query_offset;
  Tensor<Real> bias;
  if (problem.bias) options.bias = bias = converted<Real>(*problem.bias);
  const auto q = query.view().to_rank(kOperatorRank);
  const auto k = key.view().to_rank(kOperatorRank);
  const auto v = value.view().to_rank(kOperatorRank);
  const int added = kOperatorRank - query.rank();
  // The fused kernels never hold all weights; the reference does.
  if (problem.keeps_weights) {
    auto result = reference::attention(q, k, v, options, reference::Keep::kWeights);
    return {without_leading(std::move(result.out), added),
            without_leading(std::move(result.lse), added),
            without_leading(std::move(result.weights), added)};
  }
  auto result = attention_with_lse(q, k, v, options);
  return {without_leading(std::move(result.out), added),
          without_leading(std::move(result.lse), added), Tensor<Real>()};
}

Tensor<bool> is_minus_infinity(const Tensor<double>& added) {
  auto result = Tensor<bool>::uninitialized(added.shape());
  std::transform(added.elements().begin(), added.elements().end(), result.elements().begin(),
                 [](double x) { return x == -std::numeric_limits<double>::infinity(); });
  return result;
}

[[noreturn]] void refuse_mask(const std::string& path, const AnyTensor& array,
                              const std::string& means, const char* expected) {
  throw InvalidArgument(fmt::format("'{}' holds {}, expected {} for a mask that means {}", path,
                                    dtype_name(array), expected, means));
}

// Returns the booleans of a mask: booleans as they are, integers if each is 0 or 1.
Tensor<bool> truth_of(const std::string& path, AnyTensor array, const std::string& means) {
  if (holds<bool>(array)) return std::move(std::get<Tensor<bool>>(array));
  return std::visit(
      [&]<class Element>(const Tensor<Element>& tensor) -> Tensor<bool> {
        if constexpr (std::is_integral_v<Element>) {
          const auto elements = tensor.elements();
          const auto other = std::find_if(elements.begin(), elements.end(),
                                          [](Element e) { return e != 0 && e != 1; });
          if (other == elements.end()) return rounded<bool>(tensor);
          throw InvalidArgument(
              fmt::format("'{}' holds {} with {} as element {} in row-major order, expected only 0 "
                          "and 1 for a mask that means {}",
                          path, dtype_name(array), *other, other - elements.begin(), means));
        } else {
          refuse_mask(path, array, means, "bool, or integers 0 and 1,");
        }
      },
      array);
}

void check_types(const ArrayProblem& problem) {
  for (const ArrayFile* other : {&problem.key, &problem.value}) {
    if (other->array.index() == problem.query.array.index()) continue;
    throw InvalidArgument(
        fmt::format("'{}' holds {} but '{}' holds {}, expected one type for query, key and value",
                    problem.query.path, dtype_name(problem.query.array), other->path,
                    dtype_name(other->array)));
  }
}

ArrayResult compute_in_type(const ArrayProblem& problem) {
  if (holds<double>(problem.query.array)) return compute<double>(problem);
  ArrayResult result = compute<float>(problem);
  if (holds<Float16>(problem.query.array)) {
    result.out = rounded<Float16>(std::get<Tensor<float>>(result.out));
  }
  return result;
}

}  // namespace

std::string describe(const ArrayFile& file) {
  return fmt::format("'{}' {} {}", file.path, to_string(shape(file.array)), dtype_name(file.array));
}

ArrayFile read_floats(const std::string& path) {
  ArrayFile file{path, read_npy(path)};
  if (!holds_floats(file.array)) {
    throw InvalidArgument(fmt::format("'{}' holds {}, expected float16, float32 or float64", path,
                                      dtype_name(file.array)));
  }
  return file;
}

ArrayFile read_operand(const std::string& path) {
  ArrayFile file = read_floats(path);
  const int rank = shape(file.array).rank();
  if (rank < 2 || rank > kOperatorRank) {
    throw InvalidArgument(
        fmt::format("'{}' has shape {}, expected 2 to 4 dimensions: [batch, heads, length, dim], "
                    "of which the first two may be missing",
                    path, to_string(shape(file.array))));
  }
  return file;
}

ArrayMask read_mask(const std::string& path, const std::string& means) {
  AnyTensor array = read_npy(path);
  if (means == "additive") {
    if (!holds_floats(array)) refuse_mask(path, array, means, "float16, float32 or float64");
    return {Mask::block(is_minus_infinity(to_double(array))), std::move(array)};
  }
  Tensor<bool> truth = truth_of(path, std::move(array), means);
  return {means == "allow" ? Mask::allow(std::move(truth)) : Mask::block(std::move(truth)),
          std::nullopt};
}

ArrayResult attend(const ArrayProblem& problem) {
  check_types(problem);
  try {
    return compute_in_type(problem);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} (query {}, key {}, value {})", error.what(),
                                      describe(problem.query), describe(problem.key),
                                      describe(problem.value)));
  }
}

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
