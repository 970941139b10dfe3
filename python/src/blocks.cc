// Masks by blocks, from arrays.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "call.h"
#include "heed/attention/block_layout.h"
#include "heed/attention/mask_text.h"
#include "heed/attention/select_blocks.h"
#include "masks.h"
#include "operands.h"

namespace heed::python {

namespace {

constexpr const char* kBlocks = "blocks";

// The elements of a one-dimensional array, or of a list, of type `From`.
template <class T, class From>
std::vector<T> copied(const char* name, const Array& array) {
  std::vector<T> result;
  result.reserve(array.size());
  for_each_element(view_of<From>(array), [&](From element) {
    if constexpr (std::is_integral_v<T> && sizeof(From) > sizeof(T)) {
      if (!std::in_range<T>(element)) {
        throw InvalidArgument(
            fmt::format("{}: {} holds {}, which is no block", kBlocks, name, element));
      }
    }
    result.push_back(static_cast<T>(element));
  });
  return result;
}

Array array_of_rank_1(const char* name, nb::handle object) {
  Array array = to_array(kBlocks, name, object);
  if (array.ndim() == 1) return array;
  throw InvalidArgument(fmt::format("{}: {} has shape {}, expected one dimension", kBlocks, name,
                                    to_string(shape_of(array))));
}

template <class T>
std::vector<T> integers(const char* name, nb::handle object) {
  const Array array = array_of_rank_1(name, object);
  if (array.dtype() == nb::dtype<std::int64_t>()) return copied<T, std::int64_t>(name, array);
  if (array.dtype() == nb::dtype<std::int32_t>()) return copied<T, std::int32_t>(name, array);
  throw InvalidArgument(
      fmt::format("{}: {} is {}, expected int64 or int32", kBlocks, name, type_name(array)));
}

std::vector<std::uint8_t> flags(const char* name, nb::handle object) {
  const Array array = array_of_rank_1(name, object);
  if (array.dtype() == nb::dtype<bool>()) return copied<std::uint8_t, bool>(name, array);
  throw InvalidArgument(fmt::format("{}: {} is {}, expected bool: true where `within` applies",
                                    kBlocks, name, type_name(array)));
}

using Pair = std::pair<std::int64_t, std::int64_t>;

MaskObject blocks(nb::handle row_begin, nb::handle columns, const Pair& lengths, const Pair& block,
                  std::int64_t batch, std::int64_t num_heads, nb::handle partial,
                  const MaskObject* within) {
  BlockLayout layout{.batch = batch,
                     .num_heads = num_heads,
                     .q_len = lengths.first,
                     .kv_len = lengths.second,
                     .q_block = block.first,
                     .kv_block = block.second,
                     .row_begin = integers<std::int64_t>("row_begin", row_begin),
                     .columns = integers<std::int32_t>("columns", columns)};
  if (!partial.is_none()) layout.partial = flags("partial", partial);
  if (within == nullptr) return {Mask::blocks(std::move(layout))};
  return {Mask::blocks(std::move(layout), within->mask), within->arrays, within->function_objects};
}

template <class T, class From>
nb::object array_of(const std::vector<From>& numbers) {
  auto tensor = Tensor<T>::uninitialized({static_cast<std::int64_t>(numbers.size())});
  std::transform(numbers.begin(), numbers.end(), tensor.data(),
                 [](From number) { return static_cast<T>(number); });
  return to_object(std::move(tensor), Library::kNumpy);
}

// The argument of `blocks`; the layout says of each block whether it is partial.
nb::dict to_dict(const BlockLayout& layout) {
  nb::dict result;
  result["row_begin"] = array_of<std::int64_t>(layout.row_begin);
  result["columns"] = array_of<std::int32_t>(layout.columns);
  result["partial"] = array_of<bool>(layout.partial);
  result["lengths"] = nb::make_tuple(layout.q_len, layout.kv_len);
  result["block"] = nb::make_tuple(layout.q_block, layout.kv_block);
  result["batch"] = layout.batch;
  result["num_heads"] = layout.num_heads;
  return result;
}

nb::dict block_layout(const MaskObject& mask, const std::vector<std::int64_t>& shape,
                      const Pair& block, const QueryOffsets& query_offset) {
  const ScoreShape scores = score_shape(shape, query_offset);
  return to_dict(without_lock(
      [&] { return BlockLayout::from(mask.mask, scores, block.first, block.second); }));
}

nb::dict select(nb::handle query, nb::handle key, std::int64_t block, std::int64_t top_k,
                std::int64_t q_block, bool causal, bool per_kv_head) {
  const SelectBlocksOptions options{.block = block,
                                    .top_k = top_k,
                                    .q_block = q_block,
                                    .causal = causal,
                                    .per_kv_head = per_kv_head};
  const Operands operands = operands_of("select_blocks", query, key, key);
  return with_type(operands.dtype, [&](auto number) {
    using T = decltype(number);
    return to_dict(without_lock([&] {
      return select_blocks(view_of<T>(operands.query), view_of<T>(operands.key), options);
    }));
  });
}

}  // namespace

void bind_blocks(nb::module_& module) {
  module.def(kBlocks, &blocks, nb::arg("row_begin").none(), nb::arg("columns").none(),
             nb::kw_only(), nb::arg("lengths"), nb::arg("block") = Pair(128, 128),
             nb::arg("batch") = 1, nb::arg("num_heads") = 1, nb::arg("partial") = nb::none(),
             nb::arg("within") = nb::none(),
             "The blocks of scores that a sparse matrix names. lengths: (q_len, kv_len); block: "
             "queries and keys in a block, at most 128 each; columns: the blocks of keys of each "
             "row of blocks, rising; row_begin: where in columns each row begins, [batch * "
             "num_heads * rows + 1]; a batch or num_heads of 1 holds for all. All of a block is "
             "visible, and of those where the booleans partial, as long as columns, are true what "
             "the mask within shows. Tiles without a block are not visited.");
  module.def(
      "block_layout", &block_layout, nb::arg("mask"), nb::arg("shape"), nb::kw_only(),
      nb::arg("block") = Pair(128, 128), nb::arg("query_offset") = 0,
      "The blocks of a mask for scores of a shape, (q_len, kv_len) for all heads or (batch, "
      "num_heads, q_len, kv_len): what heed.blocks(**layout, within=mask) takes to show what "
      "the mask shows.");
  module.def(
      "select_blocks", &select, nb::arg("query").none(), nb::arg("key").none(), nb::kw_only(),
      nb::arg("block") = 128, nb::arg("top_k") = 8, nb::arg("q_block") = 1,
      nb::arg("causal") = false, nb::arg("per_kv_head") = false,
      "The top_k blocks of `block` keys whose mean key is most like each query, or the mean of "
      "q_block queries; of equals the first, in each query head others (Lu et al., 2025, MoBA). "
      "causal: the last query stands at the last key, and its own block is one of the top_k. "
      "per_kv_head: query heads that share a key head choose together, by the sum of their "
      "affinities. "
      "heed.blocks(**layout, within=heed.causal(\"bottom_right\")) is the mask; without causal, "
      "heed.blocks(**layout).");
  module.def(
      "parse_mask", [](const std::string& text) { return MaskObject{heed::parse_mask(text)}; },
      nb::arg("text"),
      "The mask that a text names, in the words in which masks print themselves: "
      "heed.parse_mask(\"causal & (sliding_window(128, 0) | global_tokens(16))\"). What is made of "
      "arrays or functions cannot be read.");
}

}  // namespace heed::python
