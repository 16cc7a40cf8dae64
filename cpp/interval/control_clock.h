#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interval/phase_times.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval {

/// When a warp may issue its next instruction, as the control fields of machine code say it
/// (trace::Control), or the groups of copies and products of PTX (trace::CopyGroupStep) and its
/// mbarriers (trace::PhaseStep), beside which registers are looked up. Results of a variable
/// latency are there that many cycles after the issue; sources are read at once.
class ControlClock {
 public:
  /// Instructions with neither make an empty clock, which is not to be asked.
  explicit ControlClock(const trace::KernelTrace& trace);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// A new warp begins, alone.
  void reset();
  /// Whether warps wait at mbarriers, where what other warps complete counts, too.
  [[nodiscard]] bool has_phases() const { return has_phases_; }
  /// From now on completions go to, and are looked up at, what the warps of a block share; null:
  /// they are the warp's own.
  void share(PhaseTimes* phases) { shared_ = phases; }
  /// From now on completions are known, those of the warp with them; null: they are the warp's own.
  void know(const PhaseTimes* phases) { known_ = phases; }
  /// Whether all completions are known that an instruction waits for.
  [[nodiscard]] bool is_known(std::uint32_t row) const;
  struct Ready {
    double time = 0;
    std::int64_t row = -1;  ///< whose result it waits for; -1: the instruction before said so
  };
  /// When an instruction may issue.
  [[nodiscard]] Ready ready(std::uint32_t row);
  /// It issues, with or without active lanes.
  void issue(std::uint32_t row, double time, double latency, bool is_active);
  /// The sources of an instruction that has issued are read at `time`.
  void read_sources(std::uint32_t row, double time);

 private:
  using Of = trace::CopyGroupStep::Of;
  struct Row {
    trace::Control control;
    double distance = 1;
    bool returns = false;         ///< its write barrier waits for its latency
    std::optional<Of> is_one_of;  ///< asynchronous ones
    std::optional<Of> awaits;     ///< its write barrier is for these
    bool awaits_all = false;      ///< it waits for all copies, in groups or not
    trace::PhaseStep phase;
    // Of code with control fields:
    trace::Control group;       ///< the groups that it waits for, by Of in place of a barrier
    std::optional<Of> commits;  ///< what it makes a group of
  };
  struct Hold {
    double end = 0;
    std::uint32_t row = 0;
  };
  [[nodiscard]] Hold& last(Of of) { return last_[static_cast<std::size_t>(of)]; }

  /// A row of code without control fields.
  static Row row_of(const trace::Effects& effects);
  [[nodiscard]] const PhaseTimes& phases() const {
    if (known_ != nullptr) return *known_;
    return shared_ != nullptr ? *shared_ : own_;
  }
  /// Completions at a barrier that the warp has waited for.
  [[nodiscard]] std::uint32_t awaited(std::uint32_t barrier) const;
  void take_phase_step(std::uint32_t row, double done);

  std::vector<Row> rows_;
  bool has_control_ = false;
  double stalls_until_ = 0;
  std::array<Hold, 3> last_;  ///< by Of, the last to end of those that were issued
  std::array<std::vector<Hold>, trace::num_control_barriers> holds_;
  std::array<std::vector<Hold>, 3> groups_;  ///< by Of, of code with control fields
  std::vector<Hold> by_end_;                 ///< for ready()
  bool has_phases_ = false;
  PhaseTimes own_;
  PhaseTimes* shared_ = nullptr;
  const PhaseTimes* known_ = nullptr;
  std::vector<std::array<std::uint32_t, 2>> awaited_;  ///< barriers and counts
};

}  // namespace warpstack::interval
