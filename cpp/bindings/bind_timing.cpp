#include "bindings/bindings.h"
#include "bindings/config.h"
#include "bindings/memory_results.h"
#include "timing/simulator.h"

namespace warpstack::bindings {
namespace {

py::dict stack_to_dict(const CpiStack<std::int64_t>& stack, double unit) {
  py::dict result;
  for (const StackComponent component : values_of<StackComponent>) {
    result[py::str(std::string(name_of(component)))] = static_cast<double>(stack[component]) / unit;
  }
  return result;
}

using TrafficField = std::pair<const char*, std::uint64_t timing::TrafficCounters::*>;
constexpr TrafficField traffic_fields[] = {
    {"noc_request_packets", &timing::TrafficCounters::noc_requests},
    {"noc_request_bytes", &timing::TrafficCounters::noc_request_bytes},
    {"noc_reply_packets", &timing::TrafficCounters::noc_replies},
    {"noc_reply_bytes", &timing::TrafficCounters::noc_reply_bytes},
    {"l1_pending_sector_hits", &timing::TrafficCounters::l1_pending_sector_hits},
    {"l2_pending_sector_hits", &timing::TrafficCounters::l2_pending_sector_hits},
    {"dram_reads", &timing::TrafficCounters::dram_reads},
    {"dram_writes", &timing::TrafficCounters::dram_writes},
    {"dram_row_misses", &timing::TrafficCounters::dram_row_misses},
};

py::dict totals_of(const timing::SimulationResult& result) {
  py::dict totals = totals_to_dict(result.totals);
  for (const auto& [name, member] : traffic_fields) totals[name] = result.traffic.*member;
  return totals;
}

py::dict samples_of(const timing::SimulationResult& result) {
  using Field = std::pair<const char*, std::uint64_t timing::TimingSample::*>;
  static constexpr Field fields[] = {
      {"instructions", &timing::TimingSample::instructions},
      {"resident_warps", &timing::TimingSample::resident_warps},
      {"l1_mshrs", &timing::TimingSample::l1_mshrs},
      {"noc_queue", &timing::TimingSample::noc_queue},
      {"l2_queue", &timing::TimingSample::l2_queue},
      {"l2_mshrs", &timing::TimingSample::l2_mshrs},
      {"dram_queue", &timing::TimingSample::dram_queue},
      {"reply_queue", &timing::TimingSample::reply_queue},
  };
  py::dict columns;
  columns["cycle"] = column_of<std::int64_t>(
      result.samples, [](const timing::TimingSample& sample) { return sample.cycle; });
  for (const auto& [name, member] : fields) {
    columns[name] = column_of<std::uint64_t>(
        result.samples, [member](const timing::TimingSample& sample) { return sample.*member; });
  }
  return columns;
}

}  // namespace

void bind_timing(py::module_& module) {
  py::class_<timing::SimulationResult>(module, "SimulationResult")
      .def_readonly("cycles", &timing::SimulationResult::cycles)
      .def_readonly("instructions", &timing::SimulationResult::instructions)
      .def_readonly("active_sms", &timing::SimulationResult::active_sms)
      .def_readonly("sm_cycles", &timing::SimulationResult::sm_cycles)
      .def_readonly("l1_size_bytes", &timing::SimulationResult::l1_size_bytes)
      .def_property_readonly("slots",
                             [](const timing::SimulationResult& r) {
                               return stack_to_dict(r.slots, timing::parts_per_slot);
                             })
      .def_property_readonly("store_slots",
                             [](const timing::SimulationResult& r) {
                               return static_cast<double>(r.store_slots) /
                                      static_cast<double>(timing::parts_per_slot);
                             })
      .def_property_readonly("critical_cycles",
                             [](const timing::SimulationResult& r) {
                               return static_cast<double>(r.critical_path) /
                                      static_cast<double>(timing::ticks_per_cycle);
                             })
      .def_property_readonly(
          "misses", [](const timing::SimulationResult& r) { return r.miss_latency.misses; })
      .def_property_readonly("miss_cycles",
                             [](const timing::SimulationResult& r) {
                               return stack_to_dict(r.miss_latency.ticks,
                                                    static_cast<double>(timing::ticks_per_cycle));
                             })
      .def_property_readonly("totals", &totals_of)
      .def_property_readonly(
          "occupancy",
          [](const timing::SimulationResult& r) { return occupancy_to_dict(r.occupancy); })
      .def_property_readonly("samples", &samples_of);

  py::class_<timing::Simulator>(module, "Simulator")
      .def(py::init([](const py::dict& fields) {
             return std::make_unique<timing::Simulator>(config_of<timing::TimingConfig>(fields));
           }),
           py::arg("config"))
      .def(
          "run",
          [](timing::Simulator& simulator, const trace::KernelTrace& trace,
             timing::Cycle sample_cycles, timing::Cycle max_cycles, const py::object& progress) {
            timing::SimulationOptions options;
            options.sample_cycles = sample_cycles;
            options.max_cycles = max_cycles;
            options.interrupt = python_interrupt();
            if (!progress.is_none()) {
              options.progress = [&progress](std::uint64_t instructions) {
                const py::gil_scoped_acquire gil;
                progress(instructions);
              };
            }
            const py::gil_scoped_release unlocked;
            return simulator.run(trace, options);
          },
          py::arg("trace"), py::arg("sample_cycles") = 0, py::arg("max_cycles") = 0,
          py::arg("progress") = py::none())
      .def("flush_l2", &timing::Simulator::flush_l2);
}

}  // namespace warpstack::bindings
