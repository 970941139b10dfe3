// The mask as a value, and the parts that are not one interval of keys per query.
#include "heed/mask.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "attention/bound_mask.h"
#include "attention/mask_part.h"
#include "heed/cancellation.h"

namespace heed::inline v0 {

namespace detail {
ScoreFunction::~ScoreFunction() = default;
MaskFunction::~MaskFunction() = default;
}  // namespace detail

namespace {

using detail::Cell;
using detail::MaskPart;

// A tensor that broadcasts to the scores: its own memory, or a look at the caller's.
template <class T>
class BroadcastTensor {
 public:
  explicit BroadcastTensor(TensorView<const T> view) : view_(view) {}
  explicit BroadcastTensor(Tensor<T>&& owned) : owned_(std::move(owned)), view_(owned_.view()) {}

  // The view may look at the owned memory, which moves along but is not shared by a copy.
  BroadcastTensor(BroadcastTensor&&) noexcept = default;
  BroadcastTensor(const BroadcastTensor&) = delete;
  BroadcastTensor& operator=(const BroadcastTensor&) = delete;
  BroadcastTensor& operator=(BroadcastTensor&&) = delete;
  ~BroadcastTensor() = default;

  const Shape& shape() const { return view_.shape(); }

  void check(const char* name, const ScoreShape& scores) const {
    const Shape full{scores.batch, scores.num_heads, scores.q_len, scores.kv_len};
    try {
      view_.broadcast_to(full);
    } catch (const InvalidArgument&) {
      throw InvalidArgument(
          fmt::format("{}: shape {} does not broadcast to [batch, num_heads, q_len, kv_len] = {}",
                      name, to_string(view_.shape()), to_string(full)));
    }
  }

  const T& operator[](const Cell& cell) const {
    const std::int64_t indices[] = {cell.k, cell.q, cell.head, cell.batch};
    std::int64_t offset = 0;
    for (int dim = 1; dim <= view_.rank(); ++dim) offset += indices[dim - 1] * step(dim);
    return view_.data()[offset];
  }

  // Calls use(rows) with what belongs to a tile of scores.
  template <class Use>
  void with_rows(const ScoreShape& shape, const detail::ScoreTile& tile, Use use) const {
    std::array<const T*, kernels::kMaxPanelWidth> rows;
    for (std::int32_t r = 0; r < tile.width; ++r) {
      rows[static_cast<std::size_t>(r)] =
          &(*this)[{tile.batch, tile.heads[r], tile.q_idx[r] - shape.query_offset, tile.first_key}];
    }
    use(kernels::ScoreRows<T>{rows.data(), view_.rank() > 0 ? step(1) : 0});
  }

 private:
  // The stride of dimension −dim, which is 0 where the tensor repeats.
  std::int64_t step(int dim) const { return view_.extent(-dim) == 1 ? 0 : view_.stride(-dim); }

  Tensor<T> owned_;
  TensorView<const T> view_;
};

class BooleanMask final : public MaskPart {
 public:
  BooleanMask(BroadcastTensor<bool> tensor, bool visible_value)
      : tensor_(std::move(tensor)), visible_value_(visible_value) {}
  void check(const ScoreShape& shape) const override { tensor_.check(name(), shape); }
  std::string description() const override {
    return fmt::format("{}{}", visible_value_ ? "allow" : "block", to_string(tensor_.shape()));
  }
  bool visible(const ScoreShape&, const Cell& cell) const override {
    return kernels::is_set(tensor_[cell]) == visible_value_;
  }
  bool is_structural() const override { return false; }
  void hide(const ScoreShape& shape, const detail::ScoreTile& tile,
            const kernels::KernelTable& table) const override {
    tensor_.with_rows(shape, tile, [&](const kernels::ScoreRows<bool>& rows) {
      table.hide_rows(tile, rows, !visible_value_);
    });
  }

 private:
  const char* name() const { return visible_value_ ? "Mask::allow" : "Mask::block"; }

  BroadcastTensor<bool> tensor_;
  bool visible_value_;
};

class AdditiveMask final : public MaskPart {
 public:
  explicit AdditiveMask(BroadcastTensor<float> tensor) : tensor_(std::move(tensor)) {}
  void check(const ScoreShape& shape) const override { tensor_.check("Mask::additive", shape); }
  std::string description() const override {
    return fmt::format("additive{}", to_string(tensor_.shape()));
  }
  bool visible(const ScoreShape&, const Cell& cell) const override {
    return tensor_[cell] != -std::numeric_limits<float>::infinity();
  }
  float added(const Cell& cell) const override { return tensor_[cell]; }
  bool is_structural() const override { return false; }
  void hide(const ScoreShape& shape, const detail::ScoreTile& tile,
            const kernels::KernelTable& table) const override {
    tensor_.with_rows(shape, tile, [&](const kernels::ScoreRows<float>& rows) {
      table.add_mask_rows(tile, rows);
    });
  }

 private:
  BroadcastTensor<float> tensor_;
};

class FunctionMask final : public MaskPart {
 public:
  explicit FunctionMask(std::shared_ptr<const detail::MaskFunction> function)
      : function_(std::move(function)) {}
  void check(const ScoreShape&) const override {}
  std::string description() const override { return "where(function)"; }
  bool visible(const ScoreShape& shape, const Cell& cell) const override {
    return function_->visible(position(shape, cell));
  }
  bool is_structural() const override { return false; }
  void hide(const ScoreShape&, const detail::ScoreTile& tile,
            const kernels::KernelTable&) const override {
    function_->hide(tile);
  }

 private:
  std::shared_ptr<const detail::MaskFunction> function_;
};

// Builds [batch, num_heads, q_len, kv_len] from what `value_of(bound mask, cell)` says of each
// cell.
template <class T, class ValueOf>
Tensor<T> materialize(const Mask& mask, const ScoreShape& shape, ValueOf value_of) {
  const BoundMask bound(mask, shape);
  auto result = Tensor<T>::uninitialized({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
  T* out = result.data();
  Cell cell{};
  for (cell.batch = 0; cell.batch < shape.batch; ++cell.batch)
    for (cell.head = 0; cell.head < shape.num_heads; ++cell.head)
      for (cell.q = 0; cell.q < shape.q_len; ++cell.q) {
        check_cancelled();
        for (cell.k = 0; cell.k < shape.kv_len; ++cell.k) *out++ = value_of(bound, cell);
      }
  return result;
}

template <class T>
Tensor<T> padded(TensorView<const T> mask, std::int64_t kv_len, T fill) {
  if (mask.rank() == 0 || mask.extent(-1) > kv_len) {
    throw InvalidArgument(
        fmt::format("pad_keys: the mask has shape {}, expected [..., keys] with at most {} keys",
                    to_string(mask.shape()), kv_len));
  }
  std::array<std::int64_t, kMaxRank> extents{};
  std::copy(mask.shape().begin(), mask.shape().end(), extents.begin());
  const auto rank = static_cast<std::size_t>(mask.rank());
  extents[rank - 1] = kv_len;
  auto result = Tensor<T>::uninitialized(Shape(std::span(extents.data(), rank)));
  std::fill_n(result.data(), result.num_elements(), fill);
  T* out = result.data();
  const std::int64_t keys = mask.extent(-1);
  std::int64_t key = 0;
  for_each_element(mask, [&](const T& element) {
    if constexpr (std::is_same_v<T, bool>) {
      *out++ = kernels::is_set(element);
    } else {
      *out++ = element;
    }
    if (++key < keys) return;
    out += kv_len - keys;
    key = 0;
  });
  return result;
}

void check_index(const char* name, std::int64_t index, std::int64_t extent) {
  if (index < 0 || index >= extent) {
    throw InvalidArgument(
        fmt::format("to_lines: {} is {}, expected 0 to {}", name, index, extent - 1));
  }
}

}  // namespace

Mask::Mask() = default;
Mask::Mask(std::shared_ptr<const detail::MaskPart> part) : parts_{std::move(part)} {}

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.parts_.insert(both.parts_.end(), b.parts_.begin(), b.parts_.end());
  return both;
}

std::string Mask::description() const {
  std::vector<std::string> names;
  names.reserve(parts_.size());
  for (const auto& part : parts_) names.push_back(part->description());
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " & "));
}

Mask Mask::allow(TensorView<const bool> allowed) {
  return Mask(std::make_shared<BooleanMask>(BroadcastTensor<bool>(allowed), true));
}
Mask Mask::allow(Tensor<bool>&& allowed) {
  return Mask(std::make_shared<BooleanMask>(BroadcastTensor<bool>(std::move(allowed)), true));
}
Mask Mask::block(TensorView<const bool> blocked) {
  return Mask(std::make_shared<BooleanMask>(BroadcastTensor<bool>(blocked), false));
}
Mask Mask::block(Tensor<bool>&& blocked) {
  return Mask(std::make_shared<BooleanMask>(BroadcastTensor<bool>(std::move(blocked)), false));
}
Mask Mask::additive(FloatView added) {
  return Mask(std::make_shared<AdditiveMask>(BroadcastTensor<float>(added)));
}
Mask Mask::additive(Tensor<float>&& added) {
  return Mask(std::make_shared<AdditiveMask>(BroadcastTensor<float>(std::move(added))));
}
Mask Mask::where_function(std::shared_ptr<const detail::MaskFunction> function) {
  return Mask(std::make_shared<FunctionMask>(std::move(function)));
}

Tensor<bool> pad_keys(TensorView<const bool> allowed, std::int64_t kv_len) {
  return padded(allowed, kv_len, false);
}
Tensor<float> pad_keys(FloatView added, std::int64_t kv_len) {
  return padded(added, kv_len, -std::numeric_limits<float>::infinity());
}

Mask key_padding(TensorView<const std::int64_t> token_ids, std::int64_t padding_id) {
  if (token_ids.rank() != 2) {
    throw InvalidArgument(
        fmt::format("key_padding: token_ids has shape {}, expected [batch, kv_len]",
                    to_string(token_ids.shape())));
  }
  auto allowed = Tensor<bool>::uninitialized({token_ids.extent(0), 1, 1, token_ids.extent(1)});
  bool* out = allowed.data();
  for_each_element(token_ids, [&](std::int64_t id) { *out++ = id != padding_id; });
  return Mask::allow(std::move(allowed));
}

Tensor<bool> materialize_allow(const Mask& mask, const ScoreShape& shape) {
  return materialize<bool>(
      mask, shape, [](const BoundMask& bound, const Cell& cell) { return bound.visible(cell); });
}

Tensor<bool> materialize_block(const Mask& mask, const ScoreShape& shape) {
  return materialize<bool>(
      mask, shape, [](const BoundMask& bound, const Cell& cell) { return !bound.visible(cell); });
}

Tensor<float> materialize_additive(const Mask& mask, const ScoreShape& shape) {
  return materialize<float>(mask, shape, [](const BoundMask& bound, const Cell& cell) {
    return bound.visible(cell) ? bound.added(cell) : -std::numeric_limits<float>::infinity();
  });
}

std::vector<std::string> to_lines(const Mask& mask, const ScoreShape& shape,
                                  const MaskGlyphs& glyphs, std::int64_t batch, std::int64_t head) {
  check_index("batch", batch, shape.batch);
  check_index("head", head, shape.num_heads);
  const BoundMask bound(mask, shape);
  std::vector<std::string> lines(static_cast<std::size_t>(shape.q_len));
  for (std::int64_t q = 0; q < shape.q_len; ++q) {
    check_cancelled();
    std::string& line = lines[static_cast<std::size_t>(q)];
    for (std::int64_t k = 0; k < shape.kv_len; ++k) {
      if (k != 0) line += glyphs.between;
      line += bound.visible({batch, head, q, k}) ? glyphs.visible : glyphs.masked;
    }
  }
  return lines;
}

}  // namespace heed::inline v0
