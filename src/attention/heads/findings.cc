// Findings: the usual meaning of measurements of heads.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/float_environment.h"
#include "heed/attention/diagnostics.h"

namespace heed { inline namespace v0 {

namespace {

// The wording of a kind of finding, which is the same wherever it is found.
struct Wording {
  FindingKind kind;
  std::string_view name;
  bool is_problem;
  std::string_view meaning;
  std::string_view advice;
};

constexpr std::array kWordings{
    Wording{FindingKind::kNotFinite, "not finite", true,
            "A query or key is NaN or infinite: the run has diverged, or an input is broken.",
            "Look for the first loss that is not finite; lower the learning rate, clip gradients, "
            "check the inputs."},
    Wording{FindingKind::kPadding, "attention to padding", true,
            "The mask is missing, has the other polarity, or is broadcast along the wrong "
            "dimension; results then depend on what else is in the batch.",
            "Give key_lengths(lengths) or key_padding(ids, pad_id), and print the mask's shape "
            "beside that of the scores."},
    Wording{FindingKind::kUniform, "uniform attention", true,
            "The head averages what it sees. It has not learned where to look, or there is "
            "nothing to look for: all scores are about equal.",
            "Train longer or with a higher learning rate; check that embeddings tell tokens and "
            "positions apart; see whether the task needs attention at all."},
    Wording{FindingKind::kCollapse, "head collapse", true,
            "The heads have learned one pattern among them, and all but one are wasted.",
            "Less dropout on the weights, a larger head_dim (fewer heads), or a term in the loss "
            "that rewards difference. Heads that are all uniform or all sinks are alike, too: see "
            "to these first."},
    Wording{FindingKind::kDead, "dead head", true,
            "Whatever comes in, the head does the same: its query or key projection is close to "
            "zero, or its sink takes everything.",
            "Look at the norms of its projections; weight decay or a learning rate that was too "
            "high at first can have killed it. It can be pruned."},
    Wording{FindingKind::kDuplicate, "duplicate heads", true,
            "Two heads look at the same places. They may still read different values there.",
            "Prune one and measure the loss; fewer heads may do."},
    Wording{FindingKind::kFirstTokenSink, "first-token sink", false,
            "The first token takes what no other needs: the head's way to do nothing. Usual in "
            "causal models once they are trained.",
            "Nothing, unless all heads of a layer do it. Keep the first token visible when a "
            "window slides."},
    Wording{FindingKind::kPreviousToken, "previous-token head", false,
            "It moves each token's content one place on: half of what copying patterns "
            "(induction) needs.",
            "Nothing: this is a head at work."},
    Wording{FindingKind::kNextToken, "next-token head", false,
            "It looks one place ahead, as alignments do whose source has a word more in front.",
            "Nothing; in a causal model this cannot be, so check the mask there."},
    Wording{FindingKind::kDiagonal, "diagonal head", false,
            "Each query looks at its own place: a monotone alignment, or, in self-attention, a "
            "head that passes tokens on as they are.",
            "Nothing, if the task is monotone. In self-attention the residual connection does "
            "this already."},
    Wording{FindingKind::kOffset, "fixed-offset head", false,
            "It looks a constant number of places away: what copying a block needs.",
            "Nothing; it may not carry over to other lengths."},
    Wording{FindingKind::kVertical, "vertical head", false,
            "One key receives most of the attention of all queries: a separator, punctuation, or "
            "a token that stands out by its norm.",
            "See which token it is. If it is padding or a fixed place that means nothing, treat "
            "it as a sink."},
};

const Wording& wording_of(FindingKind kind) {
  return *std::find_if(kWordings.begin(), kWordings.end(),
                       [kind](const Wording& wording) { return wording.kind == kind; });
}

std::string list_of(const std::vector<std::int64_t>& heads) {
  return fmt::format("{} {}", heads.size() == 1 ? "head" : "heads", fmt::join(heads, ", "));
}

class Search {
 public:
  Search(const AttentionDiagnostics& diagnostics, const FindingThresholds& thresholds)
      : diagnostics_(diagnostics), thresholds_(thresholds) {}

  std::vector<Finding> run() {
    find_problems();
    find_likeness();
    find_patterns();
    return std::move(findings_);
  }

 private:
  using Heads = std::vector<std::int64_t>;

  std::int64_t num_heads() const { return static_cast<std::int64_t>(diagnostics_.heads.size()); }
  const HeadDiagnostics& head(std::int64_t i) const {
    return diagnostics_.heads[static_cast<std::size_t>(i)];
  }

  // The mean of `score` over the heads.
  template <class Score>
  double mean(const Heads& heads, Score score) const {
    double sum = 0;
    for (const std::int64_t i : heads) sum += static_cast<double>(score(head(i)));
    return sum / static_cast<double>(heads.size());
  }

  template <class Predicate>
  Heads heads_where(Predicate predicate) const {
    Heads heads;
    for (std::int64_t i = 0; i < num_heads(); ++i) {
      if (predicate(head(i))) heads.push_back(i);
    }
    return heads;
  }

  void report(FindingKind kind, Heads heads, double score, std::string measured) {
    const Wording& wording = wording_of(kind);
    findings_.push_back({.kind = kind,
                         .heads = std::move(heads),
                         .score = score,
                         .is_problem = wording.is_problem,
                         .measured = std::move(measured),
                         .meaning = std::string(wording.meaning),
                         .advice = std::string(wording.advice)});
  }

  bool is_silent(const HeadDiagnostics& head) const {
    return head.rows > 0 && head.total < 1 - thresholds_.silent;
  }
  bool is_dead(const HeadDiagnostics& head) const {
    return head.rows > 0 && (head.entropy > thresholds_.dead || is_silent(head));
  }
  bool is_uniform(const HeadDiagnostics& head) const {
    return head.rows > 0 && head.entropy > thresholds_.uniform && !is_dead(head);
  }

  void find_problems() {
    const Heads broken = heads_where([](const auto& head) { return head.broken_rows > 0; });
    if (!broken.empty()) {
      const double rows = mean(broken, [](const auto& head) { return head.broken_rows; });
      report(FindingKind::kNotFinite, broken, rows,
             fmt::format("{}: {:.0f} rows on average see NaN or infinity", list_of(broken), rows));
    }
    const Heads leaking = heads_where([](const auto& head) { return head.padding > 0; });
    if (!leaking.empty()) {
      const double share = mean(leaking, [](const auto& head) { return head.padding; });
      report(FindingKind::kPadding, leaking, share,
             fmt::format("{}: {:.3g} of the weight lies on padding, expected 0", list_of(leaking),
                         share));
    }
    find_idle();
  }

  void find_idle() {
    const Heads uniform = heads_where([this](const auto& head) { return is_uniform(head); });
    const auto entropy = [](const HeadDiagnostics& head) { return head.entropy; };
    if (!uniform.empty()) {
      const double score = mean(uniform, entropy);
      report(
          FindingKind::kUniform, uniform, score,
          fmt::format("{}: entropy {:.3f} of the largest possible, ln n", list_of(uniform), score));
    }
    const Heads silent = heads_where([this](const auto& head) { return is_silent(head); });
    if (!silent.empty()) {
      const double score = mean(silent, [](const auto& head) { return 1 - head.total; });
      report(FindingKind::kDead, silent, score,
             fmt::format("{}: the sink takes {:.3f} of the weight", list_of(silent), score));
    }
    const Heads flat =
        heads_where([this](const auto& head) { return is_dead(head) && !is_silent(head); });
    if (!flat.empty()) {
      const double score = mean(flat, entropy);
      report(FindingKind::kDead, flat, score,
             fmt::format("{}: entropy {:.4f} of the largest possible, ln n: no score differs from "
                         "another",
                         list_of(flat), score));
    }
  }

  void find_likeness() {
    const double alike = diagnostics_.mean_similarity();
    const bool has_rows =
        !heads_where([](const auto& head) { return head.rows > 0; }).empty() && num_heads() > 1;
    if (has_rows && alike > thresholds_.collapse) {
      report(FindingKind::kCollapse, heads_where([](const auto&) { return true; }), alike,
             fmt::format("the mean cosine similarity of two heads is {:.3f}", alike));
      return;
    }
    for (std::int64_t i = 0; i < num_heads(); ++i) {
      for (std::int64_t j = i + 1; j < num_heads(); ++j) {
        const double similarity = diagnostics_.similarity(i, j);
        const auto is_idle = [this](const auto& h) { return is_uniform(h) || is_dead(h); };
        // Heads without a pattern resemble each other in any case.
        if (!(similarity > thresholds_.duplicate) || (is_idle(head(i)) && is_idle(head(j)))) {
          continue;
        }
        report(FindingKind::kDuplicate, {i, j}, similarity,
               fmt::format("heads {} and {}: cosine similarity {:.3f}", i, j, similarity));
      }
    }
  }

  // The pattern with the highest score of a head.
  struct Pattern {
    FindingKind kind;
    double score;
    std::string_view place;
  };

  static Pattern pattern_of(const HeadDiagnostics& head) {
    const std::array patterns{
        Pattern{FindingKind::kFirstTokenSink, head.first, "on the first token"},
        Pattern{FindingKind::kPreviousToken, head.previous, "on the previous token"},
        Pattern{FindingKind::kDiagonal, head.same, "at its own place"},
        Pattern{FindingKind::kNextToken, head.next, "on the next token"},
        Pattern{FindingKind::kOffset, head.offset_weight, "at a fixed distance"},
        Pattern{FindingKind::kVertical, head.vertical, "on one key"}};
    // If scores are equal, the first pattern, which is the more specific.
    return *std::max_element(patterns.begin(), patterns.end(),
                             [](const Pattern& a, const Pattern& b) { return a.score < b.score; });
  }

  void find_patterns() {
    for (std::int64_t i = 0; i < num_heads(); ++i) {
      const HeadDiagnostics& found = head(i);
      if (found.rows == 0 || is_silent(found)) continue;
      const Pattern pattern = pattern_of(found);
      if (!(pattern.score > thresholds_.pattern)) continue;
      std::string detail;
      if (pattern.kind == FindingKind::kOffset) detail = fmt::format(", {:+}", found.offset);
      if (pattern.kind == FindingKind::kVertical) {
        detail = fmt::format(", mostly key {}", found.vertical_key);
      }
      report(pattern.kind, {i}, pattern.score,
             fmt::format("head {}: {:.3f} of the weight is {}{}", i, pattern.score, pattern.place,
                         detail));
    }
  }

  const AttentionDiagnostics& diagnostics_;
  const FindingThresholds& thresholds_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view name_of(FindingKind kind) { return wording_of(kind).name; }

std::vector<Finding> attention_findings(const AttentionDiagnostics& diagnostics,
                                        const FindingThresholds& thresholds) {
  const FloatEnvironment environment;
  return Search(diagnostics, thresholds).run();
}

}}  // namespace heed::v0
