#include "support/recorded_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "support/places.h"

namespace heed::testing_support {

namespace {

constexpr std::array<std::string_view, 3> kColumns{"exact", "SSE4", "reference"};
constexpr int kHexDigits = 16;

std::size_t column_of_vectors(std::string_view vectors) {
  const auto found = std::find(kColumns.begin() + 1, kColumns.end(), vectors);
  return found == kColumns.end() ? 0 : static_cast<std::size_t>(found - kColumns.begin());
}

struct RecordedLine {
  std::array<std::string, kColumns.size()> hashes;  // "-": not recorded
  std::string description;
};

std::vector<RecordedLine> read_lines(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);  // names of the columns
  std::vector<RecordedLine> lines;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    RecordedLine line;
    for (std::string& hash : line.hashes) words >> hash;
    std::getline(words >> std::ws, line.description);
    if (!words) throw std::runtime_error(path + ": is not hashes and a description: " + text);
    lines.push_back(line);
  }
  return lines;
}

void write_lines(const std::string& path, const std::vector<RecordedLine>& lines) {
  std::ofstream file(path);
  for (const std::string_view name : kColumns) file << std::setw(kHexDigits) << name << ' ';
  file << "result\n";
  for (const RecordedLine& line : lines) {
    for (const std::string& hash : line.hashes) file << std::setw(kHexDigits) << hash << ' ';
    file << line.description << '\n';
  }
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

std::string to_hexadecimal(std::uint64_t hash) {
  std::ostringstream text;
  text << std::hex << std::setw(kHexDigits) << std::setfill('0') << hash;
  return text.str();
}

}  // namespace

void expect_recorded_bits(const std::string& file, std::string_view vectors,
                          const std::vector<RecordedResult>& results) {
  const std::string path = test_data() + "/bits/" + file;
  const std::size_t column = column_of_vectors(vectors);
  std::vector<RecordedLine> lines = read_lines(path);
  const bool is_written = std::getenv("HEED_WRITE_BITS") != nullptr;
  for (const RecordedResult& result : results) {
    auto line = std::find_if(lines.begin(), lines.end(), [&](const RecordedLine& one) {
      return one.description == result.description;
    });
    const std::string hash = to_hexadecimal(result.hash());
    if (is_written) {
      if (line == lines.end()) {
        line = lines.insert(line, {{"-", "-", "-"}, result.description});
      }
      line->hashes[column] = hash;
    } else if (line == lines.end() || line->hashes[column] == "-") {
      ADD_FAILURE() << "not in " << file << " for " << vectors << ": " << result.description;
    } else {
      EXPECT_EQ(line->hashes[column], hash)
          << "other bits on " << vectors << ": " << result.description;
    }
  }
  if (is_written) write_lines(path, lines);
}

}  // namespace heed::testing_support
