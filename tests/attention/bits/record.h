// Hashes as test data: one file per group of calls, one line per call, one column per arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::bits {

// The column of a name that attention_target() returns; empty if nothing is recorded of it. AVX512,
// AVX2 and NEON share the column "exact". "SSE4" has no fused multiply-add, "reference" adds in the
// order of plain loops, and products of pairs of bfloat16 are rounded differently by "AMX_BF16",
// "AVX512_BF16" and "NEON_BF16".
std::string_view column_of(std::string_view target);

class Record {
 public:
  // Is empty if there is no file.
  explicit Record(std::string_view group);

  // True if call `number` has this description.
  bool has(std::size_t number, const std::string& description) const;
  // Returns the hash of call `number`; none if it was never recorded for want of such a processor.
  std::optional<std::uint64_t> hash(std::size_t number, std::string_view column) const;

  std::size_t size() const { return lines_.size(); }

  // The number of the call with this description; none if there is no such call.
  std::optional<std::size_t> number_of(const std::string& description) const;

  struct Result {
    std::string description;
    std::uint64_t hash = 0;
  };
  // Sets one column of all calls. The other columns are kept of calls that are the same, in the
  // same order.
  void write(std::string_view column, const std::vector<Result>& results);
  // Sets one column of some calls and keeps all else; new calls come last.
  void update(std::string_view column, const std::vector<Result>& results);

 private:
  struct Line {
    std::vector<std::string> hashes;  // "=": as exact, "-": not recorded
    std::string description;
  };
  static Line new_line(const std::string& description);

  std::string path_;
  std::vector<Line> lines_;
};

}  // namespace heed::bits
