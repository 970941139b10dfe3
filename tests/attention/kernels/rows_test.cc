// The decode kernel compared with that of panels: for all storages of keys and values, a row has
// the bits that a panel gives for the same numbers or the same whole numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attention/kernels/decode/stored_tile.h"
#include "attention/kernels/integers/integers.h"
#include "attention/kernels/kernels.h"
#include "support/fused.h"
#include "support/panels.h"
#include "support/stored_keys.h"

namespace heed { namespace {

using kernels::kernels_in;
using kernels::kTileKeys;
using testing_support::for_each_real;
using testing_support::kInfinityOf;
using testing_support::normal;
using testing_support::PanelCase;
using testing_support::PanelSizes;
using testing_support::StoredSide;

class RowKernels : public testing_support::TargetTest {
 protected:
  // Returns the row counts up to that of a panel.
  static std::vector<std::int32_t> row_counts() {
    std::vector<std::int32_t> counts;
    for (std::int32_t rows = 1; rows <= kernels::kMostFewRows; ++rows) counts.push_back(rows);
    for (const std::int32_t rows : {16, 23, 24, 33, 48}) {
      if (rows <= kernels::kPanelVectors * table().lanes) counts.push_back(rows);
    }
    return counts;
  }
};
HEED_RUN_ON_EVERY_TARGET(RowKernels);
HEED_RUN_ON_OTHER_INTEGERS(RowKernels);

struct RowSizes {
  std::int32_t head_dim;
  std::int32_t value_dim;
  std::int32_t kv_len;
};
constexpr std::array<RowSizes, 10> kSizes{{{1, 1, 1},
                                           {3, 5, 7},
                                           {16, 32, 128},
                                           {33, 17, 129},
                                           {64, 64, 50},
                                           {31, 100, 300},
                                           {80, 72, 259},
                                           {128, 128, 256},
                                           {24, 64, 261},
                                           {5, 40, 143}}};

// The range of keys that each row sees.
struct Ranges {
  std::vector<std::int32_t> begin;
  std::vector<std::int32_t> end;
};
Ranges all_keys(std::int32_t rows, std::int32_t kv_len) {
  const auto count = static_cast<std::size_t>(rows);
  return {std::vector<std::int32_t>(count, 0), std::vector<std::int32_t>(count, kv_len)};
}
Ranges random_ranges(std::int32_t rows, std::int32_t kv_len) {
  std::mt19937 engine(static_cast<unsigned>(rows));
  std::uniform_int_distribution<std::int32_t> position(0, kv_len);
  Ranges ranges;
  for (std::int32_t r = 0; r < rows; ++r) {
    const auto [from, to] = std::minmax({position(engine), position(engine)});
    ranges.begin.push_back(from);
    ranges.end.push_back(to);
  }
  return ranges;
}

// A state and its memory, of a panel of whole vectors or of few rows.
template <class Real>
struct State {
  State(const kernels::BasicKernelTable<Real>& table, std::int32_t rows, std::int64_t out_size,
        const Ranges& ranges)
      : minus_m({whole(rows, table.lanes)}),
        threshold({whole(rows, table.lanes)}),
        sum({whole(rows, table.lanes)}),
        out({out_size}),
        weights({std::max(kTileKeys * rows, kTileKeys * whole(rows, table.lanes))}) {
    for (std::int64_t r = 0; r < threshold.extent(0); ++r) {
      const auto i = static_cast<std::size_t>(r);
      const bool sees_any = r < rows && ranges.begin[i] < ranges.end[i];
      threshold(r) = sees_any ? -kInfinityOf<Real> : kInfinityOf<Real>;
    }
  }
  static std::int32_t whole(std::int32_t rows, std::int32_t lanes) {
    return (rows + lanes - 1) / lanes * lanes;
  }
  kernels::BasicPanelState<Real> get() {
    return {minus_m.data(), threshold.data(), sum.data(), out.data()};
  }

  Tensor<Real> minus_m, threshold, sum, out, weights;
};

// Rows that see some of the stored keys, and the same rows in a panel.
template <class Real>
class RowsCase {
 public:
  RowsCase(const kernels::BasicKernelTable<Real>& table, const Tensor<Real>& query, Ranges ranges,
           std::int32_t value_dim)
      : table_(table),
        rows_(static_cast<std::int32_t>(query.extent(0))),
        width_(State<Real>::whole(rows_, table.lanes)),
        value_dim_(value_dim),
        stride_(State<Real>::whole(value_dim, table.lanes)),
        ranges_(std::move(ranges)),
        few_query_({query.extent(1), rows_}),
        wide_query_({query.extent(1), width_}),
        few_(table, rows_, std::int64_t{rows_} * stride_, ranges_),
        wide_(table, rows_, std::int64_t{width_} * value_dim, ranges_) {
    for (std::int64_t d = 0; d < query.extent(1); ++d) {
      for (std::int32_t r = 0; r < rows_; ++r) {
        few_query_(d, r) = query(r, d);
        wide_query_(d, r) = query(r, d);
      }
    }
    ranges_.begin.resize(static_cast<std::size_t>(width_), 0);
    ranges_.end.resize(static_cast<std::size_t>(width_), 0);
    few_panel_ = panel(kernels::kFewRows, few_query_);
    wide_panel_ = panel(width_ / table.lanes, wide_query_);
  }

  // Quantises the query in both panels as for quantised keys. Float only.
  void meet(KvStorage keys) {
    if constexpr (std::is_same_v<Real, float>) {
      few_panel_.integers = wide_panel_.integers = table_.integers;
      if (!kernels::is_quantised(keys)) return;
      const auto head_dim = few_panel_.head_dim;
      for (auto& digits : {&few_digits_, &wide_digits_}) {
        digits->resize(static_cast<std::size_t>(rows_ * kernels::QueryDigits::row_bytes(head_dim)));
      }
      few_panel_.digits = few_digits_.data();
      wide_panel_.digits = wide_digits_.data();
      table_.integers->take_query(keys, few_query_.data(), rows_, rows_,
                                  {few_panel_.digits, head_dim});
      table_.integers->take_query(keys, wide_query_.data(), width_, rows_,
                                  {wide_panel_.digits, head_dim});
    }
  }

  void attend_few(std::span<const kernels::StoredTile> tiles,
                  const kernels::StoredTile* next = nullptr,
                  const kernels::BasicPanelOptions<Real>& options = {}) {
    auto few = few_.get();
    table_.attend_rows(tiles, next, few_panel_, options, few, few_.weights.data());
  }
  void attend_wide(const kernels::StoredTile& stored, const kernels::BasicTile<Real>& tile,
                   const kernels::BasicPanelOptions<Real>& options = {}) {
    auto wide = wide_.get();
    kernels::BasicTile<Real> of_panel = tile;
    if (stored.key.is_quantised() || stored.value.is_quantised()) of_panel.stored = &stored;
    table_.attend(of_panel, wide_panel_, options, wide, wide_.weights.data());
  }

  // Returns a description of the difference; empty if the states are equal.
  std::string difference() const {
    const auto differs = [](Real a, Real b) {
      return !(a == b && std::signbit(a) == std::signbit(b)) && !(std::isnan(a) && std::isnan(b));
    };
    for (std::int32_t r = 0; r < rows_; ++r) {
      if (differs(few_.sum(r), wide_.sum(r))) return "sum of row " + std::to_string(r);
      if (differs(few_.minus_m(r), wide_.minus_m(r))) return "offset of row " + std::to_string(r);
      if (few_.threshold(r) != wide_.threshold(r)) return "threshold of row " + std::to_string(r);
      for (std::int32_t d = 0; d < value_dim_; ++d) {
        if (differs(few_.out(r * stride_ + d), wide_.out(d * width_ + r))) {
          return "row " + std::to_string(r) + ", column " + std::to_string(d);
        }
      }
    }
    return "";
  }

 private:
  kernels::BasicPanel<Real> panel(std::int32_t vectors, const Tensor<Real>& query) const {
    kernels::BasicPanel<Real> panel;
    panel.vectors = vectors;
    panel.num_rows = rows_;
    panel.head_dim = static_cast<std::int32_t>(query.extent(0));
    panel.value_dim = value_dim_;
    panel.query = query.data();
    panel.begin = ranges_.begin.data();
    panel.end = ranges_.end.data();
    panel.any_begin = panel.all_end = std::numeric_limits<std::int32_t>::max();
    std::fill(std::begin(panel.vector_begin), std::end(panel.vector_begin), panel.any_begin);
    for (std::int32_t r = 0; r < rows_; ++r) {
      const std::int32_t from = panel.begin[r];
      const std::int32_t to = panel.end[r];
      panel.all_begin = std::max(panel.all_begin, from);
      panel.all_end = std::min(panel.all_end, to);
      if (from >= to) continue;
      panel.any_begin = std::min(panel.any_begin, from);
      panel.any_end = std::max(panel.any_end, to);
      const std::int32_t v = r / table_.lanes;
      panel.vector_begin[v] = std::min(panel.vector_begin[v], from);
      panel.vector_end[v] = std::max(panel.vector_end[v], to);
    }
    return panel;
  }

  const kernels::BasicKernelTable<Real>& table_;
  std::int32_t rows_;
  std::int32_t width_;
  std::int32_t value_dim_;
  std::int32_t stride_;
  Ranges ranges_;
  Tensor<Real> few_query_;
  Tensor<Real> wide_query_;
  std::vector<std::byte> few_digits_;
  std::vector<std::byte> wide_digits_;
  State<Real> few_;
  State<Real> wide_;
  kernels::BasicPanel<Real> few_panel_;
  kernels::BasicPanel<Real> wide_panel_;
};

template <class Real>
kernels::BasicTile<Real> tile_of(const Tensor<Real>& key, const Tensor<Real>& value,
                                 std::int32_t first_key) {
  return {.key = key.data() + first_key * key.extent(1),
          .key_stride = key.extent(1),
          .value = value.data() + first_key * value.extent(1),
          .value_stride = value.extent(1),
          .first_key = first_key,
          .num_keys = std::min(kTileKeys, static_cast<std::int32_t>(key.extent(0)) - first_key)};
}

struct SideForm {
  const char* name;
  KvStorage storage;
  bool is_columns;
};
constexpr std::array<SideForm, 8> kKeyForms{{{"float32 rows", KvStorage::kFloat32, false},
                                             {"float16 rows", KvStorage::kFloat16, false},
                                             {"bfloat16 rows", KvStorage::kBFloat16, false},
                                             {"float32 columns", KvStorage::kFloat32, true},
                                             {"float16 columns", KvStorage::kFloat16, true},
                                             {"bfloat16 columns", KvStorage::kBFloat16, true},
                                             {"int8", KvStorage::kInt8, true},
                                             {"int4", KvStorage::kInt4, true}}};
constexpr std::array<SideForm, 5> kValueForms{{{"float32", KvStorage::kFloat32, false},
                                               {"float16", KvStorage::kFloat16, false},
                                               {"bfloat16", KvStorage::kBFloat16, false},
                                               {"int8", KvStorage::kInt8, false},
                                               {"int4", KvStorage::kInt4, false}}};

// Rows of int4 are padded.
std::int32_t stored_dim(KvStorage storage, std::int32_t dim) {
  return storage == KvStorage::kInt4 ? (dim + 31) / 32 * 32 : dim;
}

kernels::StoredTile stored_tile_of(const StoredSide& key, const StoredSide& value,
                                   std::int32_t first_key) {
  const auto kv_len = static_cast<std::int32_t>(key.stored().extent(0));
  const std::int32_t count = std::min(kTileKeys, kv_len - first_key);
  return {.key = key.tile(first_key, count),
          .value = value.tile(first_key, count),
          .first_key = first_key,
          .num_keys = count};
}

// Attends to all stored tiles: the decode kernel takes the first tile alone and the others in one
// call.
void attend_stored(RowsCase<float>& in, const StoredSide& key, const StoredSide& value,
                   const kernels::PanelOptions& options = {}) {
  std::vector<kernels::StoredTile> tiles;
  for (std::int32_t first = 0; first < key.stored().extent(0); first += kTileKeys) {
    tiles.push_back(stored_tile_of(key, value, first));
  }
  in.meet(tiles.front().key.storage);
  const std::span<const kernels::StoredTile> all(tiles);
  in.attend_few(all.first(1), all.size() > 1 ? &all[1] : nullptr, options);
  in.attend_few(all.subspan(1), nullptr, options);
  for (const kernels::StoredTile& tile : tiles) {
    in.attend_wide(tile, tile_of(key.stored(), value.stored(), tile.first_key), options);
  }
}

Tensor<float> queries(std::int32_t rows, std::int32_t head_dim, float magnitude) {
  Tensor<float> query = normal<float>({rows, head_dim}, 7);
  for (float& number : query.elements()) {
    number *= magnitude / std::sqrt(static_cast<float>(head_dim));
  }
  return query;
}

TEST_P(RowKernels, EveryStorageOfKeysHasTheBitsOfAPanel) {
  for (const SideForm& form : kKeyForms) {
    for (const RowSizes& sizes : kSizes) {
      const Tensor<float> key = normal<float>({sizes.kv_len, sizes.head_dim}, 1);
      const Tensor<float> value = normal<float>({sizes.kv_len, sizes.value_dim}, 2);
      const StoredSide stored_key(key, form.storage, form.is_columns);
      const StoredSide stored_value(value, KvStorage::kFloat32, false);
      for (const std::int32_t rows : row_counts()) {
        RowsCase<float> in(table(), queries(rows, sizes.head_dim, 1),
                           random_ranges(rows, sizes.kv_len), sizes.value_dim);
        attend_stored(in, stored_key, stored_value);
        ASSERT_EQ(in.difference(), "")
            << form.name << " " << sizes.head_dim << " " << sizes.kv_len << ", rows " << rows;
      }
    }
  }
}

TEST_P(RowKernels, EveryStorageOfValuesHasTheBitsOfAPanel) {
  for (const SideForm& form : kValueForms) {
    for (const RowSizes& sizes : kSizes) {
      const std::int32_t value_dim = stored_dim(form.storage, sizes.value_dim);
      const Tensor<float> key = normal<float>({sizes.kv_len, sizes.head_dim}, 1);
      const Tensor<float> value = normal<float>({sizes.kv_len, value_dim}, 2);
      const StoredSide stored_key(key, KvStorage::kFloat32, true);
      const StoredSide stored_value(value, form.storage, false);
      for (const std::int32_t rows : row_counts()) {
        RowsCase<float> in(table(), queries(rows, sizes.head_dim, 1), all_keys(rows, sizes.kv_len),
                           value_dim);
        attend_stored(in, stored_key, stored_value);
        ASSERT_EQ(in.difference(), "")
            << form.name << " " << sizes.value_dim << " " << sizes.kv_len << ", rows " << rows;
      }
    }
  }
}

// Contiguous groups, for storages that can be read in order and others.
struct Joined {
  KvStorage key;
  bool is_columns;
  KvStorage value;
};
constexpr std::array<Joined, 11> kJoined{{{KvStorage::kFloat32, true, KvStorage::kFloat32},
                                          {KvStorage::kFloat16, true, KvStorage::kFloat16},
                                          {KvStorage::kBFloat16, true, KvStorage::kBFloat16},
                                          {KvStorage::kFloat16, true, KvStorage::kFloat32},
                                          {KvStorage::kInt8, true, KvStorage::kInt8},
                                          {KvStorage::kInt8, true, KvStorage::kFloat32},
                                          {KvStorage::kFloat16, true, KvStorage::kInt8},
                                          {KvStorage::kBFloat16, true, KvStorage::kInt4},
                                          {KvStorage::kFloat32, false, KvStorage::kFloat32},
                                          {KvStorage::kFloat16, false, KvStorage::kFloat16},
                                          {KvStorage::kBFloat16, false, KvStorage::kFloat32}}};

TEST_P(RowKernels, ReadInOrderTheyHaveTheSameBits) {
  for (const RowSizes& sizes : kSizes) {
    const Tensor<float> key = normal<float>({sizes.kv_len, sizes.head_dim}, 1);
    for (std::size_t i = 0; i < kJoined.size(); ++i) {
      const std::int32_t value_dim = stored_dim(kJoined[i].value, sizes.value_dim);
      const Tensor<float> value = normal<float>({sizes.kv_len, value_dim}, 2);
      for (const bool with_values : {false, true}) {
        StoredSide stored_key(key, kJoined[i].key, kJoined[i].is_columns);
        StoredSide stored_value(value, kJoined[i].value, false);
        if (with_values) {
          StoredSide::join(stored_key, stored_value);
        } else {
          stored_key.join();
          stored_value.join();
        }
        for (const std::int32_t rows : row_counts()) {
          for (const auto stretches :
               {kernels::Stretches::kInOrder, kernels::Stretches::kInOrderFetched}) {
            RowsCase<float> in(table(), queries(rows, sizes.head_dim, 1),
                               random_ranges(rows, sizes.kv_len), value_dim);
            attend_stored(in, stored_key, stored_value, {.stretches = stretches});
            ASSERT_EQ(in.difference(), "")
                << sizes.head_dim << " " << sizes.value_dim << " " << sizes.kv_len << ", rows "
                << rows << ", storages " << i << ", with values " << with_values;
          }
        }
      }
    }
  }
}

// Offsets change repeatedly, and weights fall below the smallest that count.
TEST_P(RowKernels, GrowingScoresMoveOffsetsAlike) {
  const std::int32_t kv_len = 700;
  Tensor<float> key = normal<float>({kv_len, 20}, 1);
  for (std::int32_t j = 0; j < kv_len; ++j) {
    for (std::int32_t d = 0; d < 20; ++d) key(j, d) *= 1 + static_cast<float>(j);
  }
  const Tensor<float> value = normal<float>({kv_len, 33}, 2);
  const StoredSide stored_key(key, KvStorage::kFloat32, true);
  const StoredSide stored_value(value, KvStorage::kInt8, false);
  for (const std::int32_t rows : row_counts()) {
    RowsCase<float> in(table(), queries(rows, 20, 1), random_ranges(rows, kv_len), 33);
    attend_stored(in, stored_key, stored_value);
    ASSERT_EQ(in.difference(), "") << rows;
  }
}

// Scores that are −infinity, too low at first, infinite and NaN.
TEST_P(RowKernels, ScoresThatAreNoNumbersDoTheSame) {
  const std::int32_t kv_len = 150;
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float> value = normal<float>({kv_len, 20}, 2);
  const StoredSide stored_value(value, KvStorage::kFloat16, false);
  for (const float number : {-infinity, infinity, nan, -1e9F, -1e30F}) {
    for (const bool is_columns : {false, true}) {
      for (const bool are_all : {false, true}) {
        Tensor<float> key = normal<float>({kv_len, 3}, 1);
        for (std::int32_t j = 0; j < kv_len; j += are_all ? 1 : 37) key(j, 0) = number;
        const StoredSide stored_key(key, KvStorage::kFloat32, is_columns);
        Tensor<float> query = queries(6, 3, 1);
        for (std::int32_t r = 0; r < 6; ++r) query(r, 0) = 1;
        RowsCase<float> in(table(), query, all_keys(6, kv_len), 20);
        attend_stored(in, stored_key, stored_value);
        ASSERT_EQ(in.difference(), "") << number << " " << is_columns << " " << are_all;
      }
    }
  }
}

TEST_P(RowKernels, GuardedValuesDoNotLeak) {
  const std::int32_t kv_len = 140;
  const Tensor<float> key = normal<float>({kv_len, 16}, 1);
  Tensor<float> value = normal<float>({kv_len, 40}, 2);
  for (std::int32_t d = 0; d < 40; ++d) {
    value(20, d) = std::numeric_limits<float>::quiet_NaN();
    value(130, d) = std::numeric_limits<float>::infinity();
  }
  const StoredSide stored_key(key, KvStorage::kFloat32, true);
  for (const KvStorage storage : {KvStorage::kFloat32, KvStorage::kFloat16, KvStorage::kBFloat16}) {
    const StoredSide stored_value(value, storage, false);
    for (const std::int32_t rows : row_counts()) {
      Ranges ranges = random_ranges(rows, kv_len);
      // The first row sees neither.
      ranges.begin[0] = 30;
      ranges.end[0] = 120;
      RowsCase<float> in(table(), queries(rows, 16, 1), ranges, 40);
      attend_stored(in, stored_key, stored_value, {.guarded = true});
      ASSERT_EQ(in.difference(), "") << rows;
    }
  }
}

// Rows of doubles and of floats.
TEST_P(RowKernels, RowsOfTensorsHaveTheBitsOfAPanel) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    const std::int32_t most =
        std::min(kernels::kMostFewRows, kernels::kPanelVectors * kernels.lanes);
    for (const RowSizes& sizes : kSizes) {
      const auto key = normal<Real>({sizes.kv_len, sizes.head_dim}, 1);
      const auto value = normal<Real>({sizes.kv_len, sizes.value_dim}, 2);
      for (std::int32_t rows = 1; rows <= most; ++rows) {
        const auto query = normal<Real>({rows, sizes.head_dim}, 3);
        RowsCase<Real> in(kernels, query, random_ranges(rows, sizes.kv_len), sizes.value_dim);
        for (std::int32_t first = 0; first < sizes.kv_len; first += kTileKeys) {
          const auto tile = tile_of(key, value, first);
          const kernels::StoredTile stored = PanelCase<Real>::stored(tile);
          in.attend_few({&stored, 1});
          in.attend_wide(stored, tile);
        }
        ASSERT_EQ(in.difference(), "")
            << sizes.head_dim << " " << sizes.value_dim << " " << sizes.kv_len << ", rows " << rows;
      }
    }
  });
}

TEST_P(RowKernels, UnpackScalesRows) {
  const std::int32_t stride = State<float>::whole(21, table().lanes);
  Tensor<float> out({3, stride});
  for (std::int64_t i = 0; i < 3 * stride; ++i) out.data()[i] = static_cast<float>(i);
  out(1, 0) = -0.0F;
  Tensor<float> rows({3, 21});
  const std::array<float*, 3> to{&rows(0, 0), &rows(1, 0), &rows(2, 0)};
  const std::array<float, 3> factors{1, 2, 4};
  table().unpack_rows(out.data(), 3, 21, factors.data(), to.data());
  for (std::int32_t r = 0; r < 3; ++r) {
    for (std::int32_t d = 0; d < 21; ++d) {
      ASSERT_EQ(rows(r, d), out(r, d) * factors[static_cast<std::size_t>(r)]) << r << " " << d;
    }
  }
  EXPECT_FALSE(std::signbit(rows(1, 0)));
}

}  // namespace
}  // namespace heed
