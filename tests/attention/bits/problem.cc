#include "attention/bits/problem.h"

#include <algorithm>
#include <utility>

#include "heed/core/dual.h"
#include "support/tensors.h"

namespace heed::bits {

namespace {

using testing_support::kNaN;

}  // namespace

const Options& features() {
  static const Options all =
      testing_support::options_where([](const Option& option) { return option.in_bits; });
  return all;
}

Setup draw_setup(Options features, std::uint64_t seed, std::int64_t most_products) {
  Setup setup{.sizes = {}, .features = std::move(features), .seed = seed};
  Draws draws(seed);
  Sizes& s = setup.sizes;
  const auto length = [&draws] {
    return draws.one_of<std::int64_t>(
        {1, 2, 3, 11, 13, 31, 47, 64, 97, 127, 128, 129, 130, 193, 256, 257, 293, 385});
  };
  const auto dim = [&draws] {
    return draws.one_of<std::int64_t>({1,  2,  3,  5,  8,  9,   15,  16,  17,  31,  32,  33, 48,
                                       64, 64, 65, 80, 96, 100, 128, 128, 129, 192, 255, 256});
  };
  s.batch = draws.one_of<std::int64_t>({1, 1, 2, 3});
  s.num_kv_heads = draws.one_of<std::int64_t>({1, 2, 3});
  s.num_heads = s.num_kv_heads * draws.one_of<std::int64_t>({1, 1, 2, 3, 5});
  s.q_len = length();
  s.kv_len = length();
  s.head_dim = dim();
  s.value_dim = draws.below(2) == 0 ? s.head_dim : dim();
  const auto most = [&s, most_products] {
    return std::max<std::int64_t>(
        most_products / (s.batch * s.num_heads * s.kv_len * (s.head_dim + s.value_dim)), 1);
  };
  if (most() < 5) s.batch = 1;
  if (most() < 5) s.num_heads = s.num_kv_heads;
  s.q_len = std::min(s.q_len, most());
  // Each query needs a key at its position.
  for (const Option* feature : setup.features) {
    if (feature->needs_key_of_query) s.q_len = std::min(s.q_len, s.kv_len);
  }
  return setup;
}

std::string to_string(const Setup& setup) {
  const Sizes& s = setup.sizes;
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  std::string result = text(s.batch) + 'x' + text(s.num_heads) + '/' + text(s.num_kv_heads) +
                       " q " + text(s.q_len) + " kv " + text(s.kv_len) + " d " + text(s.head_dim) +
                       '/' + text(s.value_dim);
  if (!setup.features.empty()) result += ", " + testing_support::to_string(setup.features);
  return result;
}

template <class T>
Problem<T>::Problem(const Setup& setup)
    : draws_(setup.seed + 2), options_(setup.sizes, setup.features, setup.seed) {
  const Sizes& s = setup.sizes;
  query_ = laid_out({s.batch, s.num_heads, s.q_len, s.head_dim});
  key_ = laid_out({s.batch, s.num_kv_heads, s.kv_len, s.head_dim});
  value_ = laid_out({s.batch, s.num_kv_heads, s.kv_len, s.value_dim});
  grad_out_ = laid_out({s.batch, s.num_heads, s.q_len, s.value_dim});
  // Multiplies the first batch entry only, because all entries may share memory.
  const auto multiply = [](TensorView<T> view, RealOf<T> factor) {
    for_each_element(view.slice(0, 0, std::min<std::int64_t>(view.extent(0), 1)),
                     [factor](T& element) {
                       element = static_cast<T>(static_cast<RealOf<T>>(element) * factor);
                     });
  };
  if (setup.has(testing_support::kLargeScores)) {
    multiply(query_, 0x1p12F);
    multiply(key_, 0x1p6F);
  }
  if (setup.has(testing_support::kSteepScores)) multiply(query_, 0x1p5F);
  if (setup.has(testing_support::kHiddenNaN)) {
    for (TensorView<T> view : {key_, value_}) {
      for_each_element(view.slice(2, s.kv_len - hidden_keys(s), s.kv_len),
                       [](T& element) { element = static_cast<T>(kNaN); });
    }
  }
}

template <class T>
TensorView<T> Problem<T>::laid_out(const Shape& shape) {
  const std::int64_t batch = shape[0];
  const std::int64_t heads = shape[1];
  const std::int64_t length = shape[2];
  const std::int64_t dim = shape[3];
  const auto filled = [this](const Shape& of) {
    draws_.fill(memory_.emplace_back(of));
    return memory_.back().view();
  };
  switch (shape.num_elements() == 0 ? 0 : draws_.below(6)) {
    case 0:
      return filled({batch, length, heads, dim}).permute({0, 2, 1, 3});
    case 1: {  // surrounded by NaN
      const TensorView<T> numbers = filled(shape);
      const T* number = numbers.data();
      Tensor<T>& all = memory_.emplace_back(Shape{batch, heads, length + 3, dim + 5});
      for (T& element : all.elements()) element = static_cast<T>(kNaN);
      const TensorView<T> inside = all.view().slice(2, 1, 1 + length).slice(3, 2, 2 + dim);
      for_each_element(inside, [&number](T& element) { element = *number++; });
      return inside;
    }
    case 2: {  // all batch entries share memory
      return filled({1, heads, length, dim}).broadcast_to(shape);
    }
    case 3: {  // the last query or key comes first in memory
      const TensorView<T> view = filled(shape);
      Strides strides = view.strides();
      strides[2] = -dim;
      return {view.data() + (length - 1) * dim, shape, strides};
    }
    default:
      return filled(shape);
  }
}

template class Problem<float>;
template class Problem<double>;
template class Problem<Float16>;
template class Problem<BFloat16>;

}  // namespace heed::bits
