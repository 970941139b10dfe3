/// Masks: which keys each query may attend to. They are made by name, combined with & and |, and
/// printable.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/attention/score_mod.h"
#include "heed/core/config.h"
#include "heed/core/dual.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

struct BlockLayout;  // heed/attention/block_layout.h

/// The position of query 0 in its sequence: one number for all batch entries, or one for each, for
/// caches that are filled to different lengths. Query q is at position q + offset[batch]. A value;
/// copies share their state.
///
///     options.query_offset = 17;
///     options.query_offset = std::vector<std::int64_t>{17, 5, 0};  // three batch entries
class HEED_API QueryOffset {
 public:
  QueryOffset(std::int64_t of_all = 0) noexcept  // NOLINT(google-explicit-constructor)
      : of_all_(of_all) {}
  QueryOffset(std::vector<std::int64_t> of_each);  // NOLINT(google-explicit-constructor)

  std::int64_t operator[](std::int64_t batch) const noexcept {
    return of_each_ == nullptr ? of_all_ : (*of_each_)[static_cast<std::size_t>(batch)];
  }

  /// True if every batch entry has its own number.
  bool is_per_entry() const noexcept { return of_each_ != nullptr; }
  /// The numbers of all batch entries, or the single one that all share.
  std::span<const std::int64_t> values() const noexcept {
    if (of_each_ == nullptr) return {&of_all_, 1};
    return {of_each_->data(), of_each_->size()};
  }

  /// Adds `distance` to all positions.
  QueryOffset& operator+=(std::int64_t distance);
  QueryOffset& operator-=(std::int64_t distance) { return *this += -distance; }

 private:
  std::int64_t of_all_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> of_each_;
};

/// The shape of a score tensor and the position of its first query in each sequence.
struct ScoreShape {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  /// The position of query 0: query q is at position q + query_offset[batch].
  QueryOffset query_offset = {};
};

/// The keys begin ≤ k < end.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend constexpr bool operator==(const RowRange&, const RowRange&) = default;
};

/// The keys in both ranges.
constexpr RowRange operator&(const RowRange& a, const RowRange& b) noexcept {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// The rule that gives each query its key position where there may be more keys than queries. The
/// caller names it; it is never guessed. A value; copies share their state.
class Alignment {
 public:
  /// The last query is at the last key, and the lengths must agree: query_offset + q_len == kv_len.
  /// Without a query_offset there must be as many queries as keys.
  static Alignment square() { return {Kind::kSquare, 0}; }
  /// Query q is at key q + query_offset.
  static Alignment top_left() { return {Kind::kOffset, 0}; }
  /// The last query is at the last key: query q is at key q + kv_len − q_len. A query_offset must
  /// agree or be 0.
  static Alignment bottom_right() { return {Kind::kBottomRight, 0}; }
  /// The last query of sequence b is at the last of its first lengths[b] keys: query q is at key q
  /// + lengths[b] − q_len, which is before the first key where there are more queries than keys.
  /// This is for caches that are filled to different lengths; key_lengths(lengths) hides the keys
  /// beyond. Every query_offset must agree or be 0, and every length must be 0 to kv_len.
  HEED_API static Alignment bottom_right(std::vector<std::int64_t> lengths);
  /// Query q is at key q + query_offset + offset.
  static Alignment offset(std::int64_t offset) { return {Kind::kOffset, offset}; }

  /// Throws if resolve() is not defined for a sequence of the batch.
  /// @throws InvalidArgument when the lengths are not those that this alignment demands.
  HEED_API void check(std::string_view mask_name, const ScoreShape& shape) const;

  /// The number to add to a query's index to get its key position, in a sequence of the batch.
  /// check() must have passed for the same shape.
  HEED_API std::int64_t resolve(const ScoreShape& shape, std::int64_t batch) const;

  /// True for bottom_right() without lengths.
  bool is_bottom_right() const noexcept { return kind_ == Kind::kBottomRight; }

  /// As text: "" (square), "top_left", "offset(3)", "bottom_right" or "bottom_right(5, 3)".
  HEED_API std::string description() const;

 private:
  enum class Kind { kSquare, kBottomRight, kLengths, kOffset };
  Alignment(Kind kind, std::int64_t offset) : kind_(kind), offset_(offset) {}
  HEED_API void check_agreement(std::string_view mask_name, const ScoreShape& shape) const;

  Kind kind_;
  std::int64_t offset_;
  std::shared_ptr<const std::vector<std::int64_t>> lengths_;
};

namespace detail {

class MaskPart;

// The interface through which the library calls a user's mask function.
class HEED_API MaskFunction {
 public:
  virtual ~MaskFunction();
  virtual bool visible(const ScorePosition& at) const = 0;
  // Sets the scores to −infinity where the function returns false.
  virtual void hide(const ScoreTile& tile) const = 0;
};

struct HideScore {
  static constexpr bool kDifferentiates = false;
  template <class F, class Real>
  [[gnu::always_inline, gnu::flatten]] static Real apply(const F& visible, Real score,
                                                         const ScorePosition& at) {
    return select_both(visible(at.batch, at.head, at.q_idx, at.kv_idx), score,
                       -std::numeric_limits<Real>::infinity());
  }
};

template <class F>
class MaskFunctionOf final : public MaskFunction {
 public:
  explicit MaskFunctionOf(F function) : function_(std::move(function)) {}
  bool visible(const ScorePosition& at) const override {
    return function_(at.batch, at.head, at.q_idx, at.kv_idx);
  }
  void hide(const ScoreTile& tile) const override { tile_loop<HideScore>(tile, function_); }

 private:
  F function_;
};

template <class F>
concept MaskLambda =
    !TensorLike<F> &&
    std::predicate<const F&, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

// Arguments that are no mask, but that a mask can be made of.
template <class T>
concept NotQuiteMask = TensorLike<T> || std::same_as<T, bool> || MaskLambda<T>;

}  // namespace detail

/// A value that says which keys each query may attend to. Copies share their immutable state.
///
/// Tensors broadcast, aligned at the right, to [batch, num_heads, q_len, kv_len]. A mask refers to
/// the memory of an lvalue tensor, which must outlive the mask unchanged; it takes over an rvalue
/// tensor. attention() and the functions below check that a mask fits their ScoreShape.
class HEED_API Mask {
 public:
  /// All keys are visible.
  Mask();

  /// An argument that is no mask: does not compile; the error names the function to write.
  template <detail::NotQuiteMask T>
  Mask(const T&) {  // NOLINT(google-explicit-constructor)
    static_assert(
        !detail::TensorLike<T>,
        "whether true means \"may attend\" is not guessed: write Mask::allow(tensor) where "
        "it does, Mask::block(tensor) where it hides, Mask::additive(tensor) of numbers");
    static_assert(!std::same_as<T, bool>, "write heed::causal(), or no mask at all");
    static_assert(!detail::MaskLambda<T>, "write Mask::where(function)");
  }

  /// A mask of booleans, true = may attend.
  static Mask allow(TensorView<const bool> allowed);
  static Mask allow(Tensor<bool>&& allowed);
  /// A mask of booleans, true = may not attend.
  static Mask block(TensorView<const bool> blocked);
  static Mask block(Tensor<bool>&& blocked);
  /// A mask of numbers that are added to the scores; −infinity = may not attend.
  static Mask additive(FloatView added);
  static Mask additive(Tensor<float>&& added);

  /// The last n queries are the n nodes of a tree, as in speculative decoding: parents[i] < i is
  /// the node that node i continues, or −1 where it continues the text before the tree. A node sees
  /// that text, its ancestors and itself; queries before the nodes see the keys up to their own
  /// position. The alignment gives the key positions of queries and nodes, which count keys and not
  /// the depth of a node.
  /// @throws InvalidArgument when a parent is below −1 or not before its node.
  static Mask tree(std::vector<std::int64_t> parents,
                   Alignment alignment = Alignment::bottom_right());

  /// The blocks of scores in a layout (heed/attention/block_layout.h): a full block is visible, and
  /// a partial block as far as the mask `partial` allows. Tiles without a block are not computed.
  /// @throws InvalidArgument when the layout's numbers contradict each other, or `partial` adds to
  /// scores. A call with lengths other than the layout's throws it too.
  static Mask blocks(BlockLayout layout, const Mask& partial = Mask());

  /// One range of keys for each of the q_len queries, for all batch entries and heads.
  static Mask rows(std::vector<RowRange> ranges);

  /// A key is visible where visible(b, h, q_idx, kv_idx) returns true. The function is called for
  /// any cell, in any order, from any thread. q_idx includes query_offset. It must not throw.
  template <detail::MaskLambda F>
  static Mask where(F visible) {
    return where_function(std::make_shared<detail::MaskFunctionOf<F>>(std::move(visible)));
  }

  /// A key is visible when both masks allow it; numbers that they add to scores are summed.
  friend HEED_API Mask operator&(const Mask& a, const Mask& b);

  /// A key is visible when either mask allows it.
  /// @throws InvalidArgument when one of them adds to scores: write (a | b) & added.
  friend HEED_API Mask operator|(const Mask& a, const Mask& b);

  /// The mask as text, e.g. "causal(bottom_right) & sliding_window(4, 0)"; "none" when everything
  /// is visible. parse_mask() (heed/attention/mask_text.h) reads it, unless it contains tensors,
  /// layouts or functions.
  std::string description() const;

  /// Internal: the parts that must all allow a key.
  std::span<const std::shared_ptr<const detail::MaskPart>> parts() const noexcept { return parts_; }
  /// Internal: the mask of one part.
  explicit Mask(std::shared_ptr<const detail::MaskPart> part);
  /// For bindings of other languages: where() of a function that processes whole tiles.
  static Mask where_function(std::shared_ptr<const detail::MaskFunction> function);

 private:
  std::vector<std::shared_ptr<const detail::MaskPart>> parts_;
};

/// A query sees the keys up to its own position, which is included. The default alignment demands
/// as many queries as keys.
HEED_API Mask causal(Alignment alignment = Alignment::square());
/// causal with query 0 at key 0.
HEED_API Mask causal_top_left();
/// causal with the last query at the last key.
HEED_API Mask causal_bottom_right();
/// causal where query q sees the keys k ≤ q + query_offset + offset.
HEED_API Mask causal(std::int64_t offset);

/// The bound of a side of a sliding window that has none.
inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

/// A query sees itself, `left` keys before it and `right` keys after it: position − left ≤ k ≤
/// position + right.
/// @throws InvalidArgument when a side is negative.
HEED_API Mask sliding_window(std::int64_t left, std::int64_t right,
                             Alignment alignment = Alignment::square());

/// Every query sees the first `length` keys and the keys up to its own position: the mask of a
/// prefix LM.
/// @throws InvalidArgument when the length is negative.
HEED_API Mask prefix(std::int64_t length, Alignment alignment = Alignment::square());

/// Sequence b of the batch has lengths[b] keys; the rest is padding that no query sees.
/// @throws InvalidArgument when a length is negative.
HEED_API Mask key_lengths(std::vector<std::int64_t> lengths);

/// A copy of a mask tensor whose last dimension is extended to kv_len; the added keys may not be
/// attended to. For Mask::allow, [..., keys], and Mask::additive; any rank from 1. The last
/// dimension is extended even if it is 1, not broadcast.
/// @return [..., kv_len]
/// @throws InvalidArgument when the mask has more than kv_len keys or no dimension.
HEED_API Tensor<bool> pad_keys(TensorView<const bool> allowed, std::int64_t kv_len);
HEED_API Tensor<float> pad_keys(FloatView added, std::int64_t kv_len);

/// Hides the keys whose token is `padding_id`.
/// @param token_ids [batch, kv_len]; the mask has the shape [batch, 1, 1, kv_len]
/// @throws InvalidArgument when token_ids is not of rank 2.
HEED_API Mask key_padding(TensorView<const std::int64_t> token_ids, std::int64_t padding_id);

/// The first `count` tokens see every key, and every query sees them.
/// @throws InvalidArgument when the count is negative.
HEED_API Mask global_tokens(std::int64_t count, Alignment alignment = Alignment::square());

/// A query sees the keys at distances that are multiples of `stride`, on both sides: the second of
/// the two masks of sparse_transformer().
/// @throws InvalidArgument when the stride is below 1.
HEED_API Mask strided(std::int64_t stride, Alignment alignment = Alignment::square());

/// Every query sees the last key of each block of `stride` keys, k mod stride = stride − 1: the
/// summary keys of the "fixed" pattern. Source: Child et al., "Generating Long Sequences with
/// Sparse Transformers", 2019, section 4.3.
/// @throws InvalidArgument when the stride is below 1.
HEED_API Mask columns(std::int64_t stride);

/// A query sees itself and `window` keys on each side, `step` positions apart.
/// @throws InvalidArgument when the window is negative, the step below 1, or their product too
/// large.
HEED_API Mask dilated(std::int64_t window, std::int64_t step,
                      Alignment alignment = Alignment::square());

/// sliding_window(window, window) | global_tokens(global).
/// Source: Beltagy et al., "Longformer: The Long-Document Transformer", 2020, section 3.1.
/// @throws InvalidArgument when a number is negative.
HEED_API Mask longformer(std::int64_t window, std::int64_t global,
                         Alignment alignment = Alignment::square());

/// (sliding_window(stride − 1, 0) | strided(stride)) & causal(): the last `stride` keys, and every
/// stride-th of the keys before them. Source: Child et al., 2019, section 4.3, "strided".
/// @throws InvalidArgument when the stride is below 1.
HEED_API Mask sparse_transformer(std::int64_t stride, Alignment alignment = Alignment::square());

/// Positions are divided into blocks of `block`. A query in block i sees the keys of the blocks i −
/// left to i + right; kUnbounded: no bound. With 0 on both sides the blocks are chunks that do not
/// see each other.
/// @throws InvalidArgument when a side is negative or the block below 1.
HEED_API Mask block_window(std::int64_t left, std::int64_t right, std::int64_t block,
                           Alignment alignment = Alignment::square());

/// The parameters of random_blocks().
struct RandomBlocks {
  std::int64_t count = 3;   // blocks of keys for each block of queries, at most 256
  std::int64_t block = 64;  // positions in a block
  std::uint64_t seed = 0;
  /// If true, blocks are drawn from those up to the queries' own instead of from all. The draw then
  /// does not change as keys are appended: use it with causal() and a cache.
  bool only_past = false;
};

/// Each block of queries sees `count` different blocks of keys drawn at random, or all where there
/// are no more. The draw depends on the seed, the head, the block of queries and the number of
/// blocks to draw from alone.
/// @throws InvalidArgument when the count is not 0 to 256 or the block below 1.
HEED_API Mask random_blocks(const RandomBlocks& drawn, Alignment alignment = Alignment::square());

/// The parameters of bigbird(), in blocks. The defaults are those of the published base model.
struct BigBird {
  std::int64_t block = 64;  // b: positions in a block
  std::int64_t window = 3;  // w: blocks around the query's, which is in the middle; odd
  std::int64_t global = 2;  // g: blocks at the beginning that see all blocks and that all see
  std::int64_t random = 3;  // r: blocks drawn at random, as by random_blocks()
  std::uint64_t seed = 0;
};

/// block_window(w / 2, w / 2, b) | global_tokens(g · b) | random_blocks({r, b, seed}).
/// Source: Zaheer et al., "Big Bird: Transformers for Longer Sequences", 2020, section 2 and
/// appendix D.
/// @throws InvalidArgument when a number is negative, the window even or the block below 1.
HEED_API Mask bigbird(const BigBird& numbers = {}, Alignment alignment = Alignment::square());

/// A query sees the first `sinks` keys and the last `window` keys, its own included, and none after
/// its own. Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023.
/// @throws InvalidArgument when the sinks are negative or the window is below 1.
HEED_API Mask streaming(std::int64_t sinks, std::int64_t window,
                        Alignment alignment = Alignment::square());

/// A mask for several sequences packed into one: a query sees the keys of its own document only.
/// `cu_seqlens` are the boundaries 0 = c₀ ≤ c₁ ≤ … ≤ c_n; document i is the positions cᵢ ≤ p < cᵢ₊₁
/// of queries (query_offset included) and keys, and c_n must be kv_len.
/// @throws InvalidArgument when the boundaries do not start at 0 or fall.
HEED_API Mask documents(std::vector<std::int64_t> cu_seqlens);

/// The mask as booleans [batch, num_heads, q_len, kv_len], true = may attend.
/// @throws InvalidArgument when the mask does not fit the shape. The functions below throw it too.
HEED_API Tensor<bool> materialize_allow(const Mask& mask, const ScoreShape& shape);
/// The mask as booleans [batch, num_heads, q_len, kv_len], true = may not attend.
HEED_API Tensor<bool> materialize_block(const Mask& mask, const ScoreShape& shape);
/// The numbers that the mask adds to the scores, [batch, num_heads, q_len, kv_len]; −infinity = may
/// not attend.
HEED_API Tensor<float> materialize_additive(const Mask& mask, const ScoreShape& shape);

/// The number of pairs of a query and a key that may attend, over all batch entries and heads.
HEED_API std::int64_t count_visible(const Mask& mask, const ScoreShape& shape);

/// Glyphs that print a visible cell, a masked cell, and the gap between two cells.
struct MaskGlyphs {
  std::string_view visible;
  std::string_view masked;
  std::string_view between;
};
/// Glyphs for logs, for prose, and for pictures.
inline constexpr MaskGlyphs kHashGlyphs{"#", ".", ""};
inline constexpr MaskGlyphs kCheckGlyphs{"✓", "✗", " "};
inline constexpr MaskGlyphs kBlockGlyphs{"█", "·", ""};

/// The mask as text for one batch entry and head: one line per query, one glyph per key.
HEED_API std::vector<std::string> to_lines(const Mask& mask, const ScoreShape& shape,
                                           const MaskGlyphs& glyphs = kHashGlyphs,
                                           std::int64_t batch = 0, std::int64_t head = 0);

}}  // namespace heed::v0
