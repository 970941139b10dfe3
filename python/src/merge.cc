#include "heed/attention/merge.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call.h"
#include "operands.h"

namespace heed::python {

namespace {

constexpr const char* kMerge = "merge_attention";

Array array_of(const std::string& name, nb::handle object, DataType dtype) {
  Array array = to_array(kMerge, name.c_str(), object);
  const DataType found = data_type_of(kMerge, name.c_str(), array);
  if (found != dtype) {
    throw InvalidArgument(
        fmt::format("{}: {} is {}, expected {}", kMerge, name, to_string(found), to_string(dtype)));
  }
  return array;
}

nb::tuple pair_of(nb::handle part, std::size_t index) {
  if (nb::isinstance<nb::tuple>(part) && nb::len(part) == 2) return nb::borrow<nb::tuple>(part);
  throw InvalidArgument(fmt::format("{}: part {} is no tuple (out, lse)", kMerge, index));
}

std::vector<Forward> parts_of(const nb::tuple& objects, DataType dtype) {
  const bool is_double = dtype == DataType::kFloat64;
  const DataType type_of_lse = is_double ? DataType::kFloat64 : DataType::kFloat32;
  std::vector<Forward> parts;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const nb::tuple pair = pair_of(objects[i], i);
    Forward& part = parts.emplace_back();
    part.out = array_of(fmt::format("out of part {}", i), pair[0], dtype);
    part.lse = array_of(fmt::format("lse of part {}", i), pair[1], type_of_lse);
    const nb::object low = nb::getattr(pair, "lse_low", nb::none());
    if (!low.is_none()) {
      part.lse_low = array_of(fmt::format("lse_low of part {}", i), low, type_of_lse);
    }
  }
  return parts;
}

template <class T>
nb::object merge_of(const std::vector<Forward>& parts, Library library,
                    std::optional<int> num_threads) {
  using Real = RealOf<T>;
  using View = AttentionOutputView<T, Real>;
  std::vector<View> views;
  views.reserve(parts.size());
  for (const Forward& part : parts) {
    views.emplace_back(view_of<T>(part.out), view_of<Real>(part.lse),
                       part.lse_low ? view_of<Real>(*part.lse_low) : TensorView<const Real>());
  }
  auto merged =
      without_lock(num_threads, [&] { return merge_attention(std::span<const View>(views)); });
  const int rank = merged.out.rank();
  return to_objects(std::move(merged), library, rank);
}

nb::object merge(const nb::tuple& objects, std::optional<int> num_threads) {
  if (objects.size() == 0) {
    throw InvalidArgument("merge_attention: 0 parts, expected at least 1");
  }
  const nb::tuple first = pair_of(objects[0], 0);
  const DataType dtype =
      data_type_of(kMerge, "out of part 0", to_array(kMerge, "out of part 0", first[0]));
  const std::vector<Forward> parts = parts_of(objects, dtype);
  const Library library = library_of(first[0]);
  return with_type(
      dtype, [&](auto number) { return merge_of<decltype(number)>(parts, library, num_threads); });
}

}  // namespace

void bind_merge(nb::module_& module) {
  module.def("merge_attention", &merge, nb::arg("parts"), nb::arg("num_threads").none());
}

}  // namespace heed::python
