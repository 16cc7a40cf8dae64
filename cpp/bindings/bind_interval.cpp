#include "bindings/bindings.h"
#include "common/error.h"
#include "common/threads.h"
#include "interval/interval.h"
#include "interval/sm_play.h"
#include "interval/waves.h"
#include "interval/work.h"

namespace warpstack::bindings {
namespace {

std::string cause_field(std::size_t cause) {
  return "stall_" + std::string(name_of(interval::stall_causes[cause]));
}

using ColumnField = std::pair<const char*, std::vector<double> interval::IntervalColumns::*>;
constexpr ColumnField column_fields[] = {
    {"instructions", &interval::IntervalColumns::instructions},
    {"stall_cycles", &interval::IntervalColumns::stall_cycles},
    {"memory_instructions", &interval::IntervalColumns::memory_instructions},
    {"read_misses", &interval::IntervalColumns::read_misses},
    {"write_requests", &interval::IntervalColumns::write_requests},
    {"dram_read_requests", &interval::IntervalColumns::dram_read_requests},
    {"dram_write_requests", &interval::IntervalColumns::dram_write_requests},
    {"dram_requests", &interval::IntervalColumns::dram_requests},
    {"llc_miss_ratio", &interval::IntervalColumns::llc_miss_ratio},
    {"read_bytes", &interval::IntervalColumns::read_bytes},
    {"write_bytes", &interval::IntervalColumns::write_bytes},
    {"dram_bytes", &interval::IntervalColumns::dram_bytes},
};

interval::IntervalColumns columns_from_dict(const py::dict& fields) {
  interval::IntervalColumns columns;
  for (const auto& [name, member] : column_fields) {
    columns.*member = vector_of(fields[name].cast<Contiguous<double>>());
  }
  for (std::size_t c = 0; c < interval::num_stall_causes; ++c) {
    columns.stall_by_cause[c] =
        vector_of(fields[cause_field(c).c_str()].cast<Contiguous<double>>());
  }
  columns.cause_row = vector_of(fields["cause_row"].cast<Contiguous<std::int64_t>>());
  for (const auto& [name, member] : column_fields) {
    if ((columns.*member).size() != columns.size()) {
      throw InputError(std::string(name) + " has " + std::to_string((columns.*member).size()) +
                       " entries where instructions has " + std::to_string(columns.size()));
    }
  }
  return columns;
}

/// A column as a read-only NumPy view that keeps the profile alive.
template <std::vector<double> interval::IntervalColumns::* member>
py::array column_view(const py::object& self) {
  const auto& columns = self.cast<const interval::IntervalColumns&>();
  return view_of(std::span<const double>(columns.*member), self);
}

/// All columns as such views.
py::dict columns_to_dict(const py::object& self) {
  const auto& columns = self.cast<const interval::IntervalColumns&>();
  py::dict fields;
  for (const auto& [name, member] : column_fields) {
    fields[name] = view_of(std::span<const double>(columns.*member), self);
  }
  for (std::size_t c = 0; c < interval::num_stall_causes; ++c) {
    fields[cause_field(c).c_str()] =
        view_of(std::span<const double>(columns.stall_by_cause[c]), self);
  }
  fields["cause_row"] = view_of(std::span<const std::int64_t>(columns.cause_row), self);
  return fields;
}

interval::Latencies latencies_of(const trace::KernelTrace& trace,
                                 const Contiguous<double>& values) {
  if (static_cast<std::size_t>(values.size()) != trace.instructions().size()) {
    throw InputError("there is not one latency per row of the instruction table");
  }
  return vector_of(values);
}

/// What warps ask of the resources, and how a launch runs.
void bind_work(py::module_& module) {
  py::class_<memory::CodeWalk>(module, "CodeWalk")
      .def_readwrite("share", &memory::CodeWalk::share)
      .def_readwrite("share_after", &memory::CodeWalk::share_after)
      .def_readwrite("fetch_cycles", &memory::CodeWalk::fetch_cycles);
  py::class_<interval::ResourceDemands>(module, "ResourceDemands")
      .def_readwrite("loads", &interval::ResourceDemands::loads)
      .def_readwrite("lsu_cycles", &interval::ResourceDemands::lsu_cycles)
      .def_readwrite("tag_cycles", &interval::ResourceDemands::tag_cycles)
      .def_readwrite("shared_cycles", &interval::ResourceDemands::shared_cycles)
      .def_readwrite("conflict_cycles", &interval::ResourceDemands::conflict_cycles)
      .def_readwrite("atomic_turns", &interval::ResourceDemands::atomic_turns)
      .def_readwrite("read_misses", &interval::ResourceDemands::read_misses)
      .def_readwrite("misses_past_l1", &interval::ResourceDemands::misses_past_l1)
      .def_readwrite("read_bytes", &interval::ResourceDemands::read_bytes)
      .def_readwrite("write_requests", &interval::ResourceDemands::write_requests)
      .def_readwrite("write_bytes", &interval::ResourceDemands::write_bytes)
      .def_readwrite("posted_requests", &interval::ResourceDemands::posted_requests)
      .def_readwrite("posted_bytes", &interval::ResourceDemands::posted_bytes)
      .def_readwrite("dram_imbalance", &interval::ResourceDemands::dram_imbalance)
      .def_readwrite("dram_read_requests", &interval::ResourceDemands::dram_read_requests)
      .def_readwrite("dram_bytes", &interval::ResourceDemands::dram_bytes)
      .def_readwrite("dram_write_bytes", &interval::ResourceDemands::dram_write_bytes)
      .def_readwrite("missing_loads", &interval::ResourceDemands::missing_loads)
      .def_readwrite("missing_lines", &interval::ResourceDemands::missing_lines)
      .def_readwrite("hit_bytes", &interval::ResourceDemands::hit_bytes)
      .def_readwrite("slice_turns", &interval::ResourceDemands::slice_turns)
      .def_readwrite("hottest_slice_turns", &interval::ResourceDemands::hottest_slice_turns)
      .def_readwrite("crowded_slice_turns", &interval::ResourceDemands::crowded_slice_turns)
      .def_readwrite("most_read_bytes", &interval::ResourceDemands::most_read_bytes)
      .def_readwrite("place_wait_l2", &interval::ResourceDemands::place_wait_l2)
      .def_readwrite("place_wait_dram", &interval::ResourceDemands::place_wait_dram)
      .def_readwrite("tensor_cycles", &interval::ResourceDemands::tensor_cycles)
      .def_readwrite("spaced_tensor_cycles", &interval::ResourceDemands::spaced_tensor_cycles)
      .def_readwrite("unit_instructions", &interval::ResourceDemands::unit_instructions)
      .def_readwrite("warps_in_step", &interval::ResourceDemands::warps_in_step)
      .def_readwrite("code", &interval::ResourceDemands::code);
  module.def(
      "demands_of",
      [](const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
         const std::optional<gpu::Gpu>& gpu) {
        return interval::demands_of(
            trace, memory, gpu ? interval::DemandOptions::of(*gpu) : interval::DemandOptions());
      },
      py::arg("trace"), py::arg("memory"), py::arg("gpu") = py::none());
  py::class_<interval::PhaseList>(module, "PhaseList")
      .def_readonly("instructions", &interval::PhaseList::instructions)
      .def_readonly("alone_cycles", &interval::PhaseList::alone_cycles)
      .def_readonly("store_cycles", &interval::PhaseList::store_cycles)
      .def_readonly("after_stores", &interval::PhaseList::after_stores)
      .def_readonly("span", &interval::PhaseList::span)
      .def_property_readonly(
          "off_units",
          [](const interval::PhaseList& list) {
            py::dict result;
            const auto of_unit = [&result](std::string_view name,
                                           const interval::TimeOffUnit& off) {
              result[py::str(std::string(name))] =
                  py::make_tuple(off.warps, off.before, off.after, off.for_stores, off.of_parts);
            };
            of_unit("lsu", list.off_units[0]);
            for (const trace::OpClass c : values_of<trace::OpClass>) {
              of_unit(name_of(c), list.off_units[1 + static_cast<std::size_t>(c)]);
            }
            return result;
          })
      .def_readonly("replacements", &interval::PhaseList::replacements)
      .def_readonly("first_blocks", &interval::PhaseList::first_blocks)
      .def_readonly("first_warps", &interval::PhaseList::first_warps)
      .def_readonly("first_all_warps", &interval::PhaseList::first_all_warps)
      .def("columns",
           [](const interval::PhaseList& list) {
             const auto column = [&list](double interval::Phase::* member) {
               return column_of<double>(list.phases,
                                        [member](const interval::Phase& p) { return p.*member; });
             };
             py::dict result;
             result["warps"] = column(&interval::Phase::warps);
             result["all_warps"] = column(&interval::Phase::all_warps);
             result["busy_sms"] = column(&interval::Phase::busy_sms);
             result["in_step"] = column(&interval::Phase::in_step);
             result["mean_depth"] =
                 column_of<double>(list.mean_depth, [](double depth) { return depth; });
             return result;
           })
      .def(
          "changed",
          // For studies that leave an ingredient of the model out.
          [](interval::PhaseList list, const std::optional<std::vector<double>>& busy_sms,
             std::optional<double> drain_instructions, std::optional<bool> accesses,
             std::optional<bool> has_latest_end) {
            if (busy_sms && busy_sms->size() != list.phases.size()) {
              throw InputError("busy_sms: not a number for each phase");
            }
            for (std::size_t p = 0; busy_sms && p < list.phases.size(); ++p) {
              list.phases[p].busy_sms = (*busy_sms)[p];
            }
            list.has_latest_end = has_latest_end.value_or(list.has_latest_end);
            if (!accesses.value_or(true)) list.off_units = {};
            for (interval::SmWork& sm : list.sms) {
              sm.drain_instructions = drain_instructions.value_or(sm.drain_instructions);
            }
            return list;
          },
          py::kw_only(), py::arg("busy_sms") = py::none(),
          py::arg("drain_instructions") = py::none(), py::arg("accesses") = py::none(),
          py::arg("has_latest_end") = py::none())
      .def("sms", [](const interval::PhaseList& list) {
        py::list result;
        for (const interval::SmWork& sm : list.sms) {
          result.append(py::make_tuple(sm.depth, sm.instructions, sm.drain_cycles,
                                       sm.drain_instructions, sm.rounds, sm.round_instructions));
        }
        return result;
      });
  py::class_<interval::KernelWork>(module, "KernelWork")
      .def(py::init([](const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                       const Contiguous<double>& latency, double issue_rate, unsigned num_threads,
                       const std::optional<gpu::Gpu>& gpu, bool knows_rounds) {
             const interval::Latencies values = latencies_of(trace, latency);
             const py::gil_scoped_release unlocked;
             return interval::KernelWork(
                 trace,
                 gpu && knows_rounds ? interval::warp_latencies(trace, memory, values,
                                                                gpu::MemoryLatencies::of(*gpu))
                                     : interval::WarpLatencies(values),
                 interval::reference_latencies(trace, memory), issue_rate,
                 threads_asked_for(num_threads), python_interrupt(),
                 gpu ? gpu::WarpWaits::of(*gpu) : gpu::WarpWaits());
           }),
           py::arg("trace"), py::arg("memory"), py::arg("latencies"), py::arg("issue_rate") = 1.0,
           py::arg("num_threads") = 0, py::arg("gpu") = py::none(), py::arg("knows_rounds") = true)
      .def(
          "warps",
          [](const interval::KernelWork& work) {
            py::list result;
            for (const auto& block : work.blocks()) {
              py::list warps;
              for (const interval::WarpWork& warp : block) {
                warps.append(py::make_tuple(warp.instructions, warp.cycles, warp.reference_cycles));
              }
              result.append(warps);
            }
            return result;
          })
      .def("longest_first", &interval::KernelWork::longest_first, py::arg("launch"))
      .def("put_in_step", &interval::KernelWork::put_in_step, py::arg("launch"), py::arg("one"),
           py::arg("all"))
      .def(
          "play",
          [](const interval::KernelWork& work, std::uint32_t num_sms, std::uint32_t blocks_per_sm) {
            const py::gil_scoped_release unlocked;
            return work.play(num_sms, blocks_per_sm, python_interrupt());
          },
          py::arg("num_sms"), py::arg("blocks_per_sm"));
  module.def(
      "unit_cycles",
      [](const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
         const gpu::Gpu& gpu) {
        return array_of(interval::SmUnits::of(trace, memory, gpu).cycles);
      },
      py::arg("trace"), py::arg("memory"), py::arg("gpu"));
  module.def("keeps_step", &interval::keeps_step, py::arg("trace"));
  module.def(
      "play_blocks",
      [](const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
         const Contiguous<double>& latency, const gpu::Gpu& gpu,
         const std::vector<std::uint32_t>& blocks) {
        const interval::Latencies values = latencies_of(trace, latency);
        const py::gil_scoped_release unlocked;
        return interval::play_blocks(
            trace, blocks,
            interval::warp_latencies(trace, memory, values, gpu::MemoryLatencies::of(gpu)),
            interval::SmUnits::of(trace, memory, gpu), gpu::WarpWaits::of(gpu));
      },
      py::arg("trace"), py::arg("memory"), py::arg("latencies"), py::arg("gpu"), py::arg("blocks"));
  module.def(
      "build_intervals",
      [](const trace::KernelTrace& trace, std::pair<std::uint32_t, std::uint32_t> warp,
         const Contiguous<double>& latency, const memory::MemoryProfile& memory, double issue_rate,
         double merge_threshold, bool observed_misses, double l1_unit_bytes, double l2_unit_bytes,
         const std::optional<gpu::Gpu>& gpu) {
        const interval::Latencies values = latencies_of(trace, latency);
        interval::IntervalOptions options;
        options.issue_rate = issue_rate;
        options.merge_threshold = merge_threshold;
        options.miss_source = observed_misses ? interval::MissSource::observed_warp
                                              : interval::MissSource::per_instruction;
        options.l1_unit_bytes = l1_unit_bytes;
        options.l2_unit_bytes = l2_unit_bytes;
        if (gpu) options.waits = gpu::WarpWaits::of(*gpu);
        const py::gil_scoped_release unlocked;
        return build_intervals(trace, {warp.first, warp.second}, values, memory, options);
      },
      py::arg("trace"), py::arg("warp"), py::arg("latencies"), py::arg("memory"), py::kw_only(),
      py::arg("issue_rate"), py::arg("merge_threshold"), py::arg("observed_misses"),
      py::arg("l1_unit_bytes"), py::arg("l2_unit_bytes"), py::arg("gpu") = py::none());
}

}  // namespace

void bind_interval(py::module_& module) {
  py::class_<interval::IntervalColumns>(module, "IntervalColumns")
      .def(py::init(&columns_from_dict), py::arg("columns"))
      .def_property_readonly("columns", &columns_to_dict)
      // What every prediction reads of a profile, without views of the other columns.
      .def_property_readonly("instructions", &column_view<&interval::IntervalColumns::instructions>)
      .def_property_readonly("stall_cycles", &column_view<&interval::IntervalColumns::stall_cycles>)
      .def("__len__", &interval::IntervalColumns::size);

  py::class_<interval::Wave>(module, "Wave")
      .def(py::init<double, double, double, double>(), py::arg("count"), py::arg("warps"),
           py::arg("active_sms"), py::arg("total_warps"))
      .def_readonly("count", &interval::Wave::count)
      .def_readonly("warps", &interval::Wave::warps)
      .def_readonly("active_sms", &interval::Wave::active_sms)
      .def_readonly("total_warps", &interval::Wave::total_warps);
  module.def("waves_of", &interval::waves_of, py::arg("num_blocks"), py::arg("warps_per_block"),
             py::arg("blocks_per_sm"), py::arg("num_sms"));

  module.def(
      "nominal_latencies",
      [](const trace::KernelTrace& trace) { return array_of(interval::nominal_latencies(trace)); },
      py::arg("trace"));
  module.def(
      "latencies",
      [](const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
         const gpu::Gpu& gpu) {
        return array_of(interval::latencies(trace, memory, gpu::ClassLatencies::of(gpu),
                                            gpu::MemoryLatencies::of(gpu)));
      },
      py::arg("trace"), py::arg("memory"), py::arg("gpu"));
  module.def(
      "group_warps",
      [](const trace::KernelTrace& trace, const Contiguous<double>& latency, double issue_rate,
         unsigned num_threads) {
        const interval::Latencies values = latencies_of(trace, latency);
        std::vector<interval::WarpGroup> groups;
        {
          const py::gil_scoped_release unlocked;
          groups = interval::group_warps(trace, values, issue_rate, threads_asked_for(num_threads),
                                         python_interrupt());
        }
        py::dict result;
        result["block"] = column_of<std::uint32_t>(
            groups, [](const interval::WarpGroup& g) { return g.first.block; });
        result["warp"] = column_of<std::uint32_t>(
            groups, [](const interval::WarpGroup& g) { return g.first.warp; });
        result["instructions"] = column_of<std::uint64_t>(
            groups, [](const interval::WarpGroup& g) { return g.instructions; });
        result["cycles"] =
            column_of<double>(groups, [](const interval::WarpGroup& g) { return g.cycles; });
        result["count"] =
            column_of<std::uint64_t>(groups, [](const interval::WarpGroup& g) { return g.count; });
        return result;
      },
      py::arg("trace"), py::arg("latencies"), py::arg("issue_rate") = 1.0,
      py::arg("num_threads") = 0);
  // Writable: studies change them to leave an ingredient of the model out.
  bind_work(module);
}

}  // namespace warpstack::bindings
