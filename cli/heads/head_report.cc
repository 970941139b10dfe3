#include "heads/head_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"

namespace heed::cli {

namespace {

using inspect::HeadMeasures;
using inspect::HeadRole;
using inspect::PatternScore;
using inspect::ScoredTexts;
using inspect::TokenPattern;

constexpr int kReportWidth = 78;
constexpr std::size_t kLongestTable = 12;  // heads that are listed per role

std::int64_t num_tokens(const ScoredTexts& scored) {
  std::int64_t count = 0;
  for (const inspect::ModelText& text : scored.texts) count += text.tokens.length();
  return count;
}

const ScoredTexts& texts_of(const HeadReport& report, const HeadRole& role) {
  return role.is_repeated ? report.scores.repeated : report.scores.text;
}

// Returns for example "light" → "the", 0.98.
std::string example_of(const HeadReport& report, const HeadRole& role) {
  if (role.strongest.query < 0) return "";
  const auto& texts = texts_of(report, role).texts;
  const auto& labels = texts[static_cast<std::size_t>(role.strongest.text)].labels;
  const auto label = [&](std::int64_t token) {
    return sanitize_for_terminal(labels[static_cast<std::size_t>(token)]);
  };
  return fmt::format("\"{}\" looks at \"{}\": {:.2f}", label(role.strongest.query),
                     label(role.strongest.key), role.strongest.weight);
}

std::string line_of(const HeadReport& report, const HeadRole& role) {
  // Roles that are no pattern have no chance level; they show a distance instead.
  const bool is_pattern = role.strongest.query >= 0;
  const std::string chance = is_pattern ? fmt::format("{:.2f}", role.uniform) : "";
  const bool has_distance = role.name == "positional" || role.name == "constant offset";
  std::string line = fmt::format(
      "  {:>6}   {:.2f}   {:>5}   {}{}", to_text(role.head), role.score, chance,
      has_distance ? role.looks_at + (is_pattern ? ", " : "") : "", example_of(report, role));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::vector<HeadRole> named(const HeadReport& report, const std::string& name) {
  std::vector<HeadRole> roles;
  std::copy_if(report.roles.begin(), report.roles.end(), std::back_inserter(roles),
               [&](const HeadRole& role) { return role.name == name; });
  return roles;
}

std::string table_of(const HeadReport& report, const std::vector<HeadRole>& roles) {
  std::string text = "    head  score  chance   strongest example\n";
  for (std::size_t i = 0; i < std::min(roles.size(), kLongestTable); ++i) {
    text += line_of(report, roles[i]);
  }
  if (roles.size() > kLongestTable) {
    text += fmt::format("  and {} more, down to {:.2f}\n", roles.size() - kLongestTable,
                        roles.back().score);
  }
  return text;
}

// Returns the head with the highest score, for a pattern that names no head.
std::string nearest_of(const ScoredTexts& scored, std::size_t pattern) {
  models::HeadIndex best{-1, -1};
  const PatternScore* highest = nullptr;
  for (std::size_t layer = 0; layer < scored.layers.size(); ++layer) {
    for (std::size_t head = 0; head < scored.layers[layer].size(); ++head) {
      const PatternScore& score = scored.layers[layer][head].patterns[pattern];
      if (score.rows == 0 || (highest != nullptr && score.score <= highest->score)) continue;
      highest = &score;
      best = {static_cast<std::int64_t>(layer), static_cast<std::int64_t>(head)};
    }
  }
  if (highest == nullptr) return "  no head: what was read has no such keys\n";
  return fmt::format("  no head; the nearest is {} with {:.2f}, chance {:.2f}, of {} rows\n",
                     to_text(best), highest->score, highest->uniform, highest->rows);
}

std::string section_of(const HeadReport& report, const ScoredTexts& scored, std::size_t index,
                       bool is_repeated) {
  const TokenPattern& pattern = scored.patterns[index];
  const std::vector<HeadRole> roles = named(report, pattern.name);
  return '\n' +
         wrap_text(fmt::format("{}: looks at {}{}", pattern.name, pattern.looks_at,
                               is_repeated ? ", in repeated random tokens" : ""),
                   kReportWidth) +
         wrap_text(fmt::format("above {} ({})", pattern.threshold, pattern.source), kReportWidth) +
         (roles.empty() ? nearest_of(scored, index) : table_of(report, roles));
}

bool is_shown(const ScoredTexts& scored, std::size_t index) {
  return scored.patterns[index].name != inspect::duplicate_token().name;
}

// Returns a section for a role that is not a pattern.
std::string other_section(const HeadReport& report, const std::string& name,
                          const std::string& meaning) {
  const std::vector<HeadRole> roles = named(report, name);
  const std::string title = '\n' + wrap_text(fmt::format("{}: {}", name, meaning), kReportWidth);
  return title + (roles.empty() ? "  no head\n" : table_of(report, roles));
}

std::string patterns_text(const HeadReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.scores.text.patterns.size(); ++i) {
    if (is_shown(report.scores.text, i)) text += section_of(report, report.scores.text, i, false);
  }
  for (std::size_t i = 0; i < report.scores.repeated.patterns.size(); ++i) {
    text += section_of(report, report.scores.repeated, i, true);
  }
  return text +
         other_section(report, "positional",
                       "its largest weight stands at one distance in at least 0.9 of the "
                       "rows (Voita et al. 2019)") +
         other_section(report, "constant offset",
                       "more than 0.5 at a distance other than -1, 0, 1 (heed's own)") +
         other_section(report, "broad",
                       "its largest weight is at most 0.1 in the mean (Clark et al. 2019)");
}

std::string spread_text(const inspect::Ablation& ablation,
                        double inspect::AblationOutcome::*number) {
  const auto spread = ablation.spread(number);
  if (ablation.random.empty()) return "";
  return fmt::format("   {:>9.4f} ± {:.4f}", spread.mean, spread.deviation);
}

std::string ablation_line(const inspect::Ablation& ablation, const char* name,
                          double inspect::AblationOutcome::*number) {
  return fmt::format("  {:<34}{:>9.4f}  {:>9.4f}{}\n", name, ablation.all.*number,
                     ablation.chosen.*number, spread_text(ablation, number));
}

std::string ablation_text(const HeadReport& report) {
  if (report.ablated.empty()) return "";
  if (!report.ablation) {
    return fmt::format("\nswitched off: nothing, for no head is named \"{}\"\n", report.ablated);
  }
  const inspect::Ablation& ablation = *report.ablation;
  const auto count = ablation.chosen.heads.size();
  std::string text =
      '\n' + wrap_text(fmt::format("switched off: {} of {} heads: {}", count,
                                   report.config.num_layers * report.config.num_heads,
                                   to_text(ablation.chosen.heads)),
                       kReportWidth);
  text += fmt::format("  {:<34}{:>9}  {:>9}{}\n", "", "all heads", "without",
                      ablation.random.empty() ? ""
                                              : fmt::format("   without {} others, {} draws", count,
                                                            ablation.random.size()));
  using inspect::AblationOutcome;
  if (ablation.has_losses) {
    text += ablation_line(ablation, "loss on the text, nats", &AblationOutcome::text_loss);
    text += ablation_line(ablation, "loss on what repeats, nats", &AblationOutcome::repeated_loss);
  }
  return text + ablation_line(ablation, "cosine of final vectors", &AblationOutcome::cosine);
}

nlohmann::json json_of(const models::HeadIndex& head) {
  return {{"layer", head.layer}, {"head", head.head}};
}

nlohmann::json json_of(const HeadReport& report, const HeadRole& role) {
  nlohmann::json json{
      {"layer", role.head.layer},  {"head", role.head.head}, {"name", role.name},
      {"looks_at", role.looks_at}, {"score", role.score},    {"threshold", role.threshold},
      {"source", role.source},     {"rows", role.rows},      {"repeated", role.is_repeated}};
  if (role.strongest.query < 0) return json;
  const auto& text = texts_of(report, role).texts[static_cast<std::size_t>(role.strongest.text)];
  const auto label = [&](std::int64_t token) {
    return text.labels[static_cast<std::size_t>(token)];
  };
  json["chance"] = role.uniform;
  json["strongest"] = {{"text", role.strongest.text},
                       {"query", role.strongest.query},
                       {"key", role.strongest.key},
                       {"query_token", label(role.strongest.query)},
                       {"key_token", label(role.strongest.key)},
                       {"weight", role.strongest.weight}};
  return json;
}

// Returns a number as [layer][head].
template <class Number>
nlohmann::json matrix_json(const ScoredTexts& scored, Number number) {
  auto layers = nlohmann::json::array();
  for (const auto& heads : scored.layers) {
    auto row = nlohmann::json::array();
    for (const HeadMeasures& head : heads) row.push_back(number(head));
    layers.push_back(row);
  }
  return layers;
}

nlohmann::json json_of(const ScoredTexts& scored) {
  auto patterns = nlohmann::json::array();
  for (std::size_t i = 0; i < scored.patterns.size(); ++i) {
    const auto of = [i](auto number) {
      return [i, number](const HeadMeasures& head) { return head.patterns[i].*number; };
    };
    patterns.push_back({{"name", scored.patterns[i].name},
                        {"looks_at", scored.patterns[i].looks_at},
                        {"threshold", scored.patterns[i].threshold},
                        {"source", scored.patterns[i].source},
                        {"scores", matrix_json(scored, of(&PatternScore::score))},
                        {"chance", matrix_json(scored, of(&PatternScore::uniform))},
                        {"rows", matrix_json(scored, of(&PatternScore::rows))}});
  }
  const auto measure = [&](auto number) {
    return matrix_json(scored, [number](const HeadMeasures& head) { return head.*number; });
  };
  auto ids = nlohmann::json::array();
  for (const inspect::ModelText& text : scored.texts) ids.push_back(text.tokens.ids);
  return {{"texts", scored.texts.size()},
          {"tokens", num_tokens(scored)},
          {"ids", ids},
          {"patterns", patterns},
          {"offset", measure(&HeadMeasures::offset)},
          {"offset_score",
           matrix_json(scored, [](const HeadMeasures& head) { return head.at_offset.score; })},
          {"peak_offset", measure(&HeadMeasures::peak_offset)},
          {"peak_share", measure(&HeadMeasures::peak_share)},
          {"confidence", measure(&HeadMeasures::confidence)},
          {"broken_rows", measure(&HeadMeasures::broken_rows)}};
}

nlohmann::json json_of(const inspect::AblationOutcome& outcome, bool has_losses) {
  nlohmann::json json{{"heads", nlohmann::json::array()}, {"cosine", outcome.cosine}};
  for (const models::HeadIndex& head : outcome.heads) json["heads"].push_back(json_of(head));
  if (!has_losses) return json;
  json["text_loss"] = outcome.text_loss;
  json["repeated_loss"] = outcome.repeated_loss;
  return json;
}

nlohmann::json json_of(const inspect::Ablation& ablation) {
  auto random = nlohmann::json::array();
  for (const inspect::AblationOutcome& outcome : ablation.random) {
    random.push_back(json_of(outcome, ablation.has_losses));
  }
  return {{"all", json_of(ablation.all, ablation.has_losses)},
          {"chosen", json_of(ablation.chosen, ablation.has_losses)},
          {"random", random}};
}

}  // namespace

std::string to_text(const models::HeadIndex& head) {
  return fmt::format("{}.{}", head.layer, head.head);
}

std::string to_text(const std::vector<models::HeadIndex>& heads) {
  std::vector<std::string> names;
  names.reserve(heads.size());
  for (const models::HeadIndex& head : heads) names.push_back(to_text(head));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string text_of(const HeadReport& report) {
  const models::ModelConfig& config = report.config;
  std::set<models::HeadIndex> with_role;
  for (const HeadRole& role : report.roles) with_role.insert(role.head);
  const auto& repeated = report.scores.repeated.texts;
  return fmt::format(
             "model     {}: {}, {} layers of {} heads\n"
             "read      {}, {} tokens\n"
             "repeated  {} sequences of random tokens, {} tokens\n"
             "named     {} of {} heads; LAYER.HEAD, both counted from 0\n",
             sanitize_for_terminal(report.model), to_string(config.family), config.num_layers,
             config.num_heads, report.texts, num_tokens(report.scores.text), repeated.size(),
             num_tokens(report.scores.repeated), with_role.size(),
             config.num_layers * config.num_heads) +
         patterns_text(report) + ablation_text(report);
}

nlohmann::json to_json(const HeadReport& report) {
  nlohmann::json json{{"model", report.model},
                      {"family", to_string(report.config.family)},
                      {"layers", report.config.num_layers},
                      {"heads", report.config.num_heads},
                      {"read", report.texts},
                      {"text", json_of(report.scores.text)},
                      {"repeated", json_of(report.scores.repeated)},
                      {"roles", nlohmann::json::array()}};
  for (const HeadRole& role : report.roles) json["roles"].push_back(json_of(report, role));
  if (report.ablation) json["ablation"] = json_of(*report.ablation);
  return json;
}

}  // namespace heed::cli
