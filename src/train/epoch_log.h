// The log of epochs: one JSON object per line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace train {

class EpochLog {
 public:
  // An empty path writes nothing. An existing log is replaced.
  explicit EpochLog(const std::filesystem::path& path);
  // Keeps only the lines of the first `epochs` epochs: a killed run may have written later lines,
  // which its resumption writes again.
  void keep(std::size_t epochs);
  // Throws IoError if the file cannot be written.
  void write(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::vector<std::string> old_lines_;
  std::ofstream stream_;
};

}}}  // namespace heed::v0::train
