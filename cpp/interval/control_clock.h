#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/static_instruction.h"

namespace warpstack::interval {

/// When a warp may issue its next instruction, as the control fields of machine code say it
/// (trace::Control), or the groups of copies of PTX (trace::CopyGroupStep), beside which registers
/// are looked up. Results of a variable latency are there that many cycles after the issue; sources
/// are read at once.
class ControlClock {
 public:
  /// Instructions with neither make an empty clock, which is not to be asked.
  explicit ControlClock(const std::vector<trace::StaticInstruction>& instructions);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Whether instructions wait for registers, too.
  [[nodiscard]] bool leaves_registers() const { return !has_control_; }

  /// A new warp begins.
  void reset();
  struct Ready {
    double time = 0;
    std::int64_t row = -1;  ///< whose result it waits for; -1: the instruction before said so
  };
  /// When an instruction may issue.
  [[nodiscard]] Ready ready(std::uint32_t row);
  /// It issues, with or without active lanes.
  void issue(std::uint32_t row, double time, double latency, bool is_active);

 private:
  struct Row {
    trace::Control control;
    double distance = 1;
    bool returns = false;        ///< its write barrier waits for its latency
    bool is_copy = false;        ///< asynchronous
    bool awaits_copies = false;  ///< its write barrier is for these
    bool awaits_all = false;     ///< it waits for all copies, in groups or not
  };
  struct Hold {
    double end = 0;
    std::uint32_t row = 0;
  };

  /// A row of code without control fields.
  static Row row_of(const trace::StaticInstruction& instruction);

  std::vector<Row> rows_;
  bool has_control_ = false;
  double stalls_until_ = 0;
  Hold copies_;  ///< the last to end of those that were issued
  std::array<std::vector<Hold>, trace::num_control_barriers> holds_;
  std::vector<Hold> by_end_;  ///< for ready()
};

}  // namespace warpstack::interval
