#include "io/temporary_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

namespace heed::inline v0::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBeginning = ".heed-";
constexpr std::string_view kTemporary = ".tmp";
constexpr std::size_t kDigits = 16;
constexpr std::time_t kOldSeconds = 60 * 60;
constexpr mode_t kOwnerOnly = 0600;

[[noreturn]] void throw_system_error() { throw std::system_error(errno, std::generic_category()); }

bool is_temporary_name(std::string_view name) {
  return name.size() == kBeginning.size() + kDigits + kTemporary.size() &&
         name.substr(0, kBeginning.size()) == kBeginning &&
         name.substr(kBeginning.size() + kDigits) == kTemporary &&
         name.substr(kBeginning.size(), kDigits).find_first_not_of("0123456789abcdef") == name.npos;
}

// Whoever writes a file holds its lock for as long as the process lives, and the lock is asked for
// an hour after the file was made at the earliest: a file whose lock can be had is nobody's.
bool is_left_over(const FileDescriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && std::time(nullptr) - status.st_mtime > kOldSeconds &&
         ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

// Whether this process has not swept the folder just before: folders are large, saves frequent.
bool is_another_folder(int folder) {
  static std::atomic<std::uint64_t> last{0};
  struct stat status {};
  if (::fstat(folder, &status) != 0) return false;
  const std::uint64_t id = (std::uint64_t{status.st_dev} << 48U) ^ std::uint64_t{status.st_ino};
  return last.exchange(id) != id;
}

}  // namespace

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
  } while (file_.get() < 0 && errno == EEXIST);
  if (file_.get() < 0) throw_system_error();
  path_ = std::move(path);
  ::flock(file_.get(), LOCK_EX | LOCK_NB);  // where it cannot be, sweeping cannot either
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void TemporaryFile::rename(const fs::path& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) throw_system_error();
  path_.clear();
}

void sweep_temporary_files(const fs::path& folder) noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr || !is_another_folder(::dirfd(entries.get()))) return;
  const int at = ::dirfd(entries.get());
  while (const dirent* entry = ::readdir(entries.get())) {
    if (!is_temporary_name(entry->d_name)) continue;
    const FileDescriptor file(
        ::openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() >= 0 && is_left_over(file)) ::unlinkat(at, entry->d_name, 0);
  }
}

}  // namespace heed::inline v0::io
