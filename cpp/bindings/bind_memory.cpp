#include "bindings/bindings.h"
#include "memory/memory_system.h"

namespace warpstack::bindings {
namespace {

using CounterField = std::pair<const char*, std::uint64_t InstructionCounters::*>;
constexpr CounterField counter_fields[] = {
    {"executions", &InstructionCounters::executions},
    {"active_executions", &InstructionCounters::active_executions},
    {"sectors", &InstructionCounters::sectors},
    {"requests", &InstructionCounters::requests},
    {"l2_requests", &InstructionCounters::l2_requests},
    {"l2_request_sectors", &InstructionCounters::l2_request_sectors},
    {"dram_requests", &InstructionCounters::dram_requests},
    {"dram_sectors", &InstructionCounters::dram_sectors},
    {"shared_wavefronts", &InstructionCounters::shared_wavefronts},
};
constexpr const char* event_fields[num_miss_events] = {"l1_hit_events", "l2_hit_events",
                                                       "dram_events"};

using TotalField = std::pair<const char*, std::uint64_t MemoryTotals::*>;
constexpr TotalField total_fields[] = {
    {"load_instructions", &MemoryTotals::load_instructions},
    {"store_instructions", &MemoryTotals::store_instructions},
    {"atomic_instructions", &MemoryTotals::atomic_instructions},
    {"l1_read_sectors", &MemoryTotals::l1_read_sectors},
    {"l1_read_sector_hits", &MemoryTotals::l1_read_sector_hits},
    {"l1_write_sectors", &MemoryTotals::l1_write_sectors},
    {"l1_write_sector_hits", &MemoryTotals::l1_write_sector_hits},
    {"l1_read_requests", &MemoryTotals::l1_read_requests},
    {"l1_read_request_hits", &MemoryTotals::l1_read_request_hits},
    {"l1_write_requests", &MemoryTotals::l1_write_requests},
    {"l1_flush_sectors", &MemoryTotals::l1_flush_sectors},
    {"l2_read_sectors", &MemoryTotals::l2_read_sectors},
    {"l2_read_sector_hits", &MemoryTotals::l2_read_sector_hits},
    {"l2_write_sectors", &MemoryTotals::l2_write_sectors},
    {"l2_write_sector_hits", &MemoryTotals::l2_write_sector_hits},
    {"l2_atomic_sectors", &MemoryTotals::l2_atomic_sectors},
    {"l2_atomic_sector_hits", &MemoryTotals::l2_atomic_sector_hits},
    {"l2_read_requests", &MemoryTotals::l2_read_requests},
    {"l2_read_request_hits", &MemoryTotals::l2_read_request_hits},
    {"l2_write_requests", &MemoryTotals::l2_write_requests},
    {"dram_read_sectors", &MemoryTotals::dram_read_sectors},
    {"dram_write_sectors", &MemoryTotals::dram_write_sectors},
    {"l2_dirty_sectors", &MemoryTotals::l2_dirty_sectors},
};

py::dict totals_to_dict(const MemoryTotals& totals) {
  py::dict result;
  for (const auto& [name, member] : total_fields) result[name] = totals.*member;
  return result;
}

py::dict counters_to_dict(const MemoryProfile& profile) {
  py::dict result;
  for (const auto& [name, member] : counter_fields) {
    result[name] = column_of<std::uint64_t>(
        profile.per_row, [member](const InstructionCounters& c) { return c.*member; });
  }
  for (std::size_t e = 0; e < num_miss_events; ++e) {
    result[event_fields[e]] = column_of<std::uint64_t>(
        profile.per_row, [e](const InstructionCounters& c) { return c.events[e]; });
  }
  return result;
}

CacheConfig cache_config(const py::dict& fields) {
  CacheConfig config;
  config.size_bytes = fields["size_bytes"].cast<std::uint64_t>();
  config.ways = fields["ways"].cast<std::uint32_t>();
  config.line_bytes = fields["line_bytes"].cast<std::uint32_t>();
  config.sector_bytes = fields["sector_bytes"].cast<std::uint32_t>();
  config.write_policy = enum_of<WritePolicy>(fields["write_policy"].cast<std::string>(),
                                             num_write_policies, "write policy");
  config.write_miss = enum_of<WriteMiss>(fields["write_miss"].cast<std::string>(), num_write_misses,
                                         "write-miss policy");
  config.slices = fields["slices"].cast<std::uint32_t>();
  config.slice_interleave_bytes = fields["slice_interleave_bytes"].cast<std::uint32_t>();
  return config;
}

SmLimits sm_limits(const py::dict& fields) {
  SmLimits sm;
  sm.warps = fields["warps"].cast<std::uint32_t>();
  sm.threads = fields["threads"].cast<std::uint32_t>();
  sm.blocks = fields["blocks"].cast<std::uint32_t>();
  sm.registers = fields["registers"].cast<std::uint64_t>();
  sm.shared_memory_bytes = fields["shared_memory_bytes"].cast<std::uint64_t>();
  sm.register_allocation_unit = fields["register_allocation_unit"].cast<std::uint32_t>();
  sm.shared_memory_allocation_bytes =
      fields["shared_memory_allocation_bytes"].cast<std::uint32_t>();
  sm.shared_memory_reserved_bytes = fields["shared_memory_reserved_bytes"].cast<std::uint32_t>();
  return sm;
}

py::dict occupancy_to_dict(const Occupancy& occupancy) {
  py::dict result;
  result["blocks_per_sm"] = occupancy.blocks_per_sm;
  result["warps_per_block"] = occupancy.warps_per_block;
  result["warps_per_sm"] = occupancy.warps_per_sm();
  result["limit"] = name_of(occupancy.limit);
  return result;
}

/// Line, dirty sectors, their valid bytes and writer; None without dirty sectors.
py::object eviction_to_tuple(const Cache::Eviction& eviction) {
  if (!eviction.dirty) return py::none();
  py::dict bytes;
  for (std::uint32_t s = 0; s < max_sectors_per_line; ++s) {
    if (eviction.dirty >> s & 1) bytes[py::int_(s)] = eviction.bytes[s];
  }
  return py::make_tuple(eviction.line, bytes, eviction.writer);
}

}  // namespace

void bind_memory(py::module_& module) {
  py::class_<MemoryProfile>(module, "MemoryProfile")
      .def_property_readonly("totals",
                             [](const MemoryProfile& p) { return totals_to_dict(p.totals); })
      .def_property_readonly("per_row", &counters_to_dict)
      .def_property_readonly("occupancy",
                             [](const MemoryProfile& p) { return occupancy_to_dict(p.occupancy); })
      .def_property_readonly("num_observed",
                             [](const MemoryProfile& p) { return p.observed.size(); });

  py::class_<MemorySystem>(module, "MemorySystem")
      .def(py::init([](std::uint32_t num_sms, const py::dict& sm, const py::dict& l1,
                       const py::dict& l2) {
             return std::make_unique<MemorySystem>(
                 MemoryConfig{num_sms, sm_limits(sm), cache_config(l1), cache_config(l2)});
           }),
           py::arg("num_sms"), py::arg("sm"), py::arg("l1"), py::arg("l2"))
      .def(
          "run",
          [](MemorySystem& system, const KernelTrace& trace,
             std::optional<std::pair<std::uint32_t, std::uint32_t>> observe) {
            std::optional<WarpPosition> observed;
            if (observe) observed = WarpPosition{observe->first, observe->second};
            const py::gil_scoped_release unlocked;
            return system.run(trace, observed, python_interrupt());
          },
          py::arg("trace"), py::arg("observe") = py::none())
      .def("flush_l2", &MemorySystem::flush_l2);

  module.def(
      "occupancy",
      [](const KernelTrace& trace, const py::dict& sm) {
        return occupancy_to_dict(occupancy(trace.header(), sm_limits(sm)));
      },
      py::arg("trace"), py::arg("sm"));

  // A bare cache, for comparison with its plain-Python definition.
  py::class_<Cache>(module, "Cache")
      .def(py::init([](const py::dict& fields) {
             const CacheConfig config = cache_config(fields);
             config.validate("cache");
             return std::make_unique<Cache>(config);
           }),
           py::arg("config"))
      .def("read",
           [](Cache& cache, std::uint64_t line, SectorMask mask) {
             Cache::Eviction eviction;
             const Cache::ReadResult result = cache.read(line, mask, eviction);
             return std::tuple(result.hit, result.fetch, eviction_to_tuple(eviction));
           })
      .def("write",
           [](Cache& cache, std::uint64_t line, SectorMask mask, const ByteMasks& bytes,
              std::uint32_t writer) {
             Cache::Eviction eviction;
             const Cache::WriteResult result = cache.write(line, mask, bytes, writer, eviction);
             return std::tuple(result.hit, result.fetch, result.forward,
                               eviction_to_tuple(eviction));
           })
      .def("flush",
           [](Cache& cache) {
             py::list lines;
             cache.flush(
                 [&lines](const Cache::Eviction& line) { lines.append(eviction_to_tuple(line)); });
             return lines;
           })
      .def("invalidate", &Cache::invalidate)
      .def_property_readonly("dirty_sectors", &Cache::dirty_sectors);
}

}  // namespace warpstack::bindings
