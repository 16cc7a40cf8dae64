#include "bindings/bindings.h"
#include "bindings/memory_results.h"
#include "interval_simulation/interval_simulation.h"

namespace warpstack::bindings {

void bind_interval_simulation(py::module_& module) {
  using interval_simulation::IntervalSimulator;
  using interval_simulation::Result;
  py::class_<Result>(module, "IntervalSimulationResult")
      .def_readonly("cycles", &Result::cycles)
      .def_readonly("instructions", &Result::instructions)
      .def_readonly("active_sms", &Result::active_sms)
      .def_readonly("sm_cycles", &Result::sm_cycles)
      .def_property_readonly("stack",
                             [](const Result& result) {
                               py::dict stack;
                               for (const StackComponent c : values_of<StackComponent>) {
                                 stack[py::str(std::string(name_of(c)))] = result.stack[c];
                               }
                               return stack;
                             })
      .def_property_readonly("totals",
                             [](const Result& result) { return totals_to_dict(result.totals); });
  py::class_<IntervalSimulator>(module, "IntervalSimulator")
      .def(py::init([](const gpu::Gpu& gpu, unsigned num_threads) {
             return std::make_unique<IntervalSimulator>(gpu, num_threads);
           }),
           py::arg("gpu"), py::arg("num_threads") = 1)
      .def(
          "run",
          [](IntervalSimulator& simulator, const trace::KernelTrace& trace) {
            const InterruptCheck interrupt = python_interrupt();
            const py::gil_scoped_release unlocked;
            return simulator.run(trace, interrupt);
          },
          py::arg("trace"))
      .def("flush_l2", &IntervalSimulator::flush_l2);
}

}  // namespace warpstack::bindings
