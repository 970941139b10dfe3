// Operations on texts as Python has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace text { namespace jinja {

// As str.isspace().
bool is_python_space(char32_t value) noexcept;

enum class Sides { kBoth, kLeft, kRight };
// As str.strip(), or of the characters in `characters`.
std::string_view stripped(std::string_view text, Sides sides,
                          const std::string* characters = nullptr);

// The content of a string literal; nothing if an escape stands for no character.
std::optional<std::string> unescaped(std::string_view literal);

std::string upper_of(char32_t value);
std::string lower_of(char32_t value);

// repr() of a string and of a number, and the text of an escaped character in it.
char quote_for(std::string_view text);
std::string escaped_for_repr(char32_t value, char quote);
std::string repr_of(double number);

}}}}  // namespace heed::v0::text::jinja
