#include "heed/io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "heed/core/error.h"
#include "io/elements.h"
#include "io/little_endian.h"
#include "io/npy_stream.h"

namespace heed { inline namespace v0 {

namespace io {

namespace {

// Reads the bytes before the header's text: magic, version, length.
std::int64_t read_header_length(ByteStream& stream) {
  std::array<std::byte, 8> prefix{};
  if (stream.remaining() < 10) {
    throw FormatError(stream.name(), stream.size(), "truncated: a .npy file has at least 10 bytes");
  }
  stream.read(prefix);
  const auto* const text = reinterpret_cast<const char*>(prefix.data());
  if (std::string_view(text, kNpyMagic.size()) != kNpyMagic) {
    throw FormatError(stream.name(), 0, "not a .npy file: it does not begin with \\x93NUMPY");
  }
  const int major = std::to_integer<int>(prefix[6]);
  const int minor = std::to_integer<int>(prefix[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw FormatError(stream.name(), 6,
                      fmt::format(".npy version {}.{}, expected 1.0, 2.0 or 3.0", major, minor));
  }
  std::array<std::byte, 4> length{};
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (stream.remaining() < static_cast<std::int64_t>(length_bytes)) {
    throw FormatError(stream.name(), stream.size(), "truncated in the length of the header");
  }
  stream.read(std::span(length).first(length_bytes));
  return FieldReader(length).next<std::uint32_t>();
}

NpyHeader read_header(ByteStream& stream) {
  const std::int64_t length = read_header_length(stream);
  const std::int64_t begin = stream.position();
  if (length > kMaxNpyHeaderBytes) {
    throw FormatError(
        stream.name(), 8,
        fmt::format("the header has {} bytes, at most {} are read", length, kMaxNpyHeaderBytes));
  }
  if (length > stream.remaining()) {
    throw FormatError(stream.name(), stream.size(),
                      fmt::format("truncated: the header has {} bytes but only {} follow", length,
                                  stream.remaining()));
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  stream.read(std::as_writable_bytes(std::span(text)));
  return parse_npy_header(text, stream.name(), begin);
}

void check_data_size(const NpyHeader& header, const ByteStream& stream) {
  const std::int64_t elements = header.shape.num_elements();
  const std::int64_t found = stream.remaining();
  if (elements > found / header.type->size) {
    throw FormatError(stream.name(), stream.size(),
                      fmt::format("truncated: shape {} of {} needs {} elements of {} bytes but "
                                  "only {} bytes follow the header",
                                  to_string(header.shape), header.type->name, elements,
                                  header.type->size, found));
  }
  const std::int64_t needed = elements * header.type->size;
  if (needed != found) {
    throw FormatError(stream.name(), stream.position() + needed,
                      fmt::format("{} trailing bytes after the array", found - needed));
  }
}

template <class T>
Tensor<T> from_fortran_order(const Tensor<T>& columns, const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    strides[static_cast<std::size_t>(dim)] = step;
    step *= std::max<std::int64_t>(shape[dim], 1);
  }
  return to_tensor(TensorView<const T>(columns.data(), shape, strides));
}

}  // namespace

AnyTensor read_npy_stream(ByteStream& stream) {
  const NpyHeader header = read_header(stream);
  check_data_size(header, stream);
  AnyTensor result = header.type->uninitialized(header.shape);
  std::visit(
      [&]<class T>(Tensor<T>& tensor) {
        const auto bytes = std::as_writable_bytes(tensor.elements());
        const std::int64_t begin = stream.position();
        stream.read(bytes);
        if constexpr (std::is_same_v<T, bool>) check_bools(bytes, stream.name(), begin);
        if (header.is_byte_swapped) swap_bytes(tensor.elements());
        if (header.is_fortran_order) tensor = from_fortran_order(tensor, header.shape);
      },
      result);
  return result;
}

void write_npy_stream(const AnyView& array, const ByteSink& sink) {
  if (kElementTypes[array.index()].npy_code.empty()) {
    throw InvalidArgument(
        fmt::format("write_npy: the array is of {}, for which NumPy has no dtype; write it as "
                    "float32",
                    kElementTypes[array.index()].name));
  }
  std::visit(
      [&](const auto& view) {
        const std::string header = format_npy_header(kElementTypes[array.index()], view.shape());
        sink(std::as_bytes(std::span(header)));
        write_elements(view, sink);
      },
      array);
}

}  // namespace io

AnyTensor read_npy(const std::filesystem::path& path) {
  io::FileSource file(path);
  io::SourceStream stream(file);
  return io::read_npy_stream(stream);
}

AnyTensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  io::MemorySource memory(name, bytes);
  io::SourceStream stream(memory);
  return io::read_npy_stream(stream);
}

void write_npy(const std::filesystem::path& path, const AnyView& array) {
  io::write_file_atomically(path,
                            [&](const io::ByteSink& sink) { io::write_npy_stream(array, sink); });
}

}}  // namespace heed::v0
