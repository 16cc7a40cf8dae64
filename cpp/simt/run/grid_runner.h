#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "common/threads.h"
#include "simt/run/block_runner.h"
#include "simt/run/block_team.h"
#include "simt/state/cluster.h"
#include "simt/state/execution.h"

namespace warpstack::simt {

/// Runs the blocks of a launch one after the other, or in turns if they cooperate, form clusters,
/// or one is found to wait for others; or in the order of time.
class GridRunner {
 public:
  explicit GridRunner(Execution& execution)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        block_(execution.block),
        num_blocks_(execution.num_blocks),
        runner_(execution),
        has_clusters_(cluster_blocks(execution.cluster) > 1),
        is_timed_(num_blocks_ > 1 &&
                  (options_.order == BlockOrder::time ||
                   (options_.order == BlockOrder::automatic && watches_others(program_)))),
        num_threads_(options_.cooperative || options_.check_races || has_clusters_ || is_timed_
                         ? 1
                         : threads_asked_for(options_.num_threads)) {
    execution_.resident = &resident_;
  }
  ~GridRunner();
  GridRunner(const GridRunner&) = delete;
  GridRunner& operator=(const GridRunner&) = delete;

  /// The trace, if the launch makes one.
  std::optional<KernelTrace> run();

  /// Faults so far after which the launch went on.
  [[nodiscard]] const std::vector<Note>& notes() const { return runner_.notes(); }

 private:
  /// Runs the next block until it ends, or only waits for others; then all take turns.
  void run_alone();
  /// Whether several threads pay off for the next blocks.
  [[nodiscard]] bool is_worth_a_team() const;
  /// Runs the next blocks on several threads.
  void run_as_team();
  /// Gives each resident block a turn, and lets more of them begin.
  void run_in_turns();
  /// Starts blocks until `wanted` are resident, or as many as the GPU holds.
  void start_blocks(std::uint64_t wanted);
  /// Sets up the clock of a launch in the order of time, and begins its first blocks.
  void begin_time();
  /// Starts blocks at the clock's time, until as many are resident as the GPU holds.
  void start_blocks_in_time();
  /// Gives the resident block that is behind the others a turn.
  void run_in_time();
  /// Blocks per SM of the largest GPUs.
  [[nodiscard]] std::uint64_t blocks_per_sm() const;
  /// Hands finished blocks to the recorder, which takes them in the order of their numbers.
  void store_finished();
  void store_block();
  void count_awaited();
  void show_progress();
  /// Whether the next block to start is recorded.
  [[nodiscard]] bool records_next() const;
  /// Blocks that a thread of a team runs at a time; 0: a single long one.
  [[nodiscard]] std::uint64_t blocks_at_a_time() const;
  /// The mean over finished blocks and the finished parts of others.
  [[nodiscard]] std::uint64_t instructions_per_block() const;
  /// The largest number of unfinished blocks, as many as the GPU holds.
  [[nodiscard]] std::uint64_t most_blocks() const;
  /// Called when no warp of the blocks that take turns can go on. Returns false for a deadlock.
  bool give_up_all_waits();
  /// Called when no block has ended for some time: finds out whether one can.
  void look_for_standstill();
  void detect_all(bool on);
  [[noreturn]] void report_standstill(bool is_certain);

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  Block& block_;
  const std::uint64_t num_blocks_;  ///< that run
  BlockRunner runner_;

  const bool has_clusters_;
  const bool is_timed_;              ///< blocks run in the order of time
  const unsigned num_threads_;       ///< for blocks that need not wait for their turn
  std::unique_ptr<BlockTeam> team_;  ///< null until it pays off
  std::uint64_t alone_until_ = 1;    ///< no block before this one runs ahead of its turn
  std::uint64_t most_alone_ = 1;     ///< blocks to run alone when the team fails again

  std::uint64_t started_ = 0;   ///< blocks
  std::uint64_t stored_ = 0;    ///< blocks, in the trace if they are recorded
  std::deque<Block> resident_;  ///< those that take turns, and finished ones behind them

  // In the order of time:
  struct Turn {
    std::uint64_t cycle = 0;  ///< at which the block goes on
    std::uint64_t place = 0;  ///< of the block in the order of the launch; the first comes first
    bool operator>(const Turn& other) const {
      return cycle != other.cycle ? cycle > other.cycle : place > other.place;
    }
  };
  BlockClock clock_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;  ///< of unfinished blocks
  std::uint64_t most_in_time_ = 0;                                      ///< resident blocks
  std::uint64_t turns_of_pass_ = 0;  ///< since the last look for a standstill
  std::uint64_t idle_turns_ = 0;     ///< in a row, of blocks that others hold

  // While no block ends:
  std::uint64_t events_seen_ = 0;  ///< Execution::async_events at the last look
  std::uint64_t quiet_turns_ = 0;
  std::uint64_t quiet_limit_ = 64;
  std::uint64_t watched_turns_ = 0;  ///< 0: nobody is watched
  std::uint64_t circling_since_ = 0;
};

}  // namespace warpstack::simt
