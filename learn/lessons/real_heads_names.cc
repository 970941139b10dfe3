// The lesson real-heads: the names that heads earn, and the entropies of heads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "heed/attention/diagnostics.h"
#include "lessons/real_heads.h"

namespace heed::learn::real_heads_lesson {

namespace {

bool is_of_repeated(const inspect::TokenPattern& pattern) {
  return pattern.name == inspect::duplicate_token().name;
}

std::int64_t count_named(const std::vector<inspect::HeadRole>& roles, const std::string& name) {
  return std::count_if(roles.begin(), roles.end(),
                       [&](const inspect::HeadRole& role) { return role.name == name; });
}

// Returns the head of `scored` with the highest score of a pattern; `found.rows` is 0 if no row has
// it.
BestHead best_among(const inspect::ScoredTexts& scored, std::size_t pattern) {
  BestHead best{.pattern = scored.patterns[pattern]};
  for (std::size_t layer = 0; layer < scored.layers.size(); ++layer) {
    for (std::size_t head = 0; head < scored.layers[layer].size(); ++head) {
      const inspect::PatternScore& found = scored.layers[layer][head].patterns[pattern];
      if (found.rows == 0 || (best.found.rows > 0 && found.score <= best.found.score)) continue;
      best.head = {static_cast<std::int64_t>(layer), static_cast<std::int64_t>(head)};
      best.found = found;
    }
  }
  return best;
}

void add_best(const inspect::ScoredTexts& scored, bool is_repeated,
              const std::vector<inspect::HeadRole>& roles, std::vector<BestHead>& all) {
  for (std::size_t i = 0; i < scored.patterns.size(); ++i) {
    // Skipped: texts contain duplicates by chance, so repeated tokens are the better test.
    if (!is_repeated && is_of_repeated(scored.patterns[i])) continue;
    BestHead best = best_among(scored, i);
    if (best.found.rows == 0) continue;
    best.is_repeated = is_repeated;
    best.num_named = count_named(roles, best.pattern.name);
    all.push_back(std::move(best));
  }
}

}  // namespace

std::string name_of(models::HeadIndex head) { return fmt::format("{}.{}", head.layer, head.head); }

std::vector<BestHead> best_heads(const inspect::HeadScores& scores) {
  const std::vector<inspect::HeadRole> roles = inspect::head_roles(scores);
  std::vector<BestHead> all;
  add_best(scores.text, false, roles, all);
  add_best(scores.repeated, true, roles, all);
  return all;
}

BestHead best_head_of(const inspect::HeadScores& scores, const std::string& pattern) {
  for (BestHead& best : best_heads(scores)) {
    if (best.pattern.name == pattern) return std::move(best);
  }
  throw std::out_of_range(fmt::format("no row of the lesson's texts has the pattern {}", pattern));
}

namespace {

// Shows the heads that head_roles() names for reasons other than a pattern.
void show_other_names(Report& report, const std::vector<inspect::HeadRole>& roles) {
  for (const char* name : {"positional", "constant offset", "broad"}) {
    std::vector<std::string> heads;
    for (const inspect::HeadRole& role : roles) {
      if (role.name == name) heads.push_back(name_of(role.head));
    }
    report.item("{}: {}", name, heads.empty() ? "none" : fmt::format("{}", fmt::join(heads, ", ")));
    report.record(fmt::format("{}_heads", std::string(name).substr(0, std::string(name).find(' '))),
                  heads);
  }
}

}  // namespace

void show_names(Report& report, const Subject& subject) {
  report.step("Names for heads, and from where on they are earned");
  report.paragraph(
      "The same for every head and several patterns, each with the head that follows it most. "
      "Texts repeat words for many reasons, so duplicates (and, in models that write, induction) "
      "are looked for in {} random tokens that stand there {} times.",
      subject.scores.repeated.texts.front().first_repeated -
          (subject.scores.repeated.texts.front().tokens.is_special.front() ? 1 : 0),
      inspect::RepeatedTokens().repeats);
  report.say();
  report.say("  {:<16} {:>6} {:>6} {:>6} {:>7} {:>6}   {}", "pattern", "best", "score", "chance",
             "above", "named", "rows");
  auto rows = nlohmann::json::array();
  for (const BestHead& best : best_heads(subject.scores)) {
    report.say("  {:<16} {:>6} {:>6.2f} {:>6.2f} {:>7.2f} {:>6}   {}", best.pattern.name,
               name_of(best.head), best.found.score, best.found.uniform, best.pattern.threshold,
               best.num_named, best.found.rows);
    rows.push_back({{"pattern", best.pattern.name},
                    {"head", name_of(best.head)},
                    {"score", best.found.score},
                    {"chance", best.found.uniform},
                    {"threshold", best.pattern.threshold},
                    {"named", best.num_named},
                    {"rows", best.found.rows},
                    {"source", best.pattern.source}});
  }
  report.record("patterns", rows);
  report.say();
  report.paragraph(
      "Thresholds: more than half of the attention, for next, previous, same and first token, "
      "separators and punctuation (Clark et al., 2019, of BERT); for duplicates and words the same "
      "by analogy, which is heed's own. A score of 8 rows or fewer names nothing. Three names have "
      "other reasons: positional, where the largest weight stands at one distance in 90 % of the "
      "rows (Voita et al., 2019); a constant offset, where half of the attention is at a distance "
      "other than -1, 0, 1 (heed's own); broad, where the largest weight of a row is at most 0.1 "
      "in the mean (Clark et al.):");
  report.say();
  const std::vector<inspect::HeadRole> roles = inspect::head_roles(subject.scores);
  show_other_names(report, roles);
  std::map<models::HeadIndex, int> named;
  for (const inspect::HeadRole& role : roles) ++named[role.head];
  const models::ModelConfig& config = subject.model.config();
  report.record("num_named", named.size());
  report.say();
  report.paragraph(
      "What to notice: {} of {} heads have a name. A threshold is a convention: a head with 0.49 "
      "does not differ from one with 0.51. Scores also depend on what is read, for short texts "
      "leave more to the first token than long ones: `heed heads` reads a story. And what one "
      "model does another need not: Clark et al. found that half of BERT's attention goes to "
      "[SEP]; "
      "compare the separators. Patterns that no row has are left out.",
      named.size(), config.num_layers * config.num_heads);
}

namespace {

// The entropies of a layer's heads, averaged over the rows of all texts.
struct LayerEntropies {
  std::vector<double> heads;

  double mean() const {
    double sum = 0;
    for (const double entropy : heads) sum += entropy;
    return sum / static_cast<double>(heads.size());
  }
  std::size_t lowest() const {
    return static_cast<std::size_t>(std::min_element(heads.begin(), heads.end()) - heads.begin());
  }
  std::size_t highest() const {
    return static_cast<std::size_t>(std::max_element(heads.begin(), heads.end()) - heads.begin());
  }
};

std::vector<LayerEntropies> entropies_of(const Subject& subject) {
  const models::ModelConfig& config = subject.model.config();
  const auto num_heads = static_cast<std::size_t>(config.num_heads);
  std::vector<LayerEntropies> layers(static_cast<std::size_t>(config.num_layers),
                                     LayerEntropies{std::vector<double>(num_heads)});
  double rows = 0;
  models::ForwardOptions options;
  options.observer = [&](const models::AttentionCall& call) {
    const AttentionDiagnostics found = attention_diagnostics(call.query, call.key, call.options);
    if (call.layer == 0) rows += static_cast<double>(found.heads.front().rows);
    for (std::size_t h = 0; h < found.heads.size(); ++h) {
      layers[static_cast<std::size_t>(call.layer)].heads[h] +=
          found.heads[h].entropy * static_cast<double>(found.heads[h].rows);
    }
  };
  for (const inspect::ModelText& text : subject.scores.text.texts) {
    subject.model.forward(models::Inputs::of(text.tokens.ids), options);
  }
  for (LayerEntropies& layer : layers) {
    for (double& entropy : layer.heads) entropy /= rows;
  }
  return layers;
}

}  // namespace

void show_entropies(Report& report, const Subject& subject) {
  report.step("How broad heads look, by layer");
  report.paragraph(
      "The entropy of a row, -Σ w ln w, divided by that of equal weights, ln n: 0 where one token "
      "has everything, 1 where all have the same. The mean over the rows of the four texts:");
  report.say();
  report.say("  {:>5}   {:>13}   {:>6}   {:>13}", "layer", "lowest", "mean", "highest");
  auto rows = nlohmann::json::array();
  const std::vector<LayerEntropies> layers = entropies_of(subject);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerEntropies& layer = layers[i];
    const auto of = [&](std::size_t head) {
      return fmt::format("{:.3f} ({})", layer.heads[head],
                         name_of({static_cast<std::int64_t>(i), static_cast<std::int64_t>(head)}));
    };
    report.say("  {:>5}   {:>13}   {:>6.3f}   {:>13}", i, of(layer.lowest()), layer.mean(),
               of(layer.highest()));
    rows.push_back(layer.heads);
  }
  report.record("entropies", rows);
  report.say();
  const auto by_mean = [](const LayerEntropies& a, const LayerEntropies& b) {
    return a.mean() < b.mean();
  };
  const auto [least, most] = std::minmax_element(layers.begin(), layers.end(), by_mean);
  const LayerEntropies& first = layers.front();
  report.paragraph(
      "What to notice: the means of the layers lie between {:.2f} and {:.2f}, the heads of layer 0 "
      "alone between {:.2f} and {:.2f}: look at heads, not at layers. A broad head is not an idle "
      "one: it gives each token something like the mean of the text.",
      least->mean(), most->mean(), first.heads[first.lowest()], first.heads[first.highest()]);
}

}  // namespace heed::learn::real_heads_lesson
