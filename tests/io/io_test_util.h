// Common parts of the tests of file formats.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "support/places.h"

namespace heed {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(testing_support::test_data()) / "npy" / name;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A folder for one test, removed afterwards.
class IoTest : public testing::Test {
 protected:
  IoTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("heed-io-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~IoTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace heed
