// The handles of pools and sequences.
#include "heed/attention/kv_cache.h"

#include <fmt/format.h>

#include <utility>

#include "attention/cache/page_pool.h"
#include "attention/cache/sequence_state.h"
#include "core/printable.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

using detail::PagePool;
using detail::SequenceState;

OutOfPages::OutOfPages(const char* function, std::int64_t wanted, std::int64_t free,
                       std::int64_t total)
    : std::runtime_error(fmt::format("{}: {} pages are wanted, but {} of {} are free", function,
                                     wanted, free, total)),
      wanted_(wanted),
      free_(free),
      total_(total) {}
OutOfPages::~OutOfPages() = default;

std::string_view to_string(KvStorage storage) noexcept {
  return static_cast<std::size_t>(storage) < kKvStorages.size() ? kernels::traits_of(storage).name
                                                                : "unknown";
}

KvStorage parse_kv_storage(std::string_view name, std::string_view argument) {
  std::string names;
  for (const KvStorage storage : kKvStorages) {
    if (to_string(storage) == name) return storage;
    names += fmt::format("{}'{}'",
                         names.empty()                   ? ""
                         : storage == kKvStorages.back() ? " or "
                                                         : ", ",
                         to_string(storage));
  }
  throw InvalidArgument(
      fmt::format("{} is '{}', expected {}", argument, io::printable(name), names));
}

namespace {

const std::shared_ptr<PagePool>& checked(const char* function,
                                         const std::shared_ptr<PagePool>& pool) {
  if (pool == nullptr) throw InvalidArgument(fmt::format("{}: the pool was moved from", function));
  return pool;
}

}  // namespace

KvPool::KvPool(const KvConfig& config) : pages_(std::make_shared<PagePool>("KvPool", config)) {}
KvPool::KvPool(KvPool&& other) noexcept = default;
KvPool& KvPool::operator=(KvPool&& other) noexcept {
  KvPool taken(std::move(other));  // destroys the pages that were here
  std::swap(pages_, taken.pages_);
  return *this;
}
KvPool::~KvPool() {
  if (pages_ != nullptr) pages_->close();
}

const KvConfig& KvPool::config() const { return checked("KvPool::config", pages_)->config(); }
std::int64_t KvPool::page_bytes() const {
  return checked("KvPool::page_bytes", pages_)->layout().page_bytes();
}
std::int64_t KvPool::allocated_bytes() const {
  return checked("KvPool::allocated_bytes", pages_)->allocated_bytes();
}
std::int64_t KvPool::pages_in_use() const {
  return checked("KvPool::pages_in_use", pages_)->used_pages();
}
std::int64_t KvPool::free_pages() const {
  return checked("KvPool::free_pages", pages_)->free_pages();
}

KvSequence::KvSequence(std::unique_ptr<SequenceState> state) : state_(std::move(state)) {}
KvSequence::KvSequence(const KvConfig& config, const KvBounds& bounds)
    : KvSequence(std::make_unique<SequenceState>(
          "KvSequence", std::make_shared<PagePool>("KvSequence", config), bounds)) {}
KvSequence::KvSequence(KvPool& pool, const KvBounds& bounds)
    : KvSequence(std::make_unique<SequenceState>("KvSequence", checked("KvSequence", pool.pages_),
                                                 bounds)) {}
KvSequence::KvSequence(KvSequence&& other) noexcept = default;
KvSequence& KvSequence::operator=(KvSequence&& other) noexcept = default;
KvSequence::~KvSequence() = default;

std::int64_t KvSequence::length() const {
  return SequenceState::of("KvSequence::length", *this).length;
}
const KvBounds& KvSequence::bounds() const {
  return SequenceState::of("KvSequence::bounds", *this).bounds;
}
const KvConfig& KvSequence::config() const {
  return SequenceState::of("KvSequence::config", *this).pool->config();
}
std::int64_t KvSequence::num_pages() const {
  return SequenceState::of("KvSequence::num_pages", *this).pages.held();
}

void KvSequence::append(FloatView key, FloatView value) {
  SequenceState::of("KvSequence::append", *this).append(key, value);
}
void KvSequence::append(Float16View key, Float16View value) {
  SequenceState::of("KvSequence::append", *this).append(key, value);
}
void KvSequence::append(BFloat16View key, BFloat16View value) {
  SequenceState::of("KvSequence::append", *this).append(key, value);
}

KvSequence KvSequence::fork() const {
  return fork(SequenceState::of("KvSequence::fork", *this).length);
}
KvSequence KvSequence::fork(std::int64_t n) const {
  return KvSequence(SequenceState::of("KvSequence::fork", *this).fork("KvSequence::fork", n));
}

void KvSequence::truncate(std::int64_t n) {
  SequenceState::of("KvSequence::truncate", *this).truncate("KvSequence::truncate", n);
}
void KvSequence::reset() {
  SequenceState::of("KvSequence::reset", *this).truncate("KvSequence::reset", 0);
}
void KvSequence::accept(std::int64_t num_nodes, std::span<const std::int64_t> path) {
  SequenceState::of("KvSequence::accept", *this).accept(num_nodes, path);
}

KvTensors KvSequence::dequantised() const {
  return SequenceState::of("KvSequence::dequantised", *this).dequantised();
}

}}  // namespace heed::v0
