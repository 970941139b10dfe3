/// Random numbers that reproduce the CPU streams of PyTorch and of NumPy's RandomState.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

namespace detail {

// The stream of std::mt19937, without its header, which would be a tenth of heed.h. Source:
// Matsumoto and Nishimura, "Mersenne Twister", 1998.
struct HEED_API Mt19937 {
  static constexpr std::size_t kSize = 624;
  std::array<std::uint32_t, kSize> words;
  std::size_t next;  // the index of the next word; kSize: all are used

  explicit Mt19937(std::uint32_t seed = 5489);
  void refill();  // makes the next kSize words

  std::uint32_t operator()() {
    if (next == kSize) refill();
    std::uint32_t word = words[next++];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680U;
    word ^= word << 15 & 0xefc60000U;
    return word ^ word >> 18;
  }
};

}  // namespace detail

/// PyTorch's CPU generator (MT19937): with the same seed, the same calls in the same order give
/// PyTorch 2.13's numbers. Integers and uniforms are equal bit for bit; normals agree to 1e-6 in
/// float and to the last bits of log, sin and cos in double. The streams are those
/// of PyTorch on a processor with AVX2; without it PyTorch rounds differently in the last place.
///
/// A copy continues the stream on its own. One generator must not be used by two threads at a time.
///
/// Calls that fill a view visit the elements in PyTorch's order, from the largest stride to the
/// smallest: a transposed tensor is filled in the order of its memory. A view that repeats elements
/// (stride 0) is refused.
class HEED_API TorchGenerator {
 public:
  /// @param seed as torch.manual_seed; as in PyTorch, only the low 32 bits are used
  explicit TorchGenerator(std::uint64_t seed = 0);

  /// Restarts the stream with `seed`: torch.manual_seed.
  void manual_seed(std::uint64_t seed);

  /// Fills `out` with numbers uniform in [from, to): torch.Tensor.uniform_.
  /// @throws InvalidArgument unless from ≤ to and from, to and to − from are finite in out's type;
  /// when `out` repeats elements.
  void uniform(TensorView<float> out, double from = 0, double to = 1);
  void uniform(TensorView<double> out, double from = 0, double to = 1);

  /// Fills `out` with normal numbers: torch.Tensor.normal_. Fewer than 16 elements, or a view with
  /// gaps or reordered dimensions, are drawn one by one in double by the Box-Muller transform,
  /// whose second number is kept for the next such call; otherwise 16 at a time in out's type.
  /// @throws InvalidArgument when std is negative or NaN; when `out` repeats elements.
  void normal(TensorView<float> out, double mean = 0, double std = 1);
  void normal(TensorView<double> out, double mean = 0, double std = 1);

  /// Uniform in [0, 1): torch.rand.
  template <class T = float>
  Tensor<T> rand(const Shape& shape) {
    auto result = Tensor<T>::uninitialized(shape);
    uniform(result.view());
    return result;
  }

  /// Normal with mean 0 and standard deviation 1: torch.randn.
  template <class T = float>
  Tensor<T> randn(const Shape& shape) {
    auto result = Tensor<T>::uninitialized(shape);
    normal(result.view());
    return result;
  }

  /// Integers low ≤ i < high: torch.randint. @throws InvalidArgument unless low < high.
  Tensor<std::int64_t> randint(std::int64_t low, std::int64_t high, const Shape& shape);

  /// The integers 0 … n − 1 in random order, shape [n]: torch.randperm.
  /// @throws InvalidArgument when n is negative.
  Tensor<std::int64_t> randperm(std::int64_t n);

  /// The state of the stream, to be saved.
  Tensor<std::uint64_t> state() const;

  /// Continues the stream from a saved state().
  /// @throws InvalidArgument when `state` is not the state of a TorchGenerator.
  void set_state(TensorView<const std::uint64_t> state);

 private:
  template <class T>
  void fill_normal(TensorView<T> out, double mean, double std);
  double standard_normal();

  detail::Mt19937 engine_;
  std::optional<double> next_normal_;
};

/// NumPy's legacy generator, numpy.random.RandomState (MT19937), whose streams NumPy has frozen:
/// with the same seed, the same calls in the same order give the same numbers. Integers and
/// uniforms are equal bit for bit, normals to the last bits of log.
///
/// A copy continues the stream on its own. One generator must not be used by two threads at a time.
class HEED_API NumpyRandomState {
 public:
  /// @throws InvalidArgument when the seed does not fit in 32 bits: NumPy refuses it too.
  explicit NumpyRandomState(std::uint64_t seed = 0);

  /// Uniform in [0, 1) with 53 random bits: RandomState.rand.
  Tensor<double> rand(const Shape& shape);

  /// Normal with mean 0 and standard deviation 1: RandomState.randn. Marsaglia's polar method,
  /// whose second number is kept for the next call.
  Tensor<double> randn(const Shape& shape);

  /// Integers low ≤ i < high: RandomState.randint with its default type on Linux, int64.
  /// @throws InvalidArgument unless low < high.
  Tensor<std::int64_t> randint(std::int64_t low, std::int64_t high, const Shape& shape);

 private:
  double standard_normal();

  detail::Mt19937 engine_;
  std::optional<double> next_normal_;
};

/// The generator that is used where none is given, seeded with 0 at program start. There is one per
/// process, as in PyTorch, so that set_seed() affects every later draw; only threads in a
/// GeneratorScope use another. It is not synchronised, because a lock would not make the order of
/// draws from several threads reproducible: each thread that draws needs its own TorchGenerator.
HEED_API TorchGenerator& default_generator();

/// Seeds default_generator(): torch.manual_seed.
HEED_API void set_seed(std::uint64_t seed = 0);

/// During its lifetime, makes `generator`, which must outlive the scope, the default_generator() of
/// the current thread: for threads that compute independently.
class HEED_API GeneratorScope {
 public:
  explicit GeneratorScope(TorchGenerator& generator) noexcept;
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  TorchGenerator* outer_;
};

/// Normal with mean 0 and standard deviation 1, from default_generator(): torch.randn.
template <class T = float>
Tensor<T> randn(const Shape& shape) {
  return default_generator().randn<T>(shape);
}

}}  // namespace heed::v0
