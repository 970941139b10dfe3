// Caches of keys and values.
#include "heed/attention/kv_cache.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings.h"
#include "operands.h"
#include "options.h"
#include "readers.h"

namespace heed::python {

namespace {

// A pool, kept alive by Python and by its sequences.
//
// Calls of attend() release the GIL and may overlap. Functions that change a sequence keep the GIL,
// and are refused while such a call reads.
struct Pool {
  explicit Pool(const KvConfig& config) : pool(config) {}

  KvPool pool;
  int readers = 0;  // guarded by the GIL
};

struct Sequence {
  std::shared_ptr<Pool> pool;
  KvSequence sequence;
};

// While this object exists, no sequence of the pool can be changed.
class Reading {
 public:
  explicit Reading(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) { ++pool_->readers; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { --pool_->readers; }

 private:
  std::shared_ptr<Pool> pool_;
};

// Returns the sequence for a change; throws while it is being read.
KvSequence& changed(const char* function, Sequence& self) {
  if (self.pool->readers == 0) return self.sequence;
  throw std::runtime_error(
      fmt::format("KvSequence.{}: another thread attends to a sequence of this pool", function));
}

// Classes check their numbers themselves; those of functions are checked in heed/_explained.py.
KvConfig config_of(nb::handle num_kv_heads, nb::handle head_dim, nb::handle value_dim,
                   nb::handle key_storage, nb::handle value_storage, nb::handle page_size,
                   nb::handle max_pages) {
  constexpr const char* kPool = "KvPool";
  const auto number = [](const char* name, nb::handle object) {
    return read_as<std::int64_t>(kPool, name, object);
  };
  const auto keys = read_as<std::string>(kPool, "key_storage", key_storage);
  const auto values = read_optional<std::string>(kPool, "value_storage", value_storage);
  return {
      .num_kv_heads = number("num_kv_heads", num_kv_heads),
      .head_dim = number("head_dim", head_dim),
      .value_dim = read_optional<std::int64_t>(kPool, "value_dim", value_dim),
      .key_storage = parse_kv_storage(keys, "KvPool: key_storage"),
      .value_storage = parse_kv_storage(values.value_or(keys), "KvPool: value_storage"),
      .page_size = number("page_size", page_size),
      .max_pages = read_optional<std::int64_t>(kPool, "max_pages", max_pages).value_or(kUnbounded)};
}

Sequence sequence_of(const std::shared_ptr<Pool>& pool, nb::handle window, nb::handle sinks,
                     nb::handle max_append, nb::handle rewind) {
  constexpr const char* kSequence = "KvSequence";
  const auto number = [](const char* name, nb::handle object) {
    return read_as<std::int64_t>(kSequence, name, object);
  };
  const auto bound = read_optional<std::int64_t>(kSequence, "window", window);
  return {pool, KvSequence(pool->pool, {.window = bound.value_or(kUnbounded),
                                        .sinks = number("sinks", sinks),
                                        .max_append = number("max_append", max_append),
                                        .rewind = number("rewind", rewind)})};
}

// Calls use(T{}) with the type of the numbers; refuses float64.
template <class Use>
auto with_cached_type(const char* function, const char* name, DataType dtype, Use use) {
  return with_type(dtype, [&](auto number) -> decltype(use(float{})) {
    using T = decltype(number);
    if constexpr (std::is_same_v<T, double>) {
      throw InvalidArgument(
          fmt::format("{}: {} is float64, expected float32, float16 or bfloat16", function, name));
    } else {
      return use(number);
    }
  });
}

void append(Sequence& self, nb::handle key, nb::handle value) {
  constexpr const char* kFunction = "KvSequence.append";
  const Array keys = to_array(kFunction, "key", key);
  const Array values = to_array(kFunction, "value", value);
  const DataType dtype = data_type_of(kFunction, "key", keys);
  const DataType value_dtype = data_type_of(kFunction, "value", values);
  if (value_dtype != dtype) {
    throw InvalidArgument(fmt::format("{}: value is {}, expected {} as the key", kFunction,
                                      to_string(value_dtype), to_string(dtype)));
  }
  KvSequence& sequence = changed("append", self);
  with_cached_type(kFunction, "key", dtype, [&](auto number) {
    using T = decltype(number);
    sequence.append(view_of<T>(keys), view_of<T>(values));
  });
}

Sequence fork(Sequence& self, std::optional<std::int64_t> n) {
  KvSequence& sequence = changed("fork", self);
  return {self.pool, n ? sequence.fork(*n) : sequence.fork()};
}

nb::tuple dequantised(const Sequence& self) {
  KvTensors tensors = self.sequence.dequantised();
  return nb::make_tuple(to_object(std::move(tensors.key), Library::kNumpy),
                        to_object(std::move(tensors.value), Library::kNumpy));
}

template <class Both>
nb::object result_of(Both&& both, Library library, int rank, bool return_lse) {
  if (!return_lse) return to_object(std::move(both.out), library, rank);
  return to_objects(std::forward<Both>(both), library, rank);
}

// An array of queries.
struct Queries {
  Array array;
  DataType dtype;
  Library library;
};

Queries queries_of(nb::handle query) {
  Array array = to_array("attend", "query", query);
  const DataType dtype = data_type_of("attend", "query", array);
  return {std::move(array), dtype, library_of(query)};
}

nb::object attend_to(nb::handle query, const Sequence& sequence, const Options& options,
                     bool return_lse, std::optional<int> num_threads) {
  const Queries queries = queries_of(query);
  if (queries.array.ndim() < 2) {
    throw InvalidArgument(
        fmt::format("attend: query has shape {}, expected at least 2 dimensions [length, dim]",
                    to_string(shape_of(queries.array))));
  }
  const CallOptions<float> call("attend", options);
  const Reading reading(sequence.pool);
  return with_cached_type("attend", "query", queries.dtype, [&](auto number) {
    using T = decltype(number);
    auto both = without_lock(num_threads, [&] {
      return attend_with_lse(view_of_rank_4<T>(queries.array), sequence.sequence, *call);
    });
    return result_of(std::move(both), queries.library, static_cast<int>(queries.array.ndim()),
                     return_lse);
  });
}

nb::object attend_to_all(nb::handle query, const std::vector<const Sequence*>& sequences,
                         const std::vector<std::int64_t>& boundaries, const Options& options,
                         bool return_lse, std::optional<int> num_threads) {
  const Queries queries = queries_of(query);
  std::vector<const KvSequence*> handles;
  std::optional<Reading> reading;
  for (const Sequence* one : sequences) {
    if (!reading) reading.emplace(one->pool);
    handles.push_back(&one->sequence);
  }
  const CallOptions<float> call("attend", options);
  return with_cached_type("attend", "query", queries.dtype, [&](auto number) {
    using T = decltype(number);
    auto both = without_lock(num_threads, [&] {
      return attend_with_lse(view_of<T>(queries.array), KvBatch{handles, boundaries}, *call);
    });
    return result_of(std::move(both), queries.library, 3, return_lse);
  });
}

void bind_pool(nb::module_& module) {
  nb::class_<Pool>(module, "KvPool", "Pages that sequences share.")
      .def(
          "__init__",
          [](Pool* self, nb::handle num_kv_heads, nb::handle head_dim, nb::handle value_dim,
             nb::handle key_storage, nb::handle value_storage, nb::handle page_size,
             nb::handle max_pages) {
            new (self) Pool(config_of(num_kv_heads, head_dim, value_dim, key_storage, value_storage,
                                      page_size, max_pages));
          },
          nb::arg("num_kv_heads").none(), nb::arg("head_dim").none(),
          nb::arg("value_dim") = nb::none(), nb::kw_only(),
          nb::arg("key_storage").none() = "float32", nb::arg("value_storage") = nb::none(),
          nb::arg("page_size").none() = 128, nb::arg("max_pages") = nb::none())
      .def_prop_ro("page_bytes", [](const Pool& self) { return self.pool.page_bytes(); })
      .def_prop_ro("allocated_bytes", [](const Pool& self) { return self.pool.allocated_bytes(); })
      .def_prop_ro("pages_in_use", [](const Pool& self) { return self.pool.pages_in_use(); })
      .def_prop_ro("free_pages", [](const Pool& self) -> std::optional<std::int64_t> {
        if (self.pool.config().max_pages == kUnbounded) return std::nullopt;
        return self.pool.free_pages();
      });
}

void bind_sequence(nb::module_& module) {
  nb::class_<Sequence>(module, "KvSequence", "The keys and values of one sequence.")
      .def(
          "__init__",
          [](Sequence* self, const std::shared_ptr<Pool>& pool, nb::handle window, nb::handle sinks,
             nb::handle max_append, nb::handle rewind) {
            new (self) Sequence(sequence_of(pool, window, sinks, max_append, rewind));
          },
          nb::arg("pool"), nb::kw_only(), nb::arg("window") = nb::none(),
          nb::arg("sinks").none() = 0, nb::arg("max_append").none() = 1,
          nb::arg("rewind").none() = 0)
      .def("append", &append, nb::arg("key").none(), nb::arg("value").none())
      .def("fork", &fork, nb::arg("n") = nb::none())
      .def(
          "truncate", [](Sequence& self, std::int64_t n) { changed("truncate", self).truncate(n); },
          nb::arg("n"))
      .def("reset", [](Sequence& self) { changed("reset", self).reset(); })
      .def(
          "accept",
          [](Sequence& self, std::int64_t num_nodes, const std::vector<std::int64_t>& path) {
            changed("accept", self).accept(num_nodes, path);
          },
          nb::arg("num_nodes"), nb::arg("path"))
      .def("dequantised", &dequantised)
      .def("__len__", [](const Sequence& self) { return self.sequence.length(); })
      .def_prop_ro("num_pages", [](const Sequence& self) { return self.sequence.num_pages(); })
      .def_prop_ro("pool", [](const Sequence& self) { return self.pool; });
}

}  // namespace

void bind_kv_cache(nb::module_& module) {
  const nb::exception<OutOfPages> out_of_pages(module, "OutOfPages", PyExc_MemoryError);
  bind_pool(module);
  bind_sequence(module);
  module.def("attend", &attend_to, nb::arg("query").none(), nb::arg("sequence"), nb::arg("options"),
             nb::arg("return_lse"), nb::arg("num_threads").none());
  module.def("attend_to_all", &attend_to_all, nb::arg("query").none(), nb::arg("sequences"),
             nb::arg("boundaries"), nb::arg("options"), nb::arg("return_lse"),
             nb::arg("num_threads").none());
}

}  // namespace heed::python
