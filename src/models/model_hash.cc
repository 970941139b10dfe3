// The hash of a model's files.
#include <algorithm>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"
#include "heed/models/model.h"
#include "io/sha256.h"
#include "io/text_file.h"
#include "models/graph.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// A file of a model: mapped, or read when it is hashed.
struct ModelFile {
  std::filesystem::path path;
  std::span<const std::byte> bytes;  // empty if it is not mapped
  std::string hash = {};             // hexadecimal
};

std::vector<ModelFile> files_of(const Model::Parts& parts) {
  std::vector<ModelFile> files;
  const auto add = [&](const Checkpoint& checkpoint) {
    for (const CheckpointFile& file : checkpoint.files()) files.push_back({file.name, file.bytes});
  };
  add(*parts.checkpoint);
  for (const Checkpoint& checkpoint : parts.dense_checkpoints) add(checkpoint);
  for (const std::filesystem::path& path : parts.small_files) files.push_back({path, {}});
  return files;
}

// Counts the bytes of mapped files that threads have hashed: others are small.
class HashCount {
 public:
  HashCount(const HashProgress& progress, std::int64_t total)
      : progress_(progress), total_(total) {}
  void add(std::size_t bytes) {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    done_ += static_cast<std::int64_t>(bytes);
    progress_(done_, total_);
  }

 private:
  const HashProgress& progress_;
  std::int64_t total_;
  std::mutex mutex_;
  std::int64_t done_ = 0;
};

// Some milliseconds of work.
constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;

void hash_file(ModelFile& file, HashCount& count) {
  std::string text;
  std::span<const std::byte> bytes = file.bytes;
  if (bytes.empty()) {
    text = io::read_whole_file(file.path, "a file of a model");
    bytes = std::as_bytes(std::span(text));
  }
  io::Sha256 hash;
  while (!bytes.empty()) {
    check_cancelled();
    const auto piece = bytes.first(std::min(bytes.size(), kBytesAtOnce));
    hash.add(piece);
    if (!file.bytes.empty()) count.add(piece.size());
    bytes = bytes.subspan(piece.size());
  }
  file.hash = io::to_hex(hash.finish());
}

// The text that `sha256sum` prints of the files of a folder, sorted by name.
std::string listing_of(const std::vector<ModelFile>& files, const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const ModelFile& file : files) {
    names.emplace_back(file.path.lexically_relative(folder).generic_string(), file.hash);
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const auto& [name, hash] : names) text += hash + "  " + name + '\n';
  return text;
}

std::string hash_of_model(const Model::Parts& parts, const HashProgress& progress) {
  std::vector<ModelFile> files = files_of(parts);
  std::int64_t total = 0;
  for (const ModelFile& file : files) total += static_cast<std::int64_t>(file.bytes.size());
  HashCount count(progress, total);
  parallel_for(0, static_cast<std::int64_t>(files.size()), 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   hash_file(files[static_cast<std::size_t>(i)], count);
                 }
               });
  const bool is_folder = !parts.checkpoint->gguf();
  if (!is_folder && files.size() == 1) return files.front().hash;
  const std::filesystem::path folder = is_folder ? parts.path : parts.path.parent_path();
  return io::to_hex(io::Sha256().add(listing_of(files, folder)).finish());
}

}  // namespace

std::string Model::sha256(const HashProgress& progress) const {
  {
    const std::lock_guard lock(parts_->hash_mutex);
    if (!parts_->hash.empty()) return parts_->hash;
  }
  const std::string hash = hash_of_model(*parts_, progress);
  const std::lock_guard lock(parts_->hash_mutex);
  parts_->hash = hash;
  return hash;
}

}}}  // namespace heed::v0::models
