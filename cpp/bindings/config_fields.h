#pragma once

#include <tuple>

#include "gpu/latencies.h"
#include "gpu/sm_limits.h"
#include "memory/reuse/line_stream.h"
#include "memory/system/memory_system.h"
#include "model/model.h"
#include "timing/base/timing_config.h"

namespace warpstack::bindings {

/// A field of a configuration: its name on the Python side, and the members that lead to it.
template <typename... Members>
struct Field {
  const char* name;
  std::tuple<Members...> path;

  template <typename T>
  auto& in(T& config) const {
    return std::apply([&config](auto... members) -> auto& { return (config.*....*members); }, path);
  }
};

template <typename... Members>
constexpr Field<Members...> field(const char* name, Members... path) {
  return {name, {path...}};
}

/// The fields of each configuration of the core: the only place that pairs their names on both
/// sides. What is not in the table keeps its value from C++.
template <typename T>
struct Fields;

template <>
struct Fields<gpu::SmLimits> {
  using T = gpu::SmLimits;
  static constexpr const char* what = "the limits of an SM";
  static constexpr std::tuple all{
      field("warps", &T::warps),
      field("threads", &T::threads),
      field("blocks", &T::blocks),
      field("registers", &T::registers),
      field("shared_memory_bytes", &T::shared_memory_bytes),
      field("register_allocation_unit", &T::register_allocation_unit),
      field("shared_memory_allocation_bytes", &T::shared_memory_allocation_bytes),
      field("shared_memory_reserved_bytes", &T::shared_memory_reserved_bytes),
  };
};

template <>
struct Fields<memory::CacheConfig> {
  using T = memory::CacheConfig;
  static constexpr const char* what = "the configuration of a cache";
  static constexpr std::tuple all{
      field("size_bytes", &T::size_bytes),
      field("ways", &T::ways),
      field("line_bytes", &T::line_bytes),
      field("sector_bytes", &T::sector_bytes),
      field("write_policy", &T::write_policy),
      field("write_miss", &T::write_miss),
      field("replacement", &T::replacement),
      field("allocation", &T::allocation),
      field("set_index", &T::set_index),
      field("slices", &T::slices),
      field("slice_interleave_bytes", &T::slice_interleave_bytes),
      field("slice_index", &T::slice_index),
  };
};

template <>
struct Fields<memory::MemoryConfig> {
  using T = memory::MemoryConfig;
  static constexpr const char* what = "the configuration of the memory system";
  static constexpr std::tuple all{
      field("num_sms", &T::num_sms),
      field("sm", &T::sm),
      field("l1", &T::l1),
      field("l2", &T::l2),
      field("unified_bytes", &T::unified_bytes),
      field("carve_outs", &T::carve_outs),
      field("adaptive_keeps_ways", &T::adaptive_keeps_ways),
      field("l1_caches_global", &T::l1_caches_global),
      field("filter_l1_hits", &T::filter_l1_hits),
      field("block_policy", &T::block_order, &memory::BlockOrder::policy),
      field("seed", &T::block_order, &memory::BlockOrder::seed),
      field("first_occupancy_only", &T::block_order, &memory::BlockOrder::first_occupancy_only),
      field("access_order", &T::access_order),
      field("l1_mshrs", &T::l1_mshrs),
      field("scheduler", &T::scheduler),
      field("issue_width", &T::issue_width),
      field("lsu_queue_entries", &T::lsu_queue_entries),
      field("reserves_lines", &T::reserves_lines),
      field("atomics_per_lane", &T::atomics_per_lane),
      field("atomic_lane_turns", &T::atomic_lane_turns),
  };
};

template <>
struct Fields<memory::LineStreamConfig> {
  using T = memory::LineStreamConfig;
  static constexpr const char* what = "the configuration of a stream of lines";
  static constexpr std::tuple all{
      field("num_sms", &T::num_sms),       field("blocks_per_sm", &T::blocks_per_sm),
      field("line_bytes", &T::line_bytes), field("merged", &T::merged),
      field("filter", &T::filter),
  };
};

template <>
struct Fields<model::ModelParameters> {
  using T = model::ModelParameters;
  static constexpr const char* what = "the parameters of a model";
  static constexpr std::tuple all{
      field("scheduler", &T::scheduler),
      field("issue_width", &T::issue_rate),
      field("schedulers_per_sm", &T::schedulers),
      field("clock_ghz", &T::clock_ghz),
      field("l1_mshrs", &T::l1_mshrs),
      field("l1_sector_bytes", &T::l1_request_bytes),
      field("l2_sector_bytes", &T::l2_request_bytes),
      field("l2_latency", &T::l2_latency),
      field("dram_latency", &T::dram_latency),
      field("noc_bandwidth_gbs", &T::noc_bandwidth_gbs),
      field("dram_bandwidth_gbs", &T::dram_bandwidth_gbs),
      field("noc_sm_bytes_per_cycle", &T::noc_sm_bytes_per_cycle),
      field("noc_control_bytes", &T::noc_control_bytes),
      field("l2_bytes_per_cycle", &T::l2_bytes_per_cycle),
      field("dram_turnaround_cycles", &T::dram_turnaround_cycles),
      field("l2_requests_per_cycle", &T::l2_requests_per_cycle),
      field("block_replacement_cycles", &T::block_replacement_cycles),
  };
};

template <>
struct Fields<timing::TimingConfig> {
  using T = timing::TimingConfig;
  static constexpr const char* what = "the configuration of the simulator";
  static constexpr std::tuple all{
      field("memory", &T::memory),
      field("clock_ghz", &T::clock_ghz),
      field("l2_clock_ghz", &T::l2_clock_ghz),
      field("dram_clock_ghz", &T::dram_clock_ghz),
      field("block_interval_cycles", &T::block_interval_cycles),
      field("block_replacement_cycles", &T::block_replacement_cycles),
      field("warp_start_cycles", &T::warp_start_cycles),
      field("scheduler", &T::scheduler),
      field("issue_width", &T::issue_width),
      field("schedulers_per_sm", &T::schedulers_per_sm),
      field("latency", &T::latency),
      field("interval", &T::interval),
      field("lsu_queue_entries", &T::lsu_queue_entries),
      field("atomic_requests", &T::atomic_requests),
      field("store_acknowledgement", &T::store_acknowledgement),
      field("kernel_end", &T::kernel_end),
      field("l1_latency", &T::l1_latency),
      field("l1_latency_place", &T::l1_latency_place),
      field("lines_under_way", &T::lines_under_way),
      field("l1_mshrs", &T::l1_mshrs),
      field("l1_mshr_targets", &T::l1_mshr_targets),
      field("noc_queue_entries", &T::noc_queue_entries),
      field("noc_bandwidth_gbs", &T::noc_bandwidth_gbs),
      field("noc_sm_bytes_per_cycle", &T::noc_sm_bytes_per_cycle),
      field("noc_control_bytes", &T::noc_control_bytes),
      field("l2_latency", &T::l2_latency),
      field("l2_mshrs", &T::l2_mshrs),
      field("l2_mshr_targets", &T::l2_mshr_targets),
      field("l2_queue_entries", &T::l2_queue_entries),
      field("l2_slice_request_cycles", &T::l2_slice_request_cycles),
      field("l2_slice_bytes_per_cycle", &T::l2_slice_bytes_per_cycle),
      field("l2_atomic_lane_turns", &T::l2_atomic_lane_turns),
      field("dram_latency", &T::dram_latency),
      field("dram_bandwidth_gbs", &T::dram_bandwidth_gbs),
      field("dram_channels", &T::dram_channels),
      field("dram_queue_entries", &T::dram_queue_entries),
      field("dram_row_bytes", &T::dram_row_bytes),
      field("dram_banks", &T::dram_banks),
      field("dram_interleaved_banks", &T::dram_interleaved_banks),
      field("dram_bank_interleave_bytes", &T::dram_bank_interleave_bytes),
      field("dram_burst_bytes", &T::dram_timing, &timing::DramTiming::burst_bytes),
      field("dram_bank_groups", &T::dram_timing, &timing::DramTiming::bank_groups),
      field("dram_tccd", &T::dram_timing, &timing::DramTiming::ccd),
      field("dram_tccdl", &T::dram_timing, &timing::DramTiming::ccd_group),
      field("dram_trrd", &T::dram_timing, &timing::DramTiming::rrd),
      field("dram_trcd", &T::dram_timing, &timing::DramTiming::rcd),
      field("dram_tras", &T::dram_timing, &timing::DramTiming::ras),
      field("dram_trp", &T::dram_timing, &timing::DramTiming::rp),
      field("dram_trtp", &T::dram_timing, &timing::DramTiming::rtp),
      field("dram_cl", &T::dram_timing, &timing::DramTiming::read_latency),
      field("dram_wl", &T::dram_timing, &timing::DramTiming::write_latency),
      field("dram_twtr", &T::dram_timing, &timing::DramTiming::wtr),
      field("dram_twr", &T::dram_timing, &timing::DramTiming::wr),
      field("dram_trefi", &T::dram_timing, &timing::DramTiming::refresh_interval),
      field("dram_trfc", &T::dram_timing, &timing::DramTiming::refresh),
  };
};

}  // namespace warpstack::bindings
