#include "text/character_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {

void CharacterClass::ignore_case() {
  constexpr char32_t kLongS = 0x17F;
  constexpr char32_t kKelvinSign = 0x212A;
  const std::vector<Range> ranges = ranges_;
  for (char32_t letter = 'a'; letter <= 'z'; ++letter) {
    const bool is_in = std::any_of(ranges.begin(), ranges.end(), [letter](const Range& range) {
      const auto has = [&](char32_t value) { return range.first <= value && value <= range.last; };
      return has(letter) || has(letter - 0x20);
    });
    if (!is_in) continue;
    add(letter, letter);
    add(letter - 0x20, letter - 0x20);
    if (letter == 's') add(kLongS, kLongS);
    if (letter == 'k') add(kKelvinSign, kKelvinSign);
  }
}

bool CharacterClass::is_ascii() const {
  return !is_negated_ && categories_ == 0 && !has_white_space_ && others_.empty() &&
         std::all_of(ranges_.begin(), ranges_.end(),
                     [](const Range& range) { return range.last < 0x80; });
}

void CharacterClass::seal() {
  for (char32_t value = 0; value < kDirect; ++value) direct_[value] = contains(value);
}

bool CharacterClass::contains(char32_t value) const noexcept {
  const auto category =
      static_cast<std::uint32_t>(utf8proc_category(static_cast<utf8proc_int32_t>(value)));
  const bool is_in =
      (categories_ >> category & 1U) != 0 || (has_white_space_ && is_space(value)) ||
      std::any_of(
          ranges_.begin(), ranges_.end(),
          [value](const Range& range) { return range.first <= value && value <= range.last; }) ||
      std::any_of(others_.begin(), others_.end(),
                  [value](const CharacterClass& other) { return other.contains(value); });
  return is_in != is_negated_;
}

namespace {

constexpr std::uint32_t bits_of(utf8proc_category_t first, utf8proc_category_t last) {
  return (2U << static_cast<unsigned>(last)) - (1U << static_cast<unsigned>(first));
}

constexpr std::array<std::pair<std::string_view, std::uint32_t>, 6> kGroups{
    {{"L", bits_of(UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO)},
     {"M", bits_of(UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME)},
     {"N", bits_of(UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO)},
     {"P", bits_of(UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO)},
     {"S", bits_of(UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO)},
     {"Z", bits_of(UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP)}}};

// In the order of utf8proc_category_t, from UTF8PROC_CATEGORY_LU.
constexpr std::array<std::string_view, 25> kCategories{
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd",
    "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp"};

}  // namespace

std::optional<std::uint32_t> categories_of(std::string_view name) {
  for (const auto& [group, bits] : kGroups) {
    if (group == name) return bits;
  }
  const auto found = std::find(kCategories.begin(), kCategories.end(), name);
  if (found == kCategories.end()) return std::nullopt;
  return 1U << (static_cast<unsigned>(found - kCategories.begin()) + UTF8PROC_CATEGORY_LU);
}

}}}  // namespace heed::v0::text
