#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "simt/device/memory_view.h"
#include "simt/run/block_runner.h"
#include "simt/state/execution.h"

namespace warpstack::simt {

/// Runs blocks of a plain launch on several threads, with the outcome of one after the other.
///
/// Each member of the team takes consecutive blocks and runs them one after the other on a view of
/// memory as it was at the start of the round. Then, in the order of the blocks, each member's
/// writes go into memory and its records into the trace, as long as no earlier member has written
/// what it read. From the first member whose blocks would have read other values, or did something
/// that must wait for their turn, all is discarded, and the launch runs these blocks as if nothing
/// had happened.
class BlockTeam {
 public:
  /// `recorder` is that of the launch. Throws std::bad_alloc when there is no address space for the
  /// views, std::system_error when there are no threads.
  BlockTeam(Execution& launch, Recorder& recorder, std::uint32_t num_members);
  ~BlockTeam();
  BlockTeam(const BlockTeam&) = delete;
  BlockTeam& operator=(const BlockTeam&) = delete;

  struct Round {
    std::uint64_t first = 0;       ///< block, as a place in the order of the launch
    std::uint64_t per_member = 1;  ///< blocks; the last member goes on until the others are done
    std::uint64_t most = 0;        ///< blocks of all members
  };
  struct Outcome {
    std::uint64_t blocks = 0;  ///< that have run, from the first on
    bool all = false;          ///< nothing was discarded
    /// Not even the first blocks could run ahead of their turn: they read clocks, print or wait.
    bool is_hopeless = false;
  };
  /// Runs at least as many blocks as there are members and at most as many as the round has. Throws
  /// what LaunchOptions::interrupt throws.
  Outcome run(const Round& round, Patience& patience);

  /// Gives the recorder the records of the last round. Must be called before anything else is
  /// recorded.
  void store_records();

 private:
  /// A member's blocks in a round, and their outcome.
  struct Share {
    std::uint64_t first = 0;
    std::uint64_t blocks = 0;
    std::uint64_t done = 0;
    bool may_end_early = false;
    bool has_failed = false;
    bool needs_its_turn = false;
    std::uint64_t begin = 0;              ///< warp instructions of the member before the round
    std::uint64_t warp_instructions = 0;  ///< of the blocks
  };

  struct Member {
    Member(BlockTeam& team, Execution& launch, const Recorder& trunk, bool is_first);

    LaunchOptions options;
    MemoryView view;
    Execution execution;
    std::optional<BlockRunner> runner;
    RecordedBlocks records;
    Share share;
    std::thread thread;  ///< none for the first member, which uses the launch's
  };

  /// Thrown by members that must not go on.
  struct Abandoned {};

  void work(Member& member);
  void run_share(Member& member);
  void begin_round(const Round& round, const Patience& patience);
  /// Waits until all other members have ended their shares.
  void wait();
  /// Whether a member has seen what it would have seen after the earlier members.
  bool holds(std::size_t member, const Patience& before) const;
  Outcome commit(Patience& patience);
  void stop();

  Execution& launch_;
  Recorder& recorder_;
  std::vector<std::unique_ptr<Member>> members_;
  Patience begin_patience_;
  std::vector<RecordedBlocks> waiting_;  ///< records that are not in the trace yet
  std::size_t num_waiting_ = 0;
  std::exception_ptr interruption_;

  std::mutex mutex_;
  std::condition_variable has_begun_;
  std::condition_variable has_ended_;
  std::uint64_t round_ = 0;
  std::size_t num_working_ = 0;
  bool quits_ = false;
  std::atomic<bool> enough_{false};     ///< the last member ends after its current block
  std::atomic<bool> abandoned_{false};  ///< the round will be discarded
  std::atomic<std::uint64_t> most_instructions_{0};  ///< limit of a member, which then gives up
};

}  // namespace warpstack::simt
