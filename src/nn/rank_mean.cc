#include "heed/nn/rank_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "heed/error.h"
#include "heed/parallel.h"
#include "nn/node.h"

namespace heed::inline v0::nn {

namespace {

constexpr int kGradientTag = 32767;
constexpr std::int64_t kBucketNumbers = std::int64_t{1} << 20;
constexpr std::int64_t kSumGrain = std::int64_t{1} << 14;

// What each rank tells the others first.
struct PartHead {
  double loss;
  double weight;
  std::int64_t num_parameters;
  std::int64_t num_elements;
};

template <class Element>
std::vector<Element> gather_all(Communicator& ranks, std::span<const Element> mine) {
  std::vector<Element> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

// Throws on all ranks or on none: all have the same heads.
void check_heads(const std::vector<PartHead>& heads) {
  double sum = 0;
  for (std::size_t rank = 0; rank < heads.size(); ++rank) {
    const PartHead& head = heads[rank];
    if (head.num_parameters != heads[0].num_parameters ||
        head.num_elements != heads[0].num_elements) {
      throw InvalidArgument(fmt::format(
          "mean_over_ranks: rank {} has {} parameters of {} numbers, but rank 0 {} of {}", rank,
          head.num_parameters, head.num_elements, heads[0].num_parameters, heads[0].num_elements));
    }
    if (!(head.weight >= 0 && std::isfinite(head.weight))) {
      throw InvalidArgument(fmt::format(
          "mean_over_ranks: weight is {} on rank {}, expected a finite number, 0 or more",
          head.weight, rank));
    }
    sum += head.weight;
  }
  if (!(sum > 0)) {
    throw InvalidArgument(
        "mean_over_ranks: weight is 0 on every rank, expected a part of the batch");
  }
}

// Adds up numbers that every rank has, bucket by bucket.
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
          ranks_.receive(std::as_writable_bytes(incoming_from(bucket, from)), from, kGradientTag));
    }
    for (int i = 1; i < size; ++i) {
      const int to = (ranks_.rank() + i) % size;
      bucket.transfers.push_back(ranks_.send(std::as_bytes(part_of(number, to)), to, kGradientTag));
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

// Which parameters have a gradient on some rank.
template <class T>
std::vector<Variable<T>> with_gradients(Communicator& ranks,
                                        const std::vector<Variable<T>>& parameters) {
  std::vector<char> mine;
  mine.reserve(parameters.size());
  for (const Variable<T>& parameter : parameters) mine.push_back(parameter.has_grad() ? 1 : 0);
  const std::vector<char> all = gather_all(ranks, std::span<const char>(mine));
  std::vector<Variable<T>> found;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    char has_grad = 0;
    for (std::size_t at = i; at < all.size(); at += parameters.size()) has_grad |= all[at];
    if (has_grad != 0) found.push_back(parameters[i]);
  }
  return found;
}

template <class T>
std::int64_t count_elements(const std::vector<Variable<T>>& parameters) {
  std::int64_t count = 0;
  for (const Variable<T>& parameter : parameters) count += parameter.num_elements();
  return count;
}

template <class T>
void sum_gradients(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                   std::vector<double> shares) {
  const std::vector<Variable<T>> summed = with_gradients(ranks, parameters);
  RankSums<T> sums(ranks, std::move(shares));
  std::vector<T>& numbers = sums.prepare(count_elements(summed));
  auto place = numbers.begin();
  for (const Variable<T>& parameter : summed) {
    if (parameter.has_grad()) std::ranges::copy(parameter.grad().elements(), place);
    place += parameter.num_elements();
  }
  sums.run();
  place = numbers.begin();
  for (const Variable<T>& parameter : summed) {
    if (!parameter.has_grad()) parameter.node()->accumulate(Tensor<T>(parameter.shape()));
    std::copy_n(place, parameter.num_elements(), parameter.writable_grad().elements().begin());
    place += parameter.num_elements();
  }
}

}  // namespace

template <class T>
BatchMean mean_over_ranks(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                          const BatchPart& part) {
  const PartHead mine{part.loss, part.weight, static_cast<std::int64_t>(parameters.size()),
                      count_elements(parameters)};
  const std::vector<PartHead> heads = gather_all(ranks, std::span(&mine, 1));
  check_heads(heads);
  BatchMean mean;
  for (const PartHead& head : heads) mean.weight += head.weight;
  std::vector<double> shares;
  for (const PartHead& head : heads) {
    shares.push_back(head.weight / mean.weight);
    if (head.weight == 0) {
      mean.every_rank_has_part = false;
    } else {
      mean.loss += shares.back() * head.loss;
    }
  }
  if (ranks.size() > 1) sum_gradients(ranks, parameters, std::move(shares));
  return mean;
}

template BatchMean mean_over_ranks(Communicator&, const std::vector<Variable<float>>&,
                                   const BatchPart&);
template BatchMean mean_over_ranks(Communicator&, const std::vector<Variable<double>>&,
                                   const BatchPart&);

}  // namespace heed::inline v0::nn
