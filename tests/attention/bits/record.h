// Hashes as data of the tests: a file for each group of calls, a line for each call, a column for
// each instruction set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::bits {

// "AMX_BF16", "AVX512_BF16", "AVX512", "AVX2", "SSE4", "NEON_BF16", "NEON", "reference", as
// attention_target() names them.
bool is_recorded(std::string_view target);

class Record {
 public:
  // Empty where there is no file.
  explicit Record(std::string_view group);

  // What was recorded of the call of this number, if it was the same call.
  std::optional<std::uint64_t> hash(std::size_t number, const std::string& description,
                                    std::string_view target) const;

  std::size_t size() const { return lines_.size(); }

  // Sets one column. What the others say stays where the call is the same.
  struct Result {
    std::string description;
    std::uint64_t hash = 0;
  };
  void write(std::string_view target, const std::vector<Result>& results);

 private:
  struct Line {
    std::vector<std::string> hashes;  // "-": not recorded
    std::string description;
  };

  std::string path_;
  std::vector<Line> lines_;
};

}  // namespace heed::bits
