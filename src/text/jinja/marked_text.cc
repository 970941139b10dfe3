#include "text/jinja/marked_text.h"

#include <algorithm>
#include <utility>

namespace heed { inline namespace v0 { namespace text { namespace jinja {

MarkedText MarkedText::foreign(std::string bytes) {
  MarkedText text(std::move(bytes));
  text.mark(0, text.size());
  return text;
}

bool MarkedText::is_marked(std::size_t byte) const noexcept {
  const auto after =
      std::upper_bound(marks_.begin(), marks_.end(), byte,
                       [](std::size_t at, const Span& span) { return at < span.end; });
  return after != marks_.end() && after->begin <= byte;
}

void MarkedText::append(const MarkedText& other) {
  const std::size_t offset = size();
  const std::size_t count = other.marks_.size();  // `other` may be this text
  bytes_ += other.bytes_;
  for (std::size_t i = 0; i < count; ++i) {
    mark(offset + other.marks_[i].begin, offset + other.marks_[i].end);
  }
}

void MarkedText::append_like(std::string_view bytes, const MarkedText& source, std::size_t byte) {
  const std::size_t offset = size();
  bytes_.append(bytes);
  if (source.is_marked(byte)) mark(offset, size());
}

MarkedText MarkedText::part(std::size_t begin, std::size_t end) const {
  MarkedText result(bytes_.substr(begin, end - begin));
  auto span = std::upper_bound(marks_.begin(), marks_.end(), begin,
                               [](std::size_t at, const Span& mark) { return at < mark.end; });
  for (; span != marks_.end() && span->begin < end; ++span) {
    result.mark(std::max(span->begin, begin) - begin, std::min(span->end, end) - begin);
  }
  return result;
}

void MarkedText::clear() {
  bytes_.clear();
  marks_.clear();
}

void MarkedText::mark(std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  if (!marks_.empty() && marks_.back().end == begin) {
    marks_.back().end = end;
  } else {
    marks_.push_back({begin, end});
  }
}

}}}}  // namespace heed::v0::text::jinja
