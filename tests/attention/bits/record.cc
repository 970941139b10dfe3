#include "attention/bits/record.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/places.h"

namespace heed::bits {

namespace {

constexpr std::array<std::string_view, 8> kTargets{
    "AMX_BF16", "AVX512_BF16", "AVX512", "AVX2", "SSE4", "NEON_BF16", "NEON", "reference"};
constexpr int kDigits = 16;

// AVX512_VNNI computes calls of floats and half precision as AVX512 does and shares its column.
std::size_t column_of(std::string_view target) {
  if (target == "AVX512_VNNI") target = "AVX512";
  return static_cast<std::size_t>(std::find(kTargets.begin(), kTargets.end(), target) -
                                  kTargets.begin());
}

std::string hexadecimal(std::uint64_t hash) {
  std::ostringstream text;
  text << std::hex << std::setw(kDigits) << std::setfill('0') << hash;
  return text.str();
}

}  // namespace

bool is_recorded(std::string_view target) { return column_of(target) < kTargets.size(); }

Record::Record(std::string_view group)
    : path_(testing_support::test_data() + "/bits/" + std::string(group) + ".txt") {
  std::ifstream file(path_);
  std::string text;
  std::getline(file, text);  // names of the columns
  while (std::getline(file, text)) {
    std::istringstream words(text);
    std::size_t number = 0;
    Line line{std::vector<std::string>(kTargets.size()), ""};
    words >> number;
    for (std::string& hash : line.hashes) words >> hash;
    std::getline(words >> std::ws, line.description);
    if (!words || number != lines_.size()) {
      throw std::runtime_error(path_ + ": line " + std::to_string(lines_.size() + 2) +
                               " is not a number, hashes and a call: " + text);
    }
    lines_.push_back(std::move(line));
  }
}

std::optional<std::uint64_t> Record::hash(std::size_t number, const std::string& description,
                                          std::string_view target) const {
  if (number >= lines_.size() || lines_[number].description != description) return std::nullopt;
  const std::string& text = lines_[number].hashes[column_of(target)];
  if (text == "-") return std::nullopt;
  return std::stoull(text, nullptr, 16);
}

void Record::write(std::string_view target, const std::vector<Result>& results) {
  // New calls may stand between the others.
  std::vector<Line> lines;
  auto next = lines_.begin();
  for (const Result& result : results) {
    const auto found = std::find_if(next, lines_.end(), [&](const Line& line) {
      return line.description == result.description;
    });
    if (found != lines_.end()) {
      lines.push_back(*found);
      next = found + 1;
    } else {
      lines.push_back({std::vector<std::string>(kTargets.size(), "-"), result.description});
    }
  }
  lines_ = std::move(lines);
  std::ofstream file(path_);
  file << "call";
  for (const std::string_view name : kTargets) file << ' ' << std::setw(kDigits) << name;
  file << '\n';
  for (std::size_t i = 0; i < results.size(); ++i) {
    Line& line = lines_[i];
    line.hashes[column_of(target)] = hexadecimal(results[i].hash);
    file << std::setw(4) << i;
    for (const std::string& hash : line.hashes) file << ' ' << std::setw(kDigits) << hash;
    file << ' ' << line.description << '\n';
  }
  if (!file.flush()) throw std::runtime_error(path_ + ": cannot be written");
}

}  // namespace heed::bits
