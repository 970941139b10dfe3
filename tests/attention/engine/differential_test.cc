// Drawn problems on every instruction set, compared with the double reference and with themselves:
// on other threads, with rows computed alone, with NaN in hidden keys, and in memory that ends at a
// protected page. Each run of the tests draws a few; HEED_DIFFERENTIAL_CASES and
// HEED_DIFFERENTIAL_SEED (make differential) draw others.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/parallel.h"
#include "support/drawn_attention.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/guarded_memory.h"
#include "support/kernel_tables.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::AttentionCase;
using testing_support::DrawnAttention;
using testing_support::Edge;
using testing_support::expected_gradients;
using testing_support::expected_of;
using testing_support::FaultReport;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::GuardedMemory;
using testing_support::inaccuracy;
using testing_support::InputViews;
using testing_support::run;
using testing_support::run_into;
using testing_support::run_on_threads;
using testing_support::same_bits;
using testing_support::score_roundings_of;

using Output = AttentionOutput<float>;

bool same(const Output& a, const Output& b) {
  return same_bits(a.out, b.out) && same_bits(a.lse, b.lse);
}

// Copies of query, key, value and results in memory that begins or ends at a protected page.
class GuardedProblem {
 public:
  GuardedProblem(const InputViews& in, Edge edge)
      : edge_(edge), views_{copy(in.query), copy(in.key), copy(in.value)} {}

  Output run(const kernels::KernelTable& table, const AttentionOptions& options) {
    const Shape& query = views_.query.shape();
    const auto out = allocate({query[0], query[1], query[2], views_.value.extent(3)});
    const auto lse = allocate({query[0], query[1], query[2]});
    run_into<float>(table, views_, options, {out, lse});
    return {to_tensor(out), to_tensor(lse)};
  }

 private:
  TensorView<float> allocate(const Shape& shape) {
    const auto bytes = static_cast<std::size_t>(shape.num_elements()) * sizeof(float);
    memory_.push_back(std::make_unique<GuardedMemory>(bytes, edge_));
    return {static_cast<float*>(memory_.back()->data()), shape};
  }

  TensorView<float> copy(FloatView from) {
    const Tensor<float> dense = to_tensor(from);
    const TensorView<float> to = allocate(from.shape());
    std::copy_n(dense.data(), dense.num_elements(), to.data());
    return to;
  }

  Edge edge_;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
  InputViews views_;
};

// The problem with NaN in the keys and values that no query of their group of heads sees.
class Poisoned {
 public:
  explicit Poisoned(const DrawnAttention& problem)
      : query_(problem.views().query),
        key_(to_tensor(problem.views().key)),
        value_(to_tensor(problem.views().value)) {
    const ScoreShape shape{query_.extent(0), query_.extent(1), query_.extent(2), key_.extent(2),
                           problem.options().query_offset};
    const Tensor<bool> allowed = materialize_allow(problem.options().mask, shape);
    const std::int64_t group = shape.num_heads / key_.extent(1);
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t head = 0; head < key_.extent(1); ++head) {
        const auto seen = allowed.view().select(0, b).slice(0, head * group, (head + 1) * group);
        for (std::int64_t k = 0; k < shape.kv_len; ++k) {
          if (!has_any(seen.select(2, k))) poison(b, head, k);
        }
      }
    }
  }

  InputViews views() const { return {query_, key_, value_}; }

 private:
  static bool has_any(TensorView<const bool> flags) {
    const Tensor<bool> dense = to_tensor(flags);
    return std::find(dense.elements().begin(), dense.elements().end(), true) !=
           dense.elements().end();
  }

  void poison(std::int64_t b, std::int64_t head, std::int64_t k) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t d = 0; d < key_.extent(3); ++d) key_(b, head, k, d) = kNaN;
    for (std::int64_t d = 0; d < value_.extent(3); ++d) value_(b, head, k, d) = kNaN;
  }

  FloatView query_;
  Tensor<float> key_;
  Tensor<float> value_;
};

bool row_alone_is_same(const kernels::KernelTable& table, const InputViews& in,
                       const AttentionCase& drawn, const QueryOffset& offset, std::uint32_t seed) {
  if (in.query.extent(2) == 0) return true;
  // Without the options that speak of all rows; a mask over positions replaces the drawn masks.
  testing_support::Options fitting;
  for (const testing_support::Option* option : drawn.options) {
    if (option->in_chunks && !option->hides_keys()) fitting.push_back(option);
  }
  fitting.push_back(testing_support::options_where([](const testing_support::Option& option) {
                      return option.name == "where";
                    }).front());
  testing_support::DrawnOptions<float> options(drawn.sizes, offset);
  options.add(fitting, drawn.options_seed);
  const Output all = run(table, in, *options);
  const std::int64_t row = seed % in.query.extent(2);
  options.options().query_offset += row;
  const Output one = run(table, {in.query.slice(2, row, row + 1), in.key, in.value}, *options);
  return same({to_tensor(all.out.view().slice(2, row, row + 1)),
               to_tensor(all.lse.view().slice(2, row, row + 1))},
              one);
}

// Returns the faults of the kernels of one instruction set on this problem; empty if there are
// none.
std::string faults(const kernels::KernelTable& table, const AttentionCase& drawn,
                   std::uint32_t seed) {
  const DrawnAttention problem(drawn);
  const InputViews& in = problem.views();
  const AttentionOptions& options = problem.options();
  const Output found = run(table, in, options);
  std::string text = inaccuracy(found, expected_of(in, options), score_roundings_of(drawn));
  const int threads = 2 + static_cast<int>(seed % 7);
  if (!same(run_on_threads(threads, table, in, options), found)) text += "threads change bits\n";
  if (!same(run(table, Poisoned(problem).views(), options), found)) text += "hidden NaN is seen\n";
  if (!row_alone_is_same(table, in, drawn, options.query_offset, seed)) {
    text += "a row alone has other bits\n";
  }
  for (const Edge edge : {Edge::kFirst, Edge::kLast}) {
    const ThreadLimit one_thread(1);  // the thread that touches a forbidden page reports it
    if (!same(GuardedProblem(in, edge).run(table, options), found))
      text += "a copy has other bits\n";
  }
  const Tensor<float> grad_out = grad_out_for(in);
  const auto gradients = gradients_of(table, grad_out, in, options);
  text +=
      inaccuracy(gradients, expected_gradients(grad_out, in, options), score_roundings_of(drawn));
  if (!same_bits(gradients_of(table, grad_out, in, options, threads), gradients)) {
    text += "threads change bits of gradients\n";
  }
  return text;
}

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::stoul(text));
}

TEST(Differential, EveryInstructionSetAgainstTheReferenceAndItself) {
  const std::uint32_t cases = number_from("HEED_DIFFERENTIAL_CASES", 40);
  const std::uint32_t first = number_from("HEED_DIFFERENTIAL_SEED", 0);
  const FaultReport report;
  for (std::uint32_t seed = first; seed < first + cases; ++seed) {
    const AttentionCase drawn =
        testing_support::attention_case(seed % 2 == 1)(rc::Random(seed), 100).value();
    for (const auto* table : testing_support::kernels_of_numbers()) {
      std::ostringstream what;
      what << "seed " << seed << " on " << table->name << ':' << drawn;
      FaultReport::during(what.str());
      EXPECT_EQ(faults(*table, drawn, seed), "") << what.str();
    }
    if ((seed - first) % 1000 == 999) std::cout << seed - first + 1 << " problems\n" << std::flush;
  }
}

}  // namespace
}  // namespace heed
