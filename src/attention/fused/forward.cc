#include "attention/fused/forward.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "attention/fused/worker.h"
#include "heed/parallel.h"

namespace heed::inline v0::fused {

namespace {

// The workspace of a small call: not worth an allocation.
constexpr std::size_t kStackBytes = 16384;

std::byte* aligned(std::byte* memory) {
  void* address = memory;
  std::size_t space = 2 * kCacheLine;
  return static_cast<std::byte*>(std::align(kCacheLine, 1, address, space));
}

// The blocks of all jobs, numbered through.
class Blocks {
 public:
  Blocks(std::span<const Job> jobs, const Schedule& schedule) : jobs_(jobs), schedule_(schedule) {
    if (jobs.size() > 1) ends_.reserve(jobs.size());
    for (const Job& job : jobs) {
      count_ += count(job);
      if (jobs.size() > 1) ends_.push_back(count_);
    }
  }

  std::int64_t count() const { return count_; }

  Block operator[](std::int64_t item) const {
    const Job* job = jobs_.data();
    if (!ends_.empty()) {
      job += std::upper_bound(ends_.begin(), ends_.end(), item) - ends_.begin();
      item -= ends_[static_cast<std::size_t>(job - jobs_.data())] - count(*job);
    }
    const std::int64_t rows = job->rows_per_kv_head();
    const std::int64_t blocks = schedule_.blocks(rows);
    const std::int64_t heads = job->terms->num_kv_heads();
    // The last rows of a causal mask see the most keys: they go first, so that no thread is left
    // alone with a long block at the end.
    const std::int64_t first = (blocks - 1 - item % blocks) * schedule_.block_rows();
    return {*job,
            job->batches.begin + item / blocks / heads,
            item / blocks % heads,
            {first, std::min(first + schedule_.block_rows(), rows)}};
  }

 private:
  std::int64_t count(const Job& job) const {
    return (job.batches.end - job.batches.begin) * job.terms->num_kv_heads() *
           schedule_.blocks(job.rows_per_kv_head());
  }

  std::span<const Job> jobs_;
  const Schedule& schedule_;
  std::vector<std::int64_t> ends_;  // the number after each job's last block, for several jobs
  std::int64_t count_ = 0;
};

// Calls compute(worker, item) for every item, the next one to whichever worker is free.
template <class Compute>
void deal_out(std::int64_t items, const Schedule& schedule, std::byte* memory, Compute compute) {
  const std::int64_t workers = std::min<std::int64_t>(schedule.workers, items);
  std::atomic<std::int64_t> next = 0;
  parallel_for(0, workers, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t w = first; w < last; ++w) {
      Worker worker(schedule,
                    Workspace(memory + static_cast<std::size_t>(w) * schedule.bytes_per_worker));
      for (std::int64_t item = next++; item < items; item = next++) compute(worker, item);
    }
  });
}

void run(std::span<const Job> jobs, const Schedule& schedule, std::byte* memory) {
  const Blocks blocks(jobs, schedule);
  const std::int64_t chunks = schedule.key_chunks;
  if (chunks == 1) {
    deal_out(blocks.count(), schedule, memory,
             [&](Worker& worker, std::int64_t item) { worker.compute(blocks[item]); });
    return;
  }
  std::byte* saved =
      memory + static_cast<std::size_t>(schedule.workers) * schedule.bytes_per_worker;
  const auto saved_at = [&](std::int64_t item) {
    return SavedChunk(schedule,
                      Workspace(saved + static_cast<std::size_t>(item) * schedule.bytes_per_chunk));
  };
  deal_out(blocks.count() * chunks, schedule, memory, [&](Worker& worker, std::int64_t item) {
    worker.compute_chunk(blocks[item / chunks], item % chunks, saved_at(item));
  });
  deal_out(blocks.count(), schedule, memory, [&](Worker& worker, std::int64_t item) {
    worker.merge_chunks(blocks[item],
                        [&](std::int64_t chunk) { return saved_at(item * chunks + chunk); });
  });
}

}  // namespace

void forward(std::span<const Job> jobs, const Schedule& schedule, std::span<std::byte> workspace) {
  if (jobs.empty()) return;
  const std::size_t bytes = schedule.workspace_bytes();
  if (!workspace.empty()) {
    run(jobs, schedule, aligned(workspace.data()));
  } else if (bytes <= kStackBytes) {
    std::array<std::byte, kStackBytes> memory;
    run(jobs, schedule, aligned(memory.data()));
  } else {
    // Not std::vector, which would write every byte.
    const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
    run(jobs, schedule, aligned(memory.get()));
  }
}

}  // namespace heed::inline v0::fused
