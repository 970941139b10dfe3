// Masks that depend on the positions of queries among the keys.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "masks.h"

namespace heed::python {

namespace {

// Reads "square", "top_left", "bottom_right", the position of query 0, or the number of keys of
// each sequence up to its last query. Refuses booleans, which Python accepts as numbers.
Alignment alignment_of(const char* function, nb::handle argument) {
  std::string name;
  if (nb::try_cast(argument, name)) {
    if (name == "square") return Alignment::square();
    if (name == "top_left") return Alignment::top_left();
    if (name == "bottom_right") return Alignment::bottom_right();
  }
  std::int64_t offset = 0;
  if (!nb::isinstance<nb::bool_>(argument) && nb::try_cast(argument, offset)) {
    return Alignment::offset(offset);
  }
  std::vector<std::int64_t> lengths;
  if (nb::try_cast(argument, lengths)) return Alignment::bottom_right(std::move(lengths));
  throw InvalidArgument(
      fmt::format("{}: alignment is {}, expected \"square\", \"top_left\", \"bottom_right\", a "
                  "number of positions or a list of lengths",
                  function, nb::repr(argument).c_str()));
}

MaskObject sliding_window(std::optional<std::int64_t> left, std::optional<std::int64_t> right,
                          nb::handle alignment) {
  const auto side = [](const char* name, std::optional<std::int64_t> keys) {
    if (!keys || *keys >= 0) return keys.value_or(kUnbounded);
    throw InvalidArgument(fmt::format(
        "sliding_window: {} is {}, expected at least 0, or None for no bound", name, *keys));
  };
  return {heed::sliding_window(side("left", left), side("right", right),
                               alignment_of("sliding_window", alignment))};
}

// Defines name(number, alignment).
void define(nb::module_& module, const char* name, Mask (*make)(std::int64_t, Alignment),
            const char* number, const char* doc) {
  module.def(
      name,
      [name, make](std::int64_t given, nb::handle alignment) {
        return MaskObject{make(given, alignment_of(name, alignment))};
      },
      nb::arg(number), nb::arg("alignment").none() = "square", doc);
}

// Defines name(first, second, alignment).
void define(nb::module_& module, const char* name,
            Mask (*make)(std::int64_t, std::int64_t, Alignment), const char* first,
            const char* second, const char* doc) {
  module.def(
      name,
      [name, make](std::int64_t a, std::int64_t b, nb::handle alignment) {
        return MaskObject{make(a, b, alignment_of(name, alignment))};
      },
      nb::arg(first), nb::arg(second), nb::arg("alignment").none() = "square", doc);
}

void bind_intervals(nb::module_& module) {
  module.def(
      "causal",
      [](nb::handle alignment) {
        return MaskObject{heed::causal(alignment_of("causal", alignment))};
      },
      nb::arg("alignment").none() = "square",
      "A query sees the keys up to the position it stands at. \"square\" demands as many queries "
      "as keys; \"top_left\" puts query 0 at key 0, \"bottom_right\" the last query at the last "
      "key, a number query 0 at that key, a list the last query of sequence b at the last of its "
      "first lengths[b] keys.");
  module.def("sliding_window", &sliding_window, nb::arg("left").none(), nb::arg("right").none(),
             nb::arg("alignment").none() = "square",
             "A query sees itself, `left` keys before it and `right` keys after it; None: no "
             "bound.");
  define(module, "prefix", &heed::prefix, "length",
         "Every query sees the first `length` keys, and the keys up to its own position.");
  module.def(
      "tree",
      [](std::vector<std::int64_t> parents, nb::handle alignment) {
        return MaskObject{Mask::tree(std::move(parents), alignment_of("tree", alignment))};
      },
      nb::arg("parents"), nb::arg("alignment").none() = "bottom_right",
      "The last queries are the nodes of a tree: parents[i] is the node that node i continues, one "
      "before it, or -1 where it continues the text before the tree. A node sees that text, its "
      "ancestors and itself.");
}

void bind_sparse(nb::module_& module) {
  define(module, "global_tokens", &heed::global_tokens, "count",
         "The first `count` tokens see every key, and every query sees them.");
  define(module, "strided", &heed::strided, "stride",
         "A query sees the keys that are a multiple of `stride` away from it, on both sides.");
  module.def(
      "columns", [](std::int64_t stride) { return MaskObject{heed::columns(stride)}; },
      nb::arg("stride"),
      "Every query sees the last key of each `stride` keys, k % stride == stride - 1 (Child et "
      "al., 2019, \"fixed\").");
  define(module, "dilated", &heed::dilated, "window", "step",
         "A query sees itself and `window` keys on each side that stand `step` apart.");
  define(module, "longformer", &heed::longformer, "window", "num_global",
         "sliding_window(window, window) | global_tokens(num_global) (Beltagy et al., 2020).");
  define(module, "sparse_transformer", &heed::sparse_transformer, "stride",
         "(sliding_window(stride - 1, 0) | strided(stride)) & causal(): the last `stride` keys, "
         "and of those before every stride-th (Child et al., 2019, \"strided\").");
  define(
      module, "streaming", &heed::streaming, "sinks", "window",
      "A query sees the first `sinks` keys and the last `window`, its own included (Xiao et al., "
      "2023).");
}

MaskObject block_window(std::optional<std::int64_t> left, std::optional<std::int64_t> right,
                        std::int64_t block, nb::handle alignment) {
  return {heed::block_window(left.value_or(kUnbounded), right.value_or(kUnbounded), block,
                             alignment_of("block_window", alignment))};
}

MaskObject random_blocks(std::int64_t count, std::int64_t block, std::uint64_t seed, bool only_past,
                         nb::handle alignment) {
  return {
      heed::random_blocks({.count = count, .block = block, .seed = seed, .only_past = only_past},
                          alignment_of("random_blocks", alignment))};
}

MaskObject bigbird(std::int64_t block, std::int64_t window, std::int64_t num_global,
                   std::int64_t num_random, std::uint64_t seed, nb::handle alignment) {
  return {heed::bigbird(
      {.block = block, .window = window, .global = num_global, .random = num_random, .seed = seed},
      alignment_of("bigbird", alignment))};
}

void bind_block_patterns(nb::module_& module) {
  module.def("block_window", &block_window, nb::arg("left").none(), nb::arg("right").none(),
             nb::arg("block"), nb::arg("alignment").none() = "square",
             "A query in block i of `block` positions each sees the keys of the blocks i - left to "
             "i + right; None: no bound.");
  module.def(
      "random_blocks", &random_blocks, nb::arg("count") = 3, nb::arg("block") = 64,
      nb::arg("seed") = 0, nb::kw_only(), nb::arg("only_past") = false,
      nb::arg("alignment").none() = "square",
      "Each block of queries sees `count` different blocks of keys, at most 256, drawn at "
      "random by seed, head and block. only_past: among the blocks up to its own, which stay "
      "the same as keys are appended.");
  module.def(
      "bigbird", &bigbird, nb::arg("block") = 64, nb::arg("window") = 3, nb::arg("num_global") = 2,
      nb::arg("num_random") = 3, nb::arg("seed") = 0, nb::arg("alignment").none() = "square",
      "block_window(window // 2, window // 2, block) | global_tokens(num_global * block) | "
      "random_blocks(num_random, block, seed): numbers of blocks, those of the published base "
      "model; the window is odd (Zaheer et al., 2020).");
}

}  // namespace

void bind_patterns(nb::module_& module) {
  bind_intervals(module);
  bind_sparse(module);
  bind_block_patterns(module);
}

}  // namespace heed::python
