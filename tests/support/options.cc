#include "support/options.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace heed::testing_support {

Options options_where(const std::function<bool(const Option&)>& fits) {
  Options result;
  for (const Option& option : option_table()) {
    if (fits(option)) result.push_back(&option);
  }
  return result;
}

bool has(const Options& options, std::string_view name) {
  return std::any_of(options.begin(), options.end(),
                     [name](const Option* option) { return option->name == name; });
}

std::vector<Options> alone_and_in_pairs(const Options& options, std::size_t pairs_of_which_one) {
  std::vector<Options> result;
  for (std::size_t i = 0; i < options.size(); ++i) {
    result.push_back({options[i]});
    for (std::size_t j = i + 1; pairs_of_which_one != 0 && j < options.size(); ++j) {
      if ((3 * i + j) % pairs_of_which_one == 0) result.push_back({options[i], options[j]});
    }
  }
  return result;
}

std::string to_string(const Options& options) {
  std::string result;
  for (const Option* option : options) {
    result += (result.empty() ? "" : " + ") + std::string(option->name);
  }
  return result;
}

std::int64_t hidden_keys(const Sizes& sizes) {
  return std::min<std::int64_t>(sizes.kv_len / 2, 37);
}

template <class Real>
DrawnOptions<Real>::DrawnOptions(const Sizes& sizes, QueryOffset offset, bool any_length)
    : sizes_(sizes), any_length_(any_length) {
  options_.query_offset = std::move(offset);
}

template <class Real>
DrawnOptions<Real>::DrawnOptions(const Sizes& sizes, const Options& chosen, std::uint64_t seed,
                                 bool any_length)
    : DrawnOptions(sizes, QueryOffset(), any_length) {
  add(chosen, seed);
}

template <class Real>
void DrawnOptions<Real>::add(const Options& chosen, std::uint64_t seed) {
  seed_ = seed;
  draws_ = Draws(seed + 1);
  chosen_.insert(chosen_.end(), chosen.begin(), chosen.end());
  for (const Option* option : chosen) {
    if constexpr (std::is_same_v<Real, double>) {
      option->add64(*this);
    } else {
      option->add(*this);
    }
  }
}

template <class Real>
bool DrawnOptions<Real>::offsets_are_within(std::int64_t least, std::int64_t most) const {
  return std::ranges::all_of(options_.query_offset.values(),
                             [=](std::int64_t one) { return one >= least && one <= most; });
}

template <class Real>
TensorView<const Real> DrawnOptions<Real>::numbers(const Shape& shape) {
  draws_.fill(reals_.emplace_back(shape));
  return reals_.back().view();
}

template <class Real>
template <class T>
std::deque<Tensor<T>>& DrawnOptions<Real>::memory() {
  if constexpr (std::is_same_v<T, bool>) {
    return flags_;
  } else if constexpr (std::is_same_v<T, Real>) {
    return reals_;
  } else {
    return floats_;
  }
}

template <class Real>
template <class T>
TensorView<const T> DrawnOptions<Real>::broadcastable(T (*draw)(Draws&)) {
  const std::array<std::int64_t, 4> full{any_length_ ? 1 : sizes_.batch, sizes_.num_heads,
                                         any_length_ ? 1 : sizes_.q_len,
                                         any_length_ ? 1 : sizes_.kv_len};
  const auto rank = static_cast<std::size_t>(1 + draws_.below(4));
  std::array<std::int64_t, 4> extents{};
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = draws_.below(4) == 0 ? 1 : full[4 - rank + i];
  }
  const Shape shape(std::span<const std::int64_t>(extents.data(), rank));
  const std::int64_t gap = 1 + draws_.below(2);
  Tensor<T>& all = memory<T>().emplace_back(Shape{shape.num_elements() * gap});
  for (T& element : all.elements()) element = draw(draws_);
  Strides strides = contiguous_strides(shape);
  if (rank >= 2 && draws_.below(2) == 0) {
    strides[rank - 2] = 1;
    strides[rank - 1] = extents[rank - 2];
  }
  for (std::int64_t& stride : strides) stride *= gap;
  return {all.data(), shape, strides};
}

template class DrawnOptions<float>;
template class DrawnOptions<double>;
template TensorView<const bool> DrawnOptions<float>::broadcastable(bool (*)(Draws&));
template TensorView<const bool> DrawnOptions<double>::broadcastable(bool (*)(Draws&));
template TensorView<const float> DrawnOptions<float>::broadcastable(float (*)(Draws&));
template TensorView<const float> DrawnOptions<double>::broadcastable(float (*)(Draws&));
template TensorView<const double> DrawnOptions<double>::broadcastable(double (*)(Draws&));

}  // namespace heed::testing_support
