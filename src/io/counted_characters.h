// Characters for the JSON parser, with a count of those it has read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace heed { inline namespace v0 { namespace io {

class CountedCharacters {
 public:
  // NOLINTBEGIN(readability-identifier-naming): std::iterator_traits wants these names
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  CountedCharacters(const char* at, std::int64_t& taken) : at_(at), taken_(&taken) {}
  const char& operator*() const { return *at_; }
  CountedCharacters& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  bool operator==(const CountedCharacters& other) const { return at_ == other.at_; }
  bool operator!=(const CountedCharacters& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::int64_t* taken_;
};

}}}  // namespace heed::v0::io
