#include "attention/bits/calls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "attention/bits/hash.h"
#include "attention/bits/packed_problem.h"
#include "attention/bits/problem.h"
#include "heed/attention/backward.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/plan.h"
#include "heed/attention/statistics.h"

namespace heed::bits {

namespace {

// Problems with no feature, with each feature alone, and with one of every `pairs_of_which_one`
// pairs. The seed of a problem depends on its features only, so that new features do not change it.
std::vector<Setup> setups(std::size_t pairs_of_which_one) {
  std::vector<Setup> result{draw_setup({}, 0)};
  const Options& all = features();
  for (std::size_t first = 0; first < all.size(); ++first) {
    const std::uint64_t seed = 64 * (1 + first);
    result.push_back(draw_setup({all[first]}, seed));
    for (std::size_t second = first + 1; second < all.size(); ++second) {
      if ((3 * first + second) % pairs_of_which_one != 0) continue;
      result.push_back(draw_setup({all[first], all[second]}, seed + 1 + second));
    }
  }
  return result;
}

std::uint64_t hash_of_libm() {
  Hash hash;
  for (int i = -2000; i < 2000; ++i) {
    const double x = i * 0x1.8p-7;
    for (const double y : {std::exp(x), std::exp2(x), std::tanh(x), std::log(x * x + 0x1p-9),
                           std::log2(x * x + 0x1p-9)}) {
      hash.add_number(y);
    }
    const auto f = static_cast<float>(x);
    for (const float y : {std::exp(f), std::exp2(f), std::tanh(f), std::log(f * f + 0x1p-9F)}) {
      hash.add_number(y);
    }
  }
  return hash.value();
}

std::vector<Call> with_libm(std::vector<Call> calls) {
  calls.insert(calls.begin(), Call{"libm", true, hash_of_libm});
  return calls;
}

template <class T>
std::uint64_t forward(const Setup& setup) {
  const Problem<T> problem(setup);
  const auto result =
      attention_with_lse(problem.query(), problem.key(), problem.value(), problem.options());
  Hash hash;
  hash.add(result.out);
  hash.add(result.lse);
  return hash.value();
}

template <class T, class Real>
void add_gradients(Hash& hash, const AttentionGradients<T, Real>& gradients) {
  for (const auto* gradient : {&gradients.query, &gradients.key, &gradients.value}) {
    hash.add(*gradient);
  }
  for (const auto* gradient : {&gradients.alibi_slopes, &gradients.bias, &gradients.sinks}) {
    hash.add(*gradient);
  }
  for (std::size_t term = 3; term < kLearnable<Real>.size(); ++term) {
    const Tensor<Real>& gradient = gradients.*kLearnable<Real>[term].gradient;
    if (!gradient.empty()) hash.add(gradient);
  }
}

template <class T>
std::uint64_t backward(const Setup& setup) {
  const Problem<T> problem(setup);
  const auto result =
      attention_with_lse(problem.query(), problem.key(), problem.value(), problem.options());
  Hash hash;
  add_gradients(hash, attention_backward(problem.grad_out(), problem.query(), problem.key(),
                                         problem.value(), result, problem.options()));
  return hash.value();
}

template <class T>
std::uint64_t weights(const Setup& setup) {
  const Problem<T> problem(setup);
  const Sizes& s = setup.sizes;
  Draws draws(setup.seed + 3);
  std::vector<AttentionRow> rows(s.q_len == 0 ? 0 : 20);
  for (AttentionRow& row : rows) {
    row.batch = draws.below(s.batch);
    row.head = draws.below(s.num_heads);
    row.query = draws.below(s.q_len);
  }
  Hash hash;
  hash.add(attention_weights(problem.query(), problem.key(), rows, problem.options()));
  return hash.value();
}

template <class T>
std::uint64_t statistics(const Setup& setup) {
  const Problem<T> problem(setup);
  const StatisticsOptions wanted{.top_k = static_cast<std::int64_t>(setup.seed % 5)};
  const auto found =
      attention_statistics(problem.query(), problem.key(), problem.options(), wanted);
  Hash hash;
  for (const auto* numbers :
       {&found.lse, &found.entropy, &found.max_weight, &found.top_weights, &found.key_mass}) {
    hash.add(*numbers);
  }
  hash.add(found.max_key);
  hash.add(found.top_keys);
  return hash.value();
}

template <class T>
std::uint64_t diagnostics(const Setup& setup) {
  const Problem<T> problem(setup);
  DiagnosticsOptions wanted;
  if (setup.seed % 2 == 1) {
    wanted.q_lengths.assign(static_cast<std::size_t>(setup.sizes.batch), setup.sizes.q_len / 2);
    wanted.kv_lengths.assign(static_cast<std::size_t>(setup.sizes.batch),
                             setup.sizes.kv_len * 3 / 4);
  }
  const auto found =
      attention_diagnostics(problem.query(), problem.key(), problem.options(), wanted);
  Hash hash;
  hash.add(found.similarity);
  for (const HeadDiagnostics& head : found.heads) {
    for (const std::int64_t count : {head.rows, head.broken_rows, head.offset, head.vertical_key}) {
      hash.add_number(count);
    }
    for (const double mean : {head.entropy, head.total, head.padding, head.first, head.previous,
                              head.same, head.next, head.offset_weight, head.vertical}) {
      hash.add_number(mean);
    }
  }
  return hash.value();
}

// Queries that arrive in chunks, each after as many more keys.
std::uint64_t chunks(const Setup& setup) {
  const Problem<float> problem(setup);
  Draws draws(setup.seed + 4);
  AttentionOptions options = problem.options();
  const std::int64_t offset = setup.sizes.kv_len - setup.sizes.q_len;
  Hash hash;
  for (std::int64_t begin = 0; begin < setup.sizes.q_len;) {
    const std::int64_t end =
        std::min(setup.sizes.q_len, begin + draws.one_of<std::int64_t>({1, 2, 3, 16, 50, 130}));
    options.query_offset = offset + begin;
    const auto seen = [&](FloatView view) { return view.slice(2, 0, offset + end); };
    const auto result = attention_with_lse(problem.query().slice(2, begin, end),
                                           seen(problem.key()), seen(problem.value()), options);
    hash.add(result.out);
    hash.add(result.lse);
    begin = end;
  }
  return hash.value();
}

// A plan with a given workspace, from which it must take no values.
template <class T>
std::uint64_t planned(const Setup& setup) {
  const Problem<T> problem(setup);
  const Sizes& s = setup.sizes;
  const AttentionPlan made = plan({.batch = s.batch,
                                   .num_heads = s.num_heads,
                                   .num_kv_heads = s.num_kv_heads,
                                   .q_len = s.q_len,
                                   .kv_len = s.kv_len,
                                   .head_dim = s.head_dim,
                                   .value_dim = s.value_dim,
                                   .dtype = data_type_of<T>(),
                                   .key_stride = problem.key().stride(2),
                                   .value_stride = problem.value().stride(2)},
                                  problem.options());
  Tensor<T> out({s.batch, s.num_heads, s.q_len, s.value_dim});
  Tensor<float> lse({s.batch, s.num_heads, s.q_len});
  std::vector<std::byte> workspace(made.workspace_bytes(), std::byte{0xff});
  made.run_into({.out = out, .lse = lse, .workspace = workspace}, problem.query(), problem.key(),
                problem.value());
  Hash hash;
  hash.add(out);
  hash.add(lse);
  return hash.value();
}

std::uint64_t packed_forward(const Setup& setup) {
  const PackedProblem<float> problem(setup);
  const auto result = attention_packed_with_lse(problem.query(), problem.key(), problem.value(),
                                                problem.sequences(), problem.options());
  Hash hash;
  hash.add(result.out);
  hash.add(result.lse);
  return hash.value();
}

template <class T>
std::uint64_t packed_half(const Setup& setup) {
  const PackedProblem<T> problem(setup);
  Hash hash;
  hash.add(attention_packed(problem.query(), problem.key(), problem.value(), problem.sequences(),
                            problem.options()));
  return hash.value();
}

std::uint64_t packed_backward(const Setup& setup) {
  const PackedProblem<float> problem(setup);
  const auto result = attention_packed_with_lse(problem.query(), problem.key(), problem.value(),
                                                problem.sequences(), problem.options());
  Hash hash;
  add_gradients(hash, attention_packed_backward(problem.grad_out(), problem.query(), problem.key(),
                                                problem.value(), problem.sequences(), result,
                                                problem.options()));
  return hash.value();
}

using HashOfSetup = std::uint64_t (*)(const Setup&);
using PropertyOfSetup = bool (*)(const Setup&);

bool always(const Setup&) { return true; }
bool never(const Setup&) { return false; }
// The weight of a sink is the C library's exp2 in float, in the sum of every row.
bool with_sinks(const Setup& setup) { return setup.has("sinks"); }

void add_calls(std::vector<Call>& calls, std::string_view name, const std::vector<Setup>& setups,
               HashOfSetup hash, PropertyOfSetup needs_libm = with_sinks) {
  for (const Setup& setup : setups) {
    calls.push_back({std::string(name) + ' ' + to_string(setup), needs_libm(setup),
                     [setup, hash] { return hash(setup); }});
  }
}

std::vector<Call> forward_calls() {
  std::vector<Call> calls;
  add_calls(calls, "forward", setups(1), forward<float>);
  return with_libm(std::move(calls));
}

std::vector<Call> backward_calls() {
  std::vector<Call> calls;
  add_calls(calls, "backward", setups(1), backward<float>);
  return with_libm(std::move(calls));
}

// Lengths and dims of 0, 1, next to a whole tile, and more than is summed at a time.
std::vector<Call> size_calls() {
  using List = std::vector<Sizes>;
  const List list{
      {0, 2, 1, 5, 7, 8, 8},        {2, 2, 1, 0, 7, 8, 8},       {2, 2, 1, 5, 0, 8, 8},
      {2, 2, 1, 5, 7, 0, 8},        {2, 2, 1, 5, 7, 8, 0},       {1, 1, 1, 1, 1, 1, 1},
      {1, 1, 1, 1, 127, 64, 64},    {1, 1, 1, 1, 128, 64, 64},   {1, 4, 2, 1, 129, 64, 64},
      {1, 4, 1, 1, 1025, 64, 64},   {1, 8, 8, 1, 2500, 32, 48},  {1, 2, 2, 1, 4099, 16, 16},
      {1, 2, 2, 2, 1024, 64, 80},   {1, 6, 2, 3, 1153, 80, 64},  {2, 4, 2, 16, 2049, 64, 64},
      {1, 1, 1, 127, 127, 64, 64},  {1, 1, 1, 128, 128, 64, 64}, {1, 1, 1, 129, 129, 64, 64},
      {1, 1, 1, 1031, 1031, 8, 8},  {1, 1, 1, 523, 2053, 16, 3}, {1, 1, 1, 2053, 67, 40, 64},
      {1, 16, 1, 31, 131, 33, 17},  {3, 5, 5, 48, 64, 255, 1},   {1, 2, 2, 97, 389, 256, 256},
      {1, 1, 1, 300, 1300, 31, 65}, {40, 1, 1, 3, 5, 7, 9},      {1, 40, 40, 2, 140, 24, 24},
      {1, 48, 2, 1, 700, 64, 64}};
  const Option* const bottom_right = features()[1];
  std::vector<Setup> problems;
  for (const Sizes& sizes : list) {
    const auto seed = 100'000 + 2 * static_cast<std::uint64_t>(problems.size());
    problems.push_back({sizes, {}, seed});
    problems.push_back({sizes, {bottom_right}, seed + 1});
  }
  std::vector<Call> calls;
  add_calls(calls, "forward", problems, forward<float>);
  add_calls(calls, "backward", problems, backward<float>);
  return with_libm(std::move(calls));
}

// Decode with more keys than are summed at a time, which threads share.
std::vector<Call> long_calls() {
  std::vector<Setup> problems;
  for (const Option* feature : features()) {
    for (const Sizes& sizes : {Sizes{1, 4, 4, 1, 1537, 64, 64}, Sizes{2, 6, 2, 3, 1100, 48, 80},
                               Sizes{1, 1, 1, 50, 2100, 16, 40}}) {
      const auto seed = 300'000 + static_cast<std::uint64_t>(problems.size());
      problems.push_back({sizes, {feature}, seed});
    }
  }
  std::vector<Call> calls;
  add_calls(calls, "forward", problems, forward<float>);
  add_calls(calls, "backward", problems, backward<float>);
  return with_libm(std::move(calls));
}

std::vector<Call> half_calls() {
  std::vector<Call> calls;
  add_calls(calls, "float16 forward", setups(5), forward<Float16>);
  add_calls(calls, "bfloat16 forward", setups(7), forward<BFloat16>);
  add_calls(calls, "bfloat16 backward", setups(7), backward<BFloat16>);
  return with_libm(std::move(calls));
}

std::vector<Call> packed_calls() {
  std::vector<Setup> problems;
  for (const Setup& setup : setups(1)) {
    if (fits_packed(setup)) problems.push_back(setup);
  }
  std::vector<Call> calls;
  add_calls(calls, "packed forward", problems, packed_forward);
  add_calls(calls, "packed backward", problems, packed_backward);
  problems.resize(20);
  add_calls(calls, "packed float16 forward", problems, packed_half<Float16>);
  add_calls(calls, "packed bfloat16 forward", problems, packed_half<BFloat16>);
  return with_libm(std::move(calls));
}

// Features that are fixed to the number of keys or queries do not apply to chunks.
std::vector<Call> chunk_calls() {
  const Options& all = features();
  std::vector<Setup> problems;
  for (std::size_t first = 0; first < all.size(); ++first) {
    for (std::size_t second = first; second < all.size(); ++second) {
      if (!all[first]->in_chunks || !all[second]->in_chunks) continue;
      Options chosen{all[first]};
      if (second != first) chosen.push_back(all[second]);
      Setup setup = draw_setup(std::move(chosen), 200'000 + 64 * first + second);
      setup.sizes.q_len = std::min(setup.sizes.q_len, setup.sizes.kv_len);
      problems.push_back(std::move(setup));
    }
  }
  std::vector<Call> calls;
  add_calls(calls, "chunks", problems, chunks);
  return with_libm(std::move(calls));
}

std::vector<Call> plan_calls() {
  std::vector<Call> calls;
  add_calls(calls, "plan", setups(11), planned<float>);
  add_calls(calls, "plan float16", setups(23), planned<Float16>);
  return with_libm(std::move(calls));
}

std::vector<Call> inside_calls() {
  std::vector<Call> calls;
  add_calls(calls, "weights", setups(4), weights<float>, never);
  add_calls(calls, "weights float16", setups(23), weights<Float16>, never);
  add_calls(calls, "weights bfloat16", setups(23), weights<BFloat16>, never);
  add_calls(calls, "statistics", setups(4), statistics<float>, never);
  add_calls(calls, "statistics float16", setups(23), statistics<Float16>, never);
  add_calls(calls, "statistics bfloat16", setups(23), statistics<BFloat16>, never);
  add_calls(calls, "diagnostics", setups(7), diagnostics<float>, always);
  add_calls(calls, "diagnostics float16", setups(23), diagnostics<Float16>, always);
  return with_libm(std::move(calls));
}

std::vector<Call> float64_calls() {
  std::vector<Call> calls;
  add_calls(calls, "float64 forward", setups(5), forward<double>, always);
  add_calls(calls, "float64 backward", setups(7), backward<double>, always);
  add_calls(calls, "float64 weights", setups(11), weights<double>, always);
  add_calls(calls, "float64 statistics", setups(11), statistics<double>, always);
  add_calls(calls, "float64 diagnostics", setups(23), diagnostics<double>, always);
  return with_libm(std::move(calls));
}

}  // namespace

const std::vector<Group>& groups() {
  static const std::vector<Group> all{{"forward", forward_calls}, {"backward", backward_calls},
                                      {"sizes", size_calls},      {"long", long_calls},
                                      {"half", half_calls},       {"packed", packed_calls},
                                      {"chunks", chunk_calls},    {"plan", plan_calls},
                                      {"inside", inside_calls},   {"float64", float64_calls}};
  return all;
}

}  // namespace heed::bits
