#include "bindings/bindings.h"
#include "bindings/memory_results.h"
#include "timing/device/simulator.h"

namespace warpstack::bindings {
namespace {

py::dict stack_to_dict(const CpiStack<std::int64_t>& stack, double unit) {
  py::dict result;
  for (const StackComponent component : values_of<StackComponent>) {
    result[py::str(std::string(name_of(component)))] = static_cast<double>(stack[component]) / unit;
  }
  return result;
}

py::dict details_to_dict(const DetailedStack<std::int64_t>& details, double unit) {
  py::dict result;
  for (const StackDetail detail : values_of<StackDetail>) {
    result[py::str(std::string(name_of(detail)))] = static_cast<double>(details[detail]) / unit;
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
  for (const StackComponent component : values_of<StackComponent>) {
    columns[py::str("slots_" + std::string(name_of(component)))] =
        column_of<double>(result.samples, [component](const timing::TimingSample& sample) {
          return static_cast<double>(sample.slots[component]) /
                 static_cast<double>(timing::parts_per_slot);
        });
  }
  const std::size_t schedulers =
      result.samples.empty() ? 0 : result.scheduler_warps.size() / result.samples.size();
  for (std::size_t s = 0; s < schedulers; ++s) {
    std::vector<std::uint32_t> warps(result.samples.size());
    for (std::size_t i = 0; i < warps.size(); ++i) {
      warps[i] = result.scheduler_warps[i * schedulers + s];
    }
    columns[py::str("scheduler_warps_" + std::to_string(s))] = array_of(std::move(warps));
  }
  return columns;
}

/// Issue slots by part of the stack, with an entry per row of the instruction table and a last one
/// for slots that nobody waited for.
py::dict row_stacks(const timing::RowSlots::Stacks& stacks) {
  py::dict columns;
  for (const StackComponent component : values_of<StackComponent>) {
    columns[py::str(std::string(name_of(component)))] =
        column_of<double>(stacks, [component](const CpiStack<std::int64_t>& stack) {
          return static_cast<double>(stack[component]) /
                 static_cast<double>(timing::parts_per_slot);
        });
  }
  return columns;
}

/// "at" and "because_of"; empty unless they were counted.
py::dict row_slots_of(const timing::SimulationResult& result) {
  py::dict tables;
  if (!result.row_slots) return tables;
  tables["at"] = row_stacks(result.row_slots->at());
  tables["because_of"] = row_stacks(result.row_slots->because_of());
  return tables;
}

}  // namespace

void bind_timing(py::module_& module) {
  py::class_<timing::SimulationResult>(module, "SimulationResult")
      .def_readonly("cycles", &timing::SimulationResult::cycles)
      .def_readonly("instructions", &timing::SimulationResult::instructions)
      .def_readonly("tensor_cycles", &timing::SimulationResult::tensor_cycles)
      .def_readonly("active_sms", &timing::SimulationResult::active_sms)
      .def_readonly("sm_cycles", &timing::SimulationResult::sm_cycles)
      .def_readonly("l1_size_bytes", &timing::SimulationResult::l1_size_bytes)
      .def_property_readonly("slots",
                             [](const timing::SimulationResult& r) {
                               return stack_to_dict(r.slots, timing::parts_per_slot);
                             })
      .def_property_readonly("details",
                             [](const timing::SimulationResult& r) {
                               return details_to_dict(r.details, timing::parts_per_slot);
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
      .def_property_readonly("samples", &samples_of)
      .def_property_readonly("row_slots", &row_slots_of);

  py::class_<timing::Simulator>(module, "Simulator")
      .def(py::init([](const gpu::Gpu& gpu, double written_by_strangers) {
             return std::make_unique<timing::Simulator>(gpu, written_by_strangers);
           }),
           py::arg("gpu"), py::arg("written_by_strangers") = 0.0)
      .def(
          "run",
          [](timing::Simulator& simulator, const trace::KernelTrace& trace,
             timing::Cycle sample_cycles, timing::Cycle max_cycles, const py::object& progress,
             bool count_rows, std::size_t most_samples) {
            timing::SimulationOptions options;
            options.sample_cycles = sample_cycles;
            options.max_cycles = max_cycles;
            options.count_rows = count_rows;
            options.most_samples = most_samples;
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
          py::arg("progress") = py::none(), py::arg("count_rows") = false,
          py::arg("most_samples") = 0)
      .def(
          "run_concurrently",
          [](timing::Simulator& simulator, const std::vector<const trace::KernelTrace*>& traces,
             const std::vector<std::vector<std::uint32_t>>& after,
             const std::vector<std::vector<std::uint32_t>>& after_trigger,
             const std::vector<std::int32_t>& priorities, timing::Cycle sample_cycles,
             timing::Cycle max_cycles, const py::object& progress, std::size_t most_samples) {
            std::vector<timing::GridLaunch> launches(traces.size());
            for (std::size_t g = 0; g < traces.size(); ++g) {
              launches[g].trace = traces[g];
              launches[g].after = after[g];
              launches[g].after_trigger = after_trigger[g];
              launches[g].priority = priorities[g];
            }
            timing::SimulationOptions options;
            options.sample_cycles = sample_cycles;
            options.max_cycles = max_cycles;
            options.most_samples = most_samples;
            options.interrupt = python_interrupt();
            if (!progress.is_none()) {
              options.progress = [&progress](std::uint64_t instructions) {
                const py::gil_scoped_acquire gil;
                progress(instructions);
              };
            }
            timing::ConcurrentResult result;
            {
              const py::gil_scoped_release unlocked;
              result = simulator.run_concurrently(launches, options);
            }
            py::dict columns;
            columns["start"] = column_of<std::int64_t>(
                result.grids, [](const timing::GridTime& grid) { return grid.start; });
            columns["end"] = column_of<std::int64_t>(
                result.grids, [](const timing::GridTime& grid) { return grid.end; });
            columns["instructions"] = column_of<std::uint64_t>(
                result.grids, [](const timing::GridTime& grid) { return grid.instructions; });
            columns["sms"] = column_of<std::uint32_t>(
                result.grids, [](const timing::GridTime& grid) { return grid.sms; });
            return py::make_tuple(std::move(result.whole), columns);
          },
          py::arg("traces"), py::arg("after"), py::arg("after_trigger"), py::arg("priorities"),
          py::arg("sample_cycles") = 0, py::arg("max_cycles") = 0, py::arg("progress") = py::none(),
          py::arg("most_samples") = 0)
      .def("flush_l2", &timing::Simulator::flush_l2);
}

}  // namespace warpstack::bindings
