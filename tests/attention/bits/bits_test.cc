// Results keep their bits: the results of calls of every kind are compared with hashes in
// tests/data/bits, on the instruction set that HEED_TARGET names. After a change that is meant to
// change bits, HEED_WRITE_BITS=1 writes new hashes, of one instruction set per run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "attention/bits/calls.h"
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
  Record(group.name).write(target(), results);
}

void compare(const Group& group) {
  set_num_threads(2);
  const Record record(group.name);
  const std::vector<Call> calls = group.calls();
  EXPECT_EQ(record.size(), calls.size()) << group.name << ".txt has other calls";
  const bool same_libm =
      record.hash(0, calls.front().description, target()) == calls.front().hash();
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (!same_libm && (call.needs_libm || target() == "reference")) continue;
    const std::optional<std::uint64_t> recorded = record.hash(i, call.description, target());
    if (!recorded) {
      ADD_FAILURE() << "not in " << group.name << ".txt: call " << i << ", " << call.description;
    } else if (*recorded != call.hash()) {
      ADD_FAILURE() << "other bits on " << target() << ": " << group.name << " call " << i << ", "
                    << call.description
                    << (same_libm ? "" : "; the C library computes exp or log otherwise, too");
    }
  }
  set_num_threads(0);
}

TEST_P(Bits, AreThoseRecorded) {
  if (!is_available(std::getenv("HEED_TARGET"))) GTEST_SKIP() << "not on this processor";
  if (!is_recorded(target())) GTEST_SKIP() << "nothing is recorded of " << target();
  if (std::getenv("HEED_WRITE_BITS") != nullptr) return write(GetParam());
  compare(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Of, Bits, ::testing::ValuesIn(groups()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace heed::bits
