#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/units/barriers.h"
#include "simt/units/exchange.h"

namespace warpstack::simt {

/// Decides which lanes take part in a warp-wide operation, and when. Lanes that come on several
/// paths wait for each other. exchange.h has what they exchange.
class WarpOperations {
 public:
  WarpOperations(Execution& execution, Faults& faults, WarpExchange& exchange, Barriers& barriers)
      : program_(execution.program), faults_(faults), exchange_(exchange), barriers_(barriers) {}

  /// A warp-wide operation: runs it when all lanes that its mask names are here or have exited, or
  /// lets the lanes that are here wait for the others.
  void meet(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Lanes come to a place where they converge. They go on when all remaining lanes that their slot
  /// names have come.
  void converge(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Takes out lanes that will not come there, so that others do not wait for them.
  void leave_convergence(Warp& warp, const Step& step, std::byte* registers,
                         std::uint32_t mask) const;
  /// The top path waits: runs an operation whose lanes have all come, or puts a path that can go on
  /// on top.
  void let_others_come(Warp& warp);

 private:
  /// Runs the operation if all its lanes are on one path.
  void exchange_all(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Runs one operation whose lanes wait on several paths and have all come.
  bool complete_operation(Warp& warp);
  /// All lanes wait: runs an operation that only waits for lanes at barriers of the block, without
  /// those lanes, if there is one. GPUs get through such code; PTX does not promise it.
  bool go_on_without(Warp& warp);
  /// Runs the operation of path `i` with all lanes that wait at it.
  void run_operation(Warp& warp, std::size_t i);
  /// Whether lanes of two paths wait at warp-wide operations that exchange values with each other.
  bool same_operation(const Warp& warp, const PathEntry& a, const PathEntry& b) const;
  /// Lanes that wait at the operation of a path.
  std::uint32_t lanes_at_operation(const Warp& warp, const PathEntry& path) const;
  /// Stops if lanes wait for lanes that are in a caller. On a GPU those may still come to this
  /// call; here they cannot before the function returns.
  void refuse_callers(const Warp& warp, const Step& step, std::uint32_t mask,
                      std::uint32_t members) const;
  /// Stops at a wrong mask for which the behaviour of GPUs is unknown.
  template <class What>
  void refuse_unknown(const Warp& warp, const Step& step, std::uint32_t lane,
                      const What& what) const;
  /// Notes a warp-wide operation without lanes that have returned from the function.
  void note_left(const Warp& warp, const Step& step, std::uint32_t mask, std::uint32_t left);
  [[noreturn]] void report_missing(const Warp& warp, const PathEntry& path) const;
  /// "lanes 0-7 of the warp wait here for …; … wait at …"
  std::string missing_text(const Warp& warp, const PathEntry& path, std::uint32_t missing) const;

  const KernelProgram& program_;
  Faults& faults_;
  WarpExchange& exchange_;
  Barriers& barriers_;
};

}  // namespace warpstack::simt
