// The lesson kv-cache: quantised storage, shared sequences, bounded sequences.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "heed/attention.h"
#include "lessons/kv_cache.h"
#include "lessons/numbers.h"

namespace heed::learn::kv_cache_lesson {

// Returns the root mean square of a − b, which have the same shape.
double distance(const Tensor<float>& a, const Tensor<float>& b) {
  const double sum =
      std::inner_product(a.elements().begin(), a.elements().end(), b.elements().begin(), 0.0,
                         std::plus<>(), [](double x, double y) { return (x - y) * (x - y); });
  return std::sqrt(sum / static_cast<double>(a.num_elements()));
}

void show_storages(Report& report) {
  constexpr std::int64_t kLength = 500;
  constexpr std::int64_t kKeyHeads = 8;
  constexpr std::int64_t kDim = 128;
  constexpr std::int64_t kLayers = 32;
  const Tokens tokens(kKeyHeads, kKeyHeads, kLength, kDim);
  const auto exact = attention(tokens.query, tokens.key, tokens.value, {.mask = causal()});
  report.step("Smaller numbers");
  report.paragraph(
      "The shape of Llama 3 8B: {} layers, {} key heads of {}. Measured on {} random tokens of "
      "one layer: the root mean square error of what is stored, and of the results, whose own "
      "root mean square is {:.2f}.",
      kLayers, kKeyHeads, kDim, kLength, distance(exact, Tensor<float>(exact.shape())));
  report.say();
  report.say("  {:<9} {:>15} {:>11} {:>18} {:>18}", "storage", "bytes per token", "of float32",
             "error of a number", "error of a result");
  auto rows = nlohmann::json::array();
  std::int64_t largest_bytes = 0;
  for (const KvStorage storage : {KvStorage::kFloat32, KvStorage::kFloat16, KvStorage::kBFloat16,
                                  KvStorage::kInt8, KvStorage::kInt4}) {
    KvPool pool({.num_kv_heads = kKeyHeads,
                 .head_dim = kDim,
                 .key_storage = storage,
                 .value_storage = storage});
    KvSequence sequence(pool);
    tokens.append_to(sequence, 0, kLength);
    const std::int64_t bytes = kLayers * (pool.page_bytes() / pool.config().page_size);
    largest_bytes = std::max(largest_bytes, bytes);
    const double stored = distance(sequence.dequantised().key, tokens.key);
    const double result = distance(attend(tokens.query, sequence, {.mask = causal()}), exact);
    report.say("  {:<9} {:>15} {:>9.1f} % {:>18.2g} {:>18.2g}", to_string(storage), grouped(bytes),
               100.0 * static_cast<double>(bytes) / static_cast<double>(largest_bytes), stored,
               result);
    rows.push_back({{"storage", to_string(storage)},
                    {"bytes_per_token", bytes},
                    {"error_of_a_number", stored},
                    {"error_of_a_result", result}});
  }
  report.record("storages", rows);
  report.say();
  report.paragraph(
      "What to notice: float32 has no error at all; int8 keeps a scale for each row, int4 one for "
      "each 32 numbers. All sums stay in float32. On a real model these errors can be larger or "
      "smaller: its keys are not random.");
}

void show_forks(Report& report) {
  constexpr std::int64_t kPrompt = 40;
  constexpr std::int64_t kLength = 48;
  const Tokens tokens(4, 2, kLength, 32);
  KvPool pool({.num_kv_heads = 2, .head_dim = 32, .page_size = 16});
  report.step("Forks and truncation");
  report.paragraph(
      "Keys and values lie in pages, here of 16 positions. A fork shares the pages of what it "
      "continues. Whoever writes to a shared page copies it before:");
  report.say();
  report.say("  {:<42} {:>7} {:>6} {:>13}", "", "length", "pages", "pages in use");
  auto rows = nlohmann::json::array();
  const auto tell = [&](std::string_view what, const KvSequence& sequence) {
    report.say("  {:<42} {:>7} {:>6} {:>13}", what, sequence.length(), sequence.num_pages(),
               pool.pages_in_use());
    rows.push_back({{"done", what},
                    {"length", sequence.length()},
                    {"pages", sequence.num_pages()},
                    {"pages_in_use", pool.pages_in_use()}});
  };
  KvSequence a(pool);
  tokens.append_to(a, 0, kPrompt);
  tell("a: a prompt of 40 tokens", a);
  KvSequence b = a.fork();
  tell("b = a.fork()", b);
  KvSequence c = a.fork(20);
  tell("c = a.fork(20)", c);
  tokens.append_to(b, kPrompt, kPrompt + 1);
  tell("b.append(1 token): copies the third page", b);
  tokens.append_to(c, 20, 21);
  tell("c.append(1 token): copies the second", c);
  tokens.append_to(a, kPrompt, kLength);
  tell("a.append(8 tokens): its third is its own", a);
  a.truncate(10);
  tell("a.truncate(10): b and c keep the rest", a);
  report.record("forks", rows);

  const auto whole = attention(tokens.query, tokens.key, tokens.value, {.mask = causal()});
  tokens.append_to(a, 10, kLength);
  tokens.append_to(b, kPrompt + 1, kLength);
  tokens.append_to(c, 21, kLength);
  std::int64_t differing = 0;
  for (const KvSequence* sequence : {&a, &b, &c}) {
    differing += count_differing(attend(tokens.query, *sequence, {.mask = causal()}), whole);
  }
  report.record("forks_differing", differing);
  report.say();
  report.paragraph(
      "All three then get the same tokens up to {}, and are compared with one attention() of "
      "these: {} of {} numbers differ in any bit. So several answers to one prompt, and a beam "
      "search, keep the prompt once, and a text may take back its last words.",
      kLength, differing, grouped(3 * whole.num_elements()));
}

// Returns the mask of a bounded sequence: a window and the first positions.
Mask window_and_sinks(const KvBounds& bounds) {
  return causal() & Mask::where([bounds](auto, auto, auto q, auto k) {
           return k < bounds.sinks || k > q - bounds.window;
         });
}

// Appends and attends token by token, and shows the number of pages.
Tensor<float> grow(Report& report, const Tokens& tokens, KvSequence& bounded,
                   KvSequence& unbounded) {
  Tensor<float> out(tokens.query.shape());
  auto rows = nlohmann::json::array();
  std::int64_t most = 0;
  std::int64_t shown = 16;
  report.say("  {:>6} {:>17} {:>15}", "length", "pages, unbounded", "pages, bounded");
  for (std::int64_t t = 0; t < out.extent(2); ++t) {
    tokens.append_to(bounded, t, t + 1);
    tokens.append_to(unbounded, t, t + 1);
    put_rows(attend(tokens.queries(t, t + 1), bounded, {.mask = causal()}), t, out);
    most = std::max(most, bounded.num_pages());
    if (t + 1 != shown) continue;
    shown *= 4;
    report.say("  {:>6} {:>17} {:>15}", t + 1, unbounded.num_pages(), bounded.num_pages());
    rows.push_back({{"length", t + 1},
                    {"unbounded_pages", unbounded.num_pages()},
                    {"bounded_pages", bounded.num_pages()}});
  }
  report.record("bounds", rows);
  report.record("most_bounded_pages", most);
  report.say();
  report.paragraph("At no length are there more than {} pages in the bounded one.", most);
  return out;
}

void show_bounds(Report& report) {
  constexpr KvBounds kBounds{.window = 32, .sinks = 4};
  constexpr KvConfig kConfig{.num_kv_heads = 2, .head_dim = 32, .page_size = 16};
  report.step("A bounded sequence: a window and sinks");
  report.paragraph("With KvBounds a sequence forgets. Window 4 and 1 sink, on 10 tokens:");
  report.say();
  for (const auto& line : to_lines(window_and_sinks({.window = 4, .sinks = 1}),
                                   {.q_len = 10, .kv_len = 10}, kHashGlyphs)) {
    report.say("    {}", line);
  }
  report.say();
  report.paragraph("Window {}, {} sinks, pages of {}, token by token:", kBounds.window,
                   kBounds.sinks, kConfig.page_size);
  report.say();
  const Tokens tokens(4, kConfig.num_kv_heads, 1024, kConfig.head_dim);
  KvSequence bounded(kConfig, kBounds);
  KvSequence unbounded(kConfig);
  const Tensor<float> out = grow(report, tokens, bounded, unbounded);
  const auto masked =
      attention(tokens.query, tokens.key, tokens.value, {.mask = window_and_sinks(kBounds)});
  const auto all = attention(tokens.query, tokens.key, tokens.value, {.mask = causal()});
  const std::int64_t differing = count_differing(out, masked);
  const double change = max_difference(out, all);
  report.record("bounds_differing", differing);
  report.record("bounds_change", change);
  report.say();
  report.paragraph(
      "Against one attention() under that mask, {} of {} numbers differ in any bit. Against "
      "attention to all tokens the largest difference is {:.2f}: this is another computation, and "
      "whether a model can do with it depends on its training. Models often look at their first "
      "tokens, which is why these are kept.",
      differing, grouped(out.num_elements()), change);
}

}  // namespace heed::learn::kv_cache_lesson
