#include <cmath>

#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace embeddings_lesson {

constexpr std::uint64_t kSeed = 42;
constexpr std::int64_t kEmbedDim = 4;

// Rounds as numpy.round(2) does: halves go to the even neighbour.
Tensor<double> rounded_to_cents(Tensor<double> values) {
  for (double& value : values.elements()) value = std::nearbyint(value * 100) / 100;
  return values;
}

void teach(Report& report) {
  const std::vector<std::string> words{"The", "cat", "sat"};
  const auto num_words = static_cast<std::int64_t>(words.size());
  NumpyRandomState random(kSeed);
  const Tensor<double> embeddings = rounded_to_cents(random.randn({num_words, kEmbedDim}));

  report.paragraph("Attention works on vectors, so each word is given one: its embedding.");
  report.step("A table with a row for each word");
  report.paragraph(
      "Before training, the rows are random: NumPy's generator, seed {}, {} normal numbers a word, "
      "rounded to 2 decimals.",
      kSeed, kEmbedDim);
  report.say();
  report.show("embeddings", "Embeddings:", embeddings, 2, words);
  report.paragraph(
      "A sentence of {} words is now a matrix of shape {}. Everything in a model keeps that form: "
      "one row a word.",
      num_words, to_string(embeddings.shape()));

  report.step("How alike two words are: the dot product");
  // x · xᵀ
  const Tensor<double> products = linear(embeddings, {embeddings, {}});
  report.show("dot_products", "Every row with every row:", products, 2, words);
  report.paragraph(
      "The table is symmetric, and on its diagonal stand the squared lengths. So far the numbers "
      "say nothing about the words, since the rows are random. Training moves the rows until they "
      "do.");

  report.step("What is not in it");
  report.paragraph(
      "Nowhere does a row say whether its word came first or last. Attention has to be told: `heed "
      "lesson position`.");
  report.draw(drawing_of({.title = "Words as vectors, and how alike they are",
                          .matrices = {{.title = "embeddings",
                                        .values = matrix_from(embeddings.view(), 2),
                                        .queries = words,
                                        .query_title = "word",
                                        .key_title = "dimension",
                                        .bar_title = "entry"},
                                       {.title = "dot products",
                                        .values = matrix_from(products.view(), 2),
                                        .queries = words,
                                        .keys = words,
                                        .query_title = "word",
                                        .key_title = "word",
                                        .bar_title = "dot product"}},
                          .is_signed = true}));
}

}  // namespace embeddings_lesson

extern const Lesson kEmbeddingsLesson = {"embeddings", "words become vectors (NumPy, seed 42)",
                                         embeddings_lesson::teach};

}  // namespace heed::learn
