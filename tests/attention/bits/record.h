// Hashes as test data: one file per group of calls, one line per call, one column per instruction
// set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::bits {

// True for "AMX_BF16", "AVX512_BF16", "AVX512", "AVX2", "SSE4", "NEON_BF16", "NEON" and
// "reference", the names that attention_target() returns.
bool is_recorded(std::string_view target);

class Record {
 public:
  // Is empty if there is no file.
  explicit Record(std::string_view group);

  // Returns the recorded hash of call `number`, if its description is the same.
  std::optional<std::uint64_t> hash(std::size_t number, const std::string& description,
                                    std::string_view target) const;

  std::size_t size() const { return lines_.size(); }

  // Sets one column. The other columns are kept of calls that are the same, in the same order.
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
