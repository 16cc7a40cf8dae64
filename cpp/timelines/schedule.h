#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/enum_names.h"
#include "common/interrupt.h"

namespace warpstack::timelines {

/// What does an operation's work on the device. Each engine but the first, that of kernels and the
/// callbacks does one operation at a time.
enum class Engine : std::uint8_t {
  none,      ///< nothing of its own: an event, or a call that only the host takes part in
  kernels,   ///< the SMs, on which kernels share the places of thread blocks
  to_gpu,    ///< copies from the host, and in both directions where there is one copy engine
  to_host,   ///< copies to the host
  on_gpu,    ///< copies within the GPU's memory
  memset,    ///< memsets
  callback,  ///< functions of the host in a stream
};
inline constexpr std::size_t num_engines = 7;
constexpr auto names_of(Engine) {
  return enum_names("engine", "none", "kernels", "to_gpu", "to_host", "on_gpu", "memset",
                    "callback");
}

/// What an operation's start waited for last.
enum class Why : std::uint8_t {
  nothing,     ///< it is the first, or the host's call that it is part of
  host,        ///< its call
  dependence,  ///< the end of an operation that it must follow
  engine,      ///< the operation before it on its engine
  places,      ///< room for its thread blocks, or for one more grid
  queue,       ///< an operation before it in its connection, which had to wait itself
};
constexpr auto names_of(Why) {
  return enum_names("reason", "nothing", "host", "dependence", "engine", "places", "queue");
}

/// No row.
inline constexpr std::int32_t nobody = -1;

/// Rows of other rows: those of row i are `rows[first[i]]` to `rows[first[i + 1] - 1]`.
struct RowLists {
  std::span<const std::int64_t> first;
  std::span<const std::int32_t> rows;
  std::span<const std::int32_t> of(std::size_t i) const {
    return rows.subspan(static_cast<std::size_t>(first[i]),
                        static_cast<std::size_t>(first[i + 1] - first[i]));
  }
};

/// Operations in the order of the program's calls: a column each, of one length. Times are in us.
struct Operations {
  std::span<const std::int32_t> thread;  ///< host thread, or -1: nobody calls it
  std::span<const double> host_before;   ///< of the host, since its last call returned
  std::span<const double> host_call;     ///< of the host, before it waits or returns
  std::span<const double>
      host_return;                ///< from the end of what it waits for to its return, at least
  std::span<const double> delay;  ///< from the call to the earliest start on the device
  std::span<const std::uint8_t> engine;        ///< `Engine`
  std::span<const std::uint8_t> has_device;    ///< whether it is on the device at all
  std::span<const double> duration;            ///< on the device, alone
  std::span<const double> gap;                 ///< from the end of what it follows to its start
  std::span<const double> blocks;              ///< thread blocks of a kernel
  std::span<const double> places;              ///< blocks of this kernel that the GPU holds at once
  std::span<const std::int32_t> kernel_class;  ///< for `Device::speeds`
  std::span<const std::int32_t> priority;      ///< of its stream; lower numbers go first
  std::span<const std::int32_t> connection;    ///< by which its call reaches the device; -1: none
  std::span<const std::uint8_t> on_link;       ///< whether a copy fills the host's link
  std::span<const double> trigger;  ///< share of a block's time before it lets kernels behind start
  std::span<const double> wait;     ///< share before it waits for those before it; 1: it never does
  RowLists after;                   ///< operations that end before it starts
  std::span<const std::uint8_t> early;  ///< by row of `after`: it only triggers before that
  RowLists waits;                       ///< operations that end before its call returns
  RowLists begins;  ///< calls that return before the host's time before its call begins
};

/// A kernel that runs beside others: blocks that have places, and as many as it would have alone.
struct RunningKernel {
  std::int32_t of_class = -1;
  double blocks = 0;
  double alone = 0;
};
/// How fast kernels are that run together, each relative to itself alone.
using Speeds = std::function<std::vector<double>(std::span<const RunningKernel>)>;

struct Device {
  std::uint32_t concurrent_grids = 128;
  bool in_order =
      false;        ///< one queue: kernels, and copies of an engine, start in the order of calls
  Speeds speeds{};  ///< none: each kernel is as fast as alone
  double both_ways = 1;  ///< how fast copies are that fill the link, while one goes each way
};

/// When each operation was where, and what its start waited for; -1: never.
struct Schedule {
  std::vector<double> host_start, host_end;  ///< of the call
  std::vector<double> ready;                 ///< when nothing but its engine kept it from starting
  std::vector<double> start, end;            ///< on the device
  std::vector<std::uint8_t> why;             ///< `Why`, of the start on the device
  std::vector<std::int32_t> released_by;     ///< the row that it waited for, or `nobody`
  /// The row whose end it waited for last, where nothing held up its connection or engine;
  /// `nobody`: its call.
  std::vector<std::int32_t> freed_by;
  std::vector<std::int32_t>
      host_waited_for;                ///< the row whose end let the call return, or `nobody`
  std::vector<std::int32_t> held_by;  ///< the row whose end its blocks waited for, or `nobody`
};

/// Plays operations on a host and a device in the order of time.
///
/// A host thread makes its calls one after the other, from time 0 or from the return of the last of
/// those in `begins`: a thread begins after the call before it was made. An operation is ready once
/// it has been called and those of `after` have ended, and no operation before it in its connection
/// that has been called still waits for that. Ready ones start in the order in which they
/// became ready (then of rows), one at a time on each engine but that of kernels. Kernels are a
/// queue by priority, then readiness: the blocks of its first take the places that are free, a
/// share of the GPU's of 1 / `places` each, and only once all of them have a place do those of the
/// next kernel get any. A block takes duration / ceil(blocks / places). Where a kernel has the
/// whole GPU, its blocks up to the last wave go as one; where it has part of it and blocks left for
/// many waves, half of them do, so that the cost grows with the logarithm of the waves.
/// While copies of both directions fill the link, what is left of each goes `both_ways` as fast.
///
/// Where `early` says so, a kernel starts when each block of the other one has run for its share
/// `trigger`, and its own blocks wait after their share `wait` until that one has ended. Until then
/// they take nothing but places. It has ended when it is done and those have.
///
/// Throws InputError if columns differ in length, a row of `after`, `waits` or `begins` does not
/// exist, a call begins after a row that nobody calls, a row that nobody calls has a connection, or
/// operations wait for one another in a circle.
Schedule play(const Operations& operations, const Device& device, const InterruptCheck& interrupt);

}  // namespace warpstack::timelines
