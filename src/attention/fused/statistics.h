// Weights of chosen rows, and statistics of all, tile by tile.
#pragma once

#include <span>

#include "attention/fused/job.h"
#include "heed/statistics.h"

namespace heed::inline v0::fused {

// Of the job, query and key are used. The schedule is one of make_weight_schedule().

// weights[i][k], [rows, kv_len], is the weight of key k in rows[i]; it must be 0 before.
void weights_of_rows(const Job& job, const Schedule& schedule, std::span<const AttentionRow> rows,
                     TensorView<float> weights);

// Writes everything in `statistics`, made by make_statistics().
void statistics_of(const Job& job, const Schedule& schedule, AttentionStatistics& statistics);

}  // namespace heed::inline v0::fused
