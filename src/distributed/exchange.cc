#include "distributed/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "heed/core/cancellation.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

namespace {

std::string bytes_text(std::size_t count) {
  return fmt::format("{} byte{}", count, count == 1 ? "" : "s");
}

}  // namespace

std::string Post::text() const {
  const std::string with = tag == Exchange::kCollectiveTag ? "in a broadcast or gather"
                                                           : fmt::format("with tag {}", tag);
  return fmt::format("rank {} waits to {} {} {} rank {} {}{}", rank, sends ? "send" : "receive",
                     bytes_text(memory.size()), sends ? "to" : "from", peer, with,
                     is_deserted ? ", which gave it up" : "");
}

Exchange::Exchange(int size)
    : size_(size),
      awaited_(static_cast<std::size_t>(size)),
      has_ended_(static_cast<std::size_t>(size)),
      num_calls_(static_cast<std::size_t>(size)) {}

std::shared_ptr<Post> Exchange::post(Post post) {
  auto mine = std::make_shared<Post>(std::move(post));
  Lock lock(mutex_);
  throw_if_failed();
  const Key key =
      mine->sends ? Key{mine->rank, mine->peer, mine->tag} : Key{mine->peer, mine->rank, mine->tag};
  const auto found = channels_.try_emplace(key).first;
  std::deque<std::shared_ptr<Post>>& alone = found->second.alone;
  if (alone.empty() || alone.front()->sends == mine->sends) {
    alone.push_back(mine);
    return mine;
  }
  const std::shared_ptr<Post> other = std::move(alone.front());
  alone.pop_front();
  if (alone.empty()) channels_.erase(found);
  match(lock, *mine, *other);
  return mine;
}

void Exchange::match(Lock& lock, Post& one, Post& other) {
  if (other.state == Post::State::kWithdrawn) {
    // The reason is known soon: the rank fails, or goes on and ends.
    one.is_deserted = true;
    return;
  }
  Post& from = one.sends ? one : other;
  Post& to = one.sends ? other : one;
  if (from.memory.size() != to.memory.size()) {
    from.problem = to.problem =
        fmt::format("Communicator: rank {} sends {} to rank {}, which expects {}", from.rank,
                    bytes_text(from.memory.size()), to.rank, bytes_text(to.memory.size()));
  } else if (!from.memory.empty()) {
    from.state = to.state = Post::State::kCopied;
    lock.unlock();
    std::memcpy(to.memory.data(), from.memory.data(), from.memory.size());
    lock.lock();
  }
  from.state = to.state = Post::State::kDone;
  changed_.notify_all();
}

void Exchange::wait(Post& post) {
  Lock lock(mutex_);
  await(lock, post);
  if (!post.problem.empty()) throw CommunicationError(post.problem);
}

bool Exchange::is_done(const Post& post) {
  const Lock lock(mutex_);
  return post.state == Post::State::kDone || has_failed_;
}

void Exchange::await(Lock& lock, Post& post) {
  constexpr std::chrono::milliseconds kPollInterval{20};
  const auto is_done = [&post] { return post.state == Post::State::kDone; };
  const Post*& awaited = awaited_[static_cast<std::size_t>(post.rank)];
  awaited = &post;
  try {
    while (!is_done()) {
      throw_if_failed();
      check_others(post);
      if (Cancellation::current() == nullptr) {
        changed_.wait(lock);
      } else if (changed_.wait_for(lock, kPollInterval) == std::cv_status::timeout) {
        lock.unlock();
        check_cancelled();
        lock.lock();
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    awaited = nullptr;
    throw;
  }
  awaited = nullptr;
}

// Throws if the other side can no longer arrive.
void Exchange::check_others(const Post& post) {
  if (post.state != Post::State::kAlone) return;
  if (has_ended_[static_cast<std::size_t>(post.peer)]) {
    fail_locked(fmt::format("Communicator: {}, but rank {} has ended", post.text(), post.peer));
  } else if (everybody_waits()) {
    std::string text;
    for (const Post* const awaited : awaited_) {
      if (awaited != nullptr) text += (text.empty() ? "" : "; ") + awaited->text();
    }
    fail_locked("Communicator: nobody can go on: " + text);
  }
  throw_if_failed();
}

bool Exchange::everybody_waits() const {
  for (std::size_t rank = 0; rank < awaited_.size(); ++rank) {
    const Post* const post = awaited_[rank];
    if (!has_ended_[rank] && (post == nullptr || post->state != Post::State::kAlone)) return false;
  }
  return true;
}

void Exchange::release(Post& post, bool is_leaving) noexcept {
  Lock lock(mutex_);
  try {
    if (!is_leaving && post.state == Post::State::kAlone) await(lock, post);
  } catch (...) {  // It did not arrive; withdrawn below.
  }
  changed_.wait(lock, [&post] { return post.state != Post::State::kCopied; });
  if (post.state == Post::State::kAlone) post.state = Post::State::kWithdrawn;
}

void Exchange::agree(int rank, const std::string& call) {
  const Lock lock(mutex_);
  throw_if_failed();
  const std::uint64_t number = num_calls_[static_cast<std::size_t>(rank)]++;
  const std::uint64_t index = number - first_call_;
  if (index == calls_.size()) calls_.push_back({call, rank});
  Call& known = calls_[index];
  if (known.text != call) {
    fail_locked(fmt::format("Communicator: rank {} calls {} where rank {} calls {}", rank, call,
                            known.rank, known.text));
    throw_if_failed();
  }
  if (++known.num_ranks == size_) {  // All ranks have reached this call; it is the oldest.
    calls_.pop_front();
    ++first_call_;
  }
}

void Exchange::fail(const std::string& text) {
  const Lock lock(mutex_);
  fail_locked(text);
}

void Exchange::fail_locked(const std::string& text) {
  if (has_failed_) return;
  has_failed_ = true;
  failure_ = text;
  changed_.notify_all();
}

void Exchange::throw_if_failed() const {
  if (has_failed_) throw CommunicationError(failure_);
}

void Exchange::end(int rank) {
  const Lock lock(mutex_);
  has_ended_[static_cast<std::size_t>(rank)] = true;
  changed_.notify_all();
}

}}  // namespace heed::v0
