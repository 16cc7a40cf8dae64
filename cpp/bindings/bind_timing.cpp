#include "bindings/bindings.h"
#include "bindings/memory_config.h"
#include "timing/simulator.h"

namespace warpstack::bindings {
namespace {

timing::TimingConfig timing_config(const py::dict& fields) {
  timing::TimingConfig config;
  config.memory = memory_config(fields["memory"].cast<py::dict>());
  const auto number = [&fields](const char* name) { return fields[name].cast<double>(); };
  const auto count = [&fields](const char* name) { return fields[name].cast<std::uint32_t>(); };
  config.clock_ghz = number("clock_ghz");
  config.l2_clock_ghz = number("l2_clock_ghz");
  config.dram_clock_ghz = number("dram_clock_ghz");
  config.order = enum_of<timing::WarpOrder>(fields["scheduler"].cast<std::string>(),
                                            timing::num_warp_orders, "scheduler");
  config.issue_width = number("issue_width");
  config.schedulers = count("schedulers_per_sm");
  const auto latency = fields["latency"].cast<py::dict>();
  const auto interval = fields["interval"].cast<py::dict>();
  for (std::size_t i = 0; i < trace::num_op_classes; ++i) {
    const py::str name(std::string(name_of(static_cast<trace::OpClass>(i))));
    if (latency.contains(name)) config.latency[i] = latency[name].cast<double>();
    if (interval.contains(name)) config.interval[i] = interval[name].cast<std::uint32_t>();
  }
  config.shared_memory_latency = number("shared_memory_latency");
  config.lsu_queue_entries = count("lsu_queue_entries");
  config.l1_latency = number("l1_latency");
  config.l1_mshrs = count("l1_mshrs");
  config.l1_mshr_targets = count("l1_mshr_targets");
  config.noc_queue_entries = count("noc_queue_entries");
  config.noc_bandwidth_gbs = number("noc_bandwidth_gbs");
  config.noc_sm_bytes_per_cycle = number("noc_sm_bytes_per_cycle");
  config.noc_control_bytes = count("noc_control_bytes");
  config.l2_latency = number("l2_latency");
  config.l2_mshrs = count("l2_mshrs");
  config.l2_mshr_targets = count("l2_mshr_targets");
  config.l2_queue_entries = count("l2_queue_entries");
  config.dram_latency = number("dram_latency");
  config.dram_bandwidth_gbs = number("dram_bandwidth_gbs");
  config.dram_channels = count("dram_channels");
  config.dram_queue_entries = count("dram_queue_entries");
  config.dram_row_bytes = count("dram_row_bytes");
  config.dram_banks = count("dram_banks");
  config.dram_row_miss_cycles = number("dram_row_miss_cycles");
  return config;
}

py::dict stack_to_dict(const timing::Stack& stack, double unit) {
  py::dict result;
  for (std::size_t i = 0; i < num_stack_parts; ++i) {
    const auto part = static_cast<timing::StackPart>(i);
    result[py::str(std::string(name_of(part)))] = static_cast<double>(stack[part]) / unit;
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
      .def_property_readonly(
          "slots", [](const timing::SimulationResult& r) { return stack_to_dict(r.slots, 1); })
      .def_readonly("store_slots", &timing::SimulationResult::store_slots)
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
             return std::make_unique<timing::Simulator>(timing_config(fields));
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
