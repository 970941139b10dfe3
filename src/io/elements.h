// Converts between elements and the bytes of a file.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "heed/core/tensor.h"
#include "io/atomic_file.h"

namespace heed { inline namespace v0 { namespace io {

// Throws FormatError if one of these bytes of a file, which start at `offset`, is neither 0 nor 1.
// They are checked as bytes because reading another value as bool is undefined.
void check_bools(std::span<const std::byte> bytes, const std::string& file, std::int64_t offset);

template <class T>
void swap_bytes(std::span<T> elements) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  for (T& element : elements) {
    auto bytes = std::bit_cast<Bytes>(element);
    std::reverse(bytes.begin(), bytes.end());
    element = std::bit_cast<T>(bytes);
  }
}

// Passes the elements of any view to `sink` in row-major order.
template <class T>
void write_elements(TensorView<const T> view, const ByteSink& sink) {
  if (view.is_contiguous()) {
    sink(std::as_bytes(view.elements()));
    return;
  }
  constexpr std::size_t kBlockBytes = 1 << 16;
  std::array<T, kBlockBytes / sizeof(T)> block{};
  std::size_t count = 0;
  const auto flush = [&] {
    sink(std::as_bytes(std::span(block).first(count)));
    count = 0;
  };
  for_each_element(view, [&](const T& element) {
    block[count++] = element;
    if (count == block.size()) flush();
  });
  flush();
}

}}}  // namespace heed::v0::io
