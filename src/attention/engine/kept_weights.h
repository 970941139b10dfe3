// The weights of a forward pass, kept for the backward pass, which then has one product and all
// exponentials less to compute.
#pragma once

#include <cstdint>
#include <type_traits>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"
#include "attention/request/request.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 { namespace engine {

// The kept weights of one panel. Number is Real, or const Real where they are only read.
template <class Number>
class KeptPanel {
 public:
  using Real = std::remove_const_t<Number>;

  KeptPanel() = default;
  KeptPanel(Number* data, std::int64_t cells, std::int64_t rows)
      : data_(data), cells_(cells), rows_(rows) {}

  bool exists() const { return data_ != nullptr; }

  // The width of the panel's rows of weights; 0 if no weights have been kept.
  void set_width(std::int32_t width) const { data_[0] = static_cast<Real>(width); }
  bool has_width(std::int32_t width) const { return data_[0] == static_cast<Real>(width); }

  // The weights of the tile that begins with a key, [keys][width], as attend() leaves them; −m of
  // each row at that time follows them.
  Number* weights(std::int64_t first_key) const {
    return data_ + kHead + first_key / kernels::kTileKeys * (cells_ + rows_);
  }
  Number* minus_m(std::int64_t first_key) const { return weights(first_key) + cells_; }

  // The numbers before the first tile, which are one or two cache lines.
  static constexpr std::int64_t kHead = 16;

 private:
  Number* data_ = nullptr;
  std::int64_t cells_ = 0;  // of a tile
  std::int64_t rows_ = 0;   // of a panel
};

// The layout of the kept weights of a call: panel after panel, head after head.
template <class Real>
class KeptLayout {
 public:
  KeptLayout(const Request<Real>& request, const Schedule<Real>& schedule)
      : group_(request.heads_per_kv_head),
        kv_heads_(request.num_kv_heads()),
        rows_(schedule.panel_rows),
        cells_(schedule.tile_keys() * schedule.panel_rows),
        panels_((request.rows_per_kv_head() - 1) / rows_ + 1) {
    const std::int64_t tiles = (request.shape.kv_len - 1) / kernels::kTileKeys + 1;
    panel_size_ = KeptPanel<Real>::kHead + checked_multiply(tiles, cells_ + rows_);
  }

  // The panel in `data` that begins with the first row of a block.
  template <class Number>
  KeptPanel<Number> panel(Number* data, const RowBlock& block) const {
    const std::int64_t row = block.first_query * group_ + block.rows.begin;
    const std::int64_t head = block.batch * kv_heads_ + block.kv_head;
    return {data + (head * panels_ + row / rows_) * panel_size_, cells_, rows_};
  }

  // The size of the panels of `batch` batch entries, in numbers.
  std::int64_t size(std::int64_t batch) const {
    return checked_multiply(checked_multiply(batch, kv_heads_),
                            checked_multiply(panels_, panel_size_));
  }

 private:
  std::int64_t group_;
  std::int64_t kv_heads_;
  std::int64_t rows_;        // of a panel
  std::int64_t cells_;       // of a tile
  std::int64_t panels_;      // of a head
  std::int64_t panel_size_;  // in numbers
};

// The size of the kept weights of a call, in numbers; 0 if they are not kept.
template <class Real>
std::int64_t kept_size(const Request<Real>& request, const Schedule<Real>& schedule) {
  return schedule.keeps_weights ? KeptLayout<Real>(request, schedule).size(request.shape.batch) : 0;
}

}}}  // namespace heed::v0::engine
