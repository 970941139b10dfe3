// Sums over ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "distributed/messages.h"
#include "heed/core/parallel.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

// Sums numbers that every rank has, bucket by bucket, in the order of ranks and in double, so that
// the result does not depend on when messages arrive. Buckets are in transit while others are
// summed, and while the numbers of later buckets are still being computed.
template <class T>
class RankSums {
 public:
  // The numbers of each rank are multiplied by its share.
  RankSums(Communicator& ranks, std::vector<double> shares, SumTags tags)
      : ranks_(ranks), shares_(std::move(shares)), tags_(tags) {}

  // Returns memory for `count` numbers, padded with zeros.
  std::vector<T>& prepare(std::int64_t count) {
    const std::int64_t size = ranks_.size();
    part_ = (std::min(count, kBucketNumbers) + size - 1) / size;
    num_buckets_ = part_ == 0 ? 0 : (count + part_ * size - 1) / (part_ * size);
    numbers_.assign(static_cast<std::size_t>(num_buckets_ * part_ * size), T{0});
    begun_ = added_ = done_ = 0;
    return numbers_;
  }

  // The first `count` numbers are final. Starts the buckets that they fill and continues those in
  // transit, without waiting for other ranks.
  void advance(std::int64_t count) {
    while (added_ < begun_ && is_there(added_)) add_up(added_++);
    while (done_ < added_ && is_there(done_)) wait_for(done_++);
    if (num_buckets_ > 0) begin_until(count / (part_ * ranks_.size()));
  }

  // All numbers are final. Replaces them by their sums.
  void finish() {
    while (done_ < num_buckets_) {
      begin_until(num_buckets_);
      if (added_ < begun_) {
        add_up(added_++);
      } else {
        wait_for(done_++);
      }
    }
  }

 private:
  static constexpr std::int64_t kBucketNumbers = std::int64_t{1} << 20;
  static constexpr std::int64_t kSumGrain = std::int64_t{1} << 14;
  static constexpr std::int64_t kMostUnderWay = 4;

  struct Bucket {
    std::vector<T> incoming;  // this rank's part of it, from each rank
    std::vector<std::unique_ptr<Transfer>> transfers;
  };

  // Each bucket in transit has its own slot.
  Bucket& bucket(std::int64_t number) {
    return buckets_[static_cast<std::size_t>(number % kMostUnderWay)];
  }

  // The part of a bucket that `rank` sums.
  std::span<T> part_of(std::int64_t number, std::int64_t rank) {
    return std::span(numbers_).subspan(
        static_cast<std::size_t>((number * ranks_.size() + rank) * part_),
        static_cast<std::size_t>(part_));
  }

  std::span<T> incoming_from(std::int64_t number, std::int64_t rank) {
    return std::span(bucket(number).incoming)
        .subspan(static_cast<std::size_t>(rank * part_), static_cast<std::size_t>(part_));
  }

  // Calls exchange(rank to send to, rank to receive from) once for each other rank.
  template <class Exchange>
  void for_each_other(const Exchange& exchange) {
    const int size = ranks_.size();
    for (int i = 1; i < size; ++i) {
      exchange((ranks_.rank() + i) % size, (ranks_.rank() + size - i) % size);
    }
  }

  void begin_until(std::int64_t end) {
    while (begun_ < end && begun_ - done_ < kMostUnderWay) begin(begun_++);
  }

  void begin(std::int64_t number) {
    Bucket& own = bucket(number);
    own.incoming.resize(static_cast<std::size_t>(part_ * ranks_.size()));
    for_each_other([&](int to, int from) {
      own.transfers.push_back(
          ranks_.receive(std::as_writable_bytes(incoming_from(number, from)), from, tags_.parts));
      own.transfers.push_back(ranks_.send(std::as_bytes(part_of(number, to)), to, tags_.parts));
    });
  }

  // Once all parts have arrived and left: sums this rank's part, sends the sums, and receives the
  // other ranks' sums in place of its own numbers.
  void add_up(std::int64_t number) {
    wait_for(number);
    Bucket& own = bucket(number);
    const std::span<T> mine = part_of(number, ranks_.rank());
    std::copy(mine.begin(), mine.end(), incoming_from(number, ranks_.rank()).begin());
    parallel_for(0, part_, kSumGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        mine[static_cast<std::size_t>(i)] = static_cast<T>(sum_at(own, i));
      }
    });
    for_each_other([&](int to, int from) {
      own.transfers.push_back(
          ranks_.receive(std::as_writable_bytes(part_of(number, from)), from, tags_.sums));
      own.transfers.push_back(ranks_.send(std::as_bytes(mine), to, tags_.sums));
    });
  }

  bool is_there(std::int64_t number) {
    const auto& transfers = bucket(number).transfers;
    return std::all_of(transfers.begin(), transfers.end(),
                       [](const auto& transfer) { return transfer->is_done(); });
  }

  void wait_for(std::int64_t number) {
    auto& transfers = bucket(number).transfers;
    for (const auto& transfer : transfers) transfer->wait();
    transfers.clear();
  }

  double sum_at(const Bucket& bucket, std::int64_t i) const {
    double sum = 0;
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      if (shares_[rank] == 0) continue;
      const auto index = static_cast<std::int64_t>(rank) * part_ + i;
      sum += shares_[rank] * static_cast<double>(bucket.incoming[static_cast<std::size_t>(index)]);
    }
    return sum;
  }

  Communicator& ranks_;
  std::vector<double> shares_;
  SumTags tags_;
  std::int64_t part_ = 0;
  std::int64_t num_buckets_ = 0;
  std::vector<T> numbers_;
  std::array<Bucket, kMostUnderWay> buckets_;
  // The number of buckets that were sent, summed here, and have received their sums.
  std::int64_t begun_ = 0;
  std::int64_t added_ = 0;
  std::int64_t done_ = 0;
};

}}}  // namespace heed::v0::distributed
