#include "demonstrate.h"

#include <fmt/format.h>

#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"

namespace heed { inline namespace v0 {

namespace {

void check_at_least_1(std::string_view function, std::string_view argument, std::int64_t value) {
  if (value < 1) {
    throw InvalidArgument(
        fmt::format("{}: {} is {}; expected at least 1", function, argument, value));
  }
}

// Returns a shape as Python prints a tuple, "(1, 6, 32)", because the tutorials use this form.
std::string tuple(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

// Returns a number with up to four decimals and no trailing zeros except one: 0.25, 1.0.
std::string number(float value) {
  std::string text = fmt::format("{:.4f}", value);
  while (text.back() == '0' && text[text.size() - 2] != '.') text.pop_back();
  return text;
}

std::string list(std::span<const float> values) {
  std::vector<std::string> numbers;
  for (const float value : values) numbers.push_back(number(value));
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string headline(std::string_view title) {
  return fmt::format("{0:=<60}\n{1}\n{0:=<60}\n", "", title);
}

// Returns the weights of batch entry 0, head 0, query 0.
std::span<const float> first_row(const Tensor<float>& weights) {
  return weights.elements().first(static_cast<std::size_t>(weights.extent(-1)));
}

void write_interpretation(std::ostream& out, std::int64_t seq_len) {
  out << "\nInterpretation:\n  Position 0: can only see position 0\n";
  if (seq_len > 2) out << "  Position 1: can see positions 0, 1\n";
  if (seq_len > 1) out << fmt::format("  Position {}: can see all positions\n", seq_len - 1);
}

}  // namespace

void demonstrate_attention(std::ostream& out, std::int64_t seq_len, std::int64_t embed_dim,
                           std::int64_t num_heads) {
  constexpr std::string_view kFunction = "demonstrate_attention";
  check_at_least_1(kFunction, "seq_len", seq_len);
  check_at_least_1(kFunction, "embed_dim", embed_dim);
  check_at_least_1(kFunction, "num_heads", num_heads);
  if (embed_dim % num_heads != 0) {
    throw InvalidArgument(fmt::format("{}: embed_dim is {}; expected a multiple of num_heads, {}",
                                      kFunction, embed_dim, num_heads));
  }
  TorchGenerator& generator = default_generator();
  const auto parameters = attention_init(generator, embed_dim, embed_dim);
  const auto x = generator.randn({1, seq_len, embed_dim});
  const auto attended = multi_head_attention(x, x, parameters, num_heads);
  const auto row = first_row(attended.weights);

  out << headline("ATTENTION DEMONSTRATION")
      << fmt::format("\nMulti-Head Attention:\n  Embed dim: {}\n  Num heads: {}\n  Head dim: {}\n",
                     embed_dim, num_heads, embed_dim / num_heads)
      << fmt::format("\nInput shape: {}\n  (batch=1, seq_len={}, embed_dim={})\n", tuple(x.shape()),
                     seq_len, embed_dim)
      << fmt::format("\nOutput shape: {}\nAttention weights shape: {}\n",
                     tuple(attended.out.shape()), tuple(attended.weights.shape()))
      << "  (batch, heads, seq, seq)\n\nAttention weights for head 0, position 0:\n"
      << fmt::format("  {}\n  Sum: {:.4f} (should be 1.0)\n", list(row),
                     std::accumulate(row.begin(), row.end(), 0.0));
}

void demonstrate_causal_attention(std::ostream& out, std::int64_t seq_len) {
  check_at_least_1("demonstrate_causal_attention", "seq_len", seq_len);
  constexpr std::int64_t kHeadDim = 8;
  const Shape shape{1, 1, seq_len, kHeadDim};
  TorchGenerator& generator = default_generator();
  const auto query = generator.randn(shape);
  const auto key = generator.randn(shape);
  const auto value = generator.randn(shape);
  const auto keep = reference::Keep::kWeights;
  const auto full = reference::attention(query, key, value, {}, keep);
  const auto masked = reference::attention(query, key, value, {.mask = causal()}, keep);

  out << headline("CAUSAL ATTENTION DEMONSTRATION")
      << fmt::format("\nCausal mask for seq_len={}:\n(█ = can attend, · = masked)\n", seq_len);
  std::int64_t position = 0;
  const ScoreShape scores{.q_len = seq_len, .kv_len = seq_len};
  for (const std::string& line : to_lines(causal(), scores, kBlockGlyphs)) {
    out << fmt::format("  Position {}: {}\n", position++, line);
  }
  write_interpretation(out, seq_len);
  out << fmt::format("\nWithout mask (position 0 attends to all):\n  {}\n",
                     list(first_row(full.weights)))
      << fmt::format("\nWith causal mask (position 0 only attends to itself):\n  {}\n",
                     list(first_row(masked.weights)));
}

}}  // namespace heed::v0
