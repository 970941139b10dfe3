#include "attention/heads/pattern_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

void add_elements(Tensor<double>& sums, const Tensor<double>& more) {
  const double* from = more.data();
  for (double& sum : sums.elements()) sum += *from++;
}

double ratio(double sum, double count) { return count == 0 ? 0 : sum / count; }

// The sums of one head over all sequences.
class HeadSummary {
 public:
  HeadSummary(std::span<const PatternSums> sequences, std::int64_t head, const ScoreShape& shape)
      : sequences_(sequences), head_(head), shape_(shape) {}

  HeadDiagnostics describe() const {
    HeadDiagnostics result;
    double rows_that_see = 0;
    double padding = 0;
    for (const PatternSums& sums : sequences_) {
      const PatternSums::Head& head = sums.heads[static_cast<std::size_t>(head_)];
      result.rows += head.rows;
      result.broken_rows += head.broken_rows;
      result.entropy += head.entropy;
      rows_that_see += static_cast<double>(head.rows + head.forced_rows);
      for (std::int64_t k = 0; k < shape_.kv_len; ++k) {
        result.total += sums.mass(head_, k);
        if (k >= sums.kv_length) padding += sums.mass(head_, k) + sums.forced_mass(head_, k);
      }
      if (shape_.kv_len > 0) result.first += sums.mass(head_, std::int64_t{0});
    }
    const auto rows = static_cast<double>(result.rows);
    for (double* sum : {&result.entropy, &result.total, &result.first}) *sum = ratio(*sum, rows);
    result.padding = ratio(padding, rows_that_see);
    find_offsets(result);
    find_vertical(result);
    return result;
  }

 private:
  // The mass and the number of rows at each distance of the key from the query, over all sequences.
  struct Offsets {
    std::vector<double> mass, rows;
  };

  // The largest query_offset. Its sequence begins at index 0 of the offsets.
  std::int64_t furthest() const {
    const auto offsets = shape_.query_offset.values();
    return offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end());
  }

  Offsets offsets() const {
    const std::int64_t length = shape_.q_len + shape_.kv_len;
    std::int64_t most = 0;  // the largest shift of a sequence
    for (const std::int64_t offset : shape_.query_offset.values()) {
      most = std::max(most, furthest() - offset);
    }
    const auto size = static_cast<std::size_t>(length + most);
    Offsets all{std::vector<double>(size), std::vector<double>(size)};
    std::int64_t batch = 0;
    for (const PatternSums& sums : sequences_) {
      const std::int64_t moved = furthest() - shape_.query_offset[batch++];
      double rows = 0;
      for (std::int64_t at = 0; at < length; ++at) {
        const auto i = static_cast<std::size_t>(at + moved);
        all.mass[i] += sums.offset_mass(head_, at);
        rows += sums.offset_rows(head_, at);
        all.rows[i] += rows;
      }
    }
    return all;
  }

  void find_offsets(HeadDiagnostics& result) const {
    const Offsets all = offsets();
    const auto size = static_cast<std::int64_t>(all.mass.size());
    // The index of offset 0.
    const std::int64_t origin = shape_.q_len - 1 + furthest();
    const auto mean_at = [&](std::int64_t offset) {
      const std::int64_t at = origin + offset;
      if (at < 0 || at >= size) return 0.0;
      const auto i = static_cast<std::size_t>(at);
      return ratio(all.mass[i], all.rows[i]);
    };
    result.previous = mean_at(-1);
    result.same = mean_at(0);
    result.next = mean_at(1);
    for (std::int64_t at = 0; at < size; ++at) {
      const bool is_common =
          2 * all.rows[static_cast<std::size_t>(at)] >= static_cast<double>(result.rows);
      if (!is_common || mean_at(at - origin) <= result.offset_weight) continue;
      result.offset = at - origin;
      result.offset_weight = mean_at(result.offset);
    }
  }

  void find_vertical(HeadDiagnostics& result) const {
    std::map<std::int64_t, std::int64_t> wins;
    std::int64_t sequences = 0;
    for (const PatternSums& sums : sequences_) {
      if (sums.heads[static_cast<std::size_t>(head_)].rows == 0) continue;
      const auto masses = sums.mass.view().select(0, head_).elements();
      const auto most = std::max_element(masses.begin(), masses.end());
      double total = 0;
      for (const double mass : masses) total += mass;
      result.vertical += ratio(*most, total);
      ++wins[most - masses.begin()];
      ++sequences;
    }
    result.vertical = ratio(result.vertical, static_cast<double>(sequences));
    std::int64_t most_wins = 0;
    for (const auto& [key, count] : wins) {
      if (count <= most_wins) continue;
      result.vertical_key = key;
      most_wins = count;
    }
  }

  std::span<const PatternSums> sequences_;
  std::int64_t head_;
  const ScoreShape& shape_;
};

Tensor<double> similarity_of(std::span<const PatternSums> sequences, std::int64_t num_heads) {
  Tensor<double> result({num_heads, num_heads});
  for (std::int64_t i = 0; i < num_heads; ++i) {
    result(i, i) = 1;
    for (std::int64_t j = i + 1; j < num_heads; ++j) {
      double sum = 0;
      double rows = 0;
      for (const PatternSums& sums : sequences) {
        sum += sums.cosines(i, j);
        rows += sums.cosine_rows(i, j);
      }
      result(i, j) = result(j, i) = ratio(sum, rows);
    }
  }
  return result;
}

}  // namespace

RowKind kind_of_row(bool is_finite, std::int64_t keys_seen) {
  if (keys_seen == 0) return RowKind::kEmpty;
  if (!is_finite) return RowKind::kBroken;
  return keys_seen == 1 ? RowKind::kForced : RowKind::kChooses;
}

PatternSums::PatternSums(const ScoreShape& shape)
    : q_len(shape.q_len),
      kv_len(shape.kv_len),
      kv_length(shape.kv_len),
      heads(static_cast<std::size_t>(shape.num_heads)),
      mass({shape.num_heads, shape.kv_len}),
      forced_mass({shape.num_heads, shape.kv_len}),
      offset_mass({shape.num_heads, shape.q_len + shape.kv_len}),
      offset_rows({shape.num_heads, shape.q_len + shape.kv_len}),
      cosines({shape.num_heads, shape.num_heads}),
      cosine_rows({shape.num_heads, shape.num_heads}) {}

void PatternSums::add_row(std::int64_t head, std::int64_t q, RowKind kind, std::int64_t keys_seen,
                          double entropy) {
  Head& sums = heads[static_cast<std::size_t>(head)];
  sums.broken_rows += kind == RowKind::kBroken ? 1 : 0;
  sums.forced_rows += kind == RowKind::kForced ? 1 : 0;
  if (kind != RowKind::kChooses) return;
  ++sums.rows;
  sums.entropy += entropy / elementary::log(static_cast<double>(keys_seen));
  if (kv_length == 0) return;
  offset_rows(head, offset_index(q, 0)) += 1;
  offset_rows(head, offset_index(q, kv_length)) -= 1;
}

void PatternSums::add(const PatternSums& others) {
  for (std::size_t i = 0; i < heads.size(); ++i) {
    heads[i].rows += others.heads[i].rows;
    heads[i].forced_rows += others.heads[i].forced_rows;
    heads[i].broken_rows += others.heads[i].broken_rows;
    heads[i].entropy += others.heads[i].entropy;
  }
  add_elements(mass, others.mass);
  add_elements(forced_mass, others.forced_mass);
  add_elements(offset_mass, others.offset_mass);
  add_elements(offset_rows, others.offset_rows);
  add_elements(cosines, others.cosines);
  add_elements(cosine_rows, others.cosine_rows);
}

void check_lengths(const char* function, const DiagnosticsOptions& lengths,
                   const ScoreShape& shape) {
  const auto check = [&](const char* name, const std::vector<std::int64_t>& given,
                         std::int64_t most) {
    if (given.empty()) return;
    if (static_cast<std::int64_t>(given.size()) != shape.batch) {
      throw InvalidArgument(
          fmt::format("{}: {} has {} lengths for a batch of {}; expected as many, or none",
                      function, name, given.size(), shape.batch));
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] >= 0 && given[i] <= most) continue;
      throw InvalidArgument(
          fmt::format("{}: {}[{}] is {}, expected 0 to {}", function, name, i, given[i], most));
    }
  };
  check("q_lengths", lengths.q_lengths, shape.q_len);
  check("kv_lengths", lengths.kv_lengths, shape.kv_len);
}

AttentionDiagnostics diagnostics_of(std::span<const PatternSums> sequences,
                                    const ScoreShape& shape) {
  AttentionDiagnostics result;
  for (std::int64_t head = 0; head < shape.num_heads; ++head) {
    result.heads.push_back(HeadSummary(sequences, head, shape).describe());
  }
  result.similarity = similarity_of(sequences, shape.num_heads);
  return result;
}

double AttentionDiagnostics::mean_similarity() const {
  const FloatEnvironment environment;
  const auto count = static_cast<std::int64_t>(heads.size());
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = i + 1; j < count; ++j) sum += similarity(i, j);
  }
  return settled(ratio(2 * sum, static_cast<double>(count * (count - 1))));
}

}}  // namespace heed::v0
