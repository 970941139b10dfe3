#include "text/byte_level.h"

#include <array>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

constexpr char32_t kEnd = 0x144;  // the end for 256 bytes, 68 of which are moved to U+0100 …

struct ByteTable {
  std::array<std::string, 256> visible;
  std::array<int, kEnd> bytes;  // -1: none
};

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

ByteTable make_byte_table() {
  ByteTable table;
  table.bytes.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t value = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    append_character(table.visible[static_cast<std::size_t>(byte)], value);
    table.bytes[value] = byte;
  }
  return table;
}

const ByteTable& byte_table() {
  static const ByteTable table = make_byte_table();
  return table;
}

}  // namespace

std::string_view visible_byte(unsigned char byte) { return byte_table().visible[byte]; }

std::optional<std::string> bytes_of_visible(std::string_view token) {
  const ByteTable& table = byte_table();
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const auto [value, size] = character_at(token, at);
    const int byte = value < kEnd ? table.bytes[value] : -1;
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    at += size;
  }
  return bytes;
}

}}}  // namespace heed::v0::text
