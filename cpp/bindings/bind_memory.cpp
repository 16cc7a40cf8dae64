#include "bindings/bindings.h"
#include "bindings/memory_results.h"
#include "memory/order/pace.h"
#include "memory/system/memory_system.h"
#include "memory/system/profile_words.h"
#include "memory/system/sample_bounds.h"
#include "memory/system/sampling.h"

namespace warpstack::bindings {
namespace {

using CounterField = std::pair<const char*, std::uint64_t memory::InstructionCounters::*>;
constexpr CounterField counter_fields[] = {
    {"executions", &memory::InstructionCounters::executions},
    {"active_executions", &memory::InstructionCounters::active_executions},
    {"sectors", &memory::InstructionCounters::sectors},
    {"requests", &memory::InstructionCounters::requests},
    {"l2_requests", &memory::InstructionCounters::l2_requests},
    {"l2_request_sectors", &memory::InstructionCounters::l2_request_sectors},
    {"dram_requests", &memory::InstructionCounters::dram_requests},
    {"dram_sectors", &memory::InstructionCounters::dram_sectors},
    {"shared_wavefronts", &memory::InstructionCounters::shared_wavefronts},
    {"repeats", &memory::InstructionCounters::repeats},
};
using EventField =
    std::array<std::uint64_t, memory::num_miss_events> memory::InstructionCounters::*;
struct EventColumns {
  std::array<const char*, memory::num_miss_events> names;
  EventField member;
};
constexpr EventColumns event_columns[] = {
    {{"l1_hit_events", "l2_hit_events", "dram_events"}, &memory::InstructionCounters::events},
    {{"l1_waits", "l2_waits", "dram_waits"}, &memory::InstructionCounters::waits},
    {{"l1_wait_cycles", "l2_wait_cycles", "dram_wait_cycles"},
     &memory::InstructionCounters::wait_cycles},
    {{"l1_repeat_cycles", "l2_repeat_cycles", "dram_repeat_cycles"},
     &memory::InstructionCounters::repeat_cycles},
};

py::dict counters_to_dict(const memory::MemoryProfile& profile) {
  py::dict result;
  for (const auto& [name, member] : counter_fields) {
    result[name] = column_of<std::uint64_t>(
        profile.per_row, [member](const memory::InstructionCounters& c) { return c.*member; });
  }
  for (const auto& [names, member] : event_columns) {
    for (std::size_t e = 0; e < memory::num_miss_events; ++e) {
      result[names[e]] = column_of<std::uint64_t>(
          profile.per_row,
          [e, member](const memory::InstructionCounters& c) { return (c.*member)[e]; });
    }
  }
  return result;
}

/// Errors of all and of each row; columns of the simulated SMs.
py::dict sample_to_dict(const memory::SampleSummary& sample) {
  using SampledSm = memory::SampleSummary::SampledSm;
  using Errors = memory::SampleErrors;
  py::dict row_errors;
  row_errors["requests"] =
      column_of<double>(sample.row_errors, [](const Errors& errors) { return errors.requests; });
  row_errors["waits"] =
      column_of<double>(sample.row_errors, [](const Errors& errors) { return errors.waits; });
  py::dict totals;
  for (std::size_t i = 0; i < memory::num_totals; ++i) {
    const auto total = static_cast<memory::Total>(i);
    totals[py::str(std::string(name_of(total)))] =
        column_of<double>(sample.sms, [total](const SampledSm& sm) { return sm.totals[total]; });
  }
  py::dict result;
  result["working_sms"] = sample.working_sms;
  result["weights"] = column_of<double>(sample.sms, [](const SampledSm& sm) { return sm.weight; });
  result["totals"] = totals;
  result["errors"] = py::dict(py::arg("requests") = sample.errors.requests,
                              py::arg("waits") = sample.errors.waits);
  result["row_errors"] = row_errors;
  return result;
}

/// Columns of paces: after each row, and in a last one before the first access.
py::dict paces_to_dict(const memory::Paces& paces) {
  std::vector<memory::Pace> all = paces.after;
  all.push_back(paces.before_first);
  py::dict result;
  result["instructions"] =
      column_of<double>(all, [](const memory::Pace& pace) { return pace.instructions; });
  result["cycles"] = column_of<double>(all, [](const memory::Pace& pace) { return pace.cycles; });
  result["waits"] =
      column_of<std::uint8_t>(all, [](const memory::Pace& pace) { return pace.waits; });
  return result;
}

/// Line, dirty sectors, their valid bytes and writer; None without dirty sectors.
py::object eviction_to_tuple(const memory::Cache::Eviction& eviction) {
  if (!eviction.dirty) return py::none();
  py::dict bytes;
  for (std::uint32_t s = 0; s < memory::max_sectors_per_line; ++s) {
    if (eviction.dirty >> s & 1) bytes[py::int_(s)] = eviction.bytes[s];
  }
  return py::make_tuple(eviction.line, bytes, eviction.writer);
}

/// A bare cache, for comparison with its plain-Python definition.
void bind_cache(py::module_& module) {
  py::class_<memory::Cache>(module, "Cache")
      .def(py::init([](std::uint64_t size_bytes, std::uint32_t ways, std::uint32_t line_bytes,
                       std::uint32_t sector_bytes, const std::string& write_policy,
                       const std::string& write_miss, const std::string& replacement,
                       const std::string& allocation, const std::string& set_index,
                       std::uint32_t slices, std::uint32_t slice_interleave_bytes,
                       const std::string& slice_index, double written_by_strangers) {
             const memory::CacheConfig config{
                 .size_bytes = size_bytes,
                 .ways = ways,
                 .line_bytes = line_bytes,
                 .sector_bytes = sector_bytes,
                 .write_policy = enum_of<memory::WritePolicy>(write_policy),
                 .write_miss = enum_of<memory::WriteMiss>(write_miss),
                 .replacement = gpu::policy_of(replacement),
                 .allocation = enum_of<memory::Allocation>(allocation),
                 .set_index = enum_of<memory::Indexing>(set_index),
                 .slices = slices,
                 .slice_interleave_bytes = slice_interleave_bytes,
                 .slice_index = enum_of<memory::Indexing>(slice_index),
                 .written_by_strangers = written_by_strangers};
             config.validate("cache");
             return std::make_unique<memory::Cache>(config);
           }),
           py::kw_only(), py::arg("size_bytes"), py::arg("ways"), py::arg("line_bytes"),
           py::arg("sector_bytes"), py::arg("write_policy"), py::arg("write_miss"),
           py::arg("replacement"), py::arg("allocation"), py::arg("set_index"), py::arg("slices"),
           py::arg("slice_interleave_bytes"), py::arg("slice_index"),
           py::arg("written_by_strangers") = 0.0)
      .def(
          "read",
          [](memory::Cache& cache, std::uint64_t line, memory::SectorMask mask, bool evict_first) {
            memory::Cache::Eviction eviction;
            const memory::Cache::ReadResult result =
                cache.read(cache.set_of(line), line, mask, evict_first, eviction);
            return std::tuple(result.hit, result.fetch, eviction_to_tuple(eviction));
          },
          py::arg("line"), py::arg("mask"), py::arg("evict_first") = false)
      .def(
          "write",
          [](memory::Cache& cache, std::uint64_t line, memory::SectorMask mask,
             const memory::ByteMasks& bytes, std::uint32_t writer, bool evict_first) {
            memory::Cache::Eviction eviction;
            const memory::Cache::WriteResult result =
                cache.write(cache.set_of(line), line, mask, bytes, writer, evict_first, eviction);
            return std::tuple(result.hit, result.fetch, result.forward,
                              eviction_to_tuple(eviction));
          },
          py::arg("line"), py::arg("mask"), py::arg("bytes"), py::arg("writer"),
          py::arg("evict_first") = false)
      .def(
          "read_lines",
          [](memory::Cache& cache, const Contiguous<std::uint64_t>& lines) {
            const std::span<const std::uint64_t> stream = span_of(lines);
            const py::gil_scoped_release unlocked;
            memory::Cache::Eviction eviction;
            std::uint64_t hits = 0;
            for (const std::uint64_t line : stream) {
              hits += cache.read(cache.set_of(line), line, 1, false, eviction).hit;
            }
            return hits;
          },
          py::arg("lines"))
      .def("flush",
           [](memory::Cache& cache) {
             py::list lines;
             cache.flush([&lines](const memory::Cache::Eviction& line) {
               lines.append(eviction_to_tuple(line));
             });
             return lines;
           })
      .def("invalidate",
           [](memory::Cache& cache, std::uint64_t line, memory::SectorMask mask) {
             cache.invalidate(cache.set_of(line), line, mask);
           })
      .def_property_readonly("dirty_sectors", &memory::Cache::dirty_sectors);
}

}  // namespace

py::dict totals_to_dict(const memory::MemoryTotals& totals) {
  py::dict result;
  for (std::size_t i = 0; i < memory::num_totals; ++i) {
    const auto total = static_cast<memory::Total>(i);
    result[py::str(std::string(name_of(total)))] = totals[total];
  }
  return result;
}

py::dict occupancy_to_dict(const memory::Occupancy& occupancy) {
  py::dict result;
  result["blocks_per_sm"] = occupancy.blocks_per_sm;
  result["warps_per_block"] = occupancy.warps_per_block;
  result["warps_per_sm"] = occupancy.warps_per_sm();
  result["limit"] = name_of(occupancy.limit);
  return result;
}

void bind_memory(py::module_& module) {
  py::class_<memory::MemoryProfile>(module, "MemoryProfile")
      .def_static(
          "from_words",
          [](const Contiguous<std::uint64_t>& words) {
            return memory::memory_profile_of(span_of(words));
          },
          py::arg("words"))
      .def_property_readonly("words",
                             [](const memory::MemoryProfile& p) { return array_of(words_of(p)); })
      .def_property_readonly(
          "totals", [](const memory::MemoryProfile& p) { return totals_to_dict(p.totals); })
      .def_property_readonly("per_row", &counters_to_dict)
      .def_property_readonly(
          "occupancy",
          [](const memory::MemoryProfile& p) { return occupancy_to_dict(p.occupancy); })
      .def_readonly("l1_size_bytes", &memory::MemoryProfile::l1_size_bytes)
      .def_readonly("simulated_blocks", &memory::MemoryProfile::simulated_blocks)
      .def_readonly("slice_turns", &memory::MemoryProfile::slice_turns)
      .def_readonly("slice_dram_sectors", &memory::MemoryProfile::slice_dram_sectors)
      .def_readonly("slice_crowding", &memory::MemoryProfile::slice_crowding)
      .def_readonly("atomic_lanes", &memory::MemoryProfile::atomic_lanes)
      .def_readonly("place_wait_cycles", &memory::MemoryProfile::place_wait_cycles)
      .def_readonly("most_read_sectors", &memory::MemoryProfile::most_read_sectors)
      .def_property_readonly("num_sampled_sms",
                             [](const memory::MemoryProfile& p) { return p.sample.sms.size(); })
      .def_property_readonly(
          "sample", [](const memory::MemoryProfile& p) { return sample_to_dict(p.sample); })
      .def("bound", &memory::bound_of, py::arg("sign"))
      .def_property_readonly("num_observed",
                             [](const memory::MemoryProfile& p) { return p.observed.size(); });

  using Numbers = Contiguous<double>;
  module.def(
      "ratio_error",
      [](const Numbers& weights, const Numbers& x, const Numbers& y) {
        return memory::ratio_error(span_of(weights), span_of(x), span_of(y));
      },
      py::arg("weights"), py::arg("x"), py::arg("y"));

  py::class_<memory::MemorySystem>(module, "MemorySystem")
      .def(
          py::init([](const gpu::Gpu& gpu, unsigned num_threads, const std::string& access_order,
                      const std::string& block_policy, std::uint64_t seed,
                      bool first_occupancy_only, bool filter_l1_hits, double written_by_strangers) {
            const memory::CacheOptions options{
                .block_order = {enum_of<memory::BlockPolicy>(block_policy), seed,
                                first_occupancy_only},
                .access_order = enum_of<memory::AccessOrder>(access_order),
                .filter_l1_hits = filter_l1_hits,
                .written_by_strangers = written_by_strangers};
            return std::make_unique<memory::MemorySystem>(memory::MemoryConfig::of(gpu, options),
                                                          num_threads);
          }),
          py::arg("gpu"), py::arg("num_threads") = 0, py::kw_only(),
          py::arg("access_order") = "round_robin", py::arg("block_policy") = "round_robin",
          py::arg("seed") = 0, py::arg("first_occupancy_only") = false,
          py::arg("filter_l1_hits") = true, py::arg("written_by_strangers") = 0.0)
      .def(
          "run",
          [](memory::MemorySystem& system, const trace::KernelTrace& trace,
             std::optional<std::pair<std::uint32_t, std::uint32_t>> observe, double share) {
            std::optional<trace::WarpPosition> observed;
            if (observe) observed = trace::WarpPosition{observe->first, observe->second};
            const py::gil_scoped_release unlocked;
            return system.run(trace, observed, python_interrupt(), share);
          },
          py::arg("trace"), py::arg("observe") = py::none(), py::arg("share") = 1.0)
      .def(
          "warm",
          [](memory::MemorySystem& system, const trace::KernelTrace& trace) {
            const py::gil_scoped_release unlocked;
            system.warm(trace, python_interrupt());
          },
          py::arg("trace"))
      .def("undo_sampled", &memory::MemorySystem::undo_sampled)
      .def("flush_l2", &memory::MemorySystem::flush_l2);

  module.def(
      "occupancy",
      [](const trace::KernelTrace& trace, const gpu::Gpu& gpu) {
        return occupancy_to_dict(memory::occupancy(trace.header(), gpu::SmLimits::of(gpu)));
      },
      py::arg("trace"), py::arg("gpu"));

  module.def(
      "carve_out",
      [](const trace::KernelTrace& trace, const gpu::Gpu& gpu) {
        const auto config = memory::MemoryConfig::of(gpu);
        const auto blocks = memory::occupancy(trace.header(), config.sm).blocks_per_sm;
        return memory::carve_out_of(config, trace.header(), blocks);
      },
      py::arg("trace"), py::arg("gpu"));

  // For comparison with its plain-Python definition.
  module.def(
      "paces_of",
      [](const trace::KernelTrace& trace, bool atomics_stop_warps) {
        return paces_to_dict(memory::paces_of(trace, atomics_stop_warps));
      },
      py::arg("trace"), py::arg("atomics_stop_warps") = false);
  bind_cache(module);
}

}  // namespace warpstack::bindings
