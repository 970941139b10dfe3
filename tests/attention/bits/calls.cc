#include "attention/bits/calls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "attention/bits/drawn.h"
#include "attention/bits/hashes.h"

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

using HashOfSetup = std::uint64_t (*)(const Setup&);

void add_calls(std::vector<Call>& calls, std::string_view name, const std::vector<Setup>& setups,
               HashOfSetup hash) {
  for (const Setup& setup : setups) {
    calls.push_back(
        {std::string(name) + ' ' + to_string(setup), [setup, hash] { return hash(setup); }});
  }
}

std::vector<Call> forward_calls() {
  std::vector<Call> calls;
  add_calls(calls, "forward", setups(1), forward<float>);
  return calls;
}

std::vector<Call> backward_calls() {
  std::vector<Call> calls;
  add_calls(calls, "backward", setups(1), backward<float>);
  return calls;
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
  return calls;
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
  return calls;
}

std::vector<Call> half_calls() {
  std::vector<Call> calls;
  add_calls(calls, "float16 forward", setups(5), forward<Float16>);
  add_calls(calls, "bfloat16 forward", setups(7), forward<BFloat16>);
  add_calls(calls, "bfloat16 backward", setups(7), backward<BFloat16>);
  return calls;
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
  return calls;
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
  return calls;
}

std::vector<Call> plan_calls() {
  std::vector<Call> calls;
  add_calls(calls, "plan", setups(11), planned<float>);
  add_calls(calls, "plan float16", setups(23), planned<Float16>);
  return calls;
}

std::vector<Call> inside_calls() {
  std::vector<Call> calls;
  add_calls(calls, "weights", setups(4), weights<float>);
  add_calls(calls, "weights float16", setups(23), weights<Float16>);
  add_calls(calls, "weights bfloat16", setups(23), weights<BFloat16>);
  add_calls(calls, "statistics", setups(4), statistics<float>);
  add_calls(calls, "statistics float16", setups(23), statistics<Float16>);
  add_calls(calls, "statistics bfloat16", setups(23), statistics<BFloat16>);
  add_calls(calls, "diagnostics", setups(7), diagnostics<float>);
  add_calls(calls, "diagnostics float16", setups(23), diagnostics<Float16>);
  return calls;
}

std::vector<Call> float64_calls() {
  std::vector<Call> calls;
  add_calls(calls, "float64 forward", setups(5), forward<double>);
  add_calls(calls, "float64 backward", setups(7), backward<double>);
  add_calls(calls, "float64 weights", setups(11), weights<double>);
  add_calls(calls, "float64 statistics", setups(11), statistics<double>);
  add_calls(calls, "float64 diagnostics", setups(23), diagnostics<double>);
  return calls;
}

// Blocks of drawn problems, as scripts/compare-targets compares many more of.
std::vector<Call> drawn_calls() {
  constexpr std::uint64_t kBlock = 20;
  std::vector<Call> calls;
  for (const DrawnKind& kind : drawn_kinds()) {
    for (std::uint64_t first = 0; first < 2 * kBlock; first += kBlock) {
      calls.push_back({std::string(kind.name) + " from " + std::to_string(first),
                       [kind, first] { return hash_of_drawn(kind, first, first + kBlock); }});
    }
  }
  return calls;
}

}  // namespace

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"forward", forward_calls}, {"backward", backward_calls}, {"sizes", size_calls},
      {"long", long_calls},       {"half", half_calls},         {"packed", packed_calls},
      {"chunks", chunk_calls},    {"plan", plan_calls},         {"inside", inside_calls},
      {"float64", float64_calls}, {"drawn", drawn_calls}};
  return all;
}

}  // namespace heed::bits
