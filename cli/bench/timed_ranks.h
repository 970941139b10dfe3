// Measures how long a rank waits for messages.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "heed/distributed/communicator.h"

namespace heed::cli {

// Forwards every call to another communicator and sums the time that the calls take.
class TimedRanks : public Communicator {
 public:
  explicit TimedRanks(Communicator& ranks) : ranks_(ranks) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to, int tag) override {
    return timed([&] { return ranks_.send(message, to, tag); });
  }
  std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from, int tag) override {
    return timed([&] { return ranks_.receive(message, from, tag); });
  }
  std::unique_ptr<Transfer> broadcast(std::span<std::byte> message, int root) override {
    return timed([&] { return ranks_.broadcast(message, root); });
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const Stopwatch watch(seconds_);
    ranks_.gather(mine, all);
  }

  double seconds() const { return seconds_; }

 private:
  class Stopwatch {
   public:
    explicit Stopwatch(double& seconds) : seconds_(seconds) {}
    ~Stopwatch() {
      seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    double& seconds_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  class TimedTransfer : public Transfer {
   public:
    TimedTransfer(std::unique_ptr<Transfer> transfer, double& seconds)
        : transfer_(std::move(transfer)), seconds_(seconds) {}
    void wait() override {
      const Stopwatch watch(seconds_);
      transfer_->wait();
    }
    bool is_done() override { return transfer_->is_done(); }

   private:
    std::unique_ptr<Transfer> transfer_;
    double& seconds_;
  };

  template <class Start>
  std::unique_ptr<Transfer> timed(const Start& start) {
    const Stopwatch watch(seconds_);
    return std::make_unique<TimedTransfer>(start(), seconds_);
  }

  Communicator& ranks_;
  double seconds_ = 0;
};

}  // namespace heed::cli
