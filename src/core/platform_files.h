// Files, as operating systems have them. What fails returns -1, false or nothing, with the reason
// in errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace platform {

// The longest name of a file that systems take, in bytes.
inline constexpr std::size_t kMaxFileName = 255;

// An open file, which closes itself; negative if there is none.
class HEED_API FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor();

  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

// What opening a named pipe does that no program writes to.
enum class PipesWithoutWriter { kWait, kDoNotWait };

FileDescriptor open_to_read(const std::filesystem::path& path, PipesWithoutWriter pipes);

// Creates a file that only its owner may read. Fails with EEXIST if there is anything of that name.
FileDescriptor create_for_owner(const std::filesystem::path& path);

// Standard input, as bytes.
int standard_input();

enum class FileKind { kRegular, kFolder, kPipe, kOther };

struct FileStatus {
  FileKind kind = FileKind::kOther;
  std::int64_t size = 0;
  bool has_name = true;  // false once its last name has been removed
  bool is_own = true;    // belongs to the user of this process
};

std::optional<FileStatus> status_of(int file);

// Read or write some of the bytes and return their number, 0 at the end of a file. No signal
// interrupts them. After read_some_at(), read_some() may go on at any place.
std::int64_t read_some(int file, std::span<std::byte> out);
std::int64_t read_some_at(int file, std::int64_t offset, std::span<std::byte> out);
std::int64_t write_some(int file, std::span<const std::byte> bytes);

// Waits until the bytes of a file, or the names in a folder, are on disk. Where folders cannot be
// synchronised, synchronize_folder() returns true.
bool synchronize(int file);
bool synchronize_folder(const std::filesystem::path& path);

// The permissions of a file as bits; nothing if there is no file. Where systems have no such bits,
// they are 0 and setting them does nothing.
std::optional<unsigned> permissions_of(const std::filesystem::path& path);
bool set_permissions(int file, unsigned permissions);
// Those of a new file of this process.
unsigned usual_permissions();

// Locks that processes hold as long as they have a file open, and only others heed. try_lock_…()
// fail if another process has a lock that excludes them; lock() waits for it.
bool lock(int file);
bool try_lock(int file);
bool try_lock_shared(int file);
// True if a file that is open can be replaced. If not, nobody may keep it open meanwhile.
bool replaces_open_files();

bool add_name(const std::filesystem::path& from, const std::filesystem::path& to);
// Replaces a file at `to`: at no time is there none.
bool rename_file(const std::filesystem::path& from, const std::filesystem::path& to);
bool remove_file(const std::filesystem::path& path);

// Maps the first `size` bytes of a file for reading. The mapping outlives the descriptor. Returns
// null if it fails.
const std::byte* map_file(int file, std::size_t size);
void unmap_file(std::span<const std::byte> bytes) noexcept;

// Bytes that nobody can foresee.
bool draw_bytes(std::span<std::byte> out);

// An open folder. Its files are found in it even if another folder takes its path meanwhile, where
// the system can do this.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) noexcept;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  bool is_open() const noexcept { return handle_ != nullptr; }
  // A number that no other folder has now.
  std::optional<std::uint64_t> id() const noexcept;
  // The next name, valid until the next call; null after the last.
  const char* next() noexcept;
  // Opens a file to read it or lock it, but follows no link and does not wait.
  FileDescriptor open(const char* name) const noexcept;
  void remove(const char* name) const noexcept;

 private:
  void* handle_;
};

}}}  // namespace heed::v0::platform
