// Results keep their bits: the results of calls of every kind are compared with hashes in
// tests/data/bits, on the instruction set that HEED_TARGET names. After a change that is meant to
// change bits, HEED_WRITE_BITS=1 writes new hashes, of one column per run. HEED_DRAWN_BITS=N prints
// the hashes of N drawn problems of each kind, which scripts/compare-targets compares.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "attention/bits/calls.h"
#include "attention/bits/drawn.h"
#include "attention/bits/record.h"
#include "heed/attention.h"
#include "heed/core/parallel.h"

namespace heed::bits { namespace {

const std::string& target() {
  static const std::string name = attention_target();
  return name;
}

bool is_available(const char* name) {
  if (name == nullptr || *name == '\0') return true;
  const std::vector<std::string> names = attention_targets();
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Bits : public testing::TestWithParam<Group> {};

// Hashes are written by one thread and compared with those of two threads, which must be equal.
void write(const Group& group) {
  const ThreadLimit one(1);
  std::vector<Record::Result> results;
  for (const Call& call : group.calls()) results.push_back({call.description, call.hash()});
  Record(group.name).write(column_of(target()), results);
}

void compare(const Group& group) {
  set_num_threads(2);
  const Record record(group.name);
  const std::vector<Call> calls = group.calls();
  EXPECT_EQ(record.size(), calls.size()) << group.name << ".txt has other calls";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (!record.has(i, call.description)) {
      ADD_FAILURE() << "not in " << group.name << ".txt: call " << i << ", " << call.description;
      continue;
    }
    const std::optional<std::uint64_t> recorded = record.hash(i, column_of(target()));
    if (recorded && *recorded != call.hash()) {
      ADD_FAILURE() << "other bits on " << target() << ": " << group.name << " call " << i << ", "
                    << call.description;
    }
  }
  set_num_threads(0);
}

TEST_P(Bits, AreThoseRecorded) {
  if (!is_available(std::getenv("HEED_TARGET"))) GTEST_SKIP() << "not on this processor";
  if (column_of(target()).empty()) GTEST_SKIP() << "nothing is recorded of " << target();
  if (std::getenv("HEED_WRITE_BITS") != nullptr) return write(GetParam());
  compare(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Of, Bits, ::testing::ValuesIn(groups()),
                         [](const auto& test) { return std::string(test.param.name); });

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(DrawnBits, ArePrinted) {
  const std::uint64_t count = number_in("HEED_DRAWN_BITS", 0);
  if (count == 0) GTEST_SKIP() << "HEED_DRAWN_BITS says how many to print";
  const std::uint64_t begin = number_in("HEED_DRAWN_FIRST", 0);
  const std::uint64_t block = number_in("HEED_DRAWN_BLOCK", 100);
  const char* wanted = std::getenv("HEED_DRAWN_KIND");
  const ThreadLimit one(1);
  for (const DrawnKind& kind : drawn_kinds()) {
    if (wanted != nullptr && kind.name != wanted) continue;
    for (std::uint64_t first = begin; first < begin + count; first += block) {
      const std::uint64_t last = std::min(first + block, begin + count);
      std::cout << kind.name << ' ' << first << ' ' << last << ' ' << std::hex
                << hash_of_drawn(kind, first, last) << std::dec
                << (block == 1 ? "  " + describe(kind, first) : "") << std::endl;
    }
  }
}

}  // namespace
}  // namespace heed::bits
