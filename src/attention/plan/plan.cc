#include "attention/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace heed { inline namespace v0 {

template <class Real>
PreparedPass<Real> prepare(const Request<Real>& request, Pass pass, std::string* refusals) {
  for (const auto backend : {prepare_fused<Real>, prepare_reference<Real>}) {
    Preparation<Real> preparation = backend(request, pass);
    if (preparation.prepared != nullptr) return std::move(preparation.prepared);
    if (refusals != nullptr) {
      *refusals += (refusals->empty() ? "" : "; ") + preparation.refusal;
    }
  }
  return nullptr;  // not reached: the reference computes every request
}

template <class Real>
PreparedPass<Real> prepare_together(std::span<const Request<Real>* const> requests, Pass pass) {
  const auto irregular =
      std::find_if(requests.begin(), requests.end(),
                   [](const Request<Real>* request) { return !request->mask.is_structural(); });
  Request<Real> largest = irregular == requests.end() ? *requests.front() : **irregular;
  for (const Request<Real>* request : requests) {
    largest.shape.kv_len = std::max(largest.shape.kv_len, request->shape.kv_len);
    largest.shape.q_len = std::max(largest.shape.q_len, request->shape.q_len);
  }
  largest.shape.batch = static_cast<std::int64_t>(requests.size());
  return prepare(largest, pass);
}

template PreparedPass<float> prepare_together(std::span<const Request<float>* const>, Pass);
template PreparedPass<float> prepare(const Request<float>&, Pass, std::string*);
template PreparedPass<double> prepare(const Request<double>&, Pass, std::string*);

}}  // namespace heed::v0
