#include "callables.h"

#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "arrays.h"

namespace heed::python {

namespace {

using detail::ScoreTile;

// What a function is told about a tile, and expected to return: [keys, rows].
struct TileArguments {
  nb::object batch, heads, q_idx, kv_idx;
  std::int32_t num_keys;
  std::int32_t num_rows;
};

nb::object array_of(const std::vector<std::int32_t>& numbers, std::array<std::size_t, 2> extents,
                    std::size_t rank) {
  const nb::ndarray<nb::numpy, const std::int32_t> array(numbers.data(), rank, extents.data(),
                                                         nb::none());
  return nb::cast(array, nb::rv_policy::copy);
}

TileArguments arguments_of(const ScoreTile& tile) {
  const auto rows = static_cast<std::size_t>(tile.num_rows);
  const auto keys = static_cast<std::size_t>(tile.end - tile.begin);
  std::vector<std::int32_t> kv_idx(keys);
  for (std::size_t j = 0; j < keys; ++j) {
    kv_idx[j] = tile.first_key + tile.begin + static_cast<std::int32_t>(j);
  }
  return {.batch = nb::int_(tile.batch),
          .heads = array_of({tile.heads, tile.heads + rows}, {rows, 1}, 1),
          .q_idx = array_of({tile.q_idx, tile.q_idx + rows}, {rows, 1}, 1),
          .kv_idx = array_of(kv_idx, {keys, 1}, 2),
          .num_keys = tile.end - tile.begin,
          .num_rows = tile.num_rows};
}

// The scores themselves are the kernel's; the function gets a copy, which it may keep.
template <class Real>
nb::object scores_of(const Real* scores, const TileArguments& tile, std::int32_t width) {
  const std::array<std::size_t, 2> extents{static_cast<std::size_t>(tile.num_keys),
                                           static_cast<std::size_t>(tile.num_rows)};
  const std::array<std::int64_t, 2> strides{width, 1};
  const nb::ndarray<nb::numpy, const Real> array(scores, 2, extents.data(), nb::none(),
                                                 strides.data());
  return nb::cast(array, nb::rv_policy::copy);
}

// Calls use(keys × rows of T) with what the function returned, broadcast to the tile.
template <class T, class Use>
void with_result(Callable& callable, const nb::tuple& arguments, const TileArguments& tile,
                 Use use) noexcept {
  const nb::object result = callable.call(arguments);
  if (!result.is_valid()) return;
  try {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const char* type = std::is_same_v<T, bool>    ? "bool"
                       : std::is_same_v<T, float> ? "float32"
                                                  : "float64";
    const nb::object array = numpy.attr("asarray")(result, type);
    const nb::object tile_sized =
        numpy.attr("broadcast_to")(array, nb::make_tuple(tile.num_keys, tile.num_rows));
    use(view_of<T>(to_array("function", "result", tile_sized)));
  } catch (...) {
    callable.keep_failure();
  }
}

class PythonMask final : public detail::MaskFunction {
 public:
  explicit PythonMask(std::shared_ptr<Callable> callable) : callable_(std::move(callable)) {}

  bool visible(const ScorePosition& at) const override {
    float score = 0;
    hide({.scores = &score,
          .width = 1,
          .num_rows = 1,
          .first_key = at.kv_idx,
          .begin = 0,
          .end = 1,
          .batch = at.batch,
          .heads = &at.head,
          .q_idx = &at.q_idx,
          .target = detail::TileTarget::kBaseline});
    return score == 0;
  }

  void hide(const ScoreTile& tile) const override {
    const nb::gil_scoped_acquire locked;
    const TileArguments at = arguments_of(tile);
    const auto arguments = nb::make_tuple(at.batch, at.heads, at.q_idx, at.kv_idx);
    with_result<bool>(*callable_, arguments, at, [&](TensorView<const bool> visible) {
      for (std::int32_t j = 0; j < at.num_keys; ++j) {
        float* scores = tile.scores + static_cast<std::ptrdiff_t>(tile.begin + j) * tile.width;
        for (std::int32_t r = 0; r < at.num_rows; ++r) {
          if (!visible(j, r)) scores[r] = -std::numeric_limits<float>::infinity();
        }
      }
    });
  }

 private:
  std::shared_ptr<Callable> callable_;
};

class PythonScoreMod final : public detail::ScoreFunction {
 public:
  explicit PythonScoreMod(std::shared_ptr<Callable> callable) : callable_(std::move(callable)) {}

  float apply(float score, const ScorePosition& at) const override { return apply_one(score, at); }
  double apply(double score, const ScorePosition& at) const override {
    return apply_one(score, at);
  }
  // Whoever wants gradients was told before.
  Dual<float> apply(Dual<float> score, const ScorePosition&) const override { return score; }
  Dual<double> apply(Dual<double> score, const ScorePosition&) const override { return score; }

  void apply_to(const ScoreTile& tile) const override {
    modify(tile, tile.scores + static_cast<std::ptrdiff_t>(tile.begin) * tile.width);
  }

 private:
  template <class Real>
  Real apply_one(Real score, const ScorePosition& at) const {
    modify({.scores = nullptr,
            .width = 1,
            .num_rows = 1,
            .first_key = at.kv_idx,
            .begin = 0,
            .end = 1,
            .batch = at.batch,
            .heads = &at.head,
            .q_idx = &at.q_idx,
            .target = detail::TileTarget::kBaseline},
           &score);
    return score;
  }

  // `scores` are those of the tile's first key that is asked about.
  template <class Real>
  void modify(const ScoreTile& tile, Real* scores) const {
    const nb::gil_scoped_acquire locked;
    const TileArguments at = arguments_of(tile);
    const auto arguments =
        nb::make_tuple(scores_of(scores, at, tile.width), at.batch, at.heads, at.q_idx, at.kv_idx);
    with_result<Real>(*callable_, arguments, at, [&](TensorView<const Real> modified) {
      for (std::int32_t j = 0; j < at.num_keys; ++j) {
        Real* row = scores + static_cast<std::ptrdiff_t>(j) * tile.width;
        for (std::int32_t r = 0; r < at.num_rows; ++r) row[r] = modified(j, r);
      }
    });
  }

  std::shared_ptr<Callable> callable_;
};

}  // namespace

Callable::~Callable() {
  const nb::gil_scoped_acquire locked;
  function_.reset();
  failure_ = nullptr;
}

nb::object Callable::call(const nb::tuple& arguments) noexcept {
  try {
    return function_(*arguments);
  } catch (...) {
    keep_failure();
    return {};
  }
}

void Callable::keep_failure() noexcept {
  // What is replaced is destroyed unlocked, for it may run any code of Python's.
  std::exception_ptr failure = std::current_exception();
  const std::lock_guard lock(mutex_);
  failure_.swap(failure);
  ++num_failures_;
}

void Callable::raise_failure() {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  try {
    std::rethrow_exception(failure);
  } catch (const nb::python_error& error) {
    // Raising takes the contents of what is thrown, and others may wait for the same failure.
    throw nb::python_error(error);
  }
}

FailureWatch::FailureWatch(const Callables& callables) : callables_(callables) {
  before_.reserve(callables.size());
  for (const auto& callable : callables) before_.push_back(callable->num_failures());
}

void FailureWatch::raise() const {
  for (std::size_t i = 0; i < callables_.size(); ++i) {
    if (callables_[i]->num_failures() != before_[i]) callables_[i]->raise_failure();
  }
}

Mask mask_where(std::shared_ptr<Callable> visible) {
  return Mask::where_function(std::make_shared<PythonMask>(std::move(visible)));
}

ScoreMod score_mod_of(std::shared_ptr<Callable> function) {
  return ScoreMod(std::make_shared<PythonScoreMod>(std::move(function)));
}

}  // namespace heed::python
