#include "heed/attention/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/float_environment.h"
#include "core/split_heads.h"
#include "heed/core/elementary.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

namespace {

using Positions = TensorView<const std::int64_t>;

// The two rotations: forward and inverse.
struct Direction {
  const char* function;
  int sign;  // of the angles
};
constexpr Direction kForward{"rotary_embedding", 1};
constexpr Direction kBackward{"rotary_embedding_backward", -1};

template <class Real>
struct CacheViews {
  TensorView<const Real> cos;
  TensorView<const Real> sin;
};

// The checked arguments of a rotation. T is the type of x, Real that of the caches.
template <class T, class Real>
struct Rotation {
  TensorView<const T> x;       // [batch, num_heads, length, head_dim]
  TensorView<const Real> cos;  // [max_len or batch, (length,) rotary_dim / 2]
  TensorView<const Real> sin;
  std::optional<Positions> position_ids;  // broadcast to [batch, length]
  std::int64_t offset;
  std::int64_t half;  // rotary_dim / 2
  RotaryPairing pairing;

  // The row of a cache for token t of a batch entry.
  const Real* row(TensorView<const Real> cache, std::int64_t batch, std::int64_t t) const {
    if (cache.rank() == 3) return cache.data() + batch * cache.stride(0) + t * cache.stride(1);
    const std::int64_t position = position_ids ? (*position_ids)(batch, t) : offset + t;
    return cache.data() + position * cache.stride(0);
  }
};

template <class T>
TensorView<const T> view_of_heads(const char* function, TensorView<const T> x,
                                  const RotaryOptions& options) {
  const bool is_packed = x.rank() == 3;
  if (!is_packed && x.rank() != 4) {
    throw InvalidArgument(fmt::format(
        "{}: x has shape {}, expected [batch, num_heads, length, head_dim] or [batch, length, "
        "num_heads * head_dim]",
        function, to_string(x.shape())));
  }
  if (is_packed != options.num_heads.has_value()) {
    throw InvalidArgument(
        fmt::format("{}: x has shape {}, but num_heads is {}: it is needed for 3 "
                    "dimensions and read off 4",
                    function, to_string(x.shape()), is_packed ? "not given" : "given"));
  }
  if (x.extent(-1) > 1 && x.stride(-1) != 1) {
    throw InvalidArgument(fmt::format("{}: x has stride {} in its innermost dimension, expected 1",
                                      function, x.stride(-1)));
  }
  if (!is_packed) return x;
  return split_width(function, x, *options.num_heads);
}

std::int64_t half_of(const char* function, std::int64_t head_dim, const RotaryOptions& options) {
  const std::int64_t rotary_dim = options.rotary_dim.value_or(head_dim);
  if (rotary_dim < 0 || rotary_dim > head_dim || rotary_dim % 2 != 0) {
    throw InvalidArgument(
        fmt::format("{}: rotary_dim is {}, expected an even number from 0 to head_dim, {}",
                    function, rotary_dim, head_dim));
  }
  return rotary_dim / 2;
}

template <class T, class Real>
void check_caches(const char* function, const Rotation<T, Real>& rotation) {
  const Shape& cos = rotation.cos.shape();
  const Shape each{rotation.x.extent(0), rotation.x.extent(2), rotation.half};
  if (cos != rotation.sin.shape()) {
    throw InvalidArgument(fmt::format("{}: cos has shape {} but sin {}", function, to_string(cos),
                                      to_string(rotation.sin.shape())));
  }
  const bool fits = cos.rank() == 2 ? cos[1] == rotation.half : cos == each;
  if (!fits || (cos.rank() == 3 && rotation.position_ids)) {
    throw InvalidArgument(fmt::format(
        "{}: cos has shape {}, expected [max_len, rotary_dim / 2] = [any, {}]{}", function,
        to_string(cos), rotation.half,
        rotation.position_ids
            ? " with position_ids"
            : fmt::format(" or [batch, length, rotary_dim / 2] = {}", to_string(each))));
  }
}

template <class T, class Real>
void check_positions(const char* function, const Rotation<T, Real>& rotation) {
  if (rotation.cos.rank() != 2) return;
  const std::int64_t max_len = rotation.cos.extent(0);
  const std::int64_t length = rotation.x.extent(2);
  if (!rotation.position_ids) {
    if (rotation.offset >= 0 && rotation.offset <= max_len - length) return;
    throw InvalidArgument(fmt::format("{}: {} tokens from offset {}, but cos has {} positions",
                                      function, length, rotation.offset, max_len));
  }
  for_each_element(*rotation.position_ids, [&](std::int64_t id) {
    if (id >= 0 && id < max_len) return;
    throw InvalidArgument(
        fmt::format("{}: position_ids has {}, but cos has {} positions", function, id, max_len));
  });
}

template <class T, class Real>
Rotation<T, Real> check_rotation(const char* function, TensorView<const T> x,
                                 const CacheViews<Real>& caches, RotaryPairing pairing,
                                 const RotaryOptions& options) {
  Rotation<T, Real> rotation{.x = view_of_heads(function, x, options),
                             .cos = caches.cos,
                             .sin = caches.sin,
                             .position_ids = std::nullopt,
                             .offset = options.offset,
                             .half = 0,
                             .pairing = pairing};
  rotation.half = half_of(function, rotation.x.extent(3), options);
  if (options.position_ids) {
    const Shape tokens{rotation.x.extent(0), rotation.x.extent(2)};
    try {
      rotation.position_ids = options.position_ids->broadcast_to(tokens);
    } catch (const InvalidArgument&) {
      throw InvalidArgument(
          fmt::format("{}: position_ids has shape {}, expected [batch, length] = "
                      "{}",
                      function, to_string(options.position_ids->shape()), to_string(tokens)));
    }
  }
  check_caches(function, rotation);
  check_positions(function, rotation);
  return rotation;
}

// Rotates the pairs of one row, by the negative angles if `sign` is −1.
template <class T, class Real>
void rotate_row(const Rotation<T, Real>& rotation, std::int64_t batch, std::int64_t t, const T* in,
                Real sign, T* out) {
  const Real* cos = rotation.row(rotation.cos, batch, t);
  const Real* sin = rotation.row(rotation.sin, batch, t);
  const std::int64_t cos_step = rotation.cos.stride(-1);
  const std::int64_t sin_step = rotation.sin.stride(-1);
  const bool are_neighbours = rotation.pairing == RotaryPairing::kNeighbours;
  const std::int64_t step = are_neighbours ? 2 : 1;
  const std::int64_t partner = are_neighbours ? 1 : rotation.half;
  for (std::int64_t i = 0; i < rotation.half; ++i) {
    const auto a = static_cast<Real>(in[i * step]);
    const auto b = static_cast<Real>(in[i * step + partner]);
    const Real c = cos[i * cos_step];
    const Real s = sign * sin[i * sin_step];
    out[i * step] = static_cast<T>(a * c - b * s);
    out[i * step + partner] = static_cast<T>(a * s + b * c);
  }
  const std::int64_t rotary_dim = 2 * rotation.half;
  std::copy(in + rotary_dim, in + rotation.x.extent(3), out + rotary_dim);
}

template <class T, class Real>
Tensor<T> rotate(const Direction& direction, TensorView<const T> x, const CacheViews<Real>& caches,
                 RotaryPairing pairing, const RotaryOptions& options) {
  const FloatEnvironment environment;
  const auto rotation = check_rotation(direction.function, x, caches, pairing, options);
  const auto sign = static_cast<Real>(direction.sign);
  auto result = Tensor<T>::uninitialized(x.shape());
  if (result.empty()) return result;
  const std::int64_t num_heads = rotation.x.extent(1);
  const std::int64_t length = rotation.x.extent(2);
  const std::int64_t head_dim = rotation.x.extent(3);
  const bool is_packed = x.rank() == 3;
  const std::int64_t token_stride = is_packed ? num_heads * head_dim : head_dim;
  const std::int64_t head_stride = is_packed ? head_dim : length * head_dim;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / head_dim);
  parallel_for(0, rotation.x.num_elements() / head_dim, grain,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) {
                   const std::int64_t t = row % length;
                   const std::int64_t head = row / length % num_heads;
                   const std::int64_t batch = row / length / num_heads;
                   const T* in = rotation.x.data() + batch * rotation.x.stride(0) +
                                 head * rotation.x.stride(1) + t * rotation.x.stride(2);
                   T* out = result.data() + batch * length * num_heads * head_dim +
                            head * head_stride + t * token_stride;
                   rotate_row(rotation, batch, t, in, sign, out);
                 }
               });
  return result;
}

}  // namespace

template <class Real>
RotaryCaches<Real> rotary_caches(std::int64_t max_len, const RotaryFrequencies& frequencies) {
  const FloatEnvironment environment;
  const Tensor<double>& inv_freq = frequencies.inv_freq;
  if (max_len < 0 || inv_freq.rank() != 1) {
    throw InvalidArgument(fmt::format(
        "rotary_caches: max_len is {} and inv_freq has shape {}; expected at least 0 and "
        "[rotary_dim / 2]",
        max_len, to_string(inv_freq.shape())));
  }
  const std::int64_t half = inv_freq.extent(0);
  RotaryCaches<Real> caches{Tensor<Real>::uninitialized({max_len, half}),
                            Tensor<Real>::uninitialized({max_len, half})};
  for (std::int64_t i = 0; i < half; ++i) {
    for (std::int64_t position = 0; position < max_len; ++position) {
      const double angle = static_cast<double>(position) * inv_freq(i);
      caches.cos(position, i) =
          static_cast<Real>(frequencies.attention_factor * elementary::cos(angle));
      caches.sin(position, i) =
          static_cast<Real>(frequencies.attention_factor * elementary::sin(angle));
    }
  }
  return caches;
}

template HEED_API RotaryCaches<float> rotary_caches(std::int64_t, const RotaryFrequencies&);
template HEED_API RotaryCaches<double> rotary_caches(std::int64_t, const RotaryFrequencies&);

Tensor<float> rotary_embedding(FloatView x, FloatView cos, FloatView sin, RotaryPairing pairing,
                               const RotaryOptions& options) {
  return rotate<float, float>(kForward, x, {cos, sin}, pairing, options);
}
Tensor<double> rotary_embedding(DoubleView x, DoubleView cos, DoubleView sin, RotaryPairing pairing,
                                const RotaryOptions& options) {
  return rotate<double, double>(kForward, x, {cos, sin}, pairing, options);
}
Tensor<Float16> rotary_embedding(Float16View x, FloatView cos, FloatView sin, RotaryPairing pairing,
                                 const RotaryOptions& options) {
  return rotate<Float16, float>(kForward, x, {cos, sin}, pairing, options);
}
Tensor<BFloat16> rotary_embedding(BFloat16View x, FloatView cos, FloatView sin,
                                  RotaryPairing pairing, const RotaryOptions& options) {
  return rotate<BFloat16, float>(kForward, x, {cos, sin}, pairing, options);
}

Tensor<float> rotary_embedding_backward(FloatView grad_out, FloatView cos, FloatView sin,
                                        RotaryPairing pairing, const RotaryOptions& options) {
  return rotate<float, float>(kBackward, grad_out, {cos, sin}, pairing, options);
}
Tensor<double> rotary_embedding_backward(DoubleView grad_out, DoubleView cos, DoubleView sin,
                                         RotaryPairing pairing, const RotaryOptions& options) {
  return rotate<double, double>(kBackward, grad_out, {cos, sin}, pairing, options);
}

}}  // namespace heed::v0
