#include "heed/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/byte_source.h"
#include "io/elements.h"
#include "io/json.h"
#include "io/little_endian.h"
#include "io/safetensors_header.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 {

namespace {

using io::ElementType;
using io::kSafetensorsPrefix;

// Elements are copied between file and memory unchanged.
static_assert(std::endian::native == std::endian::little);

Safetensors read_file(io::ByteSource& file) {
  const std::string text = io::read_safetensors_header(file);
  const std::int64_t data_begin = kSafetensorsPrefix + static_cast<std::int64_t>(text.size());
  io::SafetensorsHeader header =
      io::parse_safetensors_header(text, file.name(), file.size() - data_begin);
  Safetensors result{{}, std::move(header.metadata)};
  for (const auto& [name, entry] : header.entries) {
    const std::int64_t offset = data_begin + entry.begin;
    if (entry.type->uninitialized == nullptr) {
      throw FormatError(file.name(), offset,
                        fmt::format("tensor '{}' is of type {}, which heed reads in models only; "
                                    "convert it to float16 or float32",
                                    io::printable(name), entry.type->name));
    }
    AnyTensor any = entry.type->uninitialized(entry.shape);
    std::visit(
        [&]<class T>(Tensor<T>& tensor) {
          const auto bytes = std::as_writable_bytes(tensor.elements());
          file.read(offset, bytes);
          if constexpr (std::is_same_v<T, bool>) io::check_bools(bytes, file.name(), offset);
        },
        any);
    result.tensors.emplace(name, std::move(any));
  }
  return result;
}

void check_text(const char* what, std::string_view text) {
  if (const auto invalid = unicode::find_invalid(text)) {
    throw InvalidArgument(fmt::format("write_safetensors: {} '{}' is not UTF-8 at byte {}", what,
                                      io::printable(text), *invalid));
  }
}

using NamedView = std::pair<const std::string, AnyView>;

const ElementType& type_of(const AnyView& view) { return io::kElementTypes[view.index()]; }

// The tensors in the order in which they are written.
std::vector<const NamedView*> in_order(const std::map<std::string, AnyView>& tensors) {
  std::vector<const NamedView*> result;
  for (const NamedView& named : tensors) {
    check_text("the name", named.first);
    if (named.first == io::kSafetensorsMetadata) {
      throw InvalidArgument(
          "write_safetensors: a tensor is called '__metadata__', which names "
          "the metadata");
    }
    result.push_back(&named);
  }
  std::stable_sort(result.begin(), result.end(), [](const NamedView* a, const NamedView* b) {
    return type_of(a->second).size > type_of(b->second).size;
  });
  return result;
}

std::string format_metadata(const std::map<std::string, std::string>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", io::json_string(key),
                        io::json_string(value));
  }
  return fmt::format("\"{}\":{{{}}}", io::kSafetensorsMetadata, text);
}

std::string format_header(const std::vector<const NamedView*>& tensors,
                          const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    check_text("metadata", key);
    check_text("metadata", value);
  }
  std::string text = "{";
  if (!metadata.empty()) text += format_metadata(metadata);
  std::int64_t begin = 0;
  for (const NamedView* named : tensors) {
    const auto& [name, any] = *named;
    const ElementType& type = type_of(any);
    const Shape shape = std::visit([](const auto& view) { return view.shape(); }, any);
    const std::int64_t end = begin + checked_multiply(shape.num_elements(), type.size);
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        text.size() > 1 ? "," : "", io::json_string(name), type.safetensors_code,
                        fmt::join(shape, ","), begin, end);
    begin = end;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > static_cast<std::size_t>(kMaxSafetensorsHeaderBytes)) {
    throw InvalidArgument(
        fmt::format("write_safetensors: the header has {} bytes, at most {} are "
                    "allowed",
                    text.size(), kMaxSafetensorsHeaderBytes));
  }
  return text;
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
  io::FileSource file(path);
  return read_file(file);
}

Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  io::MemorySource memory(name, bytes);
  return read_file(memory);
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, AnyView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const auto ordered = in_order(tensors);
  const std::string header = format_header(ordered, metadata);
  io::write_file_atomically(path, [&](const io::ByteSink& sink) {
    sink(io::FieldWriter().add(std::uint64_t{header.size()}).take());
    sink(std::as_bytes(std::span(header)));
    for (const NamedView* named : ordered) {
      std::visit([&](const auto& view) { io::write_elements(view, sink); }, named->second);
    }
  });
}

}}  // namespace heed::v0
