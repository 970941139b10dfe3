// The functions that add bindings to the module, one per file.
#pragma once

#include <nanobind/nanobind.h>

namespace heed::python {

void bind_attention(nanobind::module_& module);
void bind_backward(nanobind::module_& module);
void bind_bench(nanobind::module_& module);
void bind_diagnostics(nanobind::module_& module);
void bind_distributed(nanobind::module_& module);
void bind_division(nanobind::module_& module);
void bind_figures(nanobind::module_& module);
void bind_flex(nanobind::module_& module);
void bind_kv_cache(nanobind::module_& module);
void bind_linear(nanobind::module_& module);
void bind_merge(nanobind::module_& module);
void bind_models(nanobind::module_& module);
void bind_packed(nanobind::module_& module);
void bind_page(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_ranks(nanobind::module_& module);
void bind_reference(nanobind::module_& module);
void bind_relative(nanobind::module_& module);
void bind_rotary(nanobind::module_& module);
void bind_rotary_frequencies(nanobind::module_& module);
void bind_statistics(nanobind::module_& module);
void bind_torch_threads(nanobind::module_& module);

}  // namespace heed::python
