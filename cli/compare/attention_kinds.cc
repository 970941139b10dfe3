#include "compare/attention_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heed/attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/plan.h"
#include "heed/core/random.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kGlobalTokens = 4;
constexpr std::int64_t kMaxSelectedBlock = 128;  // the limit of select_blocks()

// The part of a sequence that a query sees.
struct Size {
  std::int64_t window;  // the length divided by `parts`
  std::int64_t parts;
};

using MaskOfSize = Mask (*)(const Size& size);

std::int64_t block_of(std::int64_t window) { return std::max<std::int64_t>(window / 2, 1); }

Mask local(const Size& size) { return sliding_window(size.window, 0); }

// Draws random blocks among past blocks only, because the mask would hide later ones.
Mask causal_bigbird(const Size& size) {
  const std::int64_t block = block_of(size.window);
  return block_window(1, 0, block) | global_tokens(kGlobalTokens) |
         random_blocks({.count = 1, .block = block, .only_past = true});
}

const std::map<std::string, MaskOfSize>& masks_by_name() {
  static const std::map<std::string, MaskOfSize> masks{
      {"local", local},
      {"strided", [](const Size& size) { return local(size) | heed::strided(size.parts); }},
      {"columns", [](const Size& size) { return local(size) | heed::columns(size.parts); }},
      {"global", [](const Size& size) { return local(size) | global_tokens(kGlobalTokens); }},
      {"bigbird", causal_bigbird}};
  return masks;
}

bool has_size(const std::string& name) { return name != "full" && name != "linear"; }

// Returns the mask of a kind that selects blocks by their content.
Mask chosen_mask(const models::AttentionKind& kind, FloatView query, FloatView key) {
  return Mask::blocks(select_blocks(query, key, *kind.selected_blocks));
}

// Returns the mask of a kind that has one, with the causal one.
Mask whole_mask(const models::AttentionKind& kind, FloatView query, FloatView key) {
  const Mask mask = causal() & kind.mask;
  return kind.selected_blocks ? mask & chosen_mask(kind, query, key) : mask;
}

double share_of(const Mask& mask, const ScoreShape& shape) {
  return static_cast<double>(count_visible(causal() & mask, shape)) /
         static_cast<double>(count_visible(causal(), shape));
}

}  // namespace

const std::vector<std::string>& attention_kind_names() {
  static const std::vector<std::string> names{"full",   "local",   "strided",  "columns",
                                              "global", "bigbird", "selected", "linear"};
  return names;
}

std::string SizedAttention::label() const {
  return has_size(name) ? fmt::format("{} 1/{}", name, parts) : name;
}

models::AttentionKind SizedAttention::at(std::int64_t length) const {
  if (name == "full") return {};
  if (name == "linear") return {.is_linear = true};
  const std::int64_t window = std::max<std::int64_t>(length / parts, 1);
  if (name != "selected") return {.mask = masks_by_name().at(name)({window, parts})};
  const std::int64_t block = std::min<std::int64_t>(block_of(window), kMaxSelectedBlock);
  return {.selected_blocks = SelectBlocksOptions{
              .block = block, .top_k = std::max<std::int64_t>(window / block, 1), .causal = true}};
}

std::string SizedAttention::text(std::int64_t length) const {
  const models::AttentionKind kind = at(length);
  if (kind.is_linear) return "φ(q) · φ(k), φ = elu + 1";
  if (!kind.selected_blocks) return kind.mask.description();
  return fmt::format("the {} best blocks of {}, the own one among them",
                     kind.selected_blocks->top_k, kind.selected_blocks->block);
}

std::optional<double> SizedAttention::visible_share(std::int64_t length) const {
  const models::AttentionKind kind = at(length);
  if (kind.is_linear) return std::nullopt;
  const ScoreShape shape{.q_len = length, .kv_len = length};
  if (!kind.selected_blocks) return share_of(kind.mask, shape);
  TorchGenerator random(0);
  const Tensor<float> query = random.randn({1, 1, length, 8});
  const Tensor<float> key = random.randn({1, 1, length, 8});
  return share_of(chosen_mask(kind, query, key), shape);
}

std::vector<SizedAttention> sized_attentions(const std::vector<std::string>& names,
                                             const std::vector<std::int64_t>& parts) {
  std::vector<SizedAttention> all;
  for (const std::string& name : names) {
    if (!has_size(name)) all.push_back({name});
    for (std::size_t i = 0; has_size(name) && i < parts.size(); ++i) {
      all.push_back({name, parts[i]});
    }
  }
  return all;
}

Tensor<float> attend_once(const models::AttentionKind& kind, FloatView query, FloatView key,
                          FloatView value) {
  if (kind.is_linear) return feature_map_attention(query, key, value, {.causal = true});
  return attention(query, key, value, {.mask = whole_mask(kind, query, key)});
}

std::optional<std::int64_t> workspace_bytes(const models::AttentionKind& kind, FloatView query,
                                            FloatView key) {
  if (kind.is_linear) return std::nullopt;
  const AttentionPlan planned = plan({.num_heads = query.extent(1),
                                      .num_kv_heads = key.extent(1),
                                      .q_len = query.extent(2),
                                      .kv_len = key.extent(2),
                                      .head_dim = query.extent(3),
                                      .value_dim = query.extent(3)},
                                     {.mask = whole_mask(kind, query, key)});
  return static_cast<std::int64_t>(planned.workspace_bytes());
}

}  // namespace heed::cli
