#include <cmath>
#include <cstdint>
#include <utility>

#include "heed/viz/explorer.h"

namespace heed { inline namespace v0 {

namespace {

constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kHeadDim = 4;

// The dimensions are noun, article, action and place. Place is negative in the first half of the
// sentence and positive in the second.
Tensor<float> meanings() {
  return Tensor<float>({kTokens, kHeadDim}, {0, 2, 0, -1,   // the
                                             2, 0, 0, -1,   // cat
                                             0, 0, 2, 0,    // sat
                                             0, 0, 1, 2,    // on
                                             0, 2, 0, 1,    // the
                                             2, 0, 0, 1});  // mat
}

// The features that each token looks for, in the same dimensions.
Tensor<float> questions() {
  return Tensor<float>({kTokens, kHeadDim}, {0, 2, 0, 2,    // the: an article further on
                                             0, 0, 3, 0,    // cat: what it does
                                             2, 0, 0, -2,   // sat: a noun before it
                                             2, 0, 0, 2,    // on: a noun after it
                                             0, 2, 0, -2,   // the: an article further back
                                             0, 0, 1, 2});  // mat: the word that places it
}

// Two pairs of sine and cosine of position + `shift` for each token. A query with the encoding of
// the previous position matches that key best.
Tensor<float> positions(std::int64_t shift) {
  constexpr double kAngle = 0.7853981633974483;  // an eighth of a turn
  auto result = Tensor<float>({kTokens, kHeadDim});
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t pair = 0; pair < kHeadDim / 2; ++pair) {
      const double angle = static_cast<double>(t + shift) * kAngle * static_cast<double>(pair + 1);
      result(t, 2 * pair) = static_cast<float>(2 * std::cos(angle));
      result(t, 2 * pair + 1) = static_cast<float>(2 * std::sin(angle));
    }
  }
  return result;
}

Tensor<float> stacked(const Tensor<float>& first, const Tensor<float>& second) {
  auto result = Tensor<float>({2, kTokens, kHeadDim});
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t dim = 0; dim < kHeadDim; ++dim) {
      result(0, t, dim) = first(t, dim);
      result(1, t, dim) = second(t, dim);
    }
  }
  return result;
}

}  // namespace

ExplorerSentence explorer_example() {
  ExplorerSentence sentence;
  sentence.title = "Worked example";
  sentence.note =
      "Made by hand, not learned: in head 0 'sat' looks for who sat and finds 'cat', and 'the' "
      "looks for the other 'the'. Try temperature 0.1, where each token picks one, and 3.0, where "
      "the choice fades.";
  sentence.tokens = {"the", "cat", "sat", "on", "the", "mat"};
  sentence.query = stacked(questions(), positions(-1));
  sentence.key = stacked(meanings(), positions(0));
  sentence.value = stacked(meanings(), meanings());
  sentence.heads = {"meaning", "the word before"};
  sentence.opening_query = 2;
  return sentence;
}

}}  // namespace heed::v0
