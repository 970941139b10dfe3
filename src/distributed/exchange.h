// The meeting point of the ranks of one process: messages that wait for the other side.
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
  std::span<std::byte> memory;  // only read on the sending side
  State state = State::kAlone;
  std::string problem = {};  // when done: the reason why nothing was copied
  bool is_deserted = false;  // the other side withdrew

  std::string text() const;
};

// The second side to reach a message copies it from the sender's memory directly to the receiver's,
// so a rank can do other work between beginning a message and waiting for it. All functions may be
// called from any thread.
class Exchange {
 public:
  // The tag of messages that are part of a broadcast or gather.
  static constexpr int kCollectiveTag = -1;

  explicit Exchange(int size);

  // Begins a message from post.rank to post.peer, or from post.peer to post.rank.
  std::shared_ptr<Post> post(Post post);

  // Returns when the memory may be used again. Throws CommunicationError if the message failed.
  void wait(Post& post);
  // True if wait() would return at once.
  bool is_done(const Post& post);
  // Returns when the memory may be used again, whether or not the message arrived. With is_leaving
  // it does not wait for the other side.
  void release(Post& post, bool is_leaving) noexcept;

  // Every rank calls it at each broadcast and gather with the same text. Throws CommunicationError
  // on all ranks if the texts differ.
  void agree(int rank, const std::string& call);

  // Makes every later call throw CommunicationError with this text. Only the first text counts.
  void fail(const std::string& text);
  // Marks a rank that will make no more calls.
  void end(int rank);

 private:
  struct Channel {
    std::deque<std::shared_ptr<Post>> alone;  // unmatched posts, all of the same side
  };
  using Key = std::tuple<int, int, int>;  // from, to, tag
  using Lock = std::unique_lock<std::mutex>;

  struct Call {
    std::string text;
    int rank;  // the first to call it
    int num_ranks = 0;
  };

  void match(Lock& lock, Post& one, Post& other);
  void throw_if_failed() const;
  void fail_locked(const std::string& text);
  void await(Lock& lock, Post& post);
  void check_others(const Post& post);
  bool everybody_waits() const;

  const int size_;
  std::mutex mutex_;  // guards all that follows and the state of posts
  std::condition_variable changed_;
  std::map<Key, Channel> channels_;
  std::vector<const Post*> awaited_;      // by rank
  std::vector<bool> has_ended_;           // by rank
  std::vector<std::uint64_t> num_calls_;  // by rank: broadcasts and gathers
  std::deque<Call> calls_;                // calls that some rank has not yet reached
  std::uint64_t first_call_ = 0;          // the number of calls_.front()
  std::string failure_;
  bool has_failed_ = false;
};

}}  // namespace heed::v0
