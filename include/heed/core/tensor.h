/// Tensors: Tensor<T> owns its elements, TensorView<T> refers to those of others.
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include "heed/core/config.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 {

namespace detail {

[[noreturn]] HEED_API void throw_not_contiguous(const char* function, const Shape& shape);
[[noreturn]] HEED_API void throw_reshape(const Shape& from, const Shape& to);
[[noreturn]] HEED_API void throw_element_count(const Shape& shape, std::int64_t found);
[[noreturn]] HEED_API void throw_dimension(const char* function, const Shape& shape, int dim);
[[noreturn]] HEED_API void throw_range(const char* function, std::int64_t begin, std::int64_t end,
                                       std::int64_t extent);
[[noreturn]] HEED_API void throw_index(const char* function, std::int64_t index,
                                       std::int64_t extent);
/// Throws unless there is one index per dimension, each in its range.
HEED_API void check_indices(const char* function, const Shape& shape,
                            std::initializer_list<std::int64_t> indices);
[[noreturn]] HEED_API void throw_item(const char* function, const Shape& shape);
[[noreturn]] HEED_API void throw_permutation(const Shape& shape, std::span<const int> order);
[[noreturn]] HEED_API void throw_rank(const Shape& shape, int rank);
[[noreturn]] HEED_API void throw_broadcast(const Shape& from, const Shape& to);
[[noreturn]] HEED_API void throw_too_large(const Shape& shape, std::size_t element_size);

/// The bytes of `count` elements, through checked_multiply.
HEED_API std::size_t checked_bytes(const Shape& shape, std::size_t element_size);

/// Memory that begins at a cache line of 64 bytes.
struct MemoryBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A block of at least `bytes`, uninitialised. @throws std::bad_alloc when there is no memory.
HEED_API MemoryBlock take_memory(std::size_t bytes);
HEED_API void give_back_memory(const MemoryBlock& block) noexcept;

/// The owner of a block. One class for all types: unique_ptr is compiled anew for each.
class Memory {
 public:
  Memory() = default;
  /// At least `bytes`, uninitialised; null for 0 bytes.
  explicit Memory(std::size_t bytes) : block_(bytes == 0 ? MemoryBlock{} : take_memory(bytes)) {}
  Memory(Memory&& other) noexcept : block_(std::exchange(other.block_, MemoryBlock{})) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (block_.data != nullptr) give_back_memory(block_);
  }

  void* get() const noexcept { return block_.data; }

 private:
  MemoryBlock block_;
};

// A type with elements of one type and a shape: a tensor, a view, a variable.
template <class T>
concept TensorLike = requires(const T& object) {
  typename T::Element;
  object.shape();
};

}  // namespace detail

/// A reference to elements in memory: a pointer, a shape and strides (in elements, 0 and negative
/// allowed). Copying a view copies no element. A TensorView<T> converts to a TensorView<const T>.
/// The memory must outlive the view.
template <class T>
class TensorView {
 public:
  using Element = T;

  TensorView() : shape_{0} {}

  /// A contiguous row-major view of shape.num_elements() elements at `data`.
  TensorView(T* data, const Shape& shape)
      : data_(data), shape_(shape), strides_(contiguous_strides(shape)) {}

  TensorView(T* data, const Shape& shape, const Strides& strides)
      : data_(data), shape_(shape), strides_(strides) {}

  /// Implicit, as T* converts to const T*.
  operator TensorView<const T>() const  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return {data_, shape_, strides_};
  }

  T* data() const noexcept { return data_; }
  const Shape& shape() const noexcept { return shape_; }
  const Strides& strides() const noexcept { return strides_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t extent(int dim) const noexcept { return shape_[dim]; }
  std::int64_t stride(int dim) const noexcept {
    return strides_[static_cast<std::size_t>(dim < 0 ? dim + rank() : dim)];
  }
  std::int64_t num_elements() const noexcept { return shape_.num_elements(); }
  /// num_elements(), under the name that containers use.
  std::size_t size() const noexcept { return static_cast<std::size_t>(num_elements()); }
  bool empty() const noexcept { return num_elements() == 0; }

  /// The element at the given indices, one per dimension. Indices are checked by assertions only:
  /// with NDEBUG, an index out of range is undefined behaviour. at() always checks.
  template <class... Index>
  T& operator()(Index... indices) const noexcept {
    assert(static_cast<int>(sizeof...(indices)) == rank());
    std::int64_t offset = 0;
    int dim = 0;
    ((assert(indices >= 0 && indices < extent(dim)), offset += indices * stride(dim++)), ...);
    return data_[offset];
  }

  /// The element at the given indices. @throws InvalidArgument when there are more or fewer indices
  /// than dimensions, or one is not in 0 ≤ index < extent; the text names it, its dimension and the
  /// extent.
  template <std::integral... Index>
  T& at(Index... indices) const {
    detail::check_indices("TensorView::at", shape_, {static_cast<std::int64_t>(indices)...});
    return (*this)(static_cast<std::int64_t>(indices)...);
  }

  /// The only element. @throws InvalidArgument when there are more or fewer.
  T& item() const {
    if (num_elements() != 1) detail::throw_item("TensorView::item", shape_);
    return *data_;
  }

  /// True if the elements are row-major and contiguous, so that data()[0 … num_elements()) are all
  /// of them in order.
  bool is_contiguous() const noexcept {
    std::int64_t step = 1;
    for (int dim = rank() - 1; dim >= 0; --dim) {
      if (extent(dim) != 1 && stride(dim) != step) return num_elements() <= 1;
      step *= extent(dim);
    }
    return true;
  }

  /// The elements as one span. @throws InvalidArgument unless is_contiguous().
  std::span<T> elements() const {
    if (!is_contiguous()) detail::throw_not_contiguous("TensorView::elements", shape_);
    return {data_, static_cast<std::size_t>(num_elements())};
  }

  /// The slice at `index` of dimension `dim`; the rank falls by one.
  /// @throws InvalidArgument when dim or index is out of range.
  TensorView select(int dim, std::int64_t index) const {
    if (dim < -rank() || dim >= rank()) detail::throw_dimension("TensorView::select", shape_, dim);
    dim = dim < 0 ? dim + rank() : dim;
    if (index < 0 || index >= extent(dim)) {
      detail::throw_index("TensorView::select", index, extent(dim));
    }
    TensorView result = slice(dim, index, index + 1);
    std::array<std::int64_t, kMaxRank> extents{};
    int kept = 0;
    for (int d = 0; d < rank(); ++d) {
      if (d == dim) continue;
      extents[static_cast<std::size_t>(kept)] = extent(d);
      result.strides_[static_cast<std::size_t>(kept++)] = stride(d);
    }
    result.shape_ = Shape(std::span(extents.data(), static_cast<std::size_t>(kept)));
    return result;
  }

  /// The indices begin ≤ i < end of dimension `dim`. @throws InvalidArgument when they are out of
  /// range.
  TensorView slice(int dim, std::int64_t begin, std::int64_t end) const {
    if (dim < -rank() || dim >= rank()) detail::throw_dimension("TensorView::slice", shape_, dim);
    dim = dim < 0 ? dim + rank() : dim;
    if (begin < 0 || begin > end || end > extent(dim)) {
      detail::throw_range("TensorView::slice", begin, end, extent(dim));
    }
    TensorView result = *this;
    std::array<std::int64_t, kMaxRank> extents{};
    for (int d = 0; d < rank(); ++d) extents[static_cast<std::size_t>(d)] = extent(d);
    extents[static_cast<std::size_t>(dim)] = end - begin;
    result.shape_ = Shape(std::span(extents.data(), static_cast<std::size_t>(rank())));
    if (begin != 0 && begin != end) result.data_ += begin * stride(dim);
    return result;
  }

  /// The same elements with dimensions reordered: dimension i of the result is dimension order[i]
  /// of this view.
  /// @throws InvalidArgument when `order` is not a permutation of the dimensions.
  TensorView permute(std::initializer_list<int> order) const {
    TensorView result = *this;
    std::array<std::int64_t, kMaxRank> extents{};
    unsigned seen = 0;
    int i = 0;
    for (const int dim : order) {
      if (i >= rank() || dim < 0 || dim >= rank() || (seen >> dim & 1U) != 0) break;
      seen |= 1U << dim;
      extents[static_cast<std::size_t>(i)] = extent(dim);
      result.strides_[static_cast<std::size_t>(i++)] = stride(dim);
    }
    if (i != rank() || order.size() != static_cast<std::size_t>(rank())) {
      detail::throw_permutation(shape_, {order.begin(), order.size()});
    }
    result.shape_ = Shape(std::span(extents.data(), static_cast<std::size_t>(rank())));
    return result;
  }

  /// The same elements in another shape. @throws InvalidArgument unless contiguous and of equal
  /// element count.
  TensorView reshape(const Shape& shape) const {
    if (!is_contiguous()) detail::throw_not_contiguous("TensorView::reshape", shape_);
    if (shape.num_elements() != num_elements()) detail::throw_reshape(shape_, shape);
    return TensorView(data_, shape);
  }

  /// The same elements with extents of 1 in front until the rank is `rank`: [T, D] to [1, 1, T, D].
  /// @throws InvalidArgument when the rank is larger already, or `rank` is larger than kMaxRank.
  TensorView to_rank(int rank) const {
    std::array<std::int64_t, kMaxRank> extents;
    extents.fill(1);
    if (rank < shape_.rank() || rank > kMaxRank) detail::throw_rank(shape_, rank);
    const auto added = static_cast<std::size_t>(rank - shape_.rank());
    TensorView result(data_, shape_, Strides{});
    for (int dim = 0; dim < shape_.rank(); ++dim) {
      extents[static_cast<std::size_t>(dim) + added] = extent(dim);
      result.strides_[static_cast<std::size_t>(dim) + added] = stride(dim);
    }
    result.shape_ = Shape(std::span(extents.data(), static_cast<std::size_t>(rank)));
    return result;
  }

  /// The same elements, broadcast: dimensions are aligned at the right, and an extent of 1 or a
  /// missing dimension is repeated. @throws InvalidArgument when the shapes do not fit; the text
  /// has both.
  TensorView broadcast_to(const Shape& shape) const {
    if (rank() > shape.rank()) detail::throw_broadcast(shape_, shape);
    TensorView result(data_, shape, Strides{});
    for (int dim = 1; dim <= rank(); ++dim) {
      if (extent(-dim) == 1) continue;
      if (extent(-dim) != shape[-dim]) detail::throw_broadcast(shape_, shape);
      result.strides_[static_cast<std::size_t>(shape.rank() - dim)] = stride(-dim);
    }
    return result;
  }

 private:
  T* data_ = nullptr;
  Shape shape_;
  Strides strides_{};
};

/// A tensor that owns its elements: row-major, 64-byte aligned, zero unless given. T is trivially
/// copyable.
///
/// A view of a temporary tensor must not outlive its statement: view(), elements() and data() of a
/// temporary do not compile, and its shape() and elements are returned as copies. Only the
/// conversion to a view works, so that a temporary can be passed to a function,
/// `attention(randn(…), …)`: it exists until the call returns. Clang warns where such a view gets a
/// name (-Wdangling).
template <class T>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using Element = T;

  /// A tensor without elements: shape [0].
  Tensor() : shape_{0} {}

  /// All zero. @throws InvalidArgument when the bytes do not fit in 63 bits; std::bad_alloc when
  /// there is no memory.
  explicit Tensor(const Shape& shape) : shape_(shape), memory_(allocate(shape)) {
    T* const elements = data();
    for (std::int64_t i = 0; i < num_elements(); ++i) elements[i] = T{};
  }

  /// The given elements in row-major order. @throws InvalidArgument when their number is not
  /// shape.num_elements().
  Tensor(const Shape& shape, std::span<const T> elements) : shape_(shape) {
    const auto count = static_cast<std::int64_t>(elements.size());
    if (count != shape.num_elements()) detail::throw_element_count(shape, count);
    memory_ = allocate(shape);
    copy_from(elements.data());
  }
  Tensor(const Shape& shape, std::initializer_list<T> elements)
      : Tensor(shape, std::span<const T>(elements.begin(), elements.size())) {}

  /// A contiguous copy of a view: to_tensor(view).
  template <class U>
  requires std::same_as<std::remove_const_t<U>, T>
  explicit Tensor(TensorView<U> view) : Tensor(to_tensor(view)) {}

  /// A tensor with uninitialised elements, for callers that write every one.
  static Tensor uninitialized(const Shape& shape) {
    Tensor result;
    result.memory_ = allocate(shape);
    result.shape_ = shape;
    return result;
  }

  Tensor(const Tensor& other) : shape_(other.shape_), memory_(allocate(other.shape_)) {
    copy_from(other.data());
  }
  Tensor(Tensor&& other) noexcept
      : shape_(std::exchange(other.shape_, Shape{0})), memory_(std::move(other.memory_)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(shape_, other.shape_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Tensor() = default;

  T* data() & noexcept { return static_cast<T*>(memory_.get()); }
  const T* data() const& noexcept { return static_cast<const T*>(memory_.get()); }
  void data() const&& HEED_DELETED("name the tensor first: it ends before the pointer");
  const Shape& shape() const& noexcept { return shape_; }
  Shape shape() const&& noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t extent(int dim) const noexcept { return shape_[dim]; }
  std::int64_t num_elements() const noexcept { return shape_.num_elements(); }
  /// num_elements(), under the name that containers use.
  std::size_t size() const noexcept { return static_cast<std::size_t>(num_elements()); }
  bool empty() const noexcept { return num_elements() == 0; }

  /// Moves this tensor's elements into a tensor of another shape.
  /// @throws InvalidArgument when the number of elements differs.
  Tensor reshaped(const Shape& shape) && {
    if (shape.num_elements() != num_elements()) detail::throw_reshape(shape_, shape);
    shape_ = shape;
    return std::move(*this);
  }

  TensorView<T> view() & noexcept { return {data(), shape_}; }
  TensorView<const T> view() const& noexcept { return {data(), shape_}; }
  void view() const&& HEED_DELETED("name the tensor first: it ends before the view");
  // NOLINTNEXTLINE(google-explicit-constructor): a view is how a tensor is passed
  operator TensorView<T>() noexcept HEED_LIFETIME_BOUND { return {data(), shape_}; }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator TensorView<const T>() const noexcept HEED_LIFETIME_BOUND { return {data(), shape_}; }

  std::span<T> elements() & noexcept { return {data(), static_cast<std::size_t>(num_elements())}; }
  std::span<const T> elements() const& noexcept {
    return {data(), static_cast<std::size_t>(num_elements())};
  }
  void elements() const&& HEED_DELETED("name the tensor first: it ends before the span");

  /// The element at the given indices: operator() checks them by assertions only, at() always, as
  /// for a view.
  template <class... Index>
  T& operator()(Index... indices) & noexcept {
    return view()(indices...);
  }
  template <class... Index>
  const T& operator()(Index... indices) const& noexcept {
    return view()(indices...);
  }
  template <class... Index>
  T operator()(Index... indices) const&& noexcept {
    return TensorView<const T>(*this)(indices...);
  }
  template <std::integral... Index>
  T& at(Index... indices) & {
    return view().at(indices...);
  }
  template <std::integral... Index>
  const T& at(Index... indices) const& {
    return view().at(indices...);
  }
  template <std::integral... Index>
  T at(Index... indices) const&& {
    return TensorView<const T>(*this).at(indices...);
  }

  /// The only element. @throws InvalidArgument when there are more or fewer.
  T item() const { return TensorView<const T>(*this).item(); }

 private:
  static detail::Memory allocate(const Shape& shape) {
    return detail::Memory(detail::checked_bytes(shape, sizeof(T)));
  }
  void copy_from(const T* elements) noexcept {
    if (!empty()) std::memcpy(data(), elements, size() * sizeof(T));
  }

  Shape shape_;
  detail::Memory memory_;
};

template <class U>
Tensor(TensorView<U>) -> Tensor<std::remove_const_t<U>>;

/// Calls visit(element) for every element of `view` in row-major order.
template <class T, class Visit>
void for_each_element(TensorView<T> view, Visit&& visit) {
  if (view.empty()) return;
  if (view.rank() == 0) {
    visit(*view.data());
    return;
  }
  if (view.rank() == 1) {
    for (std::int64_t i = 0; i < view.extent(0); ++i) visit(view(i));
    return;
  }
  for (std::int64_t i = 0; i < view.extent(0); ++i) for_each_element(view.select(0, i), visit);
}

/// A contiguous copy of a view.
template <class T>
Tensor<std::remove_const_t<T>> to_tensor(TensorView<T> view) {
  auto result = Tensor<std::remove_const_t<T>>::uninitialized(view.shape());
  auto* out = result.data();
  for_each_element(view, [&out](const T& element) { *out++ = element; });
  return result;
}

using FloatView = TensorView<const float>;
using DoubleView = TensorView<const double>;

}}  // namespace heed::v0
