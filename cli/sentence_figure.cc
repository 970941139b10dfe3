#include "sentence_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace heed::cli {

namespace {

// Returns the weights of the chosen heads, [heads, q_len, kv_len].
Tensor<float> chosen(const inspect::AttendedTokens& attention,
                     const std::vector<std::int64_t>& heads) {
  const std::int64_t num_tokens = attention.num_tokens();
  auto weights = Tensor<float>::uninitialized(
      {static_cast<std::int64_t>(heads.size()), num_tokens, num_tokens});
  float* out = weights.data();
  for (const std::int64_t head : heads) {
    const auto matrix = attention.weights.view().select(0, head).elements();
    out = std::copy(matrix.begin(), matrix.end(), out);
  }
  return weights;
}

}  // namespace

Figure draw_figure(const inspect::AttendedTokens& attention, const std::vector<std::int64_t>& heads,
                   const std::string& note, const PictureArguments& arguments) {
  std::vector<std::string> titles;
  titles.reserve(heads.size());
  for (const std::int64_t head : heads) titles.push_back(fmt::format("Head {}", head));
  AttentionFigureOptions options = figure_options(arguments);
  options.title = headline(attention.text);
  options.note = note;
  options.queries = attention.labels;
  options.keys = attention.labels;
  options.panels = titles;
  options.visible = attention.visible;
  return attention_figure(chosen(attention, heads), options);
}

}  // namespace heed::cli
