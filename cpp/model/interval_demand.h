#pragma once

#include <algorithm>

#include "model/model.h"

namespace warpstack::model {

/// What one interval of the representative warp asks of the memory system; counts are per warp.
struct IntervalDemand {
  double cycles = 0;  ///< issue and stall cycles of the interval, n_i / r + s_i
  double memory_instructions = 0;
  double read_misses = 0;     ///< m_i
  double write_requests = 0;  ///< w_i
  double dram_read_requests = 0;
  double dram_write_requests = 0;
  double llc_miss_ratio = 0;
  double read_bytes = 0;  ///< per request
  double write_bytes = 0;
  double dram_bytes = 0;

  IntervalDemand(const interval::IntervalColumns& columns, std::size_t i,
                 const ModelParameters& parameters)
      : cycles(columns.instructions[i] / parameters.issue_rate + columns.stall_cycles[i]),
        memory_instructions(columns.memory_instructions[i]),
        read_misses(columns.read_misses[i]),
        write_requests(columns.write_requests[i]),
        dram_read_requests(columns.dram_read_requests[i]),
        dram_write_requests(columns.dram_write_requests[i]),
        llc_miss_ratio(columns.llc_miss_ratio[i]),
        read_bytes(given_or(columns.read_bytes[i], parameters.l1_request_bytes)),
        write_bytes(given_or(columns.write_bytes[i], parameters.l1_request_bytes)),
        dram_bytes(given_or(columns.dram_bytes[i], parameters.l2_request_bytes)) {}

  [[nodiscard]] double requests() const { return read_misses + write_requests; }

 private:
  static double given_or(double bytes, double otherwise) { return bytes > 0 ? bytes : otherwise; }
};

/// The machine while one wave runs.
struct WaveMachine {
  double warps = 1;       ///< W, on an SM
  double active_sms = 1;  ///< S
  double mshrs = 1;       ///< N, per SM
  double noc_cycles_per_byte = 0;
  double dram_cycles_per_byte = 0;
  double l2_latency = 0;
  double dram_latency = 0;
  double average_miss_latency = 0;  ///< of a read miss without contention, over the kernel

  [[nodiscard]] double concurrent_reads(const IntervalDemand& x) const {
    return std::min(x.read_misses * warps, mshrs);
  }
  /// M (MDM, Eq. 3): requests of one SM in flight; reads are bounded by the MSHRs, writes are not.
  [[nodiscard]] double concurrent_requests(const IntervalDemand& x) const {
    return concurrent_reads(x) + x.write_requests * warps;
  }
  /// Requests of one SM in flight that reach DRAM.
  [[nodiscard]] double concurrent_dram_requests(const IntervalDemand& x) const {
    const double reads =
        x.read_misses > 0 ? concurrent_reads(x) * x.dram_read_requests / x.read_misses : 0;
    return reads + x.dram_write_requests * warps;
  }
  /// Bytes of the requests in flight between SM and L2.
  [[nodiscard]] double concurrent_bytes(const IntervalDemand& x) const {
    return concurrent_reads(x) * x.read_bytes + x.write_requests * warps * x.write_bytes;
  }
  /// MDM, Eq. 2: the interval's read misses exceed the MSHRs.
  [[nodiscard]] bool is_memory_divergent(const IntervalDemand& x) const {
    return x.read_misses * warps > mshrs;
  }
};

/// Cycles that an SM loses in an interval because requests wait for bandwidth.
struct QueueDelays {
  double noc = 0;
  double dram = 0;
};

}  // namespace warpstack::model
