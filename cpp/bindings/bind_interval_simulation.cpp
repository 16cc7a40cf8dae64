#include "bindings/bindings.h"
#include "bindings/memory_results.h"
#include "interval_simulation/interval_simulation.h"
#include "interval_simulation/scheduler.h"
#include "interval_simulation/steps.h"

namespace warpstack::bindings {
namespace {

const char* name_of_action(interval_simulation::Step::Action action) {
  using Action = interval_simulation::Step::Action;
  switch (action) {
    case Action::none:
      return "none";
    case Action::access:
      return "access";
    case Action::shared:
      return "shared";
    case Action::barrier:
      return "barrier";
    case Action::end:
      return "end";
  }
  return "";
}

py::list steps_to_list(const interval_simulation::WarpSteps& warp) {
  py::list steps;
  for (const interval_simulation::Step& step : warp.steps) {
    py::dict waits;
    for (std::size_t w = step.first_wait; w < step.first_wait + std::size_t{step.num_waits}; ++w) {
      const interval_simulation::Wait& wait = warp.waits[w];
      // Data come after the load-store unit has sent the access.
      const py::int_ access(wait.access);
      if (!wait.until_sent || !waits.contains(access)) waits[access] = wait.until_sent;
    }
    py::dict uses;
    for (std::size_t u = step.first_use; u < step.first_use + std::size_t{step.num_uses}; ++u) {
      const interval_simulation::UnitUse& use = warp.uses[u];
      uses[py::str(std::string(name_of(static_cast<trace::OpClass>(use.unit))))] = use.cycles;
    }
    py::dict one;
    one["fresh"] = step.fresh;
    one["carried"] = step.carried;
    one["instructions"] = step.instructions;
    one["row"] = step.row;
    one["action"] = name_of_action(step.action);
    one["comes_to_code"] = step.comes_to_code;
    one["waits"] = waits;
    one["uses"] = uses;
    steps.append(one);
  }
  return steps;
}

}  // namespace

void bind_interval_simulation(py::module_& module) {
  using interval_simulation::IntervalSimulator;
  using interval_simulation::Result;
  py::class_<Result>(module, "IntervalSimulationResult")
      .def_readonly("cycles", &Result::cycles)
      .def_readonly("instructions", &Result::instructions)
      .def_readonly("blocks", &Result::blocks)
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
      .def(py::init([](const gpu::Gpu& gpu, unsigned num_threads, double written_by_strangers) {
             return std::make_unique<IntervalSimulator>(gpu, num_threads, written_by_strangers);
           }),
           py::arg("gpu"), py::arg("num_threads") = 1, py::arg("written_by_strangers") = 0.0)
      .def(
          "run",
          [](IntervalSimulator& simulator, const trace::KernelTrace& trace) {
            const InterruptCheck interrupt = python_interrupt();
            const py::gil_scoped_release unlocked;
            return simulator.run(trace, interrupt);
          },
          py::arg("trace"))
      .def("flush_l2", &IntervalSimulator::flush_l2);

  // For tests alone.
  using interval_simulation::Scheduler;
  py::class_<Scheduler>(module, "IntervalScheduler")
      .def(py::init([](double rate, const std::string& order) {
             return Scheduler(rate, enum_of<gpu::Scheduler>(order));
           }),
           py::arg("rate"), py::arg("order"))
      .def("enter", &Scheduler::enter, py::arg("warp"))
      .def("leave", &Scheduler::leave, py::arg("warp"))
      .def(
          "begin_step",
          [](Scheduler& scheduler, std::uint32_t warp, double span, double instructions,
             const std::vector<std::pair<std::uint8_t, float>>& uses, double now) {
            std::vector<interval_simulation::UnitUse> given;
            for (const auto& [unit, cycles] : uses) given.push_back({unit, cycles});
            scheduler.begin_step(warp, span, instructions, given, now);
          },
          py::arg("warp"), py::arg("span"), py::arg("instructions"), py::arg("uses"),
          py::arg("now"))
      .def("next", &Scheduler::next)
      .def("finish", &Scheduler::finish)
      .def("set_ready", &Scheduler::set_ready, py::arg("warp"), py::arg("since"))
      .def(
          "first_ready",
          [](const Scheduler& scheduler, interval_simulation::Cycle now) {
            const std::uint32_t warp = scheduler.first_ready(now);
            return warp == Scheduler::nobody ? std::nullopt : std::optional(warp);
          },
          py::arg("now"))
      .def("clear_ready", &Scheduler::clear_ready, py::arg("warp"))
      .def("note_issue", &Scheduler::note_issue, py::arg("warp"));
  module.def(
      "interval_simulation_steps",
      [](const trace::KernelTrace& trace, const gpu::Gpu& gpu, std::uint32_t block,
         std::uint32_t warp) {
        const auto machine = interval_simulation::Machine::of(gpu);
        std::vector<std::byte> scratch;
        const memory::CodeLines code(trace, memory::CodeStorage::of(gpu));
        interval_simulation::StepBuilder builder(trace, machine, code);
        return steps_to_list(builder.steps_of(trace.warp({block, warp}, scratch)));
      },
      py::arg("trace"), py::arg("gpu"), py::arg("block"), py::arg("warp"));
}

}  // namespace warpstack::bindings
