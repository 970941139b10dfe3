// The table of options: one row for each, and nothing else has to be changed for a new one.
#include <algorithm>
#include <utility>

#include "heed/attention/block_layout.h"
#include "heed/core/dual.h"
#include "support/options.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

using Kind = Option::Kind;

// Each Mask, term or number is drawn by a function of the options in float or double.
template <class Draw>
Option row(std::string_view name, Kind kind, Draw draw, Option rest = {}) {
  rest.name = name;
  rest.kind = kind;
  rest.add = draw;
  rest.add64 = draw;
  return rest;
}

// A row whose function returns a mask.
template <class Draw>
Option mask(std::string_view name, Kind kind, Draw draw, Option rest = {}) {
  return row(
      name, kind, [draw](auto& call) { call.hide(draw(call)); }, std::move(rest));
}

template <class Call>
using RealOf = std::remove_cvref_t<decltype(std::declval<Call&>().options().softcap)>;

bool draw_flag(Draws& draws) { return draws.below(4) != 0; }

template <class Call>
std::vector<std::int64_t> key_lengths_of_batch(Call& call) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(call.sizes().batch));
  for (std::int64_t& length : lengths) length = call.draws().below(call.sizes().kv_len + 1);
  return lengths;
}

template <class Call>
Mask draw_rows(Call& call) {
  const std::int64_t kv_len = call.sizes().kv_len;
  std::vector<RowRange> ranges(static_cast<std::size_t>(call.sizes().q_len));
  for (RowRange& range : ranges) range.begin = call.draws().below(kv_len);
  for (RowRange& range : ranges) range.end = range.begin + call.draws().below(kv_len);
  return Mask::rows(ranges);
}

template <class Call>
Mask draw_documents(Call& call) {
  const Sizes& s = call.sizes();
  if (!call.offsets_are_within(0, s.kv_len - s.q_len)) return draw_rows(call);
  std::vector<std::int64_t> boundaries{0, s.kv_len};
  for (int i = 0; i < 4; ++i) boundaries.push_back(call.draws().below(s.kv_len + 1));
  std::sort(boundaries.begin(), boundaries.end());
  return documents(boundaries);
}

template <class Call>
Mask draw_bottom_right(Call& call) {
  const std::int64_t to_last = call.sizes().kv_len - call.sizes().q_len;
  const bool is_aligned =
      call.offsets_are_within(0, 0) || call.offsets_are_within(to_last, to_last);
  return is_aligned ? causal_bottom_right() : causal(to_last);
}

template <class Call>
Mask draw_cache_lengths(Call& call) {
  const std::vector<std::int64_t> lengths = key_lengths_of_batch(call);
  const bool is_aligned = call.offsets_are_within(0, 0);
  return causal(is_aligned ? Alignment::bottom_right(lengths) : Alignment::top_left()) &
         key_lengths(lengths);
}

template <class Call>
Mask draw_window(Call& call) {
  Draws& draws = call.draws();
  const std::int64_t left = draws.template one_of<std::int64_t>({0, 3, 40, 150, kUnbounded});
  const std::int64_t right = draws.below(50);
  return sliding_window(left, right, Alignment::offset(draws.below(60) - 10));
}

template <class Call>
Mask draw_padding(Call& call) {
  Tensor<std::int64_t> tokens({call.sizes().batch, call.sizes().kv_len});
  for (std::int64_t& token : tokens.elements()) token = call.draws().below(4);
  return key_padding(tokens, 0);
}

template <class Call>
Mask draw_where(Call& call) {
  const auto step = static_cast<int>(2 + call.draws().below(9));
  return Mask::where([step](int b, int h, int q, int k) {
    return ((b + 2 * h + 3 * q + 5 * k) % step + step) % step != 0;
  });
}

template <class Call>
Mask draw_additive(Call& call) {
  return Mask::additive(call.template broadcastable<float>([](Draws& draws) {
    return draws.below(5) == 0 ? -kInfinity : static_cast<float>(draws.below(1024)) * 0x1p-8F;
  }));
}

// −1e9, in some rows on every key.
template <class Call>
Mask draw_low_scores(Call& call) {
  Tensor<float> added({call.sizes().q_len, call.sizes().kv_len});
  for (std::int64_t q = 0; q < call.sizes().q_len; ++q) {
    for (std::int64_t k = 0; k < call.sizes().kv_len; ++k) {
      added(q, k) = q % 3 == 0 || k < 130 ? -1e9F : 0.0F;
    }
  }
  return Mask::additive(std::move(added));
}

// Blocks of some size, a third of them partial.
template <class Call>
Mask draw_blocks(Call& call) {
  Draws& draws = call.draws();
  const Sizes& s = call.sizes();
  BlockLayout layout{.batch = draws.below(2) == 0 ? 1 : s.batch,
                     .num_heads = draws.below(2) == 0 ? 1 : s.num_heads,
                     .q_len = s.q_len,
                     .kv_len = s.kv_len,
                     .q_block = 1 + draws.below(128),
                     .kv_block = 1 + draws.below(128)};
  const std::int64_t rows =
      layout.batch * layout.num_heads * ((layout.q_len + layout.q_block - 1) / layout.q_block);
  const std::int64_t columns = (layout.kv_len + layout.kv_block - 1) / layout.kv_block;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      if (draws.below(2) == 0) continue;
      layout.columns.push_back(static_cast<std::int32_t>(column));
      layout.partial.push_back(draws.below(3) == 0 ? 1 : 0);
    }
    layout.row_begin.push_back(static_cast<std::int64_t>(layout.columns.size()));
  }
  return Mask::blocks(std::move(layout), strided(3, Alignment::top_left()) &
                                             causal(Alignment::offset(draws.below(200))));
}

ScoreMod draw_score_mod(Draws& draws) {
  switch (draws.below(3)) {
    case 0:
      return [](auto score, int, int, int q, int k) {
        return score - 0.03125F * heed::abs(static_cast<float>(q - k));
      };
    case 1:
      return [](auto score, int b, int h, int q, int k) {
        return score * (1 + 0.5F * static_cast<float>(b)) + static_cast<float>((h + q + k) % 5);
      };
    default:
      return [](auto score, int, int, int, int k) {
        return k % 7 == 2 ? decltype(score)(-kInfinity) : heed::tanh(score);
      };
  }
}

template <class Call>
void draw_bias(Call& call) {
  using Real = RealOf<Call>;
  call.options().bias = call.template broadcastable<Real>([](Draws& draws) {
    return draws.below(9) == 0 ? static_cast<Real>(-kInfinity) : static_cast<Real>(draws.number());
  });
}

template <class Call>
void draw_offset(Call& call) {
  if (!call.offsets_are_within(0, 0)) return;
  if (!call.has("cache_lengths") && !call.any_length()) {
    call.options().query_offset = call.sizes().kv_len - call.sizes().q_len;
  } else if (call.any_length() && !call.has("causal(bottom_right)")) {
    call.options().query_offset = 3;
  }
}

RelativeBuckets draw_buckets(Draws& draws) {
  // One draw after the other: compilers evaluate arguments in any order.
  const std::int64_t kind = draws.below(3);
  const std::int64_t count = draws.below(30);
  const std::int64_t reach = draws.below(200);
  if (kind == 0) return RelativeBuckets::clip(reach);
  return kind == 1 ? RelativeBuckets::t5(2 * (2 + count), 40 + reach)
                   : RelativeBuckets::t5(2 + count, 40 + reach, false);
}

template <class Call>
void draw_relative_bias(Call& call) {
  const RelativeBuckets buckets = draw_buckets(call.draws());
  call.options().relative_bias = {call.numbers({call.sizes().num_heads, buckets.count()}), buckets};
}

// Vectors for keys, values or both, of each head or of all.
template <class Call>
void draw_relative_vectors(Call& call) {
  Draws& draws = call.draws();
  RelativeVectors<RealOf<Call>> drawn{.buckets = draw_buckets(draws)};
  const auto vectors = [&](std::int64_t dim) {
    return draws.below(2) == 0 ? call.numbers({drawn.buckets.count(), dim})
                               : call.numbers({call.sizes().num_heads, drawn.buckets.count(), dim});
  };
  const std::int64_t which = 1 + draws.below(3);
  if (which % 2 == 1) drawn.key = vectors(call.sizes().head_dim);
  if (which / 2 == 1) drawn.value = vectors(call.sizes().value_dim);
  call.options().relative_vectors = drawn;
}

std::vector<Option> make_table() {
  const Option fixed{.in_packed = false, .in_chunks = false};
  const Option of_this_length{.in_chunks = false};
  const Option by_keys{.in_packed = false, .in_chunks = false, .needs_key_of_query = true};
  const Option of_tensors{.in_packed = false};
  const Option no_bits{.in_bits = false};
  const Option of_lengths_no_bits{.in_chunks = false, .in_bits = false};
  const Option fixed_no_bits{.in_packed = false, .in_chunks = false, .in_bits = false};
  return {
      mask("causal(top_left)", Kind::kRange, [](auto&) { return causal_top_left(); }),
      mask(
          "causal(bottom_right)", Kind::kRange, [](auto& c) { return draw_bottom_right(c); },
          of_this_length),
      mask("window", Kind::kRange, [](auto& c) { return draw_window(c); }),
      mask("prefix", Kind::kRange,
           [](auto& c) {
             return prefix(c.draws().below(c.sizes().kv_len + 1), Alignment::top_left());
           }),
      mask(
          "key_lengths", Kind::kRange, [](auto& c) { return key_lengths(key_lengths_of_batch(c)); },
          fixed),
      mask(
          "cache_lengths", Kind::kRange, [](auto& c) { return draw_cache_lengths(c); }, fixed),
      mask(
          "documents", Kind::kRange, [](auto& c) { return draw_documents(c); }, by_keys),
      mask(
          "rows", Kind::kRange, [](auto& c) { return draw_rows(c); }, fixed),
      mask(
          "allow", Kind::kIrregular,
          [](auto& c) { return Mask::allow(c.template broadcastable<bool>(draw_flag)); },
          of_this_length),
      mask(
          "additive", Kind::kIrregular, [](auto& c) { return draw_additive(c); }, of_this_length),
      mask(
          "key_padding", Kind::kIrregular, [](auto& c) { return draw_padding(c); }, fixed),
      mask("where", Kind::kIrregular, [](auto& c) { return draw_where(c); }),
      row("softcap", Kind::kScore,
          [](auto& c) {
            c.options().softcap = c.draws().template one_of<RealOf<decltype(c)>>({0.5, 20});
          }),
      row("score_mod", Kind::kScore,
          [](auto& c) { c.options().score_mod = draw_score_mod(c.draws()); }),
      row("alibi", Kind::kScore,
          [](auto& c) { c.options().alibi_slopes = c.numbers({c.sizes().num_heads}); }),
      row(
          "bias", Kind::kScore, [](auto& c) { draw_bias(c); }, of_this_length),
      row("sinks", Kind::kOther,
          [](auto& c) { c.options().sinks = c.numbers({c.sizes().num_heads}); }),
      row("scale", Kind::kOther,
          [](auto& c) {
            c.options().scale = c.draws().template one_of<RealOf<decltype(c)>>({0.3125, -0.125, 0});
          }),
      row("dropout", Kind::kOther,
          [](auto& c) { c.options().dropout = {.probability = 0.25F, .seed = c.seed()}; }),
      row("query_offset", Kind::kOther, [](auto& c) { draw_offset(c); },
          {.in_chunks = false, .needs_key_of_query = true}),
      // In keys and values that no query sees.
      mask(
          kHiddenNaN, Kind::kTensors,
          [](auto& c) {
            return key_lengths(
                std::vector<std::int64_t>(static_cast<std::size_t>(c.sizes().batch),
                                          c.sizes().kv_len - hidden_keys(c.sizes())));
          },
          fixed),
      // Beyond 2¹⁸.
      row(
          kLargeScores, Kind::kTensors, [](auto&) {}, of_tensors),
      mask(
          "low scores", Kind::kTensors, [](auto& c) { return draw_low_scores(c); }, fixed),
      // Of some tens, so that a row's offset changes from tile to tile.
      row(
          kSteepScores, Kind::kTensors, [](auto&) {}, of_tensors),
      mask(
          "causal(offset)", Kind::kRange,
          [](auto& c) { return causal(c.draws().below(400) - 100); }, no_bits),
      mask(
          "block", Kind::kIrregular,
          [](auto& c) { return Mask::block(c.template broadcastable<bool>(draw_flag)); },
          of_lengths_no_bits),
      mask(
          "random_blocks", Kind::kIrregular,
          [](auto& c) {
            Draws& draws = c.draws();
            const RandomBlocks drawn{.count = draws.below(4),
                                     .block = 1 + draws.below(90),
                                     .seed = draws.next(),
                                     .only_past = draws.below(2) == 0};
            return random_blocks(drawn, Alignment::offset(draws.below(100) - 50));
          },
          of_lengths_no_bits),
      mask(
          "streaming", Kind::kIrregular,
          [](auto& c) {
            Draws& draws = c.draws();
            const std::int64_t sinks = draws.below(40);
            const std::int64_t window = 1 + draws.below(100);
            return streaming(sinks, window, Alignment::offset(draws.below(200) - 50));
          },
          no_bits),
      mask(
          "blocks", Kind::kIrregular, [](auto& c) { return draw_blocks(c); }, fixed_no_bits),
      row(
          "dropout of all", Kind::kOther,
          [](auto& c) { c.options().dropout = {.probability = 1, .seed = 7}; }, no_bits),
      row(
          "relative_bias", Kind::kScore, [](auto& c) { draw_relative_bias(c); }, no_bits),
      row(
          "relative_vectors", Kind::kScore, [](auto& c) { draw_relative_vectors(c); }, no_bits),
  };
}

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = make_table();
  return table;
}

}  // namespace heed::testing_support
