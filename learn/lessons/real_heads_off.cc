// The lesson real-heads: the changes when heads are switched off, and the exercises.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "heed/core/error.h"
#include "lessons/real_heads.h"

namespace heed::learn::real_heads_lesson {

namespace {

constexpr std::array<const char*, 4> kSentences{
    "The cat sat on the mat.", "A cat was sitting on a rug.", "The mat sat on the cat.",
    "The bank raised its interest rates."};

using HeadList = std::vector<models::HeadIndex>;

double cosine(FloatView a, FloatView b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::int64_t i = 0; i < a.extent(0); ++i) {
    ab += static_cast<double>(a(i)) * b(i);
    aa += static_cast<double>(a(i)) * a(i);
    bb += static_cast<double>(b(i)) * b(i);
  }
  return ab / std::sqrt(aa * bb);
}

// The final vectors of the sentences while some heads are off.
class Outcome {
 public:
  Outcome(const models::Model& model, const HeadList& off) {
    std::vector<text::Encoding> encodings;
    encodings.reserve(kSentences.size());
    for (const char* sentence : kSentences) {
      encodings.push_back(model.tokenizer().encode(sentence));
    }
    const models::Inputs inputs = models::Inputs::of(encodings);
    states_ = model.forward(inputs, {.switched_off = off});
    const std::int64_t size = states_.extent(1);
    vectors_ = Tensor<float>({inputs.num_texts(), size});
    for (std::int64_t text = 0; text < inputs.num_texts(); ++text) {
      const auto at = static_cast<std::size_t>(text);
      for (std::int64_t t = inputs.boundaries[at]; t < inputs.boundaries[at + 1]; ++t) {
        for (std::int64_t i = 0; i < size; ++i) vectors_(text, i) += states_(t, i);
      }
    }
  }

  // Returns the mean over all tokens of 1 − the cosine of a token's two final vectors.
  double change_from(const Outcome& other) const {
    double sum = 0;
    for (std::int64_t t = 0; t < states_.extent(0); ++t) {
      sum += 1 - cosine(states_.view().select(0, t), other.states_.view().select(0, t));
    }
    return sum / static_cast<double>(states_.extent(0));
  }

  // Returns the cosine of the mean vectors of the first sentence and another.
  double similarity(std::int64_t other) const {
    return cosine(vectors_.view().select(0, 0), vectors_.view().select(0, other));
  }

 private:
  Tensor<float> states_;
  Tensor<float> vectors_;
};

HeadList heads_of_layer(const models::ModelConfig& config, std::int64_t layer) {
  HeadList heads;
  for (std::int64_t head = 0; head < config.num_heads; ++head) heads.push_back({layer, head});
  return heads;
}

HeadList all_heads(const models::ModelConfig& config) {
  HeadList heads;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    const HeadList more = heads_of_layer(config, layer);
    heads.insert(heads.end(), more.begin(), more.end());
  }
  return heads;
}

// Returns the best heads of the patterns that are most meaningful alone, each head once.
std::vector<BestHead> chosen_heads(const inspect::HeadScores& scores) {
  const std::set<std::string> names{inspect::previous_token().name, inspect::next_token().name,
                                    inspect::first_token().name, inspect::duplicate_token().name,
                                    inspect::induction().name};
  std::vector<BestHead> chosen;
  std::set<models::HeadIndex> seen;
  for (BestHead& best : best_heads(scores)) {
    if (names.count(best.pattern.name) > 0 && seen.insert(best.head).second) {
      chosen.push_back(std::move(best));
    }
  }
  return chosen;
}

// Prints and records the changes without some heads.
class OffTable {
 public:
  OffTable(Report& report, const Subject& subject)
      : report_(report), model_(subject.model), whole_(model_, {}) {
    for (const models::HeadIndex head : all_heads(model_.config())) {
      changes_.push_back(Outcome(model_, {head}).change_from(whole_));
    }
    report_.say("  {:<29} {:>8} {:>9} {:>7} {:>7} {:>7}", "off", "change", "rank", "1-2", "1-3",
                "1-4");
  }

  void add(const std::string& name, const HeadList& off) {
    const Outcome outcome(model_, off);
    const double change = off.empty() ? 0 : outcome.change_from(whole_);
    std::string rank;
    if (off.size() == 1) rank = fmt::format("{} of {}", rank_of(change), changes_.size());
    report_.say("  {:<29} {:>8.4f} {:>9} {:>7.3f} {:>7.3f} {:>7.3f}", name, change, rank,
                outcome.similarity(1), outcome.similarity(2), outcome.similarity(3));
    rows_.push_back(
        {{"off", name},
         {"heads", off.size()},
         {"change", change},
         {"similarities", {outcome.similarity(1), outcome.similarity(2), outcome.similarity(3)}}});
    if (off.size() == 1) rows_.back()["rank"] = rank_of(change);
  }

  // The change without each head alone.
  const std::vector<double>& changes() const { return changes_; }
  const nlohmann::json& rows() const { return rows_; }

 private:
  // Returns the rank of a change; 1 is the largest.
  std::int64_t rank_of(double change) const {
    return 1 + std::count_if(changes_.begin(), changes_.end(),
                             [change](double other) { return other > change; });
  }

  Report& report_;
  const models::Model& model_;
  Outcome whole_;
  std::vector<double> changes_;
  nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace

void show_switched_off(Report& report, const Subject& subject) {
  report.step("Does it matter? Heads switched off");
  report.paragraph(
      "Weights say where a head looks, not whether anything depends on it. So what the head gives "
      "is replaced by 0, and the model reads four sentences again:");
  report.say();
  for (std::size_t i = 0; i < kSentences.size(); ++i) report.say("  {}  {}", i + 1, kSentences[i]);
  report.say();
  report.paragraph(
      "Change is 1 - cosine of a token's final vectors with and without the head, its mean over "
      "all tokens; rank counts from the head whose absence changes most. 1-2, 1-3 and 1-4 are "
      "cosines of the mean vectors of two sentences: what a search for similar texts would use.");
  report.say();
  const models::ModelConfig& config = subject.model.config();
  OffTable table(report, subject);
  table.add("nothing", {});
  for (const BestHead& best : chosen_heads(subject.scores)) {
    table.add(fmt::format("{:<5} {}", name_of(best.head), best.pattern.name), {best.head});
  }
  for (const std::int64_t layer : {std::int64_t{0}, config.num_layers - 1}) {
    table.add(fmt::format("all heads of layer {}", layer), heads_of_layer(config, layer));
  }
  table.add("all heads", all_heads(config));
  report.record("switched_off", table.rows());
  report.record("changes", table.changes());
  std::vector<double> changes = table.changes();
  std::sort(changes.begin(), changes.end());
  const double median = changes[changes.size() / 2];
  report.record("median_change", median);
  report.say();
  report.paragraph(
      "What to notice: one head alone changes {:.4f} in the median, {:.4f} at most, and a name is "
      "no rank. Residual connections carry on what a head does not add, and other heads do similar "
      "things (Michel et al., 2019, could take away a large part of them). Without any head each "
      "token stands alone, so that sentences of the same words come out alike, whoever sat on "
      "whom: 1-3 is {:.3f} then. Zero is not what a head gives in the mean: a head whose output "
      "hardly varies looks more important than it is.",
      median, changes.back(), table.rows().back()["similarities"][1].get<double>());
}

namespace {

// The contributions of a head to the tokens, by the key they come from.
struct FirstTokenShare {
  double weight = 0;      // the mean weight of the first token
  double first_norm = 0;  // the norm of its value
  double other_norm = 0;  // the mean norm of the values of the others
  double share = 0;       // the first token's part of Σ w ‖v‖
};

FirstTokenShare share_of_first(const models::AttentionCall& call, std::int64_t head) {
  const Tensor<float> weights = models::weights_of(call);
  const std::int64_t n = weights.extent(1);
  const std::int64_t kv_head = head / (weights.extent(0) / call.value.extent(1));
  std::vector<double> norms;
  for (std::int64_t k = 0; k < n; ++k) {
    double squares = 0;
    for (std::int64_t i = 0; i < call.value.extent(3); ++i) {
      squares += std::pow(static_cast<double>(call.value(0, kv_head, k, i)), 2);
    }
    norms.push_back(std::sqrt(squares));
  }
  FirstTokenShare result{.first_norm = norms.front()};
  double all = 0;
  for (std::int64_t q = 0; q < n; ++q) {
    result.weight += weights(head, q, 0) / static_cast<double>(n);
    result.share += weights(head, q, 0) * norms.front();
    for (std::int64_t k = 0; k < n; ++k) {
      all += weights(head, q, k) * norms[static_cast<std::size_t>(k)];
    }
  }
  for (std::int64_t k = 1; k < n; ++k) {
    result.other_norm += norms[static_cast<std::size_t>(k)] / static_cast<double>(n - 1);
  }
  result.share /= all;
  return result;
}

}  // namespace

void show_values(Report& report, const Subject& subject) {
  report.step("A large weight times a small value");
  const BestHead best = best_head_of(subject.scores, inspect::first_token().name);
  const inspect::ModelText& text = subject.scores.text.texts.front();
  FirstTokenShare found;
  models::ForwardOptions options;
  options.observer = [&](const models::AttentionCall& call) {
    if (call.layer == best.head.layer) found = share_of_first(call, best.head.head);
  };
  subject.model.forward(models::Inputs::of(text.tokens.ids), options);
  report.paragraph(
      "Head {} looks at the first token, {}, more than any other head does. What it adds to a "
      "token is a sum of weights times values, so the length of the value counts as much as the "
      "weight (Kobayashi et al., 2020, \"Attention is Not Only a Weight\"). On the first text:",
      name_of(best.head), text.labels.front());
  report.say();
  report.say("  mean weight of the first token              {:.3f}", found.weight);
  report.say("  length of its value                         {:.3f}", found.first_norm);
  report.say("  mean length of the others' values           {:.3f}", found.other_norm);
  report.say("  its share of Σ w ‖v‖                        {:.3f}", found.share);
  report.record("first_token", {{"head", name_of(best.head)},
                                {"weight", found.weight},
                                {"first_norm", found.first_norm},
                                {"other_norm", found.other_norm},
                                {"share", found.share}});
  report.say();
  const bool is_sink = found.first_norm < found.other_norm;
  report.paragraph(
      "What to notice: here the first token's value is {} than the others', so that it gives {} "
      "than its weight says. Where such a value is close to 0, looking there is a way to look "
      "nowhere: the softmax must put its 1 somewhere.",
      is_sink ? "shorter" : "longer", is_sink ? "less" : "more");
}

void show_exercises(Report& report, const Subject& subject) {
  report.step("Exercises, with answers");
  const BestHead previous = best_head_of(subject.scores, inspect::previous_token().name);
  const BestHead first = best_head_of(subject.scores, inspect::first_token().name);
  const inspect::ModelReading reading = inspect::read_layers(subject.model, kSentences[0]);
  const FloatView weights = weights_of_head(reading, first.head);
  double received = 0;
  for (std::int64_t q = 0; q < weights.extent(0); ++q) received += weights(q, 0);
  report.record("received_by_first", received);
  report.item(
      "Rows sum to 1. Do columns? - No: in head {} the {} rows of \"{}\" give the first token "
      "{:.2f} "
      "together. Where all see all, equal weights would give each token 1.",
      name_of(first.head), weights.extent(0), kSentences[0], received);
  const double chance = 1.0 / 100;
  report.record("chance_of_100", chance);
  report.item(
      "What does a head score for previous token that gives 100 visible tokens equal weights? - "
      "{}, and so does every pattern of one key.",
      chance);
  const Outcome whole(subject.model, {});
  const double of_previous = Outcome(subject.model, {previous.head}).change_from(whole);
  const double of_first = Outcome(subject.model, {first.head}).change_from(whole);
  HeadList both{previous.head};
  if (first.head != previous.head) both.push_back(first.head);
  const double of_both = Outcome(subject.model, both).change_from(whole);
  report.record("both_off", {{"previous", of_previous}, {"first", of_first}, {"both", of_both}});
  report.item(
      "Do changes add up? Switch {} and {} off together. - Alone they change {:.4f} and {:.4f}, "
      "together {:.4f}; the sum is {:.4f}.",
      name_of(previous.head), name_of(first.head), of_previous, of_first, of_both,
      of_previous + of_first);
  report.item(
      "How would you find out whether a named head beats chance? - Switch off others, drawn at "
      "random: `heed heads --model ... --ablate \"previous token\"` does so several times and says "
      "mean and standard deviation.");
  report.item(
      "Why is a sentence without repetitions no test for duplicates? - No row has another "
      "occurrence to look at, so no row counts; see the column of the rows above.");
}

}  // namespace heed::learn::real_heads_lesson
