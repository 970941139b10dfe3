#include "text/aligned_text.h"

#include <iterator>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
  AlignedText part(bytes().substr(begin, end - begin), begin_ + begin);
  if (!origins_.empty()) {
    part.origins_.assign(std::next(origins_.begin(), static_cast<std::ptrdiff_t>(begin)),
                         std::next(origins_.begin(), static_cast<std::ptrdiff_t>(end)));
  }
  return part;
}

AlignedWriter::AlignedWriter(const AlignedText& from) : from_(from) {
  to_.bytes_.reserve(from.size());
  to_.origins_.reserve(from.size());
}

void AlignedWriter::copy(std::size_t begin, std::size_t end) {
  to_.bytes_.append(from_.bytes_, begin, end - begin);
  for (std::size_t i = begin; i < end; ++i) to_.origins_.push_back(from_.origin(i));
}

void AlignedWriter::put(std::string_view bytes, TextRange origin) {
  to_.bytes_.append(bytes);
  to_.origins_.insert(to_.origins_.end(), bytes.size(), origin);
}

void AlignedWriter::put(char32_t value, TextRange origin) {
  const std::size_t before = to_.bytes_.size();
  append_character(to_.bytes_, value);
  to_.origins_.insert(to_.origins_.end(), to_.bytes_.size() - before, origin);
}

}}}  // namespace heed::v0::text
