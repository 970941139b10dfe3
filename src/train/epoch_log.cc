#include "train/epoch_log.h"

#include <algorithm>
#include <cerrno>

#include "io/io_error.h"

namespace heed { inline namespace v0 { namespace train {

namespace fs = std::filesystem;

EpochLog::EpochLog(const fs::path& path) : path_(path) {
  if (path.empty()) return;
  if (fs::is_regular_file(path)) {
    std::ifstream old(path);
    for (std::string line; std::getline(old, line);) old_lines_.push_back(line);
  }
  keep(0);
}

void EpochLog::keep(std::size_t epochs) {
  if (path_.empty()) return;
  stream_ = std::ofstream(path_, std::ios::binary | std::ios::trunc);
  for (std::size_t i = 0; i < std::min(epochs, old_lines_.size()); ++i) {
    stream_ << old_lines_[i] << '\n';
  }
  stream_.flush();
  if (!stream_) io::throw_io_error("write", path_, errno);
}

void EpochLog::write(const nlohmann::json& line) {
  if (path_.empty()) return;
  stream_ << line.dump() << std::endl;
  if (!stream_) io::throw_io_error("write", path_, errno);
}

}}}  // namespace heed::v0::train
