// Text as numbers, one for each character.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::cli {

// The characters (code points) that occur in a text, numbered in their order in Unicode.
class Characters {
 public:
  // Throws InvalidArgument when `text` is not UTF-8.
  explicit Characters(std::string_view text);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  // All of them in order: Characters(all()) is the same again.
  std::string all() const;

  // Throws InvalidArgument naming a character that is not among them. Four bytes a character: texts
  // are long.
  std::vector<std::int32_t> encode(std::string_view text) const;
  const std::string& operator[](std::int64_t id) const {
    return characters_[static_cast<std::size_t>(id)];
  }

 private:
  std::vector<std::string> characters_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
};

}  // namespace heed::cli
