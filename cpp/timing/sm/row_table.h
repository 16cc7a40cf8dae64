#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/order/warp_stream.h"
#include "timing/base/timing_config.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::timing {

/// What the simulator looks up for each row of a kernel's instruction table.
class RowTable {
 public:
  RowTable(const trace::KernelTrace& trace, const TimingConfig& config);

  struct Row {
    Cycle latency = 0;
    std::uint32_t interval = 0;  ///< cycles for which the unit of the class takes no other one
    std::uint8_t unit = 0;       ///< the operation class
    bool is_memory = false;
    bool uses_caches = false;
    bool is_block_barrier = false;
    bool is_async_copy = false;
    bool is_async_product = false;  ///< its sums are there when a wait says so
    bool is_bulk_store = false;     ///< in a group that a wait waits for
    bool awaits_write = false;      ///< of such a store, that it is written, not only read
    std::uint32_t registers = 0;
    std::uint16_t num_sources = 0;
    std::uint16_t num_destinations = 0;
  };

  /// Where instructions say when they may issue, with what follows from it.
  struct ControlRow {
    trace::Control control;
    Cycle distance = 1;          ///< until the warp's next instruction may issue
    bool awaits_copies = false;  ///< its write barrier is for asynchronous copies
  };

  [[nodiscard]] const Row& operator[](std::uint32_t row) const { return rows_[row]; }
  [[nodiscard]] bool has_control() const { return !control_.empty(); }
  [[nodiscard]] const ControlRow& control(std::uint32_t row) const { return control_[row]; }
  /// Whether an instruction without control fields waits for groups of copies, products or bulk
  /// stores, or at an mbarrier.
  [[nodiscard]] bool has_async_waits() const { return has_async_waits_; }
  [[nodiscard]] const trace::CopyGroupStep& copy_step(std::uint32_t row) const {
    return trace_.effects()[row].groups;
  }
  [[nodiscard]] const trace::PhaseStep& phase_step(std::uint32_t row) const {
    return trace_.effects()[row].phase;
  }
  /// Sources, then destinations.
  [[nodiscard]] std::span<const std::uint16_t> registers(const Row& row) const {
    return {registers_.data() + row.registers, std::size_t{row.num_sources} + row.num_destinations};
  }
  [[nodiscard]] std::span<const std::uint16_t> destinations(const Row& row) const {
    return registers(row).subspan(row.num_sources);
  }
  [[nodiscard]] const trace::KernelTrace& trace() const { return trace_; }
  [[nodiscard]] const memory::RowFlags& flags() const { return flags_; }
  [[nodiscard]] const std::vector<std::uint8_t>& is_memory() const { return is_memory_; }

 private:
  /// Finds out what instructions without control fields wait for besides registers.
  void read_waits();

  const trace::KernelTrace& trace_;
  memory::RowFlags flags_;
  std::vector<std::uint8_t> is_memory_;
  std::vector<Row> rows_;
  std::vector<ControlRow> control_;
  bool has_async_waits_ = false;
  std::vector<std::uint16_t> registers_;
};

}  // namespace warpstack::timing
