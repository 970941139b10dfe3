// Where epochs are written, a JSON object a line.
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
  // Nowhere when the path is empty. A log that is there is replaced.
  explicit EpochLog(const std::filesystem::path& path);
  // Keeps the lines of the first `epochs` epochs: a run that was killed wrote some that it will
  // write again.
  void keep(std::size_t epochs);
  // Throws IoError when the file cannot be written.
  void write(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::vector<std::string> old_lines_;
  std::ofstream stream_;
};

}}}  // namespace heed::v0::train
