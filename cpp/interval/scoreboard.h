#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/latencies.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval {

/// Registers that the rows wait for, in two flat arrays, for the inner loop: none where control
/// fields say what to wait for. What stops its warp writes a register of its own, which every
/// instruction reads.
class RegisterTable {
 public:
  RegisterTable(const trace::KernelTrace& trace, const gpu::WarpWaits& waits,
                bool barriers_stop_warps = false)
      : num_registers_(trace.num_registers() + 1) {
    const bool has_product_waits = trace::has_product_waits(trace.effects());
    const std::vector<std::uint32_t> of_warp = {trace.num_registers()};
    for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
      const trace::StaticInstruction& instruction = trace.instructions()[row];
      const bool stops = (waits.for_atomics && instruction.is_cached_atomic()) ||
                         (barriers_stop_warps && trace.effects()[row].is_block_barrier);
      const std::size_t begin = registers_.size();
      if (waits.for_atomics || barriers_stop_warps) append(of_warp);
      const bool is_product = has_product_waits && trace.effects()[row].is_async_product;
      if (!trace.has_control()) {
        append(is_product ? trace::awaited_by_product(instruction) : instruction.sources);
      }
      const std::size_t sources = registers_.size() - begin;
      if (stops) append(of_warp);
      if (!trace.has_control() && !is_product) append(instruction.destinations);
      rows_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint16_t>(sources),
                       static_cast<std::uint16_t>(registers_.size() - begin - sources)});
    }
  }

  /// Size of a scoreboard.
  [[nodiscard]] std::uint32_t num_registers() const { return num_registers_; }

  /// What an instruction waits for: its sources, and its destinations, which are not written anew
  /// before they have been written, as the simulator's scoreboard has it.
  [[nodiscard]] std::span<const std::uint32_t> awaited(std::uint32_t row) const {
    return {registers_.data() + rows_[row].begin,
            std::size_t{rows_[row].num_sources} + rows_[row].num_destinations};
  }
  [[nodiscard]] std::span<const std::uint32_t> destinations(std::uint32_t row) const {
    return {registers_.data() + rows_[row].begin + rows_[row].num_sources,
            rows_[row].num_destinations};
  }

 private:
  template <typename Register>
  void append(const std::vector<Register>& registers) {
    registers_.insert(registers_.end(), registers.begin(), registers.end());
  }

  struct Row {
    std::uint32_t begin;
    std::uint16_t num_sources;
    std::uint16_t num_destinations;
  };
  std::vector<Row> rows_;
  std::vector<std::uint32_t> registers_;
  std::uint32_t num_registers_;
};

/// When the registers of one warp are written, and by whom.
class Scoreboard {
 public:
  explicit Scoreboard(std::uint32_t num_registers) : done_(num_registers), row_(num_registers) {}

  void reset() { std::ranges::fill(done_, -1.0); }

  /// The cycle after the last of these registers is written; 0 when none is pending.
  [[nodiscard]] double ready(std::span<const std::uint32_t> registers) const {
    double latest = -1;
    for (const std::uint32_t reg : registers) latest = std::max(latest, done_[reg]);
    return latest + 1;
  }
  /// The row that wrote the register that is ready last; the first such register on a tie.
  [[nodiscard]] std::uint32_t last_writer(std::span<const std::uint32_t> registers) const {
    std::uint32_t last = registers[0];
    for (const std::uint32_t reg : registers) {
      if (done_[reg] > done_[last]) last = reg;
    }
    return row_[last];
  }
  void write(std::span<const std::uint32_t> registers, double done) {
    for (const std::uint32_t reg : registers) done_[reg] = done;
  }
  void write(std::span<const std::uint32_t> registers, double done, std::uint32_t row) {
    for (const std::uint32_t reg : registers) {
      done_[reg] = done;
      row_[reg] = row;
    }
  }

 private:
  std::vector<double> done_;
  std::vector<std::uint32_t> row_;
};

}  // namespace warpstack::interval
