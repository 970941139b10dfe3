#include "heed/core/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heed { inline namespace v0 { namespace detail {

void throw_not_contiguous(const char* function, const Shape& shape) {
  throw InvalidArgument(fmt::format(
      "{}: the view of shape {} has gaps or reordered dimensions; copy it with to_tensor first",
      function, to_string(shape)));
}

void throw_reshape(const Shape& from, const Shape& to) {
  throw InvalidArgument(fmt::format("reshape: {} has {} elements but {} has {}", to_string(from),
                                    from.num_elements(), to_string(to), to.num_elements()));
}

void throw_element_count(const Shape& shape, std::int64_t found) {
  throw InvalidArgument(fmt::format("Tensor: {} elements were given but shape {} has {}", found,
                                    to_string(shape), shape.num_elements()));
}

void throw_dimension(const char* function, const Shape& shape, int dim) {
  throw InvalidArgument(
      fmt::format("{}: dimension {} does not exist in shape {}", function, dim, to_string(shape)));
}

void throw_range(const char* function, std::int64_t begin, std::int64_t end, std::int64_t extent) {
  throw InvalidArgument(
      fmt::format("{}: [{}, {}) is not a range within [0, {})", function, begin, end, extent));
}

void throw_index(const char* function, std::int64_t index, std::int64_t extent) {
  throw InvalidArgument(
      fmt::format("{}: index is {}, but the extent is {}", function, index, extent));
}

void check_indices(const char* function, const Shape& shape,
                   std::initializer_list<std::int64_t> indices) {
  const auto count = static_cast<int>(indices.size());
  if (count != shape.rank()) {
    throw InvalidArgument(fmt::format("{}: {} {} given, but shape {} has {} dimensions", function,
                                      count, count == 1 ? "index is" : "indices are",
                                      to_string(shape), shape.rank()));
  }
  int dim = 0;
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= shape[dim]) {
      throw InvalidArgument(
          fmt::format("{}: the index of dimension {} is {}, but the extent is {} (shape {})",
                      function, dim, index, shape[dim], to_string(shape)));
    }
    ++dim;
  }
}

void throw_item(const char* function, const Shape& shape) {
  throw InvalidArgument(fmt::format("{}: shape {} has {} elements, expected one", function,
                                    to_string(shape), shape.num_elements()));
}

void throw_permutation(const Shape& shape, std::span<const int> order) {
  throw InvalidArgument(
      fmt::format("TensorView::permute: ({}) is not a permutation of the {} dimensions of {}",
                  fmt::join(order, ", "), shape.rank(), to_string(shape)));
}

void throw_rank(const Shape& shape, int rank) {
  throw InvalidArgument(
      fmt::format("TensorView::to_rank: shape {} cannot be given rank {}", to_string(shape), rank));
}

void throw_broadcast(const Shape& from, const Shape& to) {
  throw InvalidArgument(
      fmt::format("broadcast: shape {} does not broadcast to {}", to_string(from), to_string(to)));
}

void throw_too_large(const Shape& shape, std::size_t element_size) {
  throw InvalidArgument(fmt::format("Tensor: shape {} with {} bytes an element is too large",
                                    to_string(shape), element_size));
}

std::size_t checked_bytes(const Shape& shape, std::size_t element_size) {
  try {
    return static_cast<std::size_t>(
        checked_multiply(shape.num_elements(), static_cast<std::int64_t>(element_size)));
  } catch (const InvalidArgument&) {
    throw_too_large(shape, element_size);
  }
}

}}}  // namespace heed::v0::detail
