#include "attention/bits/drawn.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "attention/bits/hashes.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/rotary.h"

namespace heed::bits {

namespace {

// Up to three options of the whole table, the newest among them.
Setup draw_any(std::uint64_t seed, bool (*fits)(const Option&)) {
  static const Options all = testing_support::options_where([](const Option&) { return true; });
  Draws draws(seed ^ 0xd1b54a32d192ed03U);
  Options chosen;
  for (std::int64_t i = draws.below(4); i > 0; --i) {
    const Option* option =
        all[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(all.size())))];
    if (fits(*option) && std::find(chosen.begin(), chosen.end(), option) == chosen.end()) {
      chosen.push_back(option);
    }
  }
  // In the order of the table, as options are applied in it.
  std::sort(chosen.begin(), chosen.end(), [](const Option* a, const Option* b) {
    return std::find(all.begin(), all.end(), a) < std::find(all.begin(), all.end(), b);
  });
  // Mostly small, as many problems say more than large ones.
  return draw_setup(std::move(chosen), seed, draws.below(16) == 0 ? 1'000'000 : 60'000);
}

bool fits_any(const Option&) { return true; }
bool fits_sequences(const Option& option) { return option.in_packed; }

template <std::uint64_t (*kHash)(const Setup&)>
std::uint64_t of_any(std::uint64_t seed) {
  return kHash(draw_any(seed, fits_any));
}

template <std::uint64_t (*kHash)(const Setup&)>
std::uint64_t of_sequences(std::uint64_t seed) {
  return kHash(draw_any(seed, fits_sequences));
}

template <class T>
Tensor<T> filled(const Shape& shape, Draws& draws) {
  Tensor<T> tensor(shape);
  draws.fill(tensor);
  return tensor;
}

// Tokens that arrive a few at a time in a cache of a drawn storage, and attend to all before.
std::uint64_t decode(std::uint64_t seed) {
  Draws draws(seed);
  const auto storage = [&] {
    return draws.one_of({KvStorage::kFloat32, KvStorage::kFloat16, KvStorage::kBFloat16,
                         KvStorage::kInt8, KvStorage::kInt4});
  };
  const std::int64_t kv_heads = draws.one_of<std::int64_t>({1, 2, 3});
  const std::int64_t heads = kv_heads * draws.one_of<std::int64_t>({1, 2, 4, 7});
  const std::int64_t dim = draws.one_of<std::int64_t>({1, 8, 33, 64, 80, 128});
  const std::int64_t value_dim = draws.one_of<std::int64_t>({4, 17, 64, 128});
  // One draw after the other, as everywhere here: compilers evaluate arguments in any order.
  KvSequence sequence({.num_kv_heads = kv_heads,
                       .head_dim = dim,
                       .value_dim = value_dim,
                       .key_storage = storage(),
                       .value_storage = storage(),
                       .page_size = draws.one_of<std::int64_t>({16, 32, 128})});
  AttentionOptions options{.mask = causal()};
  if (draws.below(3) == 0) options.softcap = 20;
  Hash hash;
  const auto step = [&](std::int64_t count) {
    const Tensor<float> key = filled<float>({kv_heads, count, dim}, draws);
    const Tensor<float> value = filled<float>({kv_heads, count, value_dim}, draws);
    sequence.append(key, value);
    const std::int64_t queries = std::min<std::int64_t>(count, 5);
    hash.add(attend(filled<float>({1, heads, queries, dim}, draws), sequence, options));
  };
  step(draws.one_of<std::int64_t>({1, 5, 17, 130, 300}));
  for (std::int64_t i = draws.below(4); i >= 0; --i) step(draws.one_of<std::int64_t>({1, 1, 2, 3}));
  return hash.value();
}

}  // namespace

const std::vector<DrawnKind>& drawn_kinds() {
  static const std::vector<DrawnKind> all{{"forward", of_any<forward<float>>},
                                          {"backward", of_any<backward<float>>},
                                          {"weights", of_any<weights<float>>},
                                          {"statistics", of_any<statistics<float>>},
                                          {"diagnostics", of_any<diagnostics<float>>},
                                          {"float16", of_any<forward<Float16>>},
                                          {"packed", of_sequences<packed_forward>},
                                          {"packed backward", of_sequences<packed_backward>},
                                          {"decode", decode},
                                          {"float64", of_any<forward<double>>},
                                          {"float64 backward", of_any<backward<double>>},
                                          {"float64 statistics", of_any<statistics<double>>}};
  return all;
}

std::string describe(const DrawnKind& kind, std::uint64_t seed) {
  if (kind.name == "decode") return "decode";
  const bool is_packed = kind.name.starts_with("packed");
  return to_string(draw_any(seed, is_packed ? fits_sequences : fits_any));
}

std::uint64_t hash_of_drawn(const DrawnKind& kind, std::uint64_t first, std::uint64_t last) {
  Hash all;
  for (std::uint64_t seed = first; seed < last; ++seed) all.add_number(kind.hash(seed));
  return all.value();
}

}  // namespace heed::bits
