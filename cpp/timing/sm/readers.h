#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/fifo.h"
#include "timing/memory/load_store_unit.h"

namespace warpstack::timing {

/// The instructions in the queue of the load-store unit, for those who wait until it has read their
/// sources: each with something of type `Held` that it holds until then.
template <class Held>
class Readers {
 public:
  Readers(const LoadStoreUnit& lsu, std::size_t num_warps) : lsu_(lsu), numbers_(num_warps) {}

  /// A new warp takes the slot: nobody waits for instructions of the one before.
  void start_warp(std::uint32_t warp) { ++numbers_[warp]; }

  void push(std::uint32_t warp, const Held& held) { queue_.push() = {warp, numbers_[warp], held}; }

  /// Calls `use(warp, held)` for each instruction that has left the queue.
  template <class Use>
  void pop_sent(const Use& use) {
    while (queue_.size() > lsu_.queued_instructions()) {
      const Reader reader = queue_.front();
      queue_.pop();
      if (numbers_[reader.warp] == reader.number) use(reader.warp, reader.held);
    }
  }

 private:
  struct Reader {
    std::uint32_t warp = 0;
    std::uint32_t number = 0;  ///< of the warp among all that have had its slot
    Held held;
  };

  const LoadStoreUnit& lsu_;
  std::vector<std::uint32_t> numbers_;
  Fifo<Reader> queue_;
};

}  // namespace warpstack::timing
