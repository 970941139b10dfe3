// The options of a call of attention as tests draw them: one table, which all tests go over.
//
// This file uses nothing internal to the library, so that Of/Bits computes the same calls after any
// change of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention.h"
#include "heed/core/tensor.h"
#include "support/draws.h"

namespace heed::testing_support {

struct Sizes {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 16;
  std::int64_t value_dim = 16;
};

template <class Real>
class DrawnOptions;

// A row of the table: an option, or one way of it. A new one goes last and is then part of every
// test that goes over the table, Of/Bits among them, which derives its seeds from the place of a
// row.
struct Option {
  enum class Kind {
    kRange,      // a mask that is an interval of keys for each row
    kIrregular,  // a mask that hides keys one by one
    kScore,      // a change of scores, for which kernels expose them
    kOther,      // of the softmax, its weights, or positions
    kTensors,  // no option, but a condition of query, key and value: tests of options leave it out
  };

  std::string_view name = {};  // as failures and tests/data/bits print it
  Kind kind = Kind::kRange;
  // Draws the option and puts it into options of float and double.
  std::function<void(DrawnOptions<float>&)> add = {};
  std::function<void(DrawnOptions<double>&)> add64 = {};
  // True if it applies to sequences of any length, and to queries that arrive in chunks.
  bool in_packed = true;
  bool in_chunks = true;
  // True if each query needs a key at its position.
  bool needs_key_of_query = false;
  // False for rows that Of/Bits had not when its hashes were recorded.
  bool in_bits = true;

  bool hides_keys() const { return kind == Kind::kRange || kind == Kind::kIrregular; }
  bool is_option() const { return kind != Kind::kTensors; }
  bool changes_scores() const { return kind == Kind::kIrregular || kind == Kind::kScore; }
};

// Conditions of tensors, by name.
inline constexpr std::string_view kHiddenNaN = "hidden NaN";
inline constexpr std::string_view kLargeScores = "large scores";
inline constexpr std::string_view kSteepScores = "steep scores";

// Rows of the table, which live as long as the program.
using Options = std::vector<const Option*>;

const std::vector<Option>& option_table();
// Returns the rows that `fits` accepts.
Options options_where(const std::function<bool(const Option&)>& fits);
bool has(const Options& options, std::string_view name);

// Each of `options` alone, and of their pairs one in `pairs_of_which_one`; 0 for none.
std::vector<Options> alone_and_in_pairs(const Options& options, std::size_t pairs_of_which_one = 0);

// Returns "window + softcap".
std::string to_string(const Options& options);

// Returns the number of last keys that no query sees in problems with hidden NaN.
std::int64_t hidden_keys(const Sizes& sizes);

// Options, drawn one after the other, and the memory that they refer to. In float and double their
// numbers are the same.
template <class Real>
class DrawnOptions {
 public:
  // Rows are drawn for this offset of the queries. With `any_length` nothing depends on q_len and
  // kv_len, as packed sequences require.
  explicit DrawnOptions(const Sizes& sizes, QueryOffset offset = {}, bool any_length = false);
  DrawnOptions(const Sizes& sizes, const Options& chosen, std::uint64_t seed,
               bool any_length = false);
  DrawnOptions(const DrawnOptions&) = delete;
  DrawnOptions& operator=(const DrawnOptions&) = delete;

  void add(const Options& chosen, std::uint64_t seed);

  const BasicAttentionOptions<Real>& operator*() const { return options_; }
  const BasicAttentionOptions<Real>* operator->() const { return &options_; }

  // For the rows of the table:
  BasicAttentionOptions<Real>& options() { return options_; }
  const Sizes& sizes() const { return sizes_; }
  bool any_length() const { return any_length_; }
  bool has(std::string_view name) const { return testing_support::has(chosen_, name); }
  Draws& draws() { return draws_; }
  std::uint64_t seed() const { return seed_; }
  // True if every query_offset is between these bounds, inclusive.
  bool offsets_are_within(std::int64_t least, std::int64_t most) const;
  void hide(const Mask& mask) { options_.mask = options_.mask & mask; }
  // Draws numbers.
  TensorView<const Real> numbers(const Shape& shape);
  // Draws a tensor of any rank that broadcasts to the scores, with gaps in memory or with its last
  // two dimensions swapped. T is Real, float or bool.
  template <class T>
  TensorView<const T> broadcastable(T (*draw)(Draws&));

 private:
  template <class T>
  std::deque<Tensor<T>>& memory();

  Sizes sizes_;
  bool any_length_;
  Options chosen_;
  std::uint64_t seed_ = 0;
  Draws draws_{0};
  std::deque<Tensor<Real>> reals_;
  std::deque<Tensor<float>> floats_;
  std::deque<Tensor<bool>> flags_;
  BasicAttentionOptions<Real> options_;
};

extern template class DrawnOptions<float>;
extern template class DrawnOptions<double>;

}  // namespace heed::testing_support
