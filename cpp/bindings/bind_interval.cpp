#include "bindings/bindings.h"
#include "common/error.h"
#include "common/threads.h"
#include "interval/interval.h"
#include "interval/waves.h"
#include "interval/work.h"

namespace warpstack::bindings {
namespace {

constexpr const char* cause_fields[num_stall_causes] = {"stall_dep", "stall_l1", "stall_l2",
                                                        "stall_dram"};

using ColumnField = std::pair<const char*, std::vector<double> IntervalColumns::*>;
constexpr ColumnField column_fields[] = {
    {"instructions", &IntervalColumns::instructions},
    {"stall_cycles", &IntervalColumns::stall_cycles},
    {"memory_instructions", &IntervalColumns::memory_instructions},
    {"read_misses", &IntervalColumns::read_misses},
    {"write_requests", &IntervalColumns::write_requests},
    {"dram_read_requests", &IntervalColumns::dram_read_requests},
    {"dram_write_requests", &IntervalColumns::dram_write_requests},
    {"dram_requests", &IntervalColumns::dram_requests},
    {"llc_miss_ratio", &IntervalColumns::llc_miss_ratio},
    {"read_bytes", &IntervalColumns::read_bytes},
    {"write_bytes", &IntervalColumns::write_bytes},
    {"dram_bytes", &IntervalColumns::dram_bytes},
};

IntervalColumns columns_from_dict(const py::dict& fields) {
  IntervalColumns columns;
  for (const auto& [name, member] : column_fields) {
    columns.*member = vector_of(fields[name].cast<Contiguous<double>>());
  }
  for (std::size_t c = 0; c < num_stall_causes; ++c) {
    columns.stall_by_cause[c] = vector_of(fields[cause_fields[c]].cast<Contiguous<double>>());
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

/// The columns as read-only NumPy views that keep the profile alive.
py::dict columns_to_dict(const py::object& self) {
  const auto& columns = self.cast<const IntervalColumns&>();
  py::dict fields;
  for (const auto& [name, member] : column_fields) {
    fields[name] = view_of(std::span<const double>(columns.*member), self);
  }
  for (std::size_t c = 0; c < num_stall_causes; ++c) {
    fields[cause_fields[c]] = view_of(std::span<const double>(columns.stall_by_cause[c]), self);
  }
  fields["cause_row"] = view_of(std::span<const std::int64_t>(columns.cause_row), self);
  return fields;
}

ClassLatencies class_latencies(const py::dict& fields) {
  ClassLatencies result;
  for (std::size_t c = 0; c < num_op_classes; ++c) {
    const std::string name(name_of(static_cast<OpClass>(c)));
    if (fields.contains(name)) result.of_class[c] = fields[name.c_str()].cast<double>();
  }
  result.shared_memory = fields["shared_memory"].cast<double>();
  return result;
}

Latencies latencies_of(const KernelTrace& trace, const Contiguous<double>& values) {
  if (static_cast<std::size_t>(values.size()) != trace.instructions().size()) {
    throw InputError("there is not one latency per row of the instruction table");
  }
  return vector_of(values);
}

}  // namespace

void bind_interval(py::module_& module) {
  py::class_<IntervalColumns>(module, "IntervalColumns")
      .def(py::init(&columns_from_dict), py::arg("columns"))
      .def_property_readonly("columns", &columns_to_dict)
      .def("__len__", &IntervalColumns::size);

  py::class_<Wave>(module, "Wave")
      .def(py::init<double, double, double, double>(), py::arg("count"), py::arg("warps"),
           py::arg("active_sms"), py::arg("total_warps"))
      .def_readonly("count", &Wave::count)
      .def_readonly("warps", &Wave::warps)
      .def_readonly("active_sms", &Wave::active_sms)
      .def_readonly("total_warps", &Wave::total_warps);
  module.def("waves_of", &waves_of, py::arg("num_blocks"), py::arg("warps_per_block"),
             py::arg("blocks_per_sm"), py::arg("num_sms"));

  module.def(
      "nominal_latencies",
      [](const KernelTrace& trace) { return array_of(nominal_latencies(trace)); },
      py::arg("trace"));
  module.def(
      "latencies",
      [](const KernelTrace& trace, const MemoryProfile& memory, const py::dict& classes, double l1,
         double l2, double dram) {
        return array_of(latencies(trace, memory, class_latencies(classes), {l1, l2, dram}));
      },
      py::arg("trace"), py::arg("memory"), py::arg("classes"), py::arg("l1"), py::arg("l2"),
      py::arg("dram"));
  module.def(
      "group_warps",
      [](const KernelTrace& trace, const Contiguous<double>& latency, double issue_rate,
         unsigned num_threads) {
        const Latencies values = latencies_of(trace, latency);
        std::vector<WarpGroup> groups;
        {
          const py::gil_scoped_release unlocked;
          groups = group_warps(trace, values, issue_rate, threads_asked_for(num_threads),
                               python_interrupt());
        }
        py::dict result;
        result["block"] =
            column_of<std::uint32_t>(groups, [](const WarpGroup& g) { return g.first.block; });
        result["warp"] =
            column_of<std::uint32_t>(groups, [](const WarpGroup& g) { return g.first.warp; });
        result["instructions"] =
            column_of<std::uint64_t>(groups, [](const WarpGroup& g) { return g.instructions; });
        result["cycles"] = column_of<double>(groups, [](const WarpGroup& g) { return g.cycles; });
        result["count"] =
            column_of<std::uint64_t>(groups, [](const WarpGroup& g) { return g.count; });
        return result;
      },
      py::arg("trace"), py::arg("latencies"), py::arg("issue_rate") = 1.0,
      py::arg("num_threads") = 0);
  py::class_<Demands>(module, "Demands")
      .def_readonly("memory_instructions", &Demands::memory_instructions)
      .def_readonly("lsu_cycles", &Demands::lsu_cycles)
      .def_readonly("read_misses", &Demands::read_misses)
      .def_readonly("read_bytes", &Demands::read_bytes)
      .def_readonly("write_requests", &Demands::write_requests)
      .def_readonly("write_bytes", &Demands::write_bytes)
      .def_readonly("dram_read_requests", &Demands::dram_read_requests)
      .def_readonly("dram_bytes", &Demands::dram_bytes);
  module.def(
      "demands_of",
      [](const KernelTrace& trace, const MemoryProfile& memory) {
        return demands_of(trace, memory);
      },
      py::arg("trace"), py::arg("memory"));
  py::class_<PhaseList>(module, "PhaseList")
      .def_readonly("instructions", &PhaseList::instructions)
      .def_readonly("alone_cycles", &PhaseList::alone_cycles)
      .def_readonly("span", &PhaseList::span)
      .def_readonly("first_warps", &PhaseList::first_warps)
      .def_readonly("first_all_warps", &PhaseList::first_all_warps)
      .def("columns",
           [](const PhaseList& list) {
             const auto column = [&list](double Phase::* member) {
               return column_of<double>(list.phases,
                                        [member](const Phase& p) { return p.*member; });
             };
             py::dict result;
             result["warps"] = column(&Phase::warps);
             result["all_warps"] = column(&Phase::all_warps);
             return result;
           })
      .def("sms", [](const PhaseList& list) {
        py::list result;
        for (const SmWork& sm : list.sms) {
          result.append(py::make_tuple(sm.depth, sm.instructions, sm.drain_cycles));
        }
        return result;
      });
  py::class_<KernelWork>(module, "KernelWork")
      .def(py::init([](const KernelTrace& trace, const MemoryProfile& memory,
                       const Contiguous<double>& latency, double issue_rate, unsigned num_threads) {
             const Latencies values = latencies_of(trace, latency);
             const py::gil_scoped_release unlocked;
             return KernelWork(trace, values, reference_latencies(trace, memory), issue_rate,
                               threads_asked_for(num_threads), python_interrupt());
           }),
           py::arg("trace"), py::arg("memory"), py::arg("latencies"), py::arg("issue_rate") = 1.0,
           py::arg("num_threads") = 0)
      .def(
          "warps",
          [](const KernelWork& work) {
            py::list result;
            for (const auto& block : work.blocks()) {
              py::list warps;
              for (const WarpWork& warp : block) {
                warps.append(py::make_tuple(warp.instructions, warp.cycles, warp.reference_cycles));
              }
              result.append(warps);
            }
            return result;
          })
      .def(
          "play",
          [](const KernelWork& work, std::uint32_t num_sms, std::uint32_t blocks_per_sm) {
            const py::gil_scoped_release unlocked;
            return work.play(num_sms, blocks_per_sm, python_interrupt());
          },
          py::arg("num_sms"), py::arg("blocks_per_sm"));
  module.def(
      "build_intervals",
      [](const KernelTrace& trace, std::pair<std::uint32_t, std::uint32_t> warp,
         const Contiguous<double>& latency, const MemoryProfile& memory, double issue_rate,
         double merge_threshold, bool observed_misses, double l1_unit_bytes, double l2_unit_bytes) {
        const Latencies values = latencies_of(trace, latency);
        IntervalOptions options;
        options.issue_rate = issue_rate;
        options.merge_threshold = merge_threshold;
        options.miss_source =
            observed_misses ? MissSource::observed_warp : MissSource::per_instruction;
        options.l1_unit_bytes = l1_unit_bytes;
        options.l2_unit_bytes = l2_unit_bytes;
        const py::gil_scoped_release unlocked;
        return build_intervals(trace, {warp.first, warp.second}, values, memory, options);
      },
      py::arg("trace"), py::arg("warp"), py::arg("latencies"), py::arg("memory"), py::kw_only(),
      py::arg("issue_rate"), py::arg("merge_threshold"), py::arg("observed_misses"),
      py::arg("l1_unit_bytes"), py::arg("l2_unit_bytes"));
}

}  // namespace warpstack::bindings
