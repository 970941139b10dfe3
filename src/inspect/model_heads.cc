// Scores of a model's heads on texts and on repeated tokens, and the roles that follow from them.
#include "heed/inspect/model_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "inspect/model_texts.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

// Counts the attentions of all forward passes.
class AttentionCount {
 public:
  AttentionCount(const Progress& progress, std::int64_t total)
      : progress_(progress), total_(total) {}

  void add_one() {
    ++done_;
    if (progress_) progress_(done_, total_);
  }

 private:
  const Progress& progress_;
  std::int64_t total_;
  std::int64_t done_ = 0;
};

ScoredTexts score_texts(const models::Model& model, std::vector<ModelText> texts,
                        std::vector<TokenPattern> patterns, std::int64_t max_offset,
                        AttentionCount& count) {
  std::vector<HeadScorer> layers;
  for (std::int64_t i = 0; i < model.config().num_layers; ++i) {
    layers.emplace_back(patterns, model.config().num_heads, max_offset);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check_cancelled();
    models::ForwardOptions options;
    options.observer = [&](const models::AttentionCall& call) {
      layers[static_cast<std::size_t>(call.layer)].add(
          call.query, call.key, call.options, texts[i].tokens, static_cast<std::int64_t>(i));
      count.add_one();
    };
    model.forward(inputs_of(texts[i]), options);
  }
  ScoredTexts scored{std::move(texts), std::move(patterns), {}};
  for (const HeadScorer& layer : layers) scored.layers.push_back(layer.measures());
  return scored;
}

// Scores from this many rows or fewer are chance and give no role.
constexpr std::int64_t kFewRows = 8;

constexpr double kPositional = 0.9;
constexpr double kConstantOffset = 0.5;
constexpr double kBroad = 0.1;

// Collects roles, one name after the other.
class RoleSearch {
 public:
  std::vector<HeadRole> take() && { return std::move(roles_); }

  template <class Find>
  void add(const ScoredTexts& scored, Find find) {
    std::vector<HeadRole> found;
    for (std::size_t layer = 0; layer < scored.layers.size(); ++layer) {
      for (std::size_t head = 0; head < scored.layers[layer].size(); ++head) {
        HeadRole role = find(scored.layers[layer][head]);
        if (role.name.empty() || role.rows <= kFewRows) continue;
        role.head = {static_cast<std::int64_t>(layer), static_cast<std::int64_t>(head)};
        found.push_back(std::move(role));
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const HeadRole& a, const HeadRole& b) { return a.score > b.score; });
    for (HeadRole& role : found) roles_.push_back(std::move(role));
  }

  void add_pattern(const ScoredTexts& scored, std::size_t index, bool is_repeated) {
    const TokenPattern& pattern = scored.patterns[index];
    add(scored, [&](const HeadMeasures& measures) -> HeadRole {
      const PatternScore& found = measures.patterns[index];
      if (found.score <= pattern.threshold) return {};
      HeadRole role = role_of(found, pattern.threshold);
      role.name = pattern.name;
      role.looks_at = pattern.looks_at;
      role.source = pattern.source;
      role.is_repeated = is_repeated;
      return role;
    });
  }

  static HeadRole role_of(const PatternScore& found, double threshold) {
    HeadRole role;
    role.score = found.score;
    role.threshold = threshold;
    role.uniform = found.uniform;
    role.rows = found.rows;
    role.strongest = found.strongest;
    return role;
  }

 private:
  std::vector<HeadRole> roles_;
};

HeadRole positional_role(const HeadMeasures& measures) {
  if (measures.peak_share < kPositional) return {};
  HeadRole role;
  role.name = "positional";
  role.looks_at = fmt::format("most at distance {:+}", measures.peak_offset);
  role.score = measures.peak_share;
  role.threshold = kPositional;
  role.source = "Voita et al. 2019: the largest weight is there in 0.9 of the rows";
  role.rows = measures.rows;
  return role;
}

HeadRole offset_role(const HeadMeasures& measures) {
  const bool has_name = measures.offset >= -1 && measures.offset <= 1;
  if (has_name || measures.at_offset.score <= kConstantOffset) return {};
  HeadRole role = RoleSearch::role_of(measures.at_offset, kConstantOffset);
  role.name = "constant offset";
  role.looks_at = fmt::format("what stands at distance {:+}", measures.offset);
  role.source = "heed's own: more than half of the attention";
  return role;
}

HeadRole broad_role(const HeadMeasures& measures) {
  if (measures.rows == 0 || measures.confidence > kBroad) return {};
  HeadRole role;
  role.name = "broad";
  role.looks_at = "no token in particular";
  role.score = measures.confidence;
  role.threshold = kBroad;
  role.source = "Clark et al. 2019: the largest weight is at most 0.1 in the mean";
  role.rows = measures.rows;
  return role;
}

bool is_of_repeated(const TokenPattern& pattern) { return pattern.name == duplicate_token().name; }

}  // namespace

HeadScores score_heads(const models::Model& model, std::vector<ModelText> texts,
                       const HeadScoresOptions& options) {
  if (texts.empty()) throw InvalidArgument("score_heads: there is no text, expected one at least");
  std::vector<ModelText> repeated = repeated_tokens(model, options.repeated);
  const auto passes = static_cast<std::int64_t>(texts.size() + repeated.size());
  AttentionCount count(options.progress, passes * model.config().num_layers);
  std::vector<TokenPattern> patterns{duplicate_token()};
  if (model.config().is_causal()) patterns.push_back(induction());
  HeadScores scores;
  scores.text = score_texts(model, std::move(texts), text_patterns(), options.max_offset, count);
  scores.repeated =
      score_texts(model, std::move(repeated), std::move(patterns), options.max_offset, count);
  return scores;
}

std::vector<HeadRole> head_roles(const HeadScores& scores) {
  RoleSearch search;
  for (std::size_t i = 0; i < scores.text.patterns.size(); ++i) {
    if (!is_of_repeated(scores.text.patterns[i])) search.add_pattern(scores.text, i, false);
  }
  for (std::size_t i = 0; i < scores.repeated.patterns.size(); ++i) {
    search.add_pattern(scores.repeated, i, true);
  }
  search.add(scores.text, positional_role);
  search.add(scores.text, offset_role);
  search.add(scores.text, broad_role);
  return std::move(search).take();
}

}}}  // namespace heed::v0::inspect
