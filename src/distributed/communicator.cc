#include "heed/distributed/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <numeric>

#include "distributed/agreement.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 {

namespace {

// The outcome of a rank's part: the first character of its message to the others.
enum Outcome : char {
  kDone = '.',
  kInvalidArgument = 'i',
  kCommunicationFailed = 'm',
  kWasCancelled = 'c',
  kOutOfMemory = 'b',
  kFailed = 'f',
};

// Returns the text of the exception that is being handled.
std::string describe_exception() {
  const auto said = [](Outcome outcome, const char* text) {
    return std::string(1, outcome) + text;
  };
  try {
    throw;
  } catch (const InvalidArgument& error) {
    return said(kInvalidArgument, error.what());
  } catch (const CommunicationError& error) {
    return said(kCommunicationFailed, error.what());
  } catch (const Cancelled& error) {
    return said(kWasCancelled, error.what());
  } catch (const std::bad_alloc&) {
    return said(kOutOfMemory, "");
  } catch (const std::exception& error) {
    return said(kFailed, error.what());
  } catch (...) {
    return said(kFailed, "an exception that is no std::exception");
  }
}

// Thrown by run_on_all() on all of these ranks, so that outer calls need not exchange it again.
class Agreed {
 public:
  explicit Agreed(const Communicator& ranks) : ranks_(&ranks) {}
  bool is_among(const Communicator& ranks) const { return ranks_ == &ranks; }

 private:
  const Communicator* ranks_;
};

template <class Error>
class AgreedError final : public Error, public Agreed {
 public:
  template <class... Text>
  explicit AgreedError(const Communicator& ranks, const Text&... text)
      : Error(text...), Agreed(ranks) {}
};

[[noreturn]] void throw_described(const Communicator& ranks, char outcome,
                                  const std::string& text) {
  switch (outcome) {
    case kInvalidArgument:
      throw AgreedError<InvalidArgument>(ranks, text);
    case kCommunicationFailed:
      throw AgreedError<CommunicationError>(ranks, text);
    case kWasCancelled:
      throw AgreedError<Cancelled>(ranks, text);
    case kOutOfMemory:
      throw AgreedError<std::bad_alloc>(ranks);
    default:
      throw AgreedError<std::runtime_error>(ranks, text);
  }
}

}  // namespace

CommunicationError::~CommunicationError() = default;
Transfer::~Transfer() = default;
Communicator::~Communicator() = default;

std::vector<std::string> gather_texts(Communicator& ranks, std::string_view mine) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(size);
  ranks.gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const auto bytes = checked_multiply(static_cast<std::int64_t>(longest), ranks.size());
  std::string padded(mine);
  padded.resize(longest);
  std::string all(static_cast<std::size_t>(bytes), '\0');
  ranks.gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  texts.reserve(size);
  for (std::size_t i = 0; i < size; ++i) texts.push_back(all.substr(i * longest, lengths[i]));
  return texts;
}

void run_on_all(Communicator& ranks, const std::function<void()>& part) {
  if (ranks.size() == 1) {
    part();
    return;
  }
  std::string outcome(1, kDone);
  try {
    part();
  } catch (const Agreed& agreed) {
    if (agreed.is_among(ranks)) throw;
    outcome = describe_exception();
  } catch (...) {
    outcome = describe_exception();
  }
  const std::vector<std::string> outcomes = gather_texts(ranks, outcome);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].front() == kDone) continue;
    throw_described(ranks, outcomes[rank].front(),
                    fmt::format("rank {}: {}", rank, outcomes[rank].substr(1)));
  }
}

}}  // namespace heed::v0

namespace heed { inline namespace v0 { namespace distributed {

std::vector<bool> any_rank_says(Communicator& ranks, const std::vector<std::uint8_t>& mine) {
  const std::vector<std::uint8_t> all = gather_all(ranks, std::span(mine));
  std::vector<bool> any(mine.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != 0) any[i % mine.size()] = true;
  }
  return any;
}

void check_alike(const char* function, Communicator& ranks, const std::string& mine) {
  const std::vector<std::string> all = gather_texts(ranks, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw InvalidArgument(
        fmt::format("{}: rank {} has {}, but rank 0 has {}", function, rank, all[rank], all[0]));
  }
}

TokenDivision divide_tokens(const char* function, Communicator& ranks, const char* name,
                            std::int64_t own) {
  const std::vector<std::int64_t> lengths =
      gather_all(ranks, std::span<const std::int64_t>(&own, 1));
  const TokenDivision division(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
                               ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::int64_t found = lengths[static_cast<std::size_t>(rank)];
    if (found == division.num_tokens(rank)) continue;
    throw InvalidArgument(fmt::format("{}: rank {} has {} of {} {}, expected {}", function, rank,
                                      found, division.length(), name, division.num_tokens(rank)));
  }
  return division;
}

}}}  // namespace heed::v0::distributed
