// Functions for the whole process: threads, targets, the version.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "heed/attention.h"
#include "heed/attention/position.h"
#include "heed/core/config.h"
#include "heed/core/memory.h"
#include "heed/core/parallel.h"

namespace heed::python {

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
      "alibi_slopes",
      [](std::int64_t num_heads) {
        return to_object(alibi_slopes<float>(num_heads), Library::kNumpy);
      },
      nb::arg("num_heads"), "The usual slopes of ALiBi, float32 [num_heads].");
}

}  // namespace heed::python
