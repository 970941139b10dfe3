#include "lessons/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed::learn {

double max_difference(FloatView a, FloatView b) {
  const auto left = to_tensor(a);
  const auto right = to_tensor(b.broadcast_to(a.shape()));
  double difference = 0;
  for (std::size_t i = 0; i < left.elements().size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(left.elements()[i]) -
                                               static_cast<double>(right.elements()[i])));
  }
  return difference;
}

Spread spread(FloatView values) {
  const auto count = static_cast<double>(values.num_elements());
  Spread result;
  for_each_element(values, [&](double value) { result.mean += value / count; });
  double squares = 0;
  for_each_element(values,
                   [&](double value) { squares += (value - result.mean) * (value - result.mean); });
  result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

double largest(FloatView values) {
  double result = -std::numeric_limits<double>::infinity();
  for_each_element(values, [&](double value) { result = std::max(result, value); });
  return result;
}

std::string list(FloatView vector, int decimals) {
  const Tensor<float> numbers = to_tensor(vector);
  return fmt::format("[{:.{}f}]", fmt::join(numbers.elements(), ", "), decimals);
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto place = static_cast<std::int64_t>(text.size()) - 3; place > 0; place -= 3) {
    text.insert(static_cast<std::size_t>(place), ",");
  }
  return text;
}

FloatView matrix_of(const Tensor<float>& scores, std::int64_t batch, std::int64_t head) {
  return scores.view().select(0, batch).select(0, head);
}

}  // namespace heed::learn
