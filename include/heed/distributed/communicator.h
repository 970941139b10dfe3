/// Communication between ranks, which are machines, processes or threads of one process.
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

/// Thrown when a message cannot arrive, because another rank failed or is gone. The text names the
/// rank and the known cause.
class HEED_API CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~CommunicationError() override;
};

/// A message in transit. Until wait() returns, the memory of a sent message must not be written,
/// and that of a received message must not be read.
class HEED_API Transfer {
 public:
  Transfer() = default;
  /// Waits, even if the message fails.
  virtual ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Returns when the memory may be used again; when called again, at once.
  /// @throws CommunicationError when the message does not arrive.
  virtual void wait() = 0;
  /// True if wait() would return, or throw, at once. A call also advances the message, where that
  /// needs the processor.
  virtual bool is_done() = 0;
};

/// One rank's connection to all ranks. It is used by one thread at a time.
///
/// All ranks call broadcast() and gather() in the same order. Between two ranks, messages with the
/// same tag arrive in the order in which they were sent. The receiver must ask for the number of
/// bytes that was sent.
class HEED_API Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  ///< 0 ≤ rank < size
  virtual int size() const = 0;  ///< at least 1

  /// Starts to send a message to rank `to`. @param tag 0 ≤ tag < 32768
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to,
                                                       int tag) = 0;
  /// Starts to receive a message from rank `from`.
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from,
                                                          int tag) = 0;
  /// Starts to send the message of rank `root` to all ranks.
  [[nodiscard]] virtual std::unique_ptr<Transfer> broadcast(std::span<std::byte> message,
                                                            int root) = 0;
  /// Sends the messages of all ranks, which have the same length, to all of them: `all` receives
  /// the messages in the order of ranks.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

/// Returns the texts of all ranks, in the order of ranks. All ranks call it.
HEED_API std::vector<std::string> gather_texts(Communicator& ranks, std::string_view mine);

/// Runs `part` on every rank. If it throws on one, all ranks throw the same exception, that of the
/// lowest rank that threw. All ranks call it. `part` must either send and receive nothing, or send
/// and receive all that other ranks expect even where it fails, or communicate only within nested
/// run_on_all() calls on the same ranks; a rank that fails before a nested call takes part in it
/// with its exception, which all ranks throw.
/// @throws InvalidArgument, Cancelled or std::bad_alloc like that rank; FormatError and IoError
/// become std::runtime_error with their text. With several ranks the text begins with "rank 2: ".
HEED_API void run_on_all(Communicator& ranks, const std::function<void()>& part);

}}  // namespace heed::v0
