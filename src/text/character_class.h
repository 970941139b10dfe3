// Sets of characters, as regular expressions write them.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

// A union of ranges, general categories, white space and other sets, or what is in none of them.
class CharacterClass {
 public:
  struct Range {
    char32_t first;
    char32_t last;
  };

  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  // Bits are 1 << utf8proc_category_t.
  void add_categories(std::uint32_t bits) { categories_ |= bits; }
  void add_white_space() { has_white_space_ = true; }
  void add(CharacterClass other) { others_.push_back(std::move(other)); }
  void negate() { is_negated_ = !is_negated_; }
  // Adds the other case of ASCII letters in ranges, and the two other characters that fold to
  // them: the long s and the Kelvin sign.
  void ignore_case();
  // True if the set has nothing but ranges of ASCII.
  bool is_ascii() const;
  // Makes has() fast. The set must not be changed afterwards.
  void seal();

  bool has(char32_t value) const noexcept {
    return value < kDirect ? direct_[value] : contains(value);
  }

 private:
  static constexpr char32_t kDirect = 0x800;

  bool contains(char32_t value) const noexcept;

  std::vector<Range> ranges_;
  std::vector<CharacterClass> others_;
  std::uint32_t categories_ = 0;
  bool has_white_space_ = false;
  bool is_negated_ = false;
  std::bitset<kDirect> direct_;
};

// The general categories of "L", "Lu", …; nothing if there is no such name.
std::optional<std::uint32_t> categories_of(std::string_view name);

}}}  // namespace heed::v0::text
