#include "io/temporary_file.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>

namespace heed { inline namespace v0 { namespace io {

namespace {

namespace fs = std::filesystem;

using platform::FileDescriptor;

constexpr std::string_view kBeginning = ".heed-";
constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kOld = ".old";
constexpr std::size_t kDigits = 16;
// The longest NAME whose old contents can be kept as kBeginning, digits, '-', NAME, kOld.
constexpr std::size_t kLongestName =
    platform::kMaxFileName - kBeginning.size() - kDigits - 1 - kOld.size();

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
bool is_free(const FileDescriptor& file) { return platform::try_lock(file.get()); }

// True for a regular file of this user that no process needs.
bool is_left_over(const FileDescriptor& file) {
  const auto status = platform::status_of(file.get());
  return status && status->kind == platform::FileKind::kRegular && status->is_own && is_free(file);
}

// Locks a new file for as long as it is open. Returns false if another process swept the file
// between its creation and its lock, so that it no longer has a name.
bool lock_new(const FileDescriptor& file) {
  platform::lock(file.get());  // if it cannot be locked, sweeping cannot lock it either
  const auto status = platform::status_of(file.get());
  return !status || status->has_name;
}

// Removes the files with these names that `is_garbage` accepts.
template <class IsGarbage>
void sweep(platform::Folder& folder, std::string_view ending,
           const IsGarbage& is_garbage) noexcept {
  while (const char* const name = folder.next()) {
    if (!is_random_name(name, ending)) continue;
    const FileDescriptor file = folder.open(name);
    if (file.get() >= 0 && is_garbage(file)) folder.remove(name);
  }
}

// True unless this process swept the same folder last: folders are large and saves frequent.
bool is_another_folder(const platform::Folder& folder) {
  static std::atomic<std::uint64_t> last{0};
  const std::optional<std::uint64_t> id = folder.id();
  return id && last.exchange(*id) != *id;
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
  if (!platform::draw_bytes(std::as_writable_bytes(std::span(&number, 1)))) throw_system_error();
  return fmt::format("{}{:0{}x}{}", kBeginning, number, kDigits, ending);
}

TemporaryFile::TemporaryFile(const fs::path& folder) : file_(-1) {
  fs::path path;
  do {
    path = folder / random_name(kTemporary);
    file_ = platform::create_for_owner(path);
    if (file_.get() < 0 && errno != EEXIST) throw_system_error();
  } while (file_.get() < 0 || !lock_new(file_));
  path_ = std::move(path);
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) platform::remove_file(path_);
}

void TemporaryFile::rename(const fs::path& path) {
  if (!platform::rename_file(path_, path)) throw_system_error();
  path_.clear();
  if (!platform::replaces_open_files()) file_ = FileDescriptor(-1);
}

void sweep_temporary_files(const fs::path& folder) noexcept {
  platform::Folder entries(folder);
  if (!entries.is_open() || !is_another_folder(entries)) return;
  sweep(entries, kTemporary, is_left_over);
}

void sweep_old_files(const fs::path& folder, std::string_view ending) noexcept {
  platform::Folder entries(folder);
  if (entries.is_open()) sweep(entries, ending, is_free);
}

}}}  // namespace heed::v0::io
