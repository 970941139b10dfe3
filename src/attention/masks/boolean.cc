// Masks given as booleans: Mask::allow and Mask::block.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "attention/masks/broadcast_tensor.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::BroadcastTensor;
using detail::IrregularPart;
using detail::KeyBits;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

class BooleanMask final : public IrregularPart {
 public:
  BooleanMask(BroadcastTensor<bool> tensor, bool visible_value)
      : tensor_(std::move(tensor)), visible_value_(visible_value) {}
  void check(const ScoreShape& shape) const override { tensor_.check(name(), shape); }
  std::string description() const override {
    return fmt::format("{}{}", visible_value_ ? "allow" : "block", to_string(tensor_.shape()));
  }
  bool visible(const ScoreShape&, const ScoreIndex& at) const override {
    return kernels::is_set(tensor_[at]) == visible_value_;
  }
  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    bool any = false;
    bool all = true;
    const auto look = [&](const bool* row) {
      note(row, keys.end - keys.begin, any, all);
      return !any || all;  // otherwise it is mixed, whatever follows
    };
    if (!tensor_.each_row(shape, rows, keys.begin, look)) return Visibility::kMixed;
    if (all) return Visibility::kAll;
    return any ? Visibility::kMixed : Visibility::kNone;
  }
  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
            KeyBits* seen) const override {
    const std::int64_t offset = shape.query_offset[rows.batch];
    const std::int64_t begin = keys.begin - detail::tile_of(keys);
    const bool* last = nullptr;
    KeyBits shown;
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      const bool* row = &tensor_[{rows.batch, rows.heads[r], rows.q_idx[r] - offset, keys.begin}];
      if (row != last) shown = bits_of(row, begin, keys.end - keys.begin);
      last = row;
      seen[r] &= shown;
    }
  }

 private:
  // The visible keys among `count` keys, the first of which is number `begin` of its tile.
  KeyBits bits_of(const bool* row, std::int64_t begin, std::int64_t count) const {
    std::uint64_t words[2] = {};
    for (std::int64_t k = 0; k < count; ++k) {
      const bool is_visible = kernels::is_set(row[k * tensor_.key_stride()]) == visible_value_;
      words[(begin + k) / 64] |= std::uint64_t{is_visible} << ((begin + k) % 64);
    }
    return {words[0], words[1]};
  }
  // Notes if any and if all keys of a row are visible.
  void note(const bool* row, std::int64_t count, bool& any, bool& all) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(row);
    bool any_set = false;
    bool all_set = true;
    if (tensor_.key_stride() == 1) {
      const auto size = static_cast<std::size_t>(count);
      all_set = std::memchr(bytes, 0, size) == nullptr;
      // Not all bytes are 0 if the first is not, or if two neighbours differ.
      any_set = all_set || bytes[0] != 0 || std::memcmp(bytes, bytes + 1, size - 1) != 0;
    } else {
      for (std::int64_t k = 0; k < count; ++k) {
        const bool set = bytes[k * tensor_.key_stride()] != 0;
        any_set = any_set || set;
        all_set = all_set && set;
      }
    }
    any = any || (visible_value_ ? any_set : !all_set);
    all = all && (visible_value_ ? all_set : !any_set);
  }

  const char* name() const { return visible_value_ ? "Mask::allow" : "Mask::block"; }

  BroadcastTensor<bool> tensor_;
  bool visible_value_;
};

}  // namespace

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

}}  // namespace heed::v0
