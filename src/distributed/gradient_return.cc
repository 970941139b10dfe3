#include "distributed/gradient_return.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "distributed/messages.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

template <class Real>
std::span<std::byte> bytes_of(const TensorView<Real>& view) {
  return std::as_writable_bytes(view.elements());
}

template <class Real>
void add_rows(const TensorView<Real>& from, const MutableRows& to, std::int64_t first) {
  const Real* numbers = from.data();
  const std::int64_t dim = from.extent(3);
  for (std::int64_t b = 0; b < from.extent(0); ++b) {
    for (std::int64_t h = 0; h < from.extent(1); ++h) {
      for (std::int64_t i = 0; i < from.extent(2); ++i, numbers += dim) {
        auto* row = reinterpret_cast<Real*>(to.row(b, h, first + i));
        for (std::int64_t d = 0; d < dim; ++d) row[d] += numbers[d];
      }
    }
  }
}

}  // namespace

template <class Real>
void GradientReturn<Real>::Slot::wait() {
  for (const auto& transfer : transfers) transfer->wait();
  transfers.clear();
}

template <class Real>
GradientReturn<Real>::GradientReturn(const SharedProblem<Real>& problem, const KeyGradients& own,
                                     std::int64_t batch, bool all_add)
    : problem_(problem), own_(own), batch_(batch), all_add_(all_add) {
  for (Slot* place : {slots_.data(), slots_.data() + 1, &received_}) {
    place->key_room = room(problem.request.head_dim());
    place->value_room = room(problem.request.value_dim());
  }
}

template <class Real>
Tensor<Real> GradientReturn<Real>::room(std::int64_t dim) const {
  const std::int64_t tokens = std::min(problem_.keys.length(), TokenDivision::kSegment);
  return Tensor<Real>::uninitialized({batch_, problem_.request.num_kv_heads(), tokens, dim});
}

template <class Real>
void GradientReturn<Real>::clear(Slot& place, std::int64_t tokens) const {
  const auto clear_side = [&](Tensor<Real>& in, TensorView<Real>& side) {
    side = TensorView<Real>(in.data(), Shape{in.extent(0), in.extent(1), tokens, in.extent(3)});
    std::fill_n(side.data(), side.num_elements(), Real{0});
  };
  clear_side(place.key_room, place.key);
  clear_side(place.value_room, place.value);
}

template <class Real>
std::int64_t GradientReturn<Real>::count(std::int64_t segment) const {
  const RowRange tokens = problem_.keys.tokens(segment);
  return tokens.end - tokens.begin;
}

template <class Real>
KeyGradients GradientReturn<Real>::start(std::int64_t segment) {
  Slot& place = slot(segment);
  place.wait();
  clear(place, count(segment));
  return {rows_of(place.key), rows_of(place.value)};
}

template <class Real>
void GradientReturn<Real>::send(std::int64_t segment) {
  const int owner = problem_.keys.owner(segment);
  if (owner == problem_.ranks.rank()) return;
  Slot& place = slot(segment);
  for (const TensorView<Real>* side : {&place.key, &place.value}) {
    place.transfers.push_back(problem_.ranks.send(bytes_of(*side), owner, kGradientsTag));
  }
}

template <class Real>
void GradientReturn<Real>::collect(std::int64_t segment) {
  Communicator& ranks = problem_.ranks;
  if (problem_.keys.owner(segment) != ranks.rank()) return;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (!adds(rank, segment)) continue;
    if (rank == ranks.rank()) {
      add(slot(segment), segment);
      continue;
    }
    clear(received_, count(segment));
    for (const TensorView<Real>* side : {&received_.key, &received_.value}) {
      received_.transfers.push_back(ranks.receive(bytes_of(*side), rank, kGradientsTag));
    }
    received_.wait();
    add(received_, segment);
  }
}

template <class Real>
void GradientReturn<Real>::add(const Slot& place, std::int64_t segment) const {
  const std::int64_t first = problem_.keys.first_row(segment);
  add_rows(place.key, own_.key, first);
  add_rows(place.value, own_.value, first);
}

template <class Real>
void GradientReturn<Real>::finish() {
  for (Slot& place : slots_) place.wait();
}

template class GradientReturn<float>;
template class GradientReturn<double>;

}}}  // namespace heed::v0::distributed
