// A stage reads the fields that gpu/fields.inc declares for it, and no others: each field of a GPU
// is changed in turn, and a configuration of a stage must change exactly if it is declared.

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "gpu/field.h"
#include "gpu/latencies.h"
#include "gpus.h"
#include "memory/order/memory_config.h"
#include "model/model.h"

namespace warpstack::gpu {
namespace {

/// In which every field matters: L1 adapts and does not stream, DRAM has rows, launches wait for
/// their stores.
Gpu full_gpu() {
  Gpu gpu = testing::small_gpu();
  gpu.unified_l1_kib = 48;
  gpu.shared_memory_carve_outs_kib = {24};
  gpu.dram_row_bytes = 2048;
  gpu.schedulers_per_sm = 2;
  gpu.kernel_end = KernelEnd::last_acknowledgement;
  return gpu;
}

/// The GPU with another value of a field that it can have, whatever the others say of it.
Gpu changed(Gpu gpu, const Field& field) {
  const Value value = value_of(gpu, field.id);
  if (field.kind == FieldKind::word) {
    const auto word = std::get<std::string_view>(value);
    set(gpu, field.id, word == field.choices[0] ? field.choices[1] : field.choices[0]);
  } else if (field.kind == FieldKind::numbers) {
    set(gpu, field.id, std::vector<double>{12});
  } else if (field.id == FieldName::dram_row_bytes) {
    gpu.dram_row_bytes = 0;  // of rows the models ask only whether there are any
  } else {
    const double number =
        field.kind == FieldKind::whole ? std::get<std::uint32_t>(value) : std::get<double>(value);
    const double more = 2 * number + 1;
    const double fraction = field.kind == FieldKind::whole ? 1 : 0.5;
    set(gpu, field.id, more <= field.most ? more : fraction);
  }
  return gpu;
}

template <typename Config>
void expect_what_is_declared(Stage stages, Config config) {
  const Gpu own = full_gpu();
  for (const Field& field : fields()) {
    const bool differs = config(changed(own, field)) != config(own);
    EXPECT_EQ(differs, has(field.stages, stages)) << field.name;
  }
}

auto tied(const memory::CacheConfig& c) {
  return std::tuple(c.size_bytes, c.ways, c.line_bytes, c.sector_bytes, c.write_policy,
                    c.write_miss, c.replacement, c.allocation, c.set_index, c.slices,
                    c.slice_interleave_bytes, c.slice_index);
}

TEST(Stages, MemoryReadsWhatIsDeclared) {
  using enum Stage;
  expect_what_is_declared(memory | requests | greedy | timed, [](const Gpu& gpu) {
    const memory::MemoryConfig c = memory::MemoryConfig::of(gpu);
    return std::tuple(
        tied(c.l1), tied(c.l2),
        std::tuple(c.num_sms, c.sm.warps, c.sm.threads, c.sm.blocks, c.sm.registers,
                   c.sm.shared_memory_bytes, c.sm.register_allocation_unit,
                   c.sm.shared_memory_allocation_bytes, c.sm.shared_memory_reserved_bytes),
        std::tuple(c.unified_bytes, c.carve_outs, c.adaptive_keeps_ways, c.l1_caches_global,
                   c.l1_mshrs, c.atomics_per_lane, c.atomic_lane_turns, c.atomic_words_at_once,
                   c.partial_write_turns, c.scheduler, c.issue_width, c.lsu_queue_entries,
                   c.reserves_lines, c.atomics_stop_warps));
  });
}

TEST(Stages, IntervalsReadWhatIsDeclared) {
  expect_what_is_declared(Stage::interval, [](const Gpu& gpu) {
    const ClassLatencies classes = ClassLatencies::of(gpu);
    const MemoryLatencies levels = MemoryLatencies::of(gpu);
    const WarpWaits waits = WarpWaits::of(gpu);
    return std::tuple(classes.of_class, classes.shared_memory, classes.more_shared_wavefront,
                      classes.tensor.rates, classes.tensor.interval, classes.tensor.more_of_warp,
                      levels.l1, levels.l2, levels.dram, gpu.issue_width, gpu.num_schedulers(),
                      gpu.latency_counts, waits.for_stores, waits.launch_waits_for_stores,
                      waits.for_atomics, gpu.dram_channels, gpu.lsu_interval,
                      gpu.shared_wavefront_cycles, gpu.l1_tags_per_cycle, gpu.instruction_cache_kib,
                      gpu.instruction_preload_kib, gpu.instruction_fetch_cycles, gpu.scheduler,
                      gpu.lsu_queue_entries, class_intervals(gpu));
  });
}

TEST(Stages, ModelsReadWhatIsDeclared) {
  expect_what_is_declared(Stage::model, [](const Gpu& gpu) {
    const model::ModelParameters p = model::ModelParameters::of(gpu);
    return std::tuple(p.issue_rate, p.schedulers, p.scheduler, p.clock_ghz, p.l1_mshrs,
                      p.l1_request_bytes, p.l2_request_bytes, p.l2_latency, p.dram_latency,
                      p.noc_bandwidth_gbs, p.dram_bandwidth_gbs, p.noc_sm_bytes_per_cycle,
                      p.noc_control_bytes, p.l2_requests_per_cycle, p.dram_turnaround_cycles,
                      p.l2_bytes_per_cycle, p.block_replacement_cycles, p.unit_intervals);
  });
}

}  // namespace
}  // namespace warpstack::gpu
