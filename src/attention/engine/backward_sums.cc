#include "attention/engine/backward_sums.h"

#include <algorithm>
#include <cstddef>

#include "heed/core/parallel.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
BackwardSums<Real>::BackwardSums(const BackwardCall<Real>& job,
                                 const kernels::BasicKernelTable<Real>& table, Layout& layout)
    : job_(job),
      table_(table),
      division_(job),
      num_keys_(job.request->num_keys()),
      group_(job.request->heads_per_kv_head),
      key_(make_rows(job.gradients.key, job.request->head_dim(), layout)),
      value_(make_rows(job.gradients.value, job.request->value_dim(), layout)) {
  const std::int64_t heads = division_.num_tasks() * group_;
  if (job.sums_sinks()) sinks_ = layout.add<double>(heads);
  for (const auto& term : job.request->terms) {
    terms_.push_back(layout.add<double>(checked_multiply(heads, term->sums_per_head())));
  }
  if (job.gradients.cells && !division_.shares_cells()) add_cells(layout);
}

template <class Real>
void BackwardSums<Real>::add_cells(Layout& layout) {
  const TensorView<Real>& gradient = *job_.gradients.cells;
  cell_heads_ = gradient.stride(1) == 0 ? 1 : group_;
  cell_queries_ = gradient.stride(2) == 0 ? 1 : most_places();
  cell_keys_ = gradient.stride(3) == 0 ? 1 : job_.request->shape.kv_len;
  cells_ = layout.add<Real>(division_.num_tasks() * cell_heads_ * cell_queries_ * cell_keys_);
}

// The largest number of places among the tasks.
template <class Real>
std::int64_t BackwardSums<Real>::most_places() const {
  std::int64_t most = 0;
  for (std::int64_t part = 0; part < division_.parts(); ++part) {
    const RowRange places = places_of(division_.task(0, part));
    most = std::max(most, places.end - places.begin);
  }
  return most;
}

template <class Real>
typename BackwardSums<Real>::KeyRows BackwardSums<Real>::make_rows(const MutableRows& gradient,
                                                                   std::int64_t dim,
                                                                   Layout& layout) const {
  KeyRows rows;
  rows.gradient = gradient;
  rows.dim = dim;
  rows.stride = (dim + table_.lanes - 1) / table_.lanes * table_.lanes;
  const bool is_real = gradient.type == data_type_of<Real>();
  const bool has_no_gaps = gradient.row_stride == dim * static_cast<std::int64_t>(sizeof(Real));
  rows.first_part = is_real && has_no_gaps && rows.stride == dim ? 1 : 0;
  const std::int64_t parts = division_.num_heads() * (division_.parts() - rows.first_part);
  rows.sums = layout.add<Real>(checked_multiply(checked_multiply(parts, num_keys_), rows.stride));
  return rows;
}

// `head` is the number of a key head among those of all batch entries of the call.
template <class Real>
std::byte* BackwardSums<Real>::gradient_of(const KeyRows& rows, std::int64_t head) const {
  const BackwardTask task = division_.task(head, 0);
  return rows.gradient.row(task.batch, task.kv_head, 0);
}

template <class Real>
Real* BackwardSums<Real>::part_of(const KeyRows& rows, std::int64_t head, std::int64_t part) const {
  if (part < rows.first_part) return reinterpret_cast<Real*>(gradient_of(rows, head));
  const std::int64_t index = head * (division_.parts() - rows.first_part) + part - rows.first_part;
  return rows.sums.in(memory_) + index * num_keys_ * rows.stride;
}

template <class Real>
Real* BackwardSums<Real>::start(const KeyRows& rows, const BackwardTask& task) const {
  Real* sums = part_of(rows, division_.head(task), task.part);
  if (task.part >= rows.first_part) std::fill_n(sums, num_keys_ * rows.stride, Real{0});
  return sums;
}

template <class Real>
TaskSums<Real> BackwardSums<Real>::start(const BackwardTask& task) const {
  TaskSums<Real> sums{.first_key = job_.request->keys().begin,
                      .key = start(key_, task),
                      .key_stride = key_.stride,
                      .value = start(value_, task),
                      .value_stride = value_.stride,
                      .sinks = start_heads(sinks_, 1, task),
                      .terms = {}};
  const CellSums<Real> cells = job_.gradients.cells ? cells_of(task) : CellSums<Real>{};
  if (cells_.count > 0) {
    std::fill_n(cells.data, cell_heads_ * cell_queries_ * cell_keys_, Real{0});
  }
  std::size_t i = 0;
  for (const auto& term : job_.request->terms) {
    sums.terms.push_back({.first_head = first_head(task),
                          .per_head = start_heads(terms_[i++], term->sums_per_head(), task),
                          .cells = cells});
  }
  return sums;
}

template <class Real>
double* BackwardSums<Real>::start_heads(const Piece<double>& sums, std::int64_t per_head,
                                        const BackwardTask& task) const {
  if (sums.count == 0) return nullptr;
  double* started = sums.in(memory_) + division_.index(task) * group_ * per_head;
  std::fill_n(started, group_ * per_head, 0.0);
  return started;
}

// Terms number queries by their places in the whole problem, between which there may be queries of
// other ranks.
template <class Real>
RowRange BackwardSums<Real>::places_of(const BackwardTask& task) const {
  const RowRange& queries = task.queries;
  if (queries.begin == queries.end) return {0, 0};
  const Request<Real>& request = *job_.request;
  return {request.query(queries.begin), request.query(queries.end - 1) + 1};
}

template <class Real>
CellSums<Real> BackwardSums<Real>::cells_of(const BackwardTask& task) const {
  const TensorView<Real>& gradient = *job_.gradients.cells;
  const std::int64_t first = places_of(task).begin;
  if (cells_.count == 0) {
    return {gradient.data() + task.batch * gradient.stride(0) +
                first_head(task) * gradient.stride(1) + first * gradient.stride(2),
            gradient.stride(1), gradient.stride(2), gradient.stride(3), first};
  }
  return {cells_.in(memory_) + division_.index(task) * cell_heads_ * cell_queries_ * cell_keys_,
          cell_heads_ == 1 ? 0 : cell_queries_ * cell_keys_,
          gradient.stride(2) == 0 ? 0 : cell_keys_, gradient.stride(3) == 0 ? 0 : 1, first};
}

template <class Real>
template <class Visit>
void BackwardSums<Real>::for_each_task(Visit visit) const {
  for (std::int64_t head = 0; head < division_.num_heads(); ++head) {
    for (std::int64_t part = 0; part < division_.parts(); ++part) visit(division_.task(head, part));
  }
}

template <class Real>
void BackwardSums<Real>::write() const {
  write(key_);
  write(value_);
  if (cells_.count > 0) for_each_task([&](const BackwardTask& task) { write_cells(task); });
  std::size_t i = 0;
  for (const auto& term : job_.request->terms) {
    if (terms_[i].count > 0) {
      const bool is_shared = term->gradient_shape().num_elements() == term->sums_per_head();
      write_heads(terms_[i], term->sums_per_head(), job_.gradients.per_head[i], is_shared);
    }
    ++i;
  }
  if (sinks_.count > 0) write_heads(sinks_, 1, job_.gradients.sinks);
}

template <class Real>
void BackwardSums<Real>::write_heads(const Piece<double>& all, std::int64_t per_head,
                                     Real* gradient, bool is_shared) const {
  const std::int64_t count = group_ * per_head;
  const std::int64_t heads = job_.request->shape.num_heads;
  std::vector<double> totals(static_cast<std::size_t>(heads * per_head));
  for_each_task([&](const BackwardTask& task) {
    const double* sums = all.in(memory_) + division_.index(task) * count;
    double* total = totals.data() + first_head(task) * per_head;
    for (std::int64_t i = 0; i < count; ++i) total[i] += sums[i];
  });
  if (is_shared) {
    for (std::int64_t i = per_head; i < heads * per_head; ++i) {
      totals[static_cast<std::size_t>(i % per_head)] += totals[static_cast<std::size_t>(i)];
    }
    totals.resize(static_cast<std::size_t>(per_head));
  }
  std::transform(totals.begin(), totals.end(), gradient,
                 [](double total) { return static_cast<Real>(total); });
}

template <class Real>
void BackwardSums<Real>::write(const KeyRows& rows) const {
  if (rows.first_part == division_.parts()) return;
  parallel_for(0, division_.num_heads(), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t head = first; head < last; ++head) write_head(rows, head);
  });
}

// The first part is not added to 0, which would lose the sign of a negative zero.
template <class Real>
void BackwardSums<Real>::write_head(const KeyRows& rows, std::int64_t head) const {
  Real* const total = part_of(rows, head, 0);
  const std::int64_t total_stride = rows.first_part == 0 ? rows.stride : rows.dim;
  for (std::int64_t part = 1; part < division_.parts(); ++part) {
    const Real* sums = part_of(rows, head, part);
    for (std::int64_t k = 0; k < num_keys_; ++k) {
      Real* row = total + k * total_stride;
      for (std::int64_t d = 0; d < rows.dim; ++d) row[d] += sums[k * rows.stride + d];
    }
  }
  if (rows.first_part != 0) return;
  std::byte* gradient = gradient_of(rows, head);
  for (std::int64_t k = 0; k < num_keys_; ++k) {
    table_.narrow(rows.gradient.type, total + k * total_stride, rows.dim,
                  gradient + k * rows.gradient.row_stride);
  }
}

template <class Real>
void BackwardSums<Real>::write_cells(const BackwardTask& task) const {
  const TensorView<Real>& gradient = *job_.gradients.cells;
  const CellSums<Real> sums = cells_of(task);
  const RowRange places = gradient.stride(2) == 0 ? RowRange{0, 1} : places_of(task);
  for (std::int64_t h = 0; h < cell_heads_; ++h) {
    for (std::int64_t q = places.begin; q < places.end; ++q) {
      Real* target = gradient.data() + task.batch * gradient.stride(0) +
                     (first_head(task) + h) * gradient.stride(1) + q * gradient.stride(2);
      const Real* from = sums.data + h * sums.head_stride + (q - places.begin) * sums.query_stride;
      for (std::int64_t k = 0; k < cell_keys_; ++k) target[k * gradient.stride(3)] += from[k];
    }
  }
}

template class BackwardSums<float>;
template class BackwardSums<double>;

}}}  // namespace heed::v0::engine
