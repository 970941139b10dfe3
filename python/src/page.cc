// Attention as an explorer page.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "heed/attention/statistics.h"
#include "heed/viz/explorer.h"
#include "operands.h"
#include "options.h"
#include "readers.h"

namespace heed::python {

namespace {

constexpr const char* kShowFunction = "show";
constexpr float kHidden = -std::numeric_limits<float>::infinity();

using Names = std::vector<std::string>;

// The names that the page shows; tokens without names are numbered.
struct Labels {
  std::string title;
  Names queries;
  Names keys;
};

Names names_of(const char* what, const Names& given, std::int64_t count, const char* prefix) {
  if (given.empty()) {
    Names numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(fmt::format("{}{}", prefix, i));
    return numbers;
  }
  if (static_cast<std::int64_t>(given.size()) != count) {
    throw InvalidArgument(
        fmt::format("{}: {} tokens, but {} {}", kShowFunction, given.size(), count, what));
  }
  return given;
}

// Appends queries that are different tokens than the keys to the keys, as one sequence.
void stand_behind_keys(ExplorerSentence& sentence, std::int64_t q_len, std::int64_t kv_len) {
  const std::int64_t length = q_len + kv_len;
  const Tensor<float> weights =
      std::exchange(sentence.weights, Tensor<float>({sentence.weights.extent(0), length, length}));
  sentence.visible = Tensor<bool>({length, length});
  sentence.mask = "queries see keys";
  for (std::int64_t q = 0; kv_len > 0 && q < q_len; ++q) {
    std::fill_n(&sentence.visible(kv_len + q, 0), kv_len, true);
    for (std::int64_t head = 0; head < weights.extent(0); ++head) {
      std::copy_n(&weights(head, q, 0), kv_len, &sentence.weights(head, kv_len + q, 0));
    }
  }
}

// A page of weights [num_heads, queries, keys].
ExplorerSentence sentence_of(Tensor<float>&& weights, const Labels& labels) {
  const std::int64_t q_len = weights.extent(1);
  const std::int64_t kv_len = weights.extent(2);
  const bool is_square = q_len == kv_len && labels.keys.empty();
  ExplorerSentence sentence{.title = labels.title, .tokens = {}, .weights = std::move(weights)};
  sentence.tokens = names_of("queries", labels.queries, q_len, is_square ? "" : "query ");
  if (is_square) return sentence;
  const Names keys = names_of("keys", labels.keys, kv_len, "key ");
  sentence.tokens.insert(sentence.tokens.begin(), keys.begin(), keys.end());
  stand_behind_keys(sentence, q_len, kv_len);
  return sentence;
}

template <class T>
Tensor<float> floats_of(TensorView<const T> view) {
  auto result = Tensor<float>::uninitialized(view.shape());
  float* out = result.data();
  for_each_element(view, [&out](const T& element) { *out++ = static_cast<float>(element); });
  return result;
}

// Some heads of one batch entry.
struct Heads {
  std::int64_t batch, first, count;
};

// Returns [count, length, dim]: the rows that each head reads, its own or those of its group.
template <class T>
Tensor<float> rows_of(TensorView<const T> view, const Heads& heads, std::int64_t num_heads) {
  const TensorView<const T> entry = view.select(0, heads.batch);
  const std::int64_t group = num_heads / entry.extent(0);
  Tensor<float> result({heads.count, entry.extent(1), entry.extent(2)});
  float* out = result.data();
  for (std::int64_t head = 0; head < heads.count; ++head) {
    for_each_element(entry.select(0, (heads.first + head) / group),
                     [&out](const T& element) { *out++ = static_cast<float>(element); });
  }
  return result;
}

// The visible keys, if the mask only hides keys and does so equally for all heads; otherwise
// nothing.
std::optional<Tensor<bool>> visible_keys(const Options& options, const ScoreShape& shape,
                                         const Heads& heads) {
  const Tensor<float> added = materialize_additive(options.mask.mask, shape);
  Tensor<bool> visible({shape.q_len, shape.kv_len});
  for (std::int64_t q = 0; q < shape.q_len; ++q) {
    for (std::int64_t k = 0; k < shape.kv_len; ++k) {
      const float first = added(heads.batch, heads.first, q, k);
      if (first != 0 && first != kHidden) return std::nullopt;
      for (std::int64_t head = 1; head < heads.count; ++head) {
        if (added(heads.batch, heads.first + head, q, k) != first) return std::nullopt;
      }
      visible(q, k) = first == 0;
    }
  }
  return visible;
}

// True if scores are plain products, which the page can compute.
bool are_plain(const Options& options) { return !options.have_terms(); }

Heads heads_of(const ScoreShape& shape, std::int64_t batch, std::optional<std::int64_t> head) {
  const auto check = [](const char* name, std::int64_t found, std::int64_t count) {
    if (found >= 0 && found < count) return;
    throw InvalidArgument(fmt::format("{}: {} is {}, of {}", kShowFunction, name, found, count));
  };
  if (shape.num_heads == 0)
    throw InvalidArgument(fmt::format("{}: there are no heads", kShowFunction));
  check("batch", batch, shape.batch);
  if (!head) return {batch, 0, shape.num_heads};
  check("head", *head, shape.num_heads);
  return {batch, *head, 1};
}

std::string name_of(std::int64_t head) { return fmt::format("head {}", head); }

std::vector<AttentionRow> rows_of(const Heads& heads, std::int64_t q_len) {
  std::vector<AttentionRow> rows;
  for (std::int64_t head = 0; head < heads.count; ++head) {
    for (std::int64_t q = 0; q < q_len; ++q) rows.push_back({heads.batch, heads.first + head, q});
  }
  return rows;
}

template <class T>
ExplorerSentence attention_of(const Operands& operands, const Options& options,
                              const Labels& labels, std::int64_t batch,
                              std::optional<std::int64_t> head) {
  const auto query = view_of_rank_4<T>(operands.query);
  const auto key = view_of_rank_4<T>(operands.key);
  const CallOptions<RealOf<T>> call(kShowFunction, options);
  // Throws if the arguments do not fit.
  static_cast<void>(attention_weights(query, key, {}, *call));
  const ScoreShape shape{.batch = query.extent(0),
                         .num_heads = query.extent(1),
                         .q_len = query.extent(2),
                         .kv_len = key.extent(2),
                         .query_offset = options.query_offset};
  const Heads heads = heads_of(shape, batch, head);
  return without_lock([&] {
    const auto weights = attention_weights(query, key, rows_of(heads, shape.q_len), *call);
    Tensor<float> floats({heads.count, shape.q_len, shape.kv_len});
    std::transform(weights.elements().begin(), weights.elements().end(), floats.data(),
                   [](auto weight) { return static_cast<float>(weight); });
    ExplorerSentence sentence = sentence_of(std::move(floats), labels);
    if (head) sentence.heads = {name_of(*head)};
    if (!sentence.visible.empty()) return sentence;
    if (auto visible = visible_keys(options, shape, heads)) {
      sentence.visible = *std::move(visible);
      sentence.mask = options.mask.mask.description();
      if (!are_plain(options)) return sentence;
      sentence.scale = options.scale;
      sentence.query = rows_of(query, heads, shape.num_heads);
      sentence.key = rows_of(key, heads, shape.num_heads);
    }
    return sentence;
  });
}

std::string page_of(ExplorerSentence&& sentence) {
  ExplorerData data;
  data.sentences.push_back(std::move(sentence));
  return explorer_page(data);
}

std::string attention_page(nb::handle query, nb::handle key, std::int64_t batch,
                           std::optional<std::int64_t> head, const nb::tuple& names,
                           const Options& options) {
  const Operands operands = operands_of(kShowFunction, query, key, {});
  const Labels labels{"attention", read_as<Names>(kShowFunction, "tokens", names[0]),
                      read_as<Names>(kShowFunction, "tokens", names[1])};
  return page_of(with_type(operands.dtype, [&](auto number) {
    return attention_of<decltype(number)>(operands, options, labels, batch, head);
  }));
}

// The shown heads [num_heads, queries, keys] of weights that may lack heads or have a batch.
FloatView shown(FloatView weights, std::int64_t batch, std::optional<std::int64_t> head) {
  if (weights.rank() < 2 || weights.rank() > 4) {
    throw InvalidArgument(fmt::format(
        "{}: weights has shape {}, expected [queries, keys], [num_heads, queries, keys] "
        "or [batch, num_heads, queries, keys]",
        kShowFunction, to_string(weights.shape())));
  }
  const FloatView all = weights.to_rank(4);
  const Heads heads = heads_of({.batch = all.extent(0), .num_heads = all.extent(1)}, batch, head);
  return all.select(0, heads.batch).slice(0, heads.first, heads.first + heads.count);
}

// A page with a tab for each of the layers (title, weights, names of queries, names of keys).
std::string weights_page(const std::vector<nb::tuple>& layers, std::int64_t batch,
                         std::optional<std::int64_t> head) {
  ExplorerData data;
  for (const nb::tuple& layer : layers) {
    const Array array = to_array(kShowFunction, "weights", layer[1]);
    std::optional<Tensor<float>> copy;
    const FloatView view = shown(as_real(kShowFunction, "weights", array, copy), batch, head);
    const Labels labels{read_as<std::string>(kShowFunction, "title", layer[0]),
                        read_as<Names>(kShowFunction, "tokens", layer[2]),
                        read_as<Names>(kShowFunction, "tokens", layer[3])};
    ExplorerSentence sentence = sentence_of(floats_of(view), labels);
    if (head) sentence.heads = {name_of(*head)};
    data.sentences.push_back(std::move(sentence));
  }
  return explorer_page(data);
}

}  // namespace

void bind_page(nb::module_& module) {
  module.def("attention_page", &attention_page, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("batch"), nb::arg("head").none(), nb::arg("names"), nb::arg("options"),
             "The explorer's page of the attention of one head or of all, as HTML.");
  module.def("weights_page", &weights_page, nb::arg("layers"), nb::arg("batch"),
             nb::arg("head").none(),
             "The explorer's page of layers (title, weights, names of queries, names of keys), as "
             "HTML: weights [queries, keys], [num_heads, queries, keys] or [batch, num_heads, "
             "queries, keys].");
}

}  // namespace heed::python
