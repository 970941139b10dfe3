// What POSIX systems have in common.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>

#include "core/platform.h"
#include "core/platform_files.h"

namespace heed { inline namespace v0 { namespace platform {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kPermissions = 0777;

static_assert(kMaxFileName <= NAME_MAX);

// Calls act() again as long as a signal interrupts it.
template <class Act>
std::int64_t uninterrupted(const Act& act) {
  for (;;) {
    const ssize_t count = act();
    if (count >= 0 || errno != EINTR) return count;
  }
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kRegular;
  if (S_ISDIR(mode)) return FileKind::kFolder;
  return S_ISFIFO(mode) ? FileKind::kPipe : FileKind::kOther;
}

DIR* folder_of(void* handle) { return static_cast<DIR*>(handle); }

}  // namespace

void with_signals_blocked(FunctionRef<void()> act) {
  class Blocked {
   public:
    Blocked() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

   private:
    sigset_t before_{};
  };
  const Blocked blocked;
  act();
}

bool at_fork(void (*prepare)(), void (*in_parent)(), void (*in_child)()) {
  return ::pthread_atfork(prepare, in_parent, in_child) == 0;
}

bool has_room(std::size_t bytes) {
  void* const room =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room != MAP_FAILED && ::munmap(room, bytes) == 0;
}

bool is_terminal(int file) { return ::isatty(file) != 0; }

int terminal_columns(int file) {
  winsize size{};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ < 0) return;
  const int error = errno;
  ::close(descriptor_);
  errno = error;
}

FileDescriptor open_to_read(const fs::path& path, PipesWithoutWriter pipes) {
  // Regular files ignore O_NONBLOCK.
  const int waits = pipes == PipesWithoutWriter::kWait ? 0 : O_NONBLOCK;
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | waits));
}

FileDescriptor create_for_owner(const fs::path& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return FileDescriptor(::open(path.c_str(), kFlags, kOwnerOnly));
}

int standard_input() { return STDIN_FILENO; }

std::optional<FileStatus> status_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  return FileStatus{kind_of(status.st_mode), status.st_size, status.st_nlink > 0,
                    status.st_uid == ::geteuid()};
}

std::int64_t read_some(int file, std::span<std::byte> out) {
  return uninterrupted([&] { return ::read(file, out.data(), out.size()); });
}

std::int64_t read_some_at(int file, std::int64_t offset, std::span<std::byte> out) {
  return uninterrupted([&] { return ::pread(file, out.data(), out.size(), offset); });
}

std::int64_t write_some(int file, std::span<const std::byte> bytes) {
  return uninterrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
}

bool synchronize(int file) { return ::fsync(file) == 0; }

bool synchronize_folder(const fs::path& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot synchronise folders.
  return folder.get() < 0 || ::fsync(folder.get()) == 0 || errno == EINVAL;
}

std::optional<unsigned> permissions_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode & kPermissions;
}

bool set_permissions(int file, unsigned permissions) {
  return ::fchmod(file, static_cast<mode_t>(permissions)) == 0;
}

bool lock(int file) { return ::flock(file, LOCK_EX) == 0; }
bool try_lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB) == 0; }
bool try_lock_shared(int file) { return ::flock(file, LOCK_SH | LOCK_NB) == 0; }
bool replaces_open_files() { return true; }

bool add_name(const fs::path& from, const fs::path& to) {
  return ::link(from.c_str(), to.c_str()) == 0;
}

bool rename_file(const fs::path& from, const fs::path& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

bool remove_file(const fs::path& path) { return ::unlink(path.c_str()) == 0; }

const std::byte* map_file(int file, std::size_t size) {
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<const std::byte*>(begin);
}

void unmap_file(std::span<const std::byte> bytes) noexcept {
  // munmap() takes no pointer to const.
  ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

Folder::Folder(const fs::path& path) noexcept : handle_(::opendir(path.c_str())) {}

Folder::~Folder() {
  if (is_open()) ::closedir(folder_of(handle_));
}

std::optional<std::uint64_t> Folder::id() const noexcept {
  struct stat status {};
  if (::fstat(::dirfd(folder_of(handle_)), &status) != 0) return std::nullopt;
  return (std::uint64_t{status.st_dev} << 48U) ^ std::uint64_t{status.st_ino};
}

const char* Folder::next() noexcept {
  const dirent* const entry = ::readdir(folder_of(handle_));
  return entry == nullptr ? nullptr : entry->d_name;
}

FileDescriptor Folder::open(const char* name) const noexcept {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  return FileDescriptor(::openat(::dirfd(folder_of(handle_)), name, kFlags));
}

void Folder::remove(const char* name) const noexcept {
  ::unlinkat(::dirfd(folder_of(handle_)), name, 0);
}

}}}  // namespace heed::v0::platform
