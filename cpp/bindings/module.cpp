#include <system_error>

#include "bindings/bindings.h"
#include "common/error.h"

PYBIND11_MODULE(_core, module) {
  namespace bindings = warpstack::bindings;
  module.doc() = "Compiled core of warpstack; the public interface is the package around it.";
  module.attr("__version__") = WARPSTACK_VERSION;
  pybind11::register_exception<warpstack::InputError>(module, "InputError", PyExc_ValueError);
  pybind11::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const std::system_error& error) {
      const auto details = pybind11::make_tuple(error.code().value(), error.what());
      PyErr_SetObject(PyExc_OSError, details.ptr());
    }
  });
  bindings::bind_enums(module);
  bindings::bind_gpu(module);
  bindings::bind_trace(module);
  bindings::bind_memory(module);
  bindings::bind_policies(module);
  bindings::bind_family(module);
  bindings::bind_interval(module);
  bindings::bind_interval_simulation(module);
  bindings::bind_model(module);
  bindings::bind_reuse(module);
  bindings::bind_timing(module);
  bindings::bind_timelines(module);
  bindings::bind_blocks(module);
  bindings::bind_ptx(module);
  bindings::bind_sass(module);
}
