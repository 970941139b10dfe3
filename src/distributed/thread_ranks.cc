#include "heed/distributed/thread_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/exchange.h"
#include "distributed/messages.h"
#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"

namespace heed { inline namespace v0 {

namespace {

constexpr int kMaxThreadRanks = 1024;

// One message, or the messages of one broadcast.
class ThreadTransfer final : public Transfer {
 public:
  explicit ThreadTransfer(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ThreadTransfer() override {
    const bool is_leaving = std::uncaught_exceptions() > num_exceptions_;
    for (const auto& post : posts_) exchange_->release(*post, is_leaving);
  }

  void post(Post post) {
    posts_.reserve(posts_.size() + 1);  // so that a posted message is always kept
    posts_.push_back(exchange_->post(std::move(post)));
  }
  void wait() override {
    for (const auto& post : posts_) exchange_->wait(*post);
  }
  bool is_done() override {
    return std::all_of(posts_.begin(), posts_.end(),
                       [this](const auto& post) { return exchange_->is_done(*post); });
  }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::vector<std::shared_ptr<Post>> posts_;
  int num_exceptions_ = std::uncaught_exceptions();
};

// Exchange takes writable memory, but only reads a sender's.
std::span<std::byte> read_only(std::span<const std::byte> message) {
  return {const_cast<std::byte*>(message.data()), message.size()};
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Exchange> exchange, int rank, int size)
      : exchange_(std::move(exchange)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to, int tag) override {
    check_peer("send", "to", to, rank_, size_);
    check_tag("send", tag);
    return start({rank_, to, tag, true, read_only(message)});
  }

  std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from, int tag) override {
    check_peer("receive", "from", from, rank_, size_);
    check_tag("receive", tag);
    return start({rank_, from, tag, false, message});
  }

  std::unique_ptr<Transfer> broadcast(std::span<std::byte> message, int root) override {
    check_root("broadcast", "root", root, size_);
    exchange_->agree(rank_,
                     fmt::format("broadcast of {} bytes from rank {}", message.size(), root));
    if (rank_ != root) return start({rank_, root, Exchange::kCollectiveTag, false, message});
    auto transfer = std::make_unique<ThreadTransfer>(exchange_);
    post_to_others(*transfer, message);
    return transfer;
  }

  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_gather(mine.size(), all.size(), size_);
    exchange_->agree(rank_, fmt::format("gather of {} bytes", mine.size()));
    ThreadTransfer transfer(exchange_);
    post_to_others(transfer, read_only(mine));
    for (int from = 0; from < size_; ++from) {
      const std::span part(all.data() + static_cast<std::size_t>(from) * mine.size(), mine.size());
      if (from != rank_) {
        transfer.post({rank_, from, Exchange::kCollectiveTag, false, part});
      } else {
        std::copy(mine.begin(), mine.end(), part.begin());
      }
    }
    transfer.wait();
  }

 private:
  std::unique_ptr<Transfer> start(Post post) {
    auto transfer = std::make_unique<ThreadTransfer>(exchange_);
    transfer->post(std::move(post));
    return transfer;
  }

  void post_to_others(ThreadTransfer& transfer, std::span<std::byte> message) {
    for (int to = 0; to < size_; ++to) {
      if (to == rank_) continue;
      transfer.post({rank_, to, Exchange::kCollectiveTag, true, message});
    }
  }

  std::shared_ptr<Exchange> exchange_;
  int rank_;
  int size_;
};

// The threads of one call of run_thread_ranks().
class ThreadRanks {
 public:
  ThreadRanks(int size, const std::function<void(Communicator&)>& body)
      : size_(size),
        body_(body),
        num_threads_(std::max(num_threads() / size, 1)),
        exchange_(std::make_shared<Exchange>(size)) {}

  void run() {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(size_));
    try {
      for (int rank = 0; rank < size_; ++rank) {
        threads.emplace_back([this, rank] { run_rank(rank); });
      }
    } catch (const std::exception& error) {
      note_failure(static_cast<int>(threads.size()), error.what());
    }
    for (std::thread& thread : threads) thread.join();
    if (first_exception_) std::rethrow_exception(first_exception_);
  }

 private:
  void run_rank(int rank) noexcept {
    try {
      const ThreadLimit limit(num_threads_);
      const CancellationScope cancellation(cancellation_);
      TorchGenerator generator = generator_;
      const GeneratorScope draws_here(generator);
      ThreadCommunicator ranks(exchange_, rank, size_);
      body_(ranks);
    } catch (const std::exception& error) {
      note_failure(rank, error.what());
    } catch (...) {
      note_failure(rank, "an exception that is no std::exception");
    }
    exchange_->end(rank);
  }

  // Called in a handler. When one rank fails, the others fail later because of it.
  void note_failure(int rank, const char* text) {
    const std::lock_guard lock(mutex_);
    exchange_->fail(fmt::format("rank {} failed: {}", rank, text));
    if (!first_exception_) first_exception_ = std::current_exception();
  }

  int size_;
  const std::function<void(Communicator&)>& body_;
  int num_threads_;
  Cancellation* cancellation_ = Cancellation::current();
  const TorchGenerator generator_ = default_generator();
  std::shared_ptr<Exchange> exchange_;
  std::mutex mutex_;  // held from the failure until it is noted, so that no other comes between
  std::exception_ptr first_exception_;
};

}  // namespace

void run_thread_ranks(int size, const std::function<void(Communicator&)>& body) {
  if (size < 1 || size > kMaxThreadRanks) {
    throw InvalidArgument(
        fmt::format("run_thread_ranks: size is {}, expected 1 to {}", size, kMaxThreadRanks));
  }
  ThreadRanks(size, body).run();
}

}}  // namespace heed::v0
