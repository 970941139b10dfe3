#include <array>
#include <utility>

#include "heed/attention/reference.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace qkv_lesson {

using reference::Keep;

struct Table {
  Tensor<double> keys;
  Tensor<double> values;
};

// Uses the scores without scaling, so that they can be checked mentally.
reference::Result<double> look_up(const Tensor<double>& query, const Table& table) {
  return reference::attention(query.view().to_rank(4), table.keys.view().to_rank(4),
                              table.values.view().to_rank(4), {.scale = 1.0},
                              Keep::kScores | Keep::kWeights);
}

void three_questions(Report& report) {
  report.step("Three questions");
  report.say("  query   What am I looking for?");
  report.say("  key     How can I be found?");
  report.say("  value   What do I give to whoever finds me?");
  report.say();
  report.paragraph("Each token x answers all three, each with a matrix that is learned:");
  report.say();
  report.say("    q = Wq x    k = Wk x    v = Wv x");
  report.say();
  report.paragraph(
      "Three matrices, because what a word seeks, how it is found and what it means are three "
      "different things.");
}

const std::vector<std::string> kFruit{"lemon", "grape", "peach"};

void hard_look_up(Report& report, const Table& prices) {
  report.step("A table in a database is a hard look-up");
  report.show("keys", "Keys, [sour, sweet]:", prices.keys, 1, kFruit);
  report.show("values", "Values, the price of each:", prices.values, 0, kFruit);
  report.paragraph(
      "Ask for the key [0, 1] and you get {}. Ask for [1, 1] and you get nothing: no row has that "
      "key, however close one may be.",
      prices.values(1, 0));
}

// Returns the weights of a query that matches several keys and of one that strongly matches one.
std::array<Tensor<float>, 2> soft_look_up(Report& report, const Table& prices) {
  report.step("Attention is a soft look-up");
  const Tensor<double> query({1, 2}, {1, 1});
  const auto found = look_up(query, prices);
  report.show("soft_query", "The query, both sour and sweet:", query, 1);
  report.show("soft_scores", "query · key for every row, the score:", found.scores, 1);
  report.show("soft_weights", "softmax makes weights of the scores:", found.weights);
  report.show("soft_out", "The answer is the mean of the values with these weights:", found.out, 2);
  report.paragraph(
      "The peach, which is a bit of both, counts most, but every row has a say. And since no step "
      "jumps, a gradient tells each key and query how to do better.");

  report.step("A stronger query comes close to the hard one");
  const Tensor<double> strong({1, 2}, {0, 20});
  const auto sharp = look_up(strong, prices);
  report.show("sharp_query", "Very sweet, sour or not:", strong, 1);
  report.show("sharp_scores", "Scores:", sharp.scores, 1);
  report.show("sharp_weights", "Weights:", sharp.weights);
  report.show("sharp_out", "Answer:", sharp.out, 2);
  report.paragraph("The larger the differences between scores, the more one row takes all.");
  return {matrix_from(found.weights.view(), 2), matrix_from(sharp.weights.view(), 2)};
}

const std::vector<std::string> kWords{"The", "cat", "sat"};

// Returns the weights of "sat".
Tensor<float> in_a_sentence(Report& report) {
  report.step("In a sentence: \"sat\" looks for who sat");
  const Table meanings{Tensor<double>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}),
                       Tensor<double>({3, 2}, {0, 1, 5, 4, 2, 0})};
  const Tensor<double> query({1, 3}, {0, 3, 1});
  const auto found = look_up(query, meanings);
  report.show("sentence_keys", "Keys, [article, noun, verb]:", meanings.keys, 0, kWords);
  report.show("sentence_values", "Values, whatever each word means:", meanings.values, 0, kWords);
  report.show("sentence_query", "The query of \"sat\", above all for a noun:", query, 0);
  report.show("sentence_weights", "Its weights on The, cat, sat:", found.weights);
  report.show("sentence_out", "What \"sat\" carries on with:", found.out);
  report.paragraph(
      "Query and key fit, so the score of \"cat\" is high and the result is mostly its value. Here "
      "the vectors were chosen by hand; in a model, training finds them.");
  return matrix_from(found.weights.view(), 2);
}

void teach(Report& report) {
  report.say("    attention(q, K, V) = softmax(q · K) V");
  three_questions(report);
  const Table prices{Tensor<double>({3, 2}, {1, 0, 0, 1, 0.5, 0.8}),
                     Tensor<double>({3, 1}, {30, 20, 50})};
  hard_look_up(report, prices);
  auto [soft, sharp] = soft_look_up(report, prices);
  auto sat = in_a_sentence(report);
  report.draw(drawing_of({.title = "A look-up that is soft",
                          .matrices = {{"both sour and sweet", std::move(soft), {"[1, 1]"}, kFruit},
                                       {"very sweet", std::move(sharp), {"[0, 20]"}, kFruit},
                                       {"who sat?", std::move(sat), {"sat"}, kWords}},
                          .columns = 1}));
}

}  // namespace qkv_lesson

extern const Lesson kQkvLesson = {"qkv", "three questions and a soft look-up", qkv_lesson::teach};

}  // namespace heed::learn
