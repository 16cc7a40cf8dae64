#pragma once

#include <cstdint>
#include <string>

#include "simt/run/warp_runner.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"

namespace warpstack::simt {

/// How long blocks of a launch run before it is checked whether they wait for others. Blocks that
/// run for long raise it.
struct Patience {
  std::uint32_t rounds = 1024;  ///< of a block
  std::uint32_t doubts = 0;     ///< long stretches in which a block looked at other blocks' memory

  bool operator==(const Patience&) const = default;
};

/// Runs the block of an execution: its warps take turns.
class BlockRunner {
 public:
  explicit BlockRunner(Execution& execution)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        block_(execution.block),
        faults_(execution),
        recorder_(execution),
        spaces_(execution, faults_),
        warps_(execution, faults_, recorder_, spaces_) {}
  /// For blocks that run ahead of their turn, in the launch that `trunk` records.
  BlockRunner(Execution& execution, const Recorder& trunk)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        block_(execution.block),
        faults_(execution),
        recorder_(execution, trunk),
        spaces_(execution, faults_),
        warps_(execution, faults_, recorder_, spaces_) {}
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Begins the block at a place in the order of the launch.
  void start(std::uint64_t place);
  /// Runs the block until it ends, and returns true, or until it only waits for others.
  bool run_to_end();
  /// Gives the warps of the block turns, one after the other, until none can go on, at most
  /// `rounds` times. Returns false if no warp could go on.
  bool run(std::uint32_t rounds);
  /// The same in the order of time: gives the warps turns until each waits, would come to an atomic
  /// before its time, or is a turn of cycles ahead of BlockClock::others. Returns the cycle at
  /// which the first of them goes on; if all are held by other blocks of the cluster, one a turn
  /// later.
  std::uint64_t run_in_time();

  /// The time at which the first of a block's warps that are asleep goes on; none: all ones.
  static std::uint64_t first_wake(const Block& block);
  /// What the block's warps wait for: "warp 0 at barrier 1 (…), warp 1 reads 0x7000 again and again
  /// (…)"
  std::string waits_of(bool of_spinning);

  /// Called when no warp of the block can go on: lets held warps go on that may give up their wait.
  /// Returns false if there is none.
  bool give_up_waits();
  /// Whether giving up waits may still help: not if it has led to nothing for long.
  bool may_give_up();
  [[noreturn]] void report_deadlock();

  /// Faults so far after which the launch went on.
  [[nodiscard]] const std::vector<Note>& notes() const { return faults_.notes(); }
  [[nodiscard]] Recorder& recorder() { return recorder_; }
  [[nodiscard]] AddressSpaces& spaces() { return spaces_; }
  [[nodiscard]] Patience& patience() { return patience_; }

 private:
  void prepare_pair_allocations();
  void start_warp(Warp& warp, std::uint32_t number);
  void start_checks();
  /// Watches the block's warps for a while. Returns whether they only wait for other blocks.
  bool is_spinning(std::uint32_t rounds);
  /// Whether a warp of the block is held.
  [[nodiscard]] bool holds() const;

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  Block& block_;
  Faults faults_;
  Recorder recorder_;
  AddressSpaces spaces_;
  WarpRunner warps_;
  Patience patience_;

  std::uint64_t fruitless_ = 0;      ///< times that waits were given up without a later event
  std::uint64_t events_before_ = 0;  ///< Execution::async_events at the last of them
};

}  // namespace warpstack::simt
