// Hashes of results as test data: a column for all instruction sets with fused multiply-adds, whose
// bits are the same, and one each for SSE4 and for plain loops.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::testing_support {

struct RecordedResult {
  std::string description;
  std::function<std::uint64_t()> hash;
};

// Compares the results of an instruction set, as HEED_TARGET names it, with tests/data/bits/<file>.
// With HEED_WRITE_BITS=1 it writes them there and keeps all others.
void expect_recorded_bits(const std::string& file, std::string_view vectors,
                          const std::vector<RecordedResult>& results);

}  // namespace heed::testing_support
