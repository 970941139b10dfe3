// The module, and functions for the whole process.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "heed/attention.h"
#include "heed/attention/position.h"
#include "heed/core/config.h"
#include "heed/core/error.h"
#include "heed/core/memory.h"
#include "heed/core/parallel.h"
#include "masks.h"
#include "options.h"

namespace heed::python { namespace {

// The functions for the whole process: threads, targets, the version.
void bind_process(nb::module_& module) {
  module.attr("__version__") = version();
  module.def("num_threads", &num_threads, "How many threads a call from here may use.");
  module.def("set_num_threads", &set_num_threads, nb::arg("count"),
             "Sets num_threads() for the whole process; 0 returns to the number of processors.");
  module.def("max_kept_memory", &max_kept_memory,
             "How many bytes of what tensors gave back are kept for the next ones, at most.");
  module.def("set_max_kept_memory", &set_max_kept_memory, nb::arg("bytes"),
             "Sets max_kept_memory() for the whole process; 0 gives everything back.");
  module.def("kept_memory", &kept_memory, "How many bytes are kept now.");
  module.def("attention_target", &attention_target,
             "The instruction set whose kernels are in use, e.g. \"AVX512\", or \"reference\".");
  module.def("attention_targets", &attention_targets,
             "All that can compute attention here, the best first.");
  module.def(
      "attention_bits",
      [](const std::string& precision) {
        if (precision != "exact" && precision != "fast") {
          throw InvalidArgument("attention_bits: precision is '" + precision +
                                "', 'exact' or 'fast' is expected");
        }
        return attention_bits(precision == "fast" ? Precision::kFast : Precision::kExact);
      },
      nb::arg("precision") = "exact",
      "The arithmetic whose bits are computed: equal answers of two machines mean equal bits.");
  module.def(
      "alibi_slopes",
      [](std::int64_t num_heads) {
        return to_object(alibi_slopes<float>(num_heads), Library::kNumpy);
      },
      nb::arg("num_heads"), "The usual slopes of ALiBi, float32 [num_heads].");
}

}}  // namespace heed::python

// InvalidArgument is a std::invalid_argument, which nanobind raises as ValueError with its text.
NB_MODULE(_heed, module) {  // NOLINT
  // Objects that exist until the end of the process are no leaks.
  nanobind::set_leak_warnings(false);
  heed::python::end_calls_at_exit();
  heed::python::bind_process(module);
  heed::python::bind_masks(module);
  heed::python::bind_patterns(module);
  heed::python::bind_blocks(module);
  heed::python::bind_relative(module);
  heed::python::bind_options(module);
  heed::python::bind_attention(module);
  heed::python::bind_backward(module);
  heed::python::bind_statistics(module);
  heed::python::bind_reference(module);
  heed::python::bind_page(module);
  heed::python::bind_diagnostics(module);
  heed::python::bind_figures(module);
  heed::python::bind_plan(module);
  heed::python::bind_merge(module);
  heed::python::bind_models(module);
  heed::python::bind_packed(module);
  heed::python::bind_kv_cache(module);
  heed::python::bind_rotary(module);
  heed::python::bind_rotary_frequencies(module);
  heed::python::bind_linear(module);
  heed::python::bind_flex(module);
  heed::python::bind_ranks(module);
  heed::python::bind_division(module);
  heed::python::bind_distributed(module);
  heed::python::bind_bench(module);
  heed::python::bind_torch_threads(module);
}
