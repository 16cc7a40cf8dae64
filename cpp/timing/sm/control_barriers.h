#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/base/timing_config.h"
#include "trace/instructions/control.h"

namespace warpstack::timing {

// What a warp waits for: a detail of the stack, which is smaller than these, the load-store unit,
// or (from the second one on) a load in flight.
inline constexpr std::uint32_t load_store_unit_cause = num_values<StackDetail>;
inline constexpr std::uint32_t first_load_cause = load_store_unit_cause + 1;

/// Those of control fields, and one for products of four warps.
inline constexpr std::uint32_t num_barriers = trace::num_control_barriers + 1;

/// The barriers of each warp that instructions of machine code hold and wait for (trace::Control):
/// who holds each of them, and until when. Huerta et al., "Analyzing Modern NVIDIA GPU Cores"
/// (2025) call them dependence counters. Calls of a warp come in the order of its instructions.
class ControlBarriers {
 public:
  explicit ControlBarriers(std::size_t slots) : warps_(slots) {}

  /// A new warp takes the slot.
  void clear(std::uint32_t slot);

  // An instruction that issues at `now` holds a barrier:
  /// until a time that is known;
  void hold(std::uint32_t slot, std::uint32_t barrier, Cycle until, Cycle now);
  /// until the data of a load are there;
  void hold_for_load(std::uint32_t slot, std::uint32_t barrier, std::uint32_t load, Cycle now);
  /// until those of all asynchronous copies that the warp has issued are (LDGDEPBAR);
  void hold_for_copies(std::uint32_t slot, std::uint32_t barrier, Cycle now);
  /// until the load-store unit has taken its last request.
  void hold_for_reading(std::uint32_t slot, std::uint32_t barrier, Cycle now);
  /// An asynchronous copy that other instructions may wait for.
  void add_copy(std::uint32_t slot, std::uint32_t load) {
    warps_[slot].copies.push_back({load, warps_[slot].groups});
  }

  // What they wait for is there at `done`:
  void load_is_done(std::uint32_t slot, std::uint32_t barrier, std::uint32_t load, Cycle done,
                    std::uint32_t cause);
  void copy_is_done(std::uint32_t slot, std::uint32_t load, Cycle done, std::uint32_t cause);
  /// The oldest instruction that holds the barrier for its sources has read them.
  void sources_are_read(std::uint32_t slot, std::uint32_t barrier, Cycle done);

  struct Wait {
    Cycle until = -1;
    std::uint32_t cause = static_cast<std::uint32_t>(StackDetail::arithmetic);
  };
  /// When the barriers that an instruction waits for let it issue, as far as is known, and what
  /// they wait for until then.
  [[nodiscard]] Wait wait(std::uint32_t slot, const trace::Control& control);
  /// The same for an instruction that waits until at most so many hold a barrier.
  [[nodiscard]] Wait wait_for_most(std::uint32_t slot, std::uint32_t barrier, std::uint32_t most);
  /// The same for all copies that the warp has issued.
  [[nodiscard]] Wait wait_for_copies(std::uint32_t slot) const;

 private:
  enum class For : std::uint8_t { time, load, copies, reading };
  struct Hold {
    For what = For::time;
    std::uint32_t id = 0;  ///< load, or group of copies
    Cycle until = never;   ///< never: not known yet
    std::uint32_t cause = static_cast<std::uint32_t>(StackDetail::arithmetic);
    Cycle copies_done = 0;  ///< of its group and those before, as far as is known
  };
  struct Copy {
    std::uint32_t load = 0;
    std::uint32_t group = 0;
  };
  struct WarpBarriers {
    std::vector<Hold> holds[num_barriers];  ///< in the order of issue
    std::vector<Copy> copies;               ///< in flight, oldest first
    std::uint32_t groups = 0;               ///< of copies that are waited for
    Cycle copies_done = -1;                 ///< of those that are not in flight
    std::uint32_t copies_cause = static_cast<std::uint32_t>(StackDetail::arithmetic);
  };

  void add(std::uint32_t slot, std::uint32_t barrier, const Hold& hold, Cycle now);
  [[nodiscard]] static Wait wait_of(const WarpBarriers& warp, const Hold& hold);

  std::vector<WarpBarriers> warps_;
  std::vector<const Hold*> by_end_;  ///< for wait()
};

}  // namespace warpstack::timing
