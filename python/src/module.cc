#include <nanobind/nanobind.h>

#include "bindings.h"
#include "call.h"
#include "heed/core/error.h"
#include "masks.h"
#include "options.h"

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
