// Files of Windows. Paths are wide; texts are UTF-8, as std::filesystem converts them there.
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#define _CRT_RAND_S  // declares rand_s(), the system's random numbers
#include <windows.h>
// windows.h must come before other headers of Windows.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <system_error>

#include "core/platform_files.h"

namespace heed { inline namespace v0 { namespace platform {

namespace {

namespace fs = std::filesystem;

// A lock of Windows keeps others from reading what is locked: this byte lies beyond every file.
constexpr DWORD kLockedByte = 0x7fffffff;

constexpr DWORD kForAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

// Translates the last error to errno. Returns false, as a call that failed.
bool failed() {
  const auto error =
      std::system_category().default_error_condition(static_cast<int>(::GetLastError()));
  errno = error.category() == std::generic_category() ? error.value() : EIO;
  return false;
}
bool succeeded(BOOL result) { return result != 0 || failed(); }

// The number of bytes that one call of Windows can read or write.
DWORD in_one_call(std::size_t size) {
  return static_cast<DWORD>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

HANDLE handle_of(int file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }

FileDescriptor descriptor_of(HANDLE handle, int flags) {
  if (handle == INVALID_HANDLE_VALUE) {
    failed();
    return FileDescriptor(-1);
  }
  const int file = ::_open_osfhandle(reinterpret_cast<std::intptr_t>(handle), flags | _O_BINARY);
  if (file < 0) ::CloseHandle(handle);
  return FileDescriptor(file);
}

FileDescriptor open_with(const wchar_t* path, DWORD flags) {
  // Without backup semantics a folder would be refused, by a reason that does not name it.
  const HANDLE handle = ::CreateFileW(path, GENERIC_READ, kForAll, nullptr, OPEN_EXISTING,
                                      FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr);
  return descriptor_of(handle, _O_RDONLY);
}

OVERLAPPED at_offset(std::uint64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32U);
  return place;
}

bool lock_with(int file, DWORD flags) {
  OVERLAPPED place = at_offset(std::uint64_t{kLockedByte} << 32U);
  return succeeded(::LockFileEx(handle_of(file), flags, 0, 1, 0, &place));
}

FileKind kind_of(HANDLE handle, DWORD attributes) {
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return FileKind::kFolder;
  return ::GetFileType(handle) == FILE_TYPE_DISK ? FileKind::kRegular : FileKind::kOther;
}

// The entries of a folder, found one after another.
struct Entries {
  std::wstring folder;
  HANDLE search = INVALID_HANDLE_VALUE;
  WIN32_FIND_DATAW found{};
  bool is_next = false;  // found holds an entry that has not been returned
  std::string name;
};

Entries& entries_of(void* handle) { return *static_cast<Entries*>(handle); }

std::wstring path_in(void* handle, const char* name) {
  return entries_of(handle).folder + L'\\' + fs::path(name).native();
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (descriptor_ < 0) return;
  const int error = errno;
  ::_close(descriptor_);
  errno = error;
}

// Pipes are not files there.
FileDescriptor open_to_read(const fs::path& path, PipesWithoutWriter) {
  return open_with(path.c_str(), 0);
}

// Who may read it is what the folder says.
FileDescriptor create_for_owner(const fs::path& path) {
  return descriptor_of(::CreateFileW(path.c_str(), GENERIC_READ | GENERIC_WRITE, kForAll, nullptr,
                                     CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr),
                       _O_RDWR);
}

int standard_input() {
  constexpr int kStandardInput = 0;
  ::_setmode(kStandardInput, _O_BINARY);
  return kStandardInput;
}

std::optional<FileStatus> status_of(int file) {
  const HANDLE handle = handle_of(file);
  const DWORD type = ::GetFileType(handle);
  if (type != FILE_TYPE_DISK) {
    return FileStatus{type == FILE_TYPE_PIPE ? FileKind::kPipe : FileKind::kOther, 0, true, true};
  }
  BY_HANDLE_FILE_INFORMATION found{};
  if (!succeeded(::GetFileInformationByHandle(handle, &found))) return std::nullopt;
  const std::uint64_t size = std::uint64_t{found.nFileSizeHigh} << 32U | found.nFileSizeLow;
  return FileStatus{kind_of(handle, found.dwFileAttributes), static_cast<std::int64_t>(size),
                    found.nNumberOfLinks > 0, true};
}

std::int64_t read_some(int file, std::span<std::byte> out) {
  return ::_read(file, out.data(), in_one_call(out.size()));
}

std::int64_t read_some_at(int file, std::int64_t offset, std::span<std::byte> out) {
  OVERLAPPED place = at_offset(static_cast<std::uint64_t>(offset));
  DWORD count = 0;
  if (::ReadFile(handle_of(file), out.data(), in_one_call(out.size()), &count, &place) != 0) {
    return count;
  }
  if (::GetLastError() == ERROR_HANDLE_EOF) return 0;
  failed();
  return -1;
}

std::int64_t write_some(int file, std::span<const std::byte> bytes) {
  return ::_write(file, bytes.data(), in_one_call(bytes.size()));
}

bool synchronize(int file) { return ::_commit(file) == 0; }
bool synchronize_folder(const fs::path&) { return true; }

std::optional<unsigned> permissions_of(const fs::path& path) {
  if (::GetFileAttributesW(path.c_str()) != INVALID_FILE_ATTRIBUTES) return 0;
  return std::nullopt;
}
bool set_permissions(int, unsigned) { return true; }
unsigned usual_permissions() { return 0; }

bool lock(int file) { return lock_with(file, LOCKFILE_EXCLUSIVE_LOCK); }
bool try_lock(int file) {
  return lock_with(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY);
}
bool try_lock_shared(int file) { return lock_with(file, LOCKFILE_FAIL_IMMEDIATELY); }
bool replaces_open_files() { return false; }

bool add_name(const fs::path& from, const fs::path& to) {
  return succeeded(::CreateHardLinkW(to.c_str(), from.c_str(), nullptr));
}

bool rename_file(const fs::path& from, const fs::path& to) {
  constexpr DWORD kHow = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  if (::MoveFileExW(from.c_str(), to.c_str(), kHow) != 0) return true;
  failed();
  const DWORD attributes = ::GetFileAttributesW(to.c_str());
  const bool is_folder =
      attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  if (is_folder) errno = EISDIR;  // the system's reason is that access is denied
  return false;
}

bool remove_file(const fs::path& path) { return succeeded(::DeleteFileW(path.c_str())); }

const std::byte* map_file(int file, std::size_t size) {
  const HANDLE mapping =
      ::CreateFileMappingW(handle_of(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  const void* const begin =
      mapping == nullptr ? nullptr : ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
  if (begin == nullptr) failed();
  if (mapping != nullptr) ::CloseHandle(mapping);  // the view keeps it
  return static_cast<const std::byte*>(begin);
}

void unmap_file(std::span<const std::byte> bytes) noexcept { ::UnmapViewOfFile(bytes.data()); }

bool draw_bytes(std::span<std::byte> out) {
  for (std::byte& byte : out) {
    unsigned drawn = 0;
    if (const int error = ::rand_s(&drawn); error != 0) {
      errno = error;
      return false;
    }
    byte = static_cast<std::byte>(drawn);
  }
  return true;
}

Folder::Folder(const fs::path& path) noexcept : handle_(nullptr) {
  try {
    auto entries = std::make_unique<Entries>();
    entries->folder = fs::absolute(path).native();
    entries->search = ::FindFirstFileW((entries->folder + L"\\*").c_str(), &entries->found);
    if (entries->search == INVALID_HANDLE_VALUE) return;
    entries->is_next = true;
    handle_ = entries.release();
  } catch (const std::exception&) {
    return;  // not open
  }
}

Folder::~Folder() {
  if (!is_open()) return;
  ::FindClose(entries_of(handle_).search);
  delete &entries_of(handle_);
}

std::optional<std::uint64_t> Folder::id() const noexcept {
  return std::hash<std::wstring>()(entries_of(handle_).folder);
}

const char* Folder::next() noexcept {
  Entries& entries = entries_of(handle_);
  if (!entries.is_next && ::FindNextFileW(entries.search, &entries.found) == 0) return nullptr;
  entries.is_next = false;
  entries.name = fs::path(entries.found.cFileName).string();
  return entries.name.c_str();
}

FileDescriptor Folder::open(const char* name) const noexcept {
  return open_with(path_in(handle_, name).c_str(), FILE_FLAG_OPEN_REPARSE_POINT);
}

void Folder::remove(const char* name) const noexcept {
  ::DeleteFileW(path_in(handle_, name).c_str());
}

}}}  // namespace heed::v0::platform
