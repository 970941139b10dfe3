// Text that knows which of its bytes came from outside the template, such as from messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

class MarkedText {
 public:
  MarkedText() = default;
  // Text of the template.
  explicit MarkedText(std::string bytes) : bytes_(std::move(bytes)) {}
  // Text from outside.
  static MarkedText foreign(std::string bytes);

  const std::string& bytes() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return bytes_.empty(); }
  // The bytes from outside: spans that are not empty and do not touch, in order.
  const std::vector<Span>& marks() const noexcept { return marks_; }
  bool is_marked(std::size_t byte) const noexcept;

  void append(const MarkedText& other);
  void append(std::string_view bytes) { bytes_.append(bytes); }
  // Appends bytes that stand for those of `source` at `byte`.
  void append_like(std::string_view bytes, const MarkedText& source, std::size_t byte);
  MarkedText part(std::size_t begin, std::size_t end) const;
  void clear();

 private:
  void mark(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<Span> marks_;
};

}}}}  // namespace heed::v0::text::jinja
