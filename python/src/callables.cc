#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "arrays.h"
#include "call.h"
#include "masks.h"

namespace heed::python {

namespace {

using detail::BasicScoreTile;
using detail::ScoreTile;

// The arguments of a function for one tile, and the extents [keys, rows] of its result.
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

template <class Real>
TileArguments arguments_of(const BasicScoreTile<Real>& tile) {
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

// The function gets a copy of the scores, which it may keep.
template <class Real>
nb::object scores_of(const Real* scores, const TileArguments& tile, std::int32_t width) {
  const std::array<std::size_t, 2> extents{static_cast<std::size_t>(tile.num_keys),
                                           static_cast<std::size_t>(tile.num_rows)};
  const std::array<std::int64_t, 2> strides{width, 1};
  const nb::ndarray<nb::numpy, const Real> array(scores, 2, extents.data(), nb::none(),
                                                 strides.data());
  return nb::cast(array, nb::rv_policy::copy);
}

// Names and types for the results of a function.
template <class T>
struct Returned;
template <>
struct Returned<bool> {
  static constexpr const char* kWho = "where";
  static constexpr const char* kExpected = "booleans";
  static constexpr const char* kKinds = "biu";  // NumPy's kinds of types
  static constexpr const char* kType = "bool";
};
template <>
struct Returned<float> {
  static constexpr const char* kWho = "score_mod";
  static constexpr const char* kExpected = "scores";
  static constexpr const char* kKinds = "fiub";
  static constexpr const char* kType = "float32";
};
template <>
struct Returned<double> : Returned<float> {
  static constexpr const char* kType = "float64";
};

// Converts the result of a function to an array [keys, rows] of T.
template <class T>
Array array_returned(nb::handle result, const TileArguments& tile) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(result);
  const nb::object dtype = array.attr("dtype");
  const nb::object kind = dtype.attr("kind");
  if (std::strchr(Returned<T>::kKinds, nb::str(kind).c_str()[0]) == nullptr) {
    const std::string what =
        result.is_none() ? "None" : fmt::format("an array of {}", nb::str(dtype).c_str());
    throw InvalidArgument(
        fmt::format("{}: the function returned {}, expected {} that broadcast to [keys, rows] = "
                    "[{}, {}]",
                    Returned<T>::kWho, what, Returned<T>::kExpected, tile.num_keys, tile.num_rows));
  }
  const nb::object typed = numpy.attr("asarray")(array, Returned<T>::kType);
  return to_array(Returned<T>::kWho, "result",
                  numpy.attr("broadcast_to")(typed, nb::make_tuple(tile.num_keys, tile.num_rows)));
}

// Calls use(tile's arguments) with the GIL, unless the computation has failed.
template <class Real, class Use>
void with_lock(const BasicScoreTile<Real>& tile, Use use) noexcept {
  Call& call = Call::current();
  const auto is_over = [&] { return call.is_requested() || call.is_abandoned(); };
  if (is_over()) return;
  const Locked locked;
  // Another thread may have failed in the meantime.
  if (is_over()) return;
  try {
    use(arguments_of(tile));
  } catch (...) {
    call.fail();
  }
}

// Calls use(tile's arguments, array of T) with the function's result.
template <class T, class Real, class MakeArguments, class Use>
void with_result(nb::handle function, const BasicScoreTile<Real>& tile, MakeArguments arguments,
                 Use use) noexcept {
  with_lock(tile, [&](const TileArguments& at) {
    use(at, array_returned<T>(call_function(function, arguments(at)), at));
  });
}

// A tile with a single score.
template <class Real>
BasicScoreTile<Real> tile_of(Real* score, const ScorePosition& at) {
  return {.scores = score,
          .width = 1,
          .num_rows = 1,
          .first_key = at.kv_idx,
          .begin = 0,
          .end = 1,
          .batch = at.batch,
          .heads = &at.head,
          .q_idx = &at.q_idx,
          .target = detail::TileTarget::kBaseline};
}

class PythonMask final : public detail::MaskFunction {
 public:
  explicit PythonMask(nb::handle function) : function_(function) {}

  bool visible(const ScorePosition& at) const override {
    float score = 0;
    hide(tile_of(&score, at));
    return score == 0;
  }

  void hide(const ScoreTile& tile) const override {
    const auto arguments = [](const TileArguments& at) {
      return nb::make_tuple(at.batch, at.heads, at.q_idx, at.kv_idx);
    };
    with_result<bool>(function_, tile, arguments, [&](const TileArguments& at, const Array& array) {
      // NumPy's true may be any byte but 0.
      const auto visible = view_of<std::uint8_t>(array);
      for (std::int32_t j = 0; j < at.num_keys; ++j) {
        float* scores = tile.scores + static_cast<std::ptrdiff_t>(tile.begin + j) * tile.width;
        for (std::int32_t r = 0; r < at.num_rows; ++r) {
          if (visible(j, r) == 0) scores[r] = -std::numeric_limits<float>::infinity();
        }
      }
    });
  }

 private:
  nb::handle function_;
};

// The methods of a function that has gradients.
constexpr const char* kDifferentiate = "differentiate";
constexpr const char* kLearn = "learn";

// Two arrays: scores and their derivatives.
template <class Real>
std::array<Array, 2> arrays_returned(nb::handle result, const TileArguments& tile) {
  const auto pair = nb::cast<nb::tuple>(result);
  return {array_returned<Real>(pair[0], tile), array_returned<Real>(pair[1], tile)};
}

class PythonScoreMod final : public detail::ScoreFunction {
 public:
  explicit PythonScoreMod(nb::handle function)
      : function_(function), learns_(nb::hasattr(function, kLearn)) {}

  float apply(float score, const ScorePosition& at) const override { return apply_one(score, at); }
  double apply(double score, const ScorePosition& at) const override {
    return apply_one(score, at);
  }
  Dual<float> apply(Dual<float> score, const ScorePosition& at) const override {
    return apply_one(score, at);
  }
  Dual<double> apply(Dual<double> score, const ScorePosition& at) const override {
    return apply_one(score, at);
  }

  void apply_to(const ScoreTile& tile) const override { modify_or_differentiate(tile); }
  void apply_to(const BasicScoreTile<double>& tile) const override {
    modify_or_differentiate(tile);
  }

  bool learns() const override { return learns_; }
  void learn(const ScoreTile& tile, const float* grad_scores,
             std::int64_t query_offset) const override {
    show_gradients(tile, grad_scores, query_offset);
  }
  void learn(const BasicScoreTile<double>& tile, const double* grad_scores,
             std::int64_t query_offset) const override {
    show_gradients(tile, grad_scores, query_offset);
  }

 private:
  template <class Real>
  Dual<Real> apply_one(Dual<Real> score, const ScorePosition& at) const {
    BasicScoreTile<Real> tile = tile_of(&score.value, at);
    tile.derivatives = &score.derivative;
    differentiate(tile);
    return score;
  }

  template <class Real>
  void modify_or_differentiate(const BasicScoreTile<Real>& tile) const {
    if (tile.derivatives != nullptr) return differentiate(tile);
    modify(tile);
  }

  // A function without this method has been refused before.
  template <class Real>
  void differentiate(const BasicScoreTile<Real>& tile) const {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(tile.begin) * tile.width;
    const auto arguments = [&](const TileArguments& at) {
      return nb::make_tuple(scores_of(tile.scores + first, at, tile.width), at.batch, at.heads,
                            at.q_idx, at.kv_idx);
    };
    const auto use = [&](const TileArguments& at, const std::array<Array, 2>& arrays) {
      const auto modified = view_of<Real>(arrays[0]);
      const auto derivative = view_of<Real>(arrays[1]);
      for (std::int32_t j = 0; j < at.num_keys; ++j) {
        const std::ptrdiff_t row = first + static_cast<std::ptrdiff_t>(j) * tile.width;
        for (std::int32_t r = 0; r < at.num_rows; ++r) {
          tile.scores[row + r] = modified(j, r);
          tile.derivatives[row + r] *= derivative(j, r);
        }
      }
    };
    with_lock(tile, [&](const TileArguments& at) {
      const nb::object method = function_.attr(kDifferentiate);
      use(at, arrays_returned<Real>(call_function(method, arguments(at)), at));
    });
  }

  template <class Real>
  void show_gradients(const BasicScoreTile<Real>& tile, const Real* grad_scores,
                      std::int64_t query_offset) const {
    const Real* first = grad_scores + static_cast<std::ptrdiff_t>(tile.begin) * tile.width;
    with_lock(tile, [&](const TileArguments& at) {
      const nb::object method = function_.attr(kLearn);
      call_function(method, nb::make_tuple(scores_of(first, at, tile.width), query_offset, at.batch,
                                           at.heads, at.q_idx, at.kv_idx));
    });
  }

  template <class Real>
  Real apply_one(Real score, const ScorePosition& at) const {
    modify(tile_of(&score, at));
    return score;
  }

  template <class Real>
  void modify(const BasicScoreTile<Real>& tile) const {
    Real* scores = tile.scores + static_cast<std::ptrdiff_t>(tile.begin) * tile.width;
    const auto arguments = [&](const TileArguments& at) {
      return nb::make_tuple(scores_of(scores, at, tile.width), at.batch, at.heads, at.q_idx,
                            at.kv_idx);
    };
    with_result<Real>(function_, tile, arguments, [&](const TileArguments& at, const Array& array) {
      const auto modified = view_of<Real>(array);
      for (std::int32_t j = 0; j < at.num_keys; ++j) {
        Real* row = scores + static_cast<std::ptrdiff_t>(j) * tile.width;
        for (std::int32_t r = 0; r < at.num_rows; ++r) row[r] = modified(j, r);
      }
    });
  }

  nb::handle function_;
  bool learns_;
};

}  // namespace

bool has_derivative(nb::handle function) { return nb::hasattr(function, kDifferentiate); }

Mask mask_where(nb::handle visible) {
  return Mask::where_function(std::make_shared<PythonMask>(visible));
}

ScoreMod score_mod_of(nb::handle function) {
  return ScoreMod(std::make_shared<PythonScoreMod>(function));
}

}  // namespace heed::python
