#include "io/temporary_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

namespace heed { inline namespace v0 { namespace io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBeginning = ".heed-";
constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kOld = ".old";
constexpr std::size_t kDigits = 16;
// The longest NAME whose old contents can be kept as kBeginning, digits, '-', NAME, kOld.
constexpr std::size_t kLongestName = NAME_MAX - kBeginning.size() - kDigits - 1 - kOld.size();
constexpr mode_t kOwnerOnly = 0600;

[[noreturn]] void throw_system_error() { throw std::system_error(errno, std::generic_category()); }

// True if random_name() may have made the name, with this ending.
bool is_random_name(std::string_view name, std::string_view ending) {
  return name.size() == kBeginning.size() + kDigits + ending.size() &&
         name.substr(0, kBeginning.size()) == kBeginning &&
         name.substr(kBeginning.size() + kDigits) == ending &&
         name.substr(kBeginning.size(), kDigits).find_first_not_of("0123456789abcdef") == name.npos;
}

// True if no process needs the file: a process that needs a file holds its lock for as long as it
// runs.
bool is_free(const FileDescriptor& file) { return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

// True for a regular file of this user that no process needs.
bool is_left_over(const FileDescriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && is_free(file);
}

// Locks a new file for as long as it is open. Returns false if another process swept the file
// between its creation and its lock, so that it no longer has a name.
bool lock_new(const FileDescriptor& file) {
  ::flock(file.get(), LOCK_EX);  // if it cannot be locked, sweeping cannot lock it either
  struct stat status {};
  return ::fstat(file.get(), &status) != 0 || status.st_nlink > 0;
}

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Removes the files with these names that `is_garbage` accepts.
template <class IsGarbage>
void sweep(const Folder& folder, std::string_view ending, const IsGarbage& is_garbage) noexcept {
  const int at = ::dirfd(folder.get());
  while (const dirent* entry = ::readdir(folder.get())) {
    if (!is_random_name(entry->d_name, ending)) continue;
    const FileDescriptor file(
        ::openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() >= 0 && is_garbage(file)) ::unlinkat(at, entry->d_name, 0);
  }
}

// True unless this process swept the same folder last: folders are large and saves frequent.
bool is_another_folder(int folder) {
  static std::atomic<std::uint64_t> last{0};
  struct stat status {};
  if (::fstat(folder, &status) != 0) return false;
  const std::uint64_t id = (std::uint64_t{status.st_dev} << 48U) ^ std::uint64_t{status.st_ino};
  return last.exchange(id) != id;
}

}  // namespace

std::string old_ending(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.size() > kLongestName) {
    const std::string hash = fmt::format("~{:0{}x}", std::hash<std::string>()(name), kDigits);
    name = name.substr(0, kLongestName - hash.size()) + hash;
  }
  return fmt::format("-{}{}", name, kOld);
}

std::string random_name(std::string_view ending) {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) throw_system_error();
  }
  return fmt::format("{}{:0{}x}{}", kBeginning, number, kDigits, ending);
}

TemporaryFile::TemporaryFile(const fs::path& folder) : file_(-1) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  fs::path path;
  do {
    path = folder / random_name(kTemporary);
    file_ = FileDescriptor(::open(path.c_str(), kFlags, kOwnerOnly));
    if (file_.get() < 0 && errno != EEXIST) throw_system_error();
  } while (file_.get() < 0 || !lock_new(file_));
  path_ = std::move(path);
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void TemporaryFile::rename(const fs::path& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) throw_system_error();
  path_.clear();
}

void sweep_temporary_files(const fs::path& folder) noexcept {
  const Folder entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr || !is_another_folder(::dirfd(entries.get()))) return;
  sweep(entries, kTemporary, is_left_over);
}

void sweep_old_files(const fs::path& folder, std::string_view ending) noexcept {
  const Folder entries(::opendir(folder.c_str()), &::closedir);
  if (entries != nullptr) sweep(entries, ending, is_free);
}

}}}  // namespace heed::v0::io
