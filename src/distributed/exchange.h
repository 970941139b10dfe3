// Where the ranks of one process meet: messages that wait for the other side.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

// One rank's side of a message.
struct Post {
  enum class State { kAlone, kCopied, kDone, kWithdrawn };

  int rank;
  int peer;
  int tag;
  bool sends;
  std::span<std::byte> memory;  // of a sender, only read
  State state = State::kAlone;
  std::string problem = {};  // when done: why nothing was copied
  bool is_deserted = false;  // the other side withdrew

  std::string text() const;
};

// Whoever comes second to a message copies it, straight from the sender's memory to the receiver's,
// so that each rank can do other things between the beginning of a message and waiting for it.
// All of it may be called from any thread.
class Exchange {
 public:
  // For messages that are part of a broadcast or gather.
  static constexpr int kCollectiveTag = -1;

  explicit Exchange(int size);

  // A message from post.rank to post.peer, or the other way round.
  std::shared_ptr<Post> post(Post post);

  // Returns when the memory may be used again. Throws CommunicationError where nothing came of it.
  void wait(Post& post);
  // Whether wait() has nothing to wait for.
  bool is_done(const Post& post);
  // Returns when the memory may be used again, whatever came of it. is_leaving: without waiting for
  // the other side.
  void release(Post& post, bool is_leaving) noexcept;

  // To be called by every rank, at each broadcast and gather, with the same text: throws
  // CommunicationError, on all ranks, where they differ.
  void agree(int rank, const std::string& call);

  // From now on everything throws CommunicationError with this text. The first one counts.
  void fail(const std::string& text);
  // The rank will call nothing any more.
  void end(int rank);

 private:
  struct Channel {
    std::deque<std::shared_ptr<Post>> alone;  // all of one side
  };
  using Key = std::tuple<int, int, int>;  // from, to, tag
  using Lock = std::unique_lock<std::mutex>;

  struct Call {
    std::string text;
    int rank;  // which said it first
    int num_ranks = 0;
  };

  void match(Lock& lock, Post& one, Post& other);
  void throw_if_failed() const;
  void fail_locked(const std::string& text);
  void await(Lock& lock, Post& post);
  void check_others(const Post& post);
  bool everybody_waits() const;

  const int size_;
  std::mutex mutex_;  // of all that follows, and of the state of posts
  std::condition_variable changed_;
  std::map<Key, Channel> channels_;
  std::vector<const Post*> awaited_;      // by rank
  std::vector<bool> has_ended_;           // by rank
  std::vector<std::uint64_t> num_calls_;  // by rank: broadcasts and gathers
  std::deque<Call> calls_;                // that some rank has not yet come to
  std::uint64_t first_call_ = 0;          // the number of calls_.front()
  std::string failure_;
  bool has_failed_ = false;
};

}}  // namespace heed::v0
