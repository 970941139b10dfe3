// A range of the bytes of a text: begin ≤ i < end.
#pragma once

#include <cstddef>

namespace heed { inline namespace v0 { namespace text {

struct Span {
  std::size_t begin;
  std::size_t end;

  friend bool operator==(const Span&, const Span&) = default;
};

}}}  // namespace heed::v0::text
