#include "heed/inspect/layer_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "heed/viz/layout.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

constexpr int kWidth = 78;

// Wraps text and puts `margin` before each line.
std::string in_margin(const std::string& text, const std::string& margin) {
  std::istringstream lines(wrap_text(text, kWidth - static_cast<int>(margin.size())));
  std::string result;
  for (std::string line; std::getline(lines, line);) result += margin + line + '\n';
  return result;
}

nlohmann::json head_json(const HeadDiagnostics& head) {
  return {{"rows", head.rows},
          {"broken_rows", head.broken_rows},
          {"entropy", head.entropy},
          {"total", head.total},
          {"padding", head.padding},
          {"first", head.first},
          {"previous", head.previous},
          {"same", head.same},
          {"next", head.next},
          {"offset", head.offset},
          {"offset_weight", head.offset_weight},
          {"vertical", head.vertical},
          {"vertical_key", head.vertical_key}};
}

nlohmann::json finding_json(const Finding& finding) {
  return {{"kind", name_of(finding.kind)}, {"heads", finding.heads},
          {"score", finding.score},        {"is_problem", finding.is_problem},
          {"measured", finding.measured},  {"meaning", finding.meaning},
          {"advice", finding.advice}};
}

}  // namespace

std::string table_of(const AttentionDiagnostics& diagnostics) {
  std::string text =
      "  head  entropy  padding  first  previous   same   next   offset       one key\n";
  for (std::size_t i = 0; i < diagnostics.heads.size(); ++i) {
    const HeadDiagnostics& head = diagnostics.heads[i];
    text +=
        fmt::format("  {:>4}  {:>7.3f}  {:>7.3g}  {:>5.3f}  {:>8.3f}  {:>5.3f}  {:>5.3f}", i,
                    head.entropy, head.padding, head.first, head.previous, head.same, head.next);
    text += fmt::format("   {:>5.3f} {:<6}  {:>5.3f}{}\n", head.offset_weight,
                        fmt::format("({:+})", head.offset), head.vertical,
                        head.rows == 0 ? "  no row counts" : "");
  }
  return text;
}

std::string text_of(const std::vector<Finding>& findings) {
  if (findings.empty()) return "  Nothing stands out.\n";
  std::string text;
  std::set<FindingKind> explained;
  for (const Finding& finding : findings) {
    text += in_margin(fmt::format("{} {}: {}", finding.is_problem ? "!" : "-",
                                  name_of(finding.kind), finding.measured),
                      "  ");
    if (!explained.insert(finding.kind).second) continue;
    text += in_margin(finding.meaning, "      ");
    text += in_margin("Try: " + finding.advice, "      ");
  }
  return text;
}

std::string text_of(const MeasuredLayer& layer) {
  const auto count = layer.diagnostics.heads.size();
  std::string text = fmt::format("{}: {} head{}\n\n", layer.name, count, count == 1 ? "" : "s") +
                     table_of(layer.diagnostics);
  if (count > 1) {
    text += fmt::format("\n  mean cosine similarity of two heads: {:.3f}\n",
                        layer.diagnostics.mean_similarity());
  }
  return text + '\n' + text_of(attention_findings(layer.diagnostics));
}

std::string json_of(const AttentionDiagnostics& diagnostics) {
  auto heads = nlohmann::json::array();
  for (const HeadDiagnostics& head : diagnostics.heads) heads.push_back(head_json(head));
  auto similarity = nlohmann::json::array();
  for (std::int64_t i = 0; i < diagnostics.similarity.extent(0); ++i) {
    const auto row = diagnostics.similarity.view().select(0, i).elements();
    similarity.push_back(std::vector<double>(row.begin(), row.end()));
  }
  auto findings = nlohmann::json::array();
  for (const Finding& finding : attention_findings(diagnostics)) {
    findings.push_back(finding_json(finding));
  }
  const nlohmann::json json{{"heads", heads},
                            {"similarity", similarity},
                            {"mean_similarity", diagnostics.mean_similarity()},
                            {"findings", findings}};
  return json.dump();
}

}}}  // namespace heed::v0::inspect
