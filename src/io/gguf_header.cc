#include "io/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "io/gguf_reader.h"

namespace heed { inline namespace v0 { namespace io {

namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kOldestVersion = 2;
constexpr std::uint32_t kNewestVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::int64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMostDimensions = 4;

// The fewest bytes of a metadata entry and of a tensor entry.
constexpr std::int64_t kSmallestPair = 8 + 1 + 4 + 1;
constexpr std::int64_t kSmallestTensor = 8 + 1 + 4 + 8 + 4 + 8;

enum class ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

// The bytes of a value of each type; for strings and arrays, the fewest.
constexpr std::array<std::int64_t, 13> kSmallestValue{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

// The bytes of a tensor, and the position in the file that declares them.
struct TensorPlace {
  const std::string* name;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t said_at;
};

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, const std::string& file)
      : reader_(bytes, file), bytes_(bytes) {}

  GgufHeader parse() {
    check_version();
    const std::int64_t num_tensors = reader_.count("the number of ", "tensors", kSmallestTensor);
    const std::int64_t num_pairs = reader_.count("the number of ", "keys", kSmallestPair);
    for (std::int64_t i = 0; i < num_pairs; ++i) read_pair();
    header_.metadata_end = reader_.position();
    for (std::int64_t i = 0; i < num_tensors; ++i) read_tensor();
    locate_tensors();
    return std::move(header_);
  }

 private:
  void check_version() {
    if (reader_.unsigned_number<std::uint32_t>("the magic number") != kMagic) {
      reader_.fail(0, "a GGUF file begins with 'GGUF'");
    }
    const auto version = reader_.unsigned_number<std::uint32_t>("the version");
    if (version >= kOldestVersion && version <= kNewestVersion) return;
    const std::string_view order = version % 0x10000 == 0 ? ": a big-endian file?" : "";
    reader_.fail(4, fmt::format("version {}{}; versions {} and {} are read", version, order,
                                kOldestVersion, kNewestVersion));
  }

  void read_pair() {
    const std::int64_t begin = reader_.position();
    const std::string key = reader_.text("a key");
    if (key.empty()) reader_.fail(begin, "an empty key");
    if (header_.metadata.contains(key)) {
      reader_.fail(begin, fmt::format("the key '{}' occurs twice", printable(key)));
    }
    const std::string what = fmt::format("the value of '{}'", printable(key));
    const ValueType type = read_type(what);
    if (key == kAlignmentKey) check_alignment_type(type);
    header_.value_begin.emplace(key, reader_.position());
    GgufValue value = type == ValueType::kArray ? read_array(what) : read_value(type, what);
    if (key == kAlignmentKey) set_alignment(std::get<std::int64_t>(value));
    header_.metadata.emplace(key, std::move(value));
  }

  ValueType read_type(std::string_view what) {
    const auto number = reader_.unsigned_number<std::uint32_t>(fmt::format("the type of {}", what));
    if (number >= kSmallestValue.size()) {
      reader_.fail(reader_.position() - 4, fmt::format("{} has the unknown type {}", what, number));
    }
    return static_cast<ValueType>(number);
  }

  void check_alignment_type(ValueType type) const {
    if (type == ValueType::kUint32) return;
    reader_.fail(reader_.position() - 4,
                 fmt::format("{} has the type {}, 4 (uint32) is expected", kAlignmentKey,
                             static_cast<std::uint32_t>(type)));
  }

  void set_alignment(std::int64_t alignment) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
      reader_.fail(reader_.position() - 4,
                   fmt::format("{} is {}, a power of two is expected", kAlignmentKey, alignment));
    }
    alignment_ = alignment;
  }

  std::int64_t read_integer(ValueType type, std::string_view what) {
    switch (type) {
      case ValueType::kUint8:
        return reader_.unsigned_number<std::uint8_t>(what);
      case ValueType::kInt8:
        return static_cast<std::int8_t>(reader_.unsigned_number<std::uint8_t>(what));
      case ValueType::kUint16:
        return reader_.unsigned_number<std::uint16_t>(what);
      case ValueType::kInt16:
        return static_cast<std::int16_t>(reader_.unsigned_number<std::uint16_t>(what));
      case ValueType::kUint32:
        return reader_.unsigned_number<std::uint32_t>(what);
      case ValueType::kInt32:
        return static_cast<std::int32_t>(reader_.unsigned_number<std::uint32_t>(what));
      case ValueType::kUint64:
        return reader_.size("", what);
      default:
        return static_cast<std::int64_t>(reader_.unsigned_number<std::uint64_t>(what));
    }
  }

  double read_real(ValueType type, std::string_view what) {
    return type == ValueType::kFloat32 ? reader_.float_number(what) : reader_.double_number(what);
  }

  GgufValue read_value(ValueType type, std::string_view what) {
    switch (type) {
      case ValueType::kBool:
        return reader_.boolean(what);
      case ValueType::kString:
        return reader_.text(what);
      case ValueType::kFloat32:
      case ValueType::kFloat64:
        return read_real(type, what);
      default:
        return read_integer(type, what);
    }
  }

  template <class T, class Read>
  GgufValue read_elements(std::int64_t count, const Read& read) {
    std::vector<T> elements;
    elements.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(read());
    return elements;
  }

  GgufValue read_array(const std::string& what) {
    const ValueType type = read_type(what);
    if (type == ValueType::kArray) {
      reader_.fail(reader_.position() - 4,
                   fmt::format("{} is an array of arrays, which is not read", what));
    }
    const std::int64_t count =
        reader_.count("the length of ", what, kSmallestValue[static_cast<std::size_t>(type)]);
    switch (type) {
      case ValueType::kBool:
        return read_elements<bool>(count, [&] { return reader_.boolean(what); });
      case ValueType::kString:
        return read_elements<std::string>(count, [&] { return reader_.text(what); });
      case ValueType::kFloat32:
      case ValueType::kFloat64:
        return read_elements<double>(count, [&] { return read_real(type, what); });
      default:
        return read_elements<std::int64_t>(count, [&] { return read_integer(type, what); });
    }
  }

  void read_tensor() {
    const std::int64_t begin = reader_.position();
    std::string name = reader_.text("the name of a tensor");
    if (name.empty()) reader_.fail(begin, "a tensor without a name");
    const std::string what = fmt::format("tensor '{}'", printable(name));
    if (header_.tensors.contains(name)) reader_.fail(begin, what + " occurs twice");
    GgufTensor tensor;
    tensor.shape = read_shape(what);
    tensor.type = reader_.unsigned_number<std::uint32_t>(what);
    const std::int64_t bytes = num_bytes(tensor, what);
    const std::int64_t offset = reader_.size("the offset of ", what);
    if (offset % alignment_ != 0) {
      reader_.fail(reader_.position() - 8, fmt::format("{} is at {} of the data, which is no "
                                                       "multiple of {}",
                                                       what, offset, alignment_));
    }
    const auto& placed = *header_.tensors.emplace(std::move(name), tensor).first;
    places_.push_back({&placed.first, offset, offset, reader_.position() - 8});
    if (__builtin_add_overflow(offset, bytes, &places_.back().end)) {
      reader_.fail(reader_.position() - 8, fmt::format("{} ends beyond 63 bits", what));
    }
  }

  Shape read_shape(const std::string& what) {
    const std::int64_t begin = reader_.position();
    const auto rank = reader_.unsigned_number<std::uint32_t>(what);
    if (rank == 0 || rank > kMostDimensions) {
      reader_.fail(begin, fmt::format("{} has {} dimensions, 1 to {} are expected", what, rank,
                                      kMostDimensions));
    }
    std::vector<std::int64_t> extents(rank);
    for (std::int64_t& extent : extents) extent = reader_.size("an extent of ", what);
    std::reverse(extents.begin(), extents.end());
    try {
      return Shape(extents);
    } catch (const InvalidArgument& error) {
      reader_.fail(begin, fmt::format("{}: {}", what, error.what()));
    }
  }

  // Returns 0 for an unknown type.
  std::int64_t num_bytes(const GgufTensor& tensor, const std::string& what) const {
    const GgmlType* const type = find_ggml_type(tensor.type);
    if (type == nullptr) return 0;
    const std::int64_t at = reader_.position() - 4;
    if (tensor.shape[-1] % type->block_elements != 0) {
      reader_.fail(at, fmt::format("{} has rows of {} elements, {} has blocks of {}", what,
                                   tensor.shape[-1], type->name, type->block_elements));
    }
    try {
      return checked_multiply(tensor.shape.num_elements() / type->block_elements,
                              type->block_bytes);
    } catch (const InvalidArgument& error) {
      reader_.fail(at, fmt::format("{}: {}", what, error.what()));
    }
  }

  void locate_tensors() {
    const std::int64_t unaligned = reader_.position();
    const std::int64_t begin = (unaligned + alignment_ - 1) / alignment_ * alignment_;
    const auto size = static_cast<std::int64_t>(bytes_.size());
    const std::int64_t available = std::max<std::int64_t>(size - begin, 0);
    std::stable_sort(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const TensorPlace* before = nullptr;
    for (const TensorPlace& place : places_) {
      check_place(place, before, available);
      GgufTensor& tensor = header_.tensors.find(*place.name)->second;
      tensor.offset = begin + place.begin;
      if (place.begin == place.end) continue;
      before = &place;
      tensor.bytes = bytes_.subspan(static_cast<std::size_t>(tensor.offset),
                                    static_cast<std::size_t>(place.end - place.begin));
    }
  }

  void check_place(const TensorPlace& place, const TensorPlace* before,
                   std::int64_t available) const {
    if (place.end > available) {
      reader_.fail(place.said_at,
                   fmt::format("tensor '{}' takes the bytes {} to {} of the data, "
                               "which has {}",
                               printable(*place.name), place.begin, place.end, available));
    }
    if (before != nullptr && place.begin < before->end) {
      reader_.fail(place.said_at,
                   fmt::format("tensor '{}' begins at {} of the data, where '{}' has not ended",
                               printable(*place.name), place.begin, printable(*before->name)));
    }
  }

  GgufReader reader_;
  std::span<const std::byte> bytes_;
  std::int64_t alignment_ = kDefaultAlignment;
  GgufHeader header_;
  std::vector<TensorPlace> places_;
};

}  // namespace

GgufHeader parse_gguf_header(std::span<const std::byte> bytes, const std::string& file) {
  return GgufParser(bytes, file).parse();
}

}}}  // namespace heed::v0::io
