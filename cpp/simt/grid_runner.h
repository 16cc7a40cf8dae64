#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "simt/address_spaces.h"
#include "simt/execution.h"
#include "simt/faults.h"
#include "simt/recorder.h"
#include "simt/warp_runner.h"

namespace warpstack::simt {

/// Runs the blocks of a launch: one after the other, or in turns when they cooperate or when one
/// is found to wait for others.
class GridRunner {
 public:
  explicit GridRunner(Execution& execution)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        block_(execution.block),
        num_blocks_(options_.grid[0] * options_.grid[1] * options_.grid[2]),
        faults_(execution),
        recorder_(execution),
        spaces_(execution, faults_),
        warps_(execution, faults_, recorder_, spaces_) {
    execution_.resident = &resident_;
  }
  ~GridRunner();
  GridRunner(const GridRunner&) = delete;
  GridRunner& operator=(const GridRunner&) = delete;

  /// The trace, if the launch makes one.
  std::optional<KernelTrace> run();

  /// Faults so far that the launch went on after.
  [[nodiscard]] const std::vector<Note>& notes() const { return faults_.notes(); }

 private:
  void make_workspace();
  void start_block(std::uint64_t number);
  void start_warp(Warp& warp, std::uint32_t number);
  void start_checks();
  /// Runs the next block to its end, or until it only waits for others, which then take turns.
  void run_alone();
  /// Gives each resident block a turn, and lets more of them begin.
  void run_in_turns();
  /// Gives the warps of the block turns, one after the other, until none of them can go on, at most
  /// `rounds` times. Returns false when there was none that could.
  bool run_block(std::uint32_t rounds);
  /// Follows the block's warps for a while: do they only wait for other blocks?
  bool is_spinning(std::uint32_t rounds);
  /// Lets blocks begin until `wanted` are there or as many as the GPU holds.
  void start_blocks(std::uint64_t wanted);
  /// Hands finished blocks to the recorder, which takes them in the order of their numbers.
  void store_finished();
  void store_block();
  /// Blocks that have not ended are as many as the GPU holds: how many?
  [[nodiscard]] std::uint64_t most_blocks() const;
  /// No warp of the block can go on: lets held ones go on that may do so without what they wait
  /// for. Returns false when there is none.
  bool give_up_waits();
  /// Whether that may still help: not when it has led to nothing for long.
  bool may_give_up();
  /// No warp of all blocks that take turns can go on. Returns false for a deadlock.
  bool give_up_all_waits();
  [[nodiscard]] static bool holds(const Block& block);
  /// A warp that waits for a barrier of the block, or is held.
  [[nodiscard]] static bool waits(const Warp& warp) {
    return warp.state == Warp::State::waiting || warp.state == Warp::State::held;
  }
  /// The time at which the first of a block's warps that are asleep goes on; none: all ones.
  static std::uint64_t first_wake(const Block& block);
  /// No block has ended for some time: finds out whether one can.
  void look_for_standstill();
  void watch_all(bool on);
  [[noreturn]] void report_deadlock(Block& block);
  [[noreturn]] void report_standstill(bool is_certain);
  /// "warp 0 at barrier 1 (…), warp 1 reads 0x7000 again and again (…)"
  std::string waits_of(Block& block, bool of_spinning);

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  Block& block_;
  const std::uint64_t num_blocks_;
  Faults faults_;
  Recorder recorder_;
  AddressSpaces spaces_;
  WarpRunner warps_;

  std::uint64_t started_ = 0;   ///< blocks
  std::uint64_t stored_ = 0;    ///< the same, in the trace
  std::deque<Block> resident_;  ///< that take turns, and those behind one of them that have ended
  std::uint32_t patience_ = 1024;  ///< rounds of a block before somebody looks whether it spins
  std::uint32_t doubts_ = 0;       ///< long stretches in which a block looked at memory of others

  std::uint64_t fruitless_ = 0;      ///< times that waits were given up without an event since
  std::uint64_t events_before_ = 0;  ///< Execution::async_events at the last of them

  std::uint64_t events_seen_ = 0;  ///< the same when somebody last looked for a standstill

  // While no block ends:
  std::uint64_t quiet_turns_ = 0;
  std::uint64_t quiet_limit_ = 64;
  std::uint64_t watched_turns_ = 0;  ///< 0: nobody is watched
  std::uint64_t circling_since_ = 0;
};

}  // namespace warpstack::simt
