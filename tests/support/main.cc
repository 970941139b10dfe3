// Runs the tests, or some of them:
//
//   heed_tests [--room=ROOM] [--kind=quick|thorough|slow] [--unless-best] [--times] [options of
//   GoogleTest]
//
// A room is a folder of tests. tests/kinds.txt names the tests that are thorough, which take a
// second or more, and slow, which `make test` leaves out; all others are quick. Both options choose
// tests, and --gtest_filter is not given with them. With --unless-best nothing runs, and the exit
// code is 77, where HEED_TARGET names the instruction set that is taken anyway. --times prints the
// processor time of each test, in seconds, that of its processes included: it does not depend on
// what else the machine does.
#include <gtest/gtest.h>
#ifndef _WIN32
#include <sys/resource.h>
#endif

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention.h"
#include "support/places.h"

namespace {

// True if `name` matches `pattern`, in which * stands for any text.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    return matches(name, pattern.substr(1)) || (!name.empty() && matches(name.substr(1), pattern));
  }
  return !name.empty() && name.front() == pattern.front() &&
         matches(name.substr(1), pattern.substr(1));
}

struct Kind {
  std::string name;
  std::string pattern;
};

std::vector<Kind> read_kinds() {
  const std::string path = heed::testing_support::test_data() + "/../kinds.txt";
  std::ifstream file(path);
  if (!file) {
    std::cerr << "heed_tests: cannot read " << path << '\n';
    std::exit(2);
  }
  std::vector<Kind> kinds;
  for (Kind kind; file >> kind.name >> kind.pattern;) kinds.push_back(kind);
  return kinds;
}

std::string kind_of(const std::string& test, const std::vector<Kind>& kinds) {
  for (const Kind& kind : kinds) {
    if (matches(test, kind.pattern)) return kind.name;
  }
  return "quick";
}

bool lies_in(const testing::TestInfo& test, const std::string& room) {
  return std::string_view(test.file()).find("tests/" + room + '/') != std::string_view::npos;
}

// Returns a GoogleTest filter with the names of all tests of a room and a kind; an empty option
// selects all.
std::string chosen(const std::string& room, const std::string& kind) {
  const std::vector<Kind> kinds = read_kinds();
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string name = std::string(suite.name()) + '.' + test.name();
      if (!room.empty() && !lies_in(test, room)) continue;
      if (!kind.empty() && kind_of(name, kinds) != kind) continue;
      filter += (filter.empty() ? "" : ":") + name;
    }
  }
  return filter;
}

std::string value_of(std::string_view option, std::string_view name) {
  return option.starts_with(name) ? std::string(option.substr(name.size())) : std::string();
}

// Returns the processor time that this process and those that it has started and collected took, in
// seconds.
double processor_time() {
  double seconds = 0;
#ifndef _WIN32
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    for (const timeval& part : {used.ru_utime, used.ru_stime}) {
      seconds += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
    }
  }
#endif
  return seconds;
}

class Times : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& /*test*/) override { start_ = processor_time(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::cout << processor_time() - start_ << " s " << test.test_suite_name() << '.' << test.name()
              << '\n';
  }

 private:
  double start_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string room;
  std::string kind;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option.starts_with("--room=")) {
      room = value_of(option, "--room=");
    } else if (option.starts_with("--kind=")) {
      kind = value_of(option, "--kind=");
    } else if (option == "--times") {
      testing::UnitTest::GetInstance()->listeners().Append(new Times);
    } else if (option == "--unless-best") {
      const char* target = std::getenv("HEED_TARGET");
      if (target == nullptr || target != heed::attention_targets().front()) continue;
      std::cout << "HEED_TARGET is " << target << ", with which all other tests run\n";
      return 77;
    } else {
      std::cerr << "heed_tests: unknown option " << option
                << ", expected --room=, --kind=, --unless-best, --times or one of GoogleTest's\n";
      return 2;
    }
  }
  if (!room.empty() || !kind.empty()) {
    const std::string filter = chosen(room, kind);
    if (filter.empty()) {
      std::cerr << "heed_tests: there is no test of room '" << room << "' and kind '" << kind
                << "'\n";
      return 2;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
