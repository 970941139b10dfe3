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

constexpr std::array<std::string_view, 6> kColumns{"exact",       "SSE4",      "AMX_BF16",
                                                   "AVX512_BF16", "NEON_BF16", "reference"};
constexpr int kDigits = 16;

std::size_t index_of(std::string_view column) {
  return static_cast<std::size_t>(std::find(kColumns.begin(), kColumns.end(), column) -
                                  kColumns.begin());
}

std::string hexadecimal(std::uint64_t hash) {
  std::ostringstream text;
  text << std::hex << std::setw(kDigits) << std::setfill('0') << hash;
  return text.str();
}

}  // namespace

std::string_view column_of(std::string_view target) {
  for (const std::string_view exact : {"AVX512", "AVX512_VNNI", "AVX2", "NEON"}) {
    if (target == exact) return kColumns[0];
  }
  const std::size_t index = index_of(target);
  return index < kColumns.size() ? kColumns[index] : "";
}

Record::Line Record::new_line(const std::string& description) {
  return {std::vector<std::string>(kColumns.size(), "-"), description};
}

Record::Record(std::string_view group)
    : path_(testing_support::test_data() + "/bits/" + std::string(group) + ".txt") {
  std::ifstream file(path_);
  std::string text;
  std::getline(file, text);  // names of the columns
  while (std::getline(file, text)) {
    std::istringstream words(text);
    std::size_t number = 0;
    Line line{std::vector<std::string>(kColumns.size()), ""};
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

bool Record::has(std::size_t number, const std::string& description) const {
  return number < lines_.size() && lines_[number].description == description;
}

std::optional<std::uint64_t> Record::hash(std::size_t number, std::string_view column) const {
  const std::vector<std::string>& hashes = lines_.at(number).hashes;
  const std::string& own = hashes[index_of(column)];
  const std::string& text = own == "=" ? hashes.front() : own;
  if (text == "-") return std::nullopt;
  return std::stoull(text, nullptr, 16);
}

std::optional<std::size_t> Record::number_of(const std::string& description) const {
  const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) {
    return line.description == description;
  });
  if (found == lines_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - lines_.begin());
}

void Record::write(std::string_view column, const std::vector<Result>& results) {
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
      lines.push_back(new_line(result.description));
    }
  }
  lines_ = std::move(lines);
  update(column, results);
}

void Record::update(std::string_view column, const std::vector<Result>& results) {
  for (const Result& result : results) {
    const std::size_t number = number_of(result.description).value_or(lines_.size());
    if (number == lines_.size()) lines_.push_back(new_line(result.description));
    std::vector<std::string>& hashes = lines_[number].hashes;
    const std::string hash = hexadecimal(result.hash);
    hashes[index_of(column)] = column != kColumns.front() && hash == hashes.front() ? "=" : hash;
  }
  std::ofstream file(path_);
  file << "call";
  for (const std::string_view name : kColumns) file << ' ' << std::setw(kDigits) << name;
  file << '\n';
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    file << std::setw(4) << i;
    for (const std::string& hash : lines_[i].hashes) file << ' ' << std::setw(kDigits) << hash;
    file << ' ' << lines_[i].description << '\n';
  }
  if (!file.flush()) throw std::runtime_error(path_ + ": cannot be written");
}

}  // namespace heed::bits
