// Saves that fail or are killed: an error, no lost data, no leftover files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/error.h"
#include "heed/io/npy.h"
#include "heed/io/npz.h"
#include "heed/io/safetensors.h"
#include "heed/tasks/vocabulary.h"
#include "heed/viz/explorer.h"
#include "io/atomic_file.h"
#include "io/io_test_util.h"
#include "support/heap.h"
#include "support/system_faults.h"
#include "support/tensors.h"

namespace heed { namespace {

namespace fs = std::filesystem;
using testing_support::normal;
using testing_support::same_bits;
using testing_support::SystemFault;

class Faults : public IoTest {};

using Save = std::function<void(const fs::path&)>;

// Returns each kind of file with two contents.
std::vector<std::array<Save, 2>> saves() {
  const auto pair = [](const auto& save) {
    const Tensor<float> x = normal<float>({3, 5}, 1);
    const Tensor<float> y = normal<float>({40, 50}, 2);
    return std::array<Save, 2>{[=](const fs::path& path) { save(path, x.view()); },
                               [=](const fs::path& path) { save(path, y.view()); }};
  };
  return {pair([](const fs::path& path, FloatView x) { write_npy(path, x); }),
          pair([](const fs::path& path, FloatView x) {
            write_npy(path, x.permute({1, 0}));
          }),
          pair([](const fs::path& path, FloatView x) {
            write_npz(path, {{"x", x}, {"y", x}}, NpzCompression::kDeflated);
          }),
          pair([](const fs::path& path, FloatView x) {
            write_safetensors(path, {{"x", x}, {"y", x}}, {{"note", "n"}});
          })};
}

std::size_t num_open_files() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

// True if `act` fails with an error of the library's interface.
template <class Act>
bool fails(const Act& act) {
  try {
    act();
    return false;
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot "));
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
    ADD_FAILURE() << "a std::system_error";
  }
  return true;
}

TEST_F(Faults, EachCallOfTheSystemInASaveMayFail) {
  for (const auto& [save_old, save_new] : saves()) {
    save_new(path("a"));
    const std::string fresh = read_text(path("a"));
    std::set<std::string> calls;
    const std::size_t open_files = num_open_files();
    for (int index = 0;; ++index) {
      save_old(path("a"));
      const std::string old = read_text(path("a"));
      const SystemFault fault(index, EIO);
      const bool has_failed = fails([&save = save_new, this] { save(path("a")); });
      calls.insert(fault.call());
      const std::string found = read_text(path("a"));
      EXPECT_EQ(num_files(), 1U);
      EXPECT_EQ(num_open_files(), open_files);
      if (!fault.has_happened()) {
        EXPECT_FALSE(has_failed);
        EXPECT_EQ(found, fresh);
        break;
      }
      // After the file has its name, only making it durable can fail.
      const bool has_name = found == fresh;
      EXPECT_TRUE(has_name || found == old) << fault.call();
      EXPECT_EQ(has_failed, !has_name || std::string(fault.call()) == "fsync") << fault.call();
    }
    EXPECT_THAT(calls,
                testing::IsSupersetOf({"open", "write", "fsync", "fchmod", "rename", "getrandom"}));
  }
}

TEST_F(Faults, SeveralFilesAreAllOldOrAllNewWhateverFails) {
  for (int index = 0;; ++index) {
    write_text(path("a"), "old");
    fs::remove(path("b"));
    const SystemFault fault(index, ENOSPC);
    const bool has_failed = fails([&] {
      io::AtomicFile a(path("a"));
      io::AtomicFile b(path("b"));
      a.write(bytes_of("new"));
      b.write(bytes_of("new"));
      const std::array<io::AtomicFile*, 2> files{&a, &b};
      io::AtomicFile::commit_all(files);
    });
    const bool is_new = read_text(path("a")) == "new";
    EXPECT_EQ(fs::exists(path("b")), is_new) << fault.call();
    EXPECT_EQ(num_files(), is_new ? 2U : 1U) << fault.call();
    EXPECT_TRUE(is_new || has_failed) << fault.call();
    if (!fault.has_happened()) break;
  }
}

TEST_F(Faults, EachAllocationInASaveMayFail) {
  const testing_support::NothingKept nothing_kept;
  for (const auto& [save_old, save_new] : saves()) {
    save_new(path("a"));
    const std::string fresh = read_text(path("a"));
    save_old(path("a"));
    const std::string old = read_text(path("a"));
    const std::int64_t live = testing_support::live_heap_bytes();
    for (std::int64_t index = 0;; ++index) {
      bool has_failed = false;
      bool has_happened = false;
      {
        const testing_support::AllocationFault fault(index);
        has_failed = fails([&save = save_new, this] { save(path("a")); });
        has_happened = fault.has_happened();
      }
      EXPECT_EQ(testing_support::live_heap_bytes(), live) << index;
      ASSERT_EQ(num_files(), 1U);
      ASSERT_EQ(read_text(path("a")) == old, has_failed) << index;
      if (!has_happened) break;
      if (!has_failed) save_old(path("a"));
    }
    EXPECT_EQ(read_text(path("a")), fresh);
  }
}

bool same(const Tensor<float>& a, const Tensor<float>& b) { return same_bits(a, b); }
bool same(const std::string& a, const std::string& b) { return a == b; }

// Fails each allocation of `compute` in turn; a later computation must give the same result.
template <class Compute>
void expect_survival(const Compute& compute) {
  const auto expected = compute();
  compute();
  const std::int64_t live = testing_support::live_heap_bytes();
  for (std::int64_t index = 0;; ++index) {
    bool has_happened = false;
    {
      const testing_support::AllocationFault fault(index);
      fails([&] { compute(); });
      has_happened = fault.has_happened();
    }
    EXPECT_LE(testing_support::live_heap_bytes(), live) << index;
    if (!has_happened) break;
  }
  EXPECT_TRUE(same(compute(), expected));
}

TEST_F(Faults, EachAllocationInALoadMayFail) {
  const Tensor<float> x = normal<float>({3, 5}, 1);
  write_npy(path("a"), x.view());
  expect_survival([&] { return to_float(read_npy(path("a"))); });
  write_npz(path("a"), {{"x", x.view()}}, NpzCompression::kDeflated);
  expect_survival([&] { return to_float(read_npz(path("a")).at("x")); });
  write_safetensors(path("a"), {{"x", x.view()}});
  expect_survival([&] { return to_float(read_safetensors(path("a")).tensors.at("x")); });
}

TEST_F(Faults, EachAllocationInAVocabularyMayFail) {
  const std::vector<std::string> texts{"a rose is a rose", "\"œuf\""};
  const tasks::Vocabulary words(texts, tasks::Units::kWords);
  const std::string text = words.to_json();
  expect_survival([&] { return words.to_json(); });
  expect_survival([&] { return tasks::Vocabulary::from_json(text, "words.json").to_json(); });
  const std::string with_more = R"({"more": [{"a": [1, "b"]}], )" + text.substr(1);
  expect_survival([&] { return tasks::Vocabulary::from_json(with_more, "words.json").to_json(); });
}

TEST_F(Faults, EachAllocationInTheExplorerMayFail) {
  const ExplorerSentence sentence = explorer_example();
  expect_survival([&] { return explorer_json(sentence); });
}

TEST_F(Faults, EachAllocationInAttentionMayFail) {
  const Tensor<float> q = normal<float>({1, 2, 40, 16}, 1);
  const Tensor<float> k = normal<float>({1, 2, 90, 16}, 2);
  const Tensor<float> v = normal<float>({1, 2, 90, 16}, 3);
  const AttentionOptions options{.mask = causal(Alignment::bottom_right())};
  expect_survival([&] { return attention(q, k, v, options); });
  const auto forward = attention_with_lse(q, k, v, options);
  const Tensor<float> grad = normal<float>(forward.out.shape(), 4);
  expect_survival([&] { return attention_backward(grad, q, k, v, forward, options).query; });
}

// A child that saves repeatedly is killed. The only traces are files that are removed an hour
// later.
TEST_F(Faults, KillsLeaveTheOldFilesOrTheNew) {
  const Tensor<float> one = normal<float>({60, 50}, 1);
  const Tensor<float> two = normal<float>({60, 50}, 2);
  const auto save = [this](const Tensor<float>& x) { write_npy(path("a"), x.view()); };
  save(one);
  std::mt19937 engine(1);
  std::uniform_int_distribution<int> delay(0, 3000);
  for (int kill = 0; kill < 200; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) {
        save(two);
        save(one);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay(engine)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Tensor<float> found = to_float(read_npy(path("a")));
    ASSERT_TRUE(same_bits(found, one) || same_bits(found, two));
  }
  for (const auto& entry : fs::directory_iterator(path(""))) {
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  io::sweep_temporary_files("/");
  save(two);
  EXPECT_EQ(num_files(), 1U);
}

void save_both(const fs::path& first, const fs::path& second) {
  io::AtomicFile a(first);
  io::AtomicFile b(second);
  a.write(bytes_of("new"));
  b.write(bytes_of("new"));
  const std::array<io::AtomicFile*, 2> files{&a, &b};
  io::AtomicFile::commit_all(files);
}

// True if a child that saves both files was killed before the system call after `index` others.
bool kill_a_save(const fs::path& first, const fs::path& second, int index) {
  const pid_t child = ::fork();
  if (child == 0) {
    const SystemFault fault(index, SystemFault::kKill);
    save_both(first, second);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

// Returns the contents of the files `.heed-*-NAME.old`.
std::vector<std::string> kept_of(const fs::path& path) {
  const std::string ending = '-' + path.filename().string() + ".old";
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    if (entry.path().string().ends_with(ending)) kept.push_back(read_text(entry.path()));
  }
  return kept;
}

TEST_F(Faults, AKillBetweenTwoRenamesLosesNoOldFile) {
  std::size_t num_half = 0;
  bool is_killed = true;
  for (int index = 0; is_killed; ++index) {
    write_text(path("a"), "old");
    write_text(path("b"), "old");
    is_killed = kill_a_save(path("a"), path("b"), index);
    const std::string a = read_text(path("a"));
    const std::string b = read_text(path("b"));
    if (a != b) {
      ++num_half;
      EXPECT_EQ(a, "new");
      EXPECT_EQ(kept_of(path("a")), std::vector<std::string>{"old"});
      // Another killed save of one of them keeps what the first one kept.
      write_text(path("c"), "old");
      EXPECT_TRUE(kill_a_save(path("a"), path("c"), index));
      EXPECT_EQ(read_text(path("c")), "old");
      EXPECT_THAT(kept_of(path("a")), testing::UnorderedElementsAre("old", "new"));
      save_both(path("c"), path("d"));
      EXPECT_THAT(kept_of(path("a")), testing::Contains("old")) << "files of other names";
    }
    save_both(path("a"), path("b"));
    for (const auto& entry : fs::directory_iterator(path(""))) {
      if (entry.path().extension() == ".tmp") {
        fs::remove(entry.path());
      } else {
        EXPECT_EQ(entry.path().filename().string().size(), 1U) << entry.path();
      }
    }
  }
  EXPECT_EQ(num_half, 1U);
}

}  // namespace
}  // namespace heed
