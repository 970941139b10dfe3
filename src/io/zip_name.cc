#include <utf8proc.h>

#include <algorithm>

#include "io/zip_format.h"

namespace heed { inline namespace v0 { namespace io::zip {

namespace {

// True if `name` is UTF-8 without control characters, which could control a terminal.
bool is_plain_utf8(std::string_view name) {
  const auto* next = reinterpret_cast<const utf8proc_uint8_t*>(name.data());
  auto remaining = static_cast<utf8proc_ssize_t>(name.size());
  while (remaining > 0) {
    utf8proc_int32_t codepoint = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(next, remaining, &codepoint);
    if (used <= 0 || utf8proc_category(codepoint) == UTF8PROC_CATEGORY_CC) return false;
    next += used;
    remaining -= used;
  }
  return true;
}

bool has_part(std::string_view name, std::string_view wanted) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == wanted) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string_view name_problem(std::string_view name) {
  constexpr std::size_t kLongest = std::numeric_limits<std::uint16_t>::max();
  if (name.empty()) return "the name is empty";
  if (name.size() > kLongest) return "the name is too long";
  if (!is_plain_utf8(name)) return "the name is not UTF-8 without control characters";
  const bool has_drive = name.size() > 1 && name[1] == ':';
  if (name.front() == '/' || has_drive) return "the name is an absolute path";
  if (name.find('\\') != std::string_view::npos) return "the name has a backslash";
  if (has_part(name, "..")) return "the name has a part '..'";
  if (has_part(name, "") || has_part(name, ".")) return "the name has a part that is empty or '.'";
  return "";
}

}}}  // namespace heed::v0::io::zip
