#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simt/address_spaces.h"
#include "simt/execution.h"
#include "simt/faults.h"
#include "simt/recorder.h"
#include "simt/warp_runner.h"

namespace warpstack::simt {

/// Runs the blocks of a launch, one after the other, or in turns when they cooperate.
class GridRunner {
 public:
  explicit GridRunner(Execution& execution)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        block_(execution.block),
        faults_(execution),
        recorder_(execution),
        spaces_(execution, faults_),
        warps_(execution, faults_, recorder_, spaces_) {}
  ~GridRunner();
  GridRunner(const GridRunner&) = delete;
  GridRunner& operator=(const GridRunner&) = delete;

  /// The trace, if the launch makes one.
  std::optional<KernelTrace> run();

  /// Faults so far that the launch went on after.
  [[nodiscard]] const std::vector<Note>& notes() const { return faults_.notes(); }

 private:
  /// All blocks are there from the beginning and go on until they may wait for each other.
  void run_in_turns(std::uint64_t num_blocks);
  void start_block(std::uint64_t number);
  void start_warp(Warp& warp, std::uint32_t number);
  void start_checks();
  /// Gives the warps of the block turns, one after the other, until none of them can go on.
  void run_block();
  [[noreturn]] void report_deadlock() const;

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  Block& block_;
  Faults faults_;
  Recorder recorder_;
  AddressSpaces spaces_;
  WarpRunner warps_;
};

}  // namespace warpstack::simt
