/// Ranks that compute together, on several machines or on several threads of one process, and the
/// messages between them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// A message that cannot arrive, for another rank failed or is gone. The text names the rank and
/// says what is known of it.
class HEED_API CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~CommunicationError() override;
};

/// A message under way. Until wait() returns, the memory that is sent must not be written, and that
/// which is received must not be looked at.
class HEED_API Transfer {
 public:
  Transfer() = default;
  /// Waits, whatever becomes of the message.
  virtual ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Returns when the memory may be used again; at once, when called again.
  /// @throws CommunicationError when the message does not arrive.
  virtual void wait() = 0;
  /// Whether wait() would return, or throw, at once. Asking lets a message go on that a rank has to
  /// do something for.
  virtual bool is_done() = 0;
};

/// One rank's view of all of them. It belongs to one thread at a time.
///
/// All ranks call broadcast() and gather() in the same order. Between two ranks, messages with the
/// same tag arrive in the order in which they were sent, and a message is received with the number
/// of bytes that it was sent with.
class HEED_API Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  ///< 0 ≤ rank < size
  virtual int size() const = 0;  ///< at least 1

  /// Starts to send a message to another rank. @param tag 0 ≤ tag < 32768
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to,
                                                       int tag) = 0;
  /// Starts to receive one.
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from,
                                                          int tag) = 0;
  /// Starts to bring the message of rank `root` to all ranks.
  [[nodiscard]] virtual std::unique_ptr<Transfer> broadcast(std::span<std::byte> message,
                                                            int root) = 0;
  /// Brings what every rank has, of the same length everywhere, to all of them: `all` holds the
  /// messages in the order of ranks.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

/// What every rank says, in the order of ranks. All ranks call it.
HEED_API std::vector<std::string> gather_texts(Communicator& ranks, std::string_view mine);

/// Runs `part` on every rank, where it may fail without the others noticing, and then has all ranks
/// fail if one did: with the same exception, that of the lowest rank that threw. All ranks call it,
/// and `part` itself sends and receives nothing, or all that the others expect even where it fails,
/// or only within calls of run_on_all() on the same ranks: then a rank that fails before one of
/// these is heard of in it, and what it throws is what all throw.
/// @throws InvalidArgument, FormatError's and IoError's texts as std::runtime_error, Cancelled or
/// std::bad_alloc, as that rank did; the text begins with "rank 2: " where there are several.
HEED_API void run_on_all(Communicator& ranks, const std::function<void()>& part);

}}  // namespace heed::v0
