#include "bindings/bindings.h"
#include "common/error.h"

PYBIND11_MODULE(_core, module) {
  namespace bindings = warpstack::bindings;
  module.doc() = "Compiled core of warpstack; the public interface is the package around it.";
  module.attr("__version__") = WARPSTACK_VERSION;
  pybind11::register_exception<warpstack::InputError>(module, "InputError", PyExc_ValueError);
  bindings::bind_trace(module);
  bindings::bind_memory(module);
  bindings::bind_interval(module);
  bindings::bind_model(module);
}
