// Sums over ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "distributed/tags.h"
#include "heed/communicator.h"
#include "heed/parallel.h"

namespace heed::inline v0::distributed {

// Adds up numbers that every rank has, bucket by bucket: in the order of ranks, in double, so that
// no bit depends on when messages arrive.
template <class T>
class RankSums {
 public:
  // What ranks have is multiplied by their shares.
  RankSums(Communicator& ranks, std::vector<double> shares)
      : ranks_(ranks), shares_(std::move(shares)) {}

  // The room for so many numbers, zeros behind them.
  std::vector<T>& prepare(std::int64_t count) {
    const std::int64_t size = ranks_.size();
    part_ = (std::min(count, kBucketNumbers) + size - 1) / size;
    num_buckets_ = part_ == 0 ? 0 : (count + part_ * size - 1) / (part_ * size);
    numbers_.assign(static_cast<std::size_t>(num_buckets_ * part_ * size), T{0});
    return numbers_;
  }

  // The numbers become the sums.
  void run() {
    if (num_buckets_ > 0) begin(0);
    for (std::int64_t bucket = 0; bucket < num_buckets_; ++bucket) {
      if (bucket + 1 < num_buckets_) begin(bucket + 1);
      finish(bucket);
    }
  }

 private:
  static constexpr std::int64_t kBucketNumbers = std::int64_t{1} << 20;
  static constexpr std::int64_t kSumGrain = std::int64_t{1} << 14;

  struct Bucket {
    std::vector<T> incoming;  // this rank's part of it, from each rank
    std::vector<std::unique_ptr<Transfer>> transfers;
  };

  // The part of a bucket that a rank adds up.
  std::span<T> part_of(std::int64_t bucket, std::int64_t rank) {
    return std::span(numbers_).subspan(
        static_cast<std::size_t>((bucket * ranks_.size() + rank) * part_),
        static_cast<std::size_t>(part_));
  }

  std::span<T> incoming_from(Bucket& bucket, std::int64_t rank) const {
    return std::span(bucket.incoming)
        .subspan(static_cast<std::size_t>(rank * part_), static_cast<std::size_t>(part_));
  }

  void begin(std::int64_t number) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(number % 2)];
    const int size = ranks_.size();
    bucket.incoming.resize(static_cast<std::size_t>(part_ * size));
    for (int i = 1; i < size; ++i) {
      const int from = (ranks_.rank() + size - i) % size;
      bucket.transfers.push_back(
          ranks_.receive(std::as_writable_bytes(incoming_from(bucket, from)), from, kSumsTag));
    }
    for (int i = 1; i < size; ++i) {
      const int to = (ranks_.rank() + i) % size;
      bucket.transfers.push_back(ranks_.send(std::as_bytes(part_of(number, to)), to, kSumsTag));
    }
  }

  void finish(std::int64_t number) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(number % 2)];
    for (const auto& transfer : bucket.transfers) transfer->wait();
    bucket.transfers.clear();
    const std::span<T> mine = part_of(number, ranks_.rank());
    std::copy(mine.begin(), mine.end(), incoming_from(bucket, ranks_.rank()).begin());
    parallel_for(0, part_, kSumGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        mine[static_cast<std::size_t>(i)] = static_cast<T>(sum_at(bucket, i));
      }
    });
    const std::vector<T> sums(mine.begin(), mine.end());
    const std::span<T> all(part_of(number, 0).data(),
                           static_cast<std::size_t>(part_ * ranks_.size()));
    ranks_.gather(std::as_bytes(std::span(sums)), std::as_writable_bytes(all));
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
  std::int64_t part_ = 0;
  std::int64_t num_buckets_ = 0;
  std::vector<T> numbers_;
  std::array<Bucket, 2> buckets_;  // one is on its way while the other is added up
};

}  // namespace heed::inline v0::distributed
