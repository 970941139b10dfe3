// The masks that are one interval of keys per query.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/mask_part.h"
#include "heed/mask.h"

namespace heed::inline v0 {

namespace {

using detail::MaskPart;

// Offsets beyond any position are refused, so that sums of them do not overflow.
constexpr std::int64_t kMaxOffset = std::int64_t{1} << 32;

std::string with_alignment(const std::string& arguments, const Alignment& alignment) {
  const std::string aligned = alignment.description();
  return arguments + (arguments.empty() || aligned.empty() ? "" : ", ") + aligned;
}

// One length for each sequence of the batch, 0 to kv_len.
void check_lengths(std::string_view mask_name, const std::vector<std::int64_t>& lengths,
                   const ScoreShape& shape) {
  if (static_cast<std::int64_t>(lengths.size()) != shape.batch) {
    throw InvalidArgument(fmt::format("{}: {} lengths were given but batch is {}", mask_name,
                                      lengths.size(), shape.batch));
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) {
      throw InvalidArgument(
          fmt::format("{}: lengths[{}] is {}, expected at least 0", mask_name, i, lengths[i]));
    }
    if (lengths[i] > shape.kv_len) {
      throw InvalidArgument(fmt::format("{}: lengths[{}] is {} but kv_len is {}", mask_name, i,
                                        lengths[i], shape.kv_len));
    }
  }
}

class GivenRows final : public MaskPart {
 public:
  explicit GivenRows(std::vector<RowRange> ranges) : ranges_(std::move(ranges)) {}
  void check(const ScoreShape& shape) const override {
    if (static_cast<std::int64_t>(ranges_.size()) != shape.q_len) {
      throw InvalidArgument(fmt::format("Mask::rows: {} ranges were given but q_len is {}",
                                        ranges_.size(), shape.q_len));
    }
  }
  std::string description() const override { return fmt::format("rows({})", ranges_.size()); }
  RowRange range(const ScoreShape&, std::int64_t, std::int64_t q) const override {
    return ranges_[static_cast<std::size_t>(q)];
  }

 private:
  std::vector<RowRange> ranges_;
};

// Every part that speaks of the position a query stands at among the keys.
class Aligned : public MaskPart {
 public:
  Aligned(const char* name, std::string arguments, Alignment alignment)
      : name_(name), arguments_(std::move(arguments)), alignment_(std::move(alignment)) {}
  void check(const ScoreShape& shape) const override { alignment_.check(name_, shape); }
  std::string description() const override {
    const std::string inside = with_alignment(arguments_, alignment_);
    return inside.empty() ? name_ : fmt::format("{}({})", name_, inside);
  }
  const Alignment* alignment() const override { return &alignment_; }
  RowRange range(const ScoreShape& shape, std::int64_t batch, std::int64_t q) const override {
    return range_at(q + alignment_.resolve(shape, batch));
  }

 private:
  // The range of a query that stands at `position`; its end may lie beyond the last key.
  virtual RowRange range_at(std::int64_t position) const = 0;

  std::string name_;
  std::string arguments_;
  Alignment alignment_;
};

class Causal final : public Aligned {
 public:
  explicit Causal(Alignment alignment) : Aligned("causal", "", std::move(alignment)) {}

 private:
  RowRange range_at(std::int64_t position) const override { return {0, position + 1}; }
};

class Prefix final : public Aligned {
 public:
  Prefix(std::int64_t length, Alignment alignment)
      : Aligned("prefix", fmt::format("{}", length), std::move(alignment)), length_(length) {}

 private:
  RowRange range_at(std::int64_t position) const override {
    return {0, std::max(length_, position + 1)};
  }

  std::int64_t length_;
};

class SlidingWindow final : public Aligned {
 public:
  SlidingWindow(std::int64_t left, std::int64_t right, Alignment alignment)
      : Aligned("sliding_window", fmt::format("{}, {}", side(left), side(right)),
                std::move(alignment)),
        left_(std::min(left, kMaxOffset)),
        right_(std::min(right, kMaxOffset)) {}

 private:
  static std::string side(std::int64_t keys) {
    return keys == kUnbounded ? "unbounded" : fmt::format("{}", keys);
  }
  RowRange range_at(std::int64_t position) const override {
    return {position - left_, position + right_ + 1};
  }

  std::int64_t left_;
  std::int64_t right_;
};

class KeyLengths final : public MaskPart {
 public:
  explicit KeyLengths(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {}
  void check(const ScoreShape& shape) const override {
    check_lengths("key_lengths", lengths_, shape);
  }
  std::string description() const override {
    return fmt::format("key_lengths({})", fmt::join(lengths_, ", "));
  }
  RowRange range(const ScoreShape&, std::int64_t batch, std::int64_t) const override {
    return {0, lengths_[static_cast<std::size_t>(batch)]};
  }

 private:
  std::vector<std::int64_t> lengths_;
};

class Documents final : public MaskPart {
 public:
  explicit Documents(std::vector<std::int64_t> boundaries) : boundaries_(std::move(boundaries)) {}
  void check(const ScoreShape& shape) const override {
    if (boundaries_.back() != shape.kv_len) {
      throw InvalidArgument(fmt::format("documents: the last boundary is {} but kv_len is {}",
                                        boundaries_.back(), shape.kv_len));
    }
    if (shape.query_offset < 0 || shape.query_offset + shape.q_len > shape.kv_len) {
      throw InvalidArgument(
          fmt::format("documents: queries at positions {} to {}, expected 0 to {}",
                      shape.query_offset, shape.query_offset + shape.q_len, shape.kv_len));
    }
  }
  std::string description() const override {
    return fmt::format("documents({})", fmt::join(boundaries_, ", "));
  }
  RowRange range(const ScoreShape& shape, std::int64_t, std::int64_t q) const override {
    const auto end =
        std::upper_bound(boundaries_.begin(), boundaries_.end(), q + shape.query_offset);
    return {*(end - 1), *end};
  }

 private:
  std::vector<std::int64_t> boundaries_;
};

}  // namespace

Alignment Alignment::bottom_right(std::vector<std::int64_t> lengths) {
  Alignment alignment(Kind::kLengths, 0);
  alignment.lengths_ = std::make_shared<const std::vector<std::int64_t>>(std::move(lengths));
  return alignment;
}

void Alignment::check(std::string_view mask_name, const ScoreShape& shape) const {
  const std::int64_t to_last_key = shape.kv_len - shape.q_len;
  switch (kind_) {
    case Kind::kSquare:
      if (shape.query_offset == to_last_key) return;
      throw InvalidArgument(
          fmt::format("{0}: q_len is {1} and query_offset {2} but kv_len is {3}; where lengths "
                      "differ, name the "
                      "alignment: top_left, bottom_right or an offset",
                      mask_name, shape.q_len, shape.query_offset, shape.kv_len));
    case Kind::kBottomRight:
      if (shape.query_offset == 0 || shape.query_offset == to_last_key) return;
      throw InvalidArgument(
          fmt::format("{}: bottom_right puts query 0 at position {} but query_offset is {}",
                      mask_name, to_last_key, shape.query_offset));
    case Kind::kLengths:
      check_lengths(mask_name, *lengths_, shape);
      if (shape.query_offset == 0) return;
      throw InvalidArgument(fmt::format(
          "{}: bottom_right with lengths says where queries stand, but query_offset is {}",
          mask_name, shape.query_offset));
    case Kind::kOffset:
      if (offset_ >= -kMaxOffset && offset_ <= kMaxOffset) return;
      throw InvalidArgument(
          fmt::format("{}: offset {} is beyond any position", mask_name, offset_));
  }
}

std::int64_t Alignment::resolve(const ScoreShape& shape, std::int64_t batch) const {
  if (kind_ == Kind::kOffset) return shape.query_offset + offset_;
  if (kind_ == Kind::kLengths) return (*lengths_)[static_cast<std::size_t>(batch)] - shape.q_len;
  return shape.kv_len - shape.q_len;
}

std::string Alignment::description() const {
  switch (kind_) {
    case Kind::kSquare:
      return "";
    case Kind::kBottomRight:
      return "bottom_right";
    case Kind::kLengths:
      return fmt::format("bottom_right of {}", fmt::join(*lengths_, ", "));
    case Kind::kOffset:
      return offset_ == 0 ? "top_left" : fmt::format("offset {}", offset_);
  }
  return "";
}

Mask Mask::rows(std::vector<RowRange> ranges) {
  return Mask(std::make_shared<GivenRows>(std::move(ranges)));
}

Mask causal(Alignment alignment) { return Mask(std::make_shared<Causal>(std::move(alignment))); }
Mask causal_top_left() { return causal(Alignment::top_left()); }
Mask causal_bottom_right() { return causal(Alignment::bottom_right()); }
Mask causal(std::int64_t offset) { return causal(Alignment::offset(offset)); }

Mask sliding_window(std::int64_t left, std::int64_t right, Alignment alignment) {
  if (left < 0 || right < 0) {
    throw InvalidArgument(fmt::format(
        "sliding_window: left is {} and right {}, expected at least 0 (kUnbounded for no bound)",
        left, right));
  }
  return Mask(std::make_shared<SlidingWindow>(left, right, std::move(alignment)));
}

Mask prefix(std::int64_t length, Alignment alignment) {
  if (length < 0) {
    throw InvalidArgument(fmt::format("prefix: length is {}, expected at least 0", length));
  }
  return Mask(std::make_shared<Prefix>(length, std::move(alignment)));
}

Mask key_lengths(std::vector<std::int64_t> lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) {
      throw InvalidArgument(
          fmt::format("key_lengths: lengths[{}] is {}, expected at least 0", i, lengths[i]));
    }
  }
  return Mask(std::make_shared<KeyLengths>(std::move(lengths)));
}

Mask documents(std::vector<std::int64_t> cu_seqlens) {
  if (cu_seqlens.empty() || cu_seqlens.front() != 0 ||
      !std::is_sorted(cu_seqlens.begin(), cu_seqlens.end())) {
    throw InvalidArgument(fmt::format("documents: boundaries ({}) must start at 0 and never fall",
                                      fmt::join(cu_seqlens, ", ")));
  }
  return Mask(std::make_shared<Documents>(std::move(cu_seqlens)));
}

}  // namespace heed::inline v0
