#include "memory/order/pace.h"

#include <algorithm>

#include "gpu/reference_machine.h"

namespace warpstack::memory {
namespace {

/// Warps of the sample, spread evenly over the trace, and instructions looked at in each.
constexpr std::uint64_t most_warps = 16;
constexpr std::size_t most_instructions = 8192;

/// Sums over the sample.
struct PaceSums {
  double count = 0;
  double instructions = 0;
  double cycles = 0;
  double waits = 0;

  [[nodiscard]] Pace mean(const Pace& otherwise) const {
    if (count == 0) return otherwise;
    return {instructions / count, cycles / count, 2 * waits >= count};
  }
};

class Sample {
 public:
  Sample(const trace::KernelTrace& trace, bool atomics_stop_warps)
      : trace_(trace),
        atomics_stop_warps_(atomics_stop_warps),
        after_(trace.instructions().size()),
        done_(trace.num_registers()),
        load_(trace.num_registers()) {}

  void add(const trace::ColumnView& warp) {
    std::ranges::fill(done_, 0.0);
    ++loads_;  // loads of the warp before do not count
    PaceSums* since = &first_;
    double issue = 0;
    double start = 0;
    double instructions = 0;
    bool waited = false;
    std::uint64_t atomic = 0;  // loads_ when one stopped the warp
    const auto note = [&] {
      since->count += 1;
      since->instructions += instructions;
      since->cycles += issue - start;
      since->waits += waited;
    };
    const std::size_t count = std::min(warp.instruction.size(), most_instructions);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t row = warp.instruction[k];
      const trace::StaticInstruction& instruction = trace_.instructions()[row];
      if (k > 0) issue += 1;
      // A wait is taken to be for all data: earlier loads have mostly arrived earlier.
      const auto await = [&](std::uint64_t load) {
        if (load != loads_) return;
        waited = true;
        ++loads_;
      };
      await(atomic);
      // A register is not written anew before it has been written.
      for (const auto* registers : {&instruction.sources, &instruction.destinations}) {
        for (const std::uint16_t reg : *registers) {
          issue = std::max(issue, done_[reg]);
          await(load_[reg]);
        }
      }
      if (warp.active_mask[k] == 0) {
        instructions += 1;
        continue;
      }
      const bool access = instruction.uses_caches();
      if (access) {
        note();
        since = &after_[row];
        start = issue;
        instructions = 0;
        waited = false;
      }
      instructions += 1;
      if (atomics_stop_warps_ && instruction.is_cached_atomic()) atomic = loads_;
      for (const std::uint16_t reg : instruction.destinations) {
        done_[reg] = issue + (access ? 1 : gpu::ReferenceMachine::normal);
        load_[reg] = access ? loads_ : 0;
      }
    }
    if (count == warp.instruction.size()) note();
  }

  [[nodiscard]] Paces means() const {
    Paces paces;
    for (const PaceSums& sums : after_) paces.after.push_back(sums.mean({}));
    paces.before_first = first_.mean({});
    return paces;
  }

 private:
  const trace::KernelTrace& trace_;
  bool atomics_stop_warps_;
  std::vector<PaceSums> after_;  ///< by row
  PaceSums first_;
  std::vector<double> done_;         ///< by register
  std::vector<std::uint64_t> load_;  ///< by register: loads_ when a load wrote it
  std::uint64_t loads_ = 0;          ///< waits so far; each is for the data of all loads before it
};

}  // namespace

Paces paces_of(const trace::KernelTrace& trace, bool atomics_stop_warps) {
  const trace::BlockStorage& blocks = trace.blocks();
  Sample sample(trace, atomics_stop_warps);
  std::vector<std::byte> scratch;
  const std::uint64_t num_blocks = std::min<std::uint64_t>(blocks.size(), most_warps);
  for (std::uint64_t n = 0; n < num_blocks; ++n) {
    const std::uint64_t b = n * blocks.size() / num_blocks;
    // A few blocks give several warps each, and not always the first.
    const std::uint64_t warps = blocks.warps(b).size();
    const std::uint64_t of_block = std::min(warps, most_warps / num_blocks);
    for (std::uint64_t i = 0; i < of_block; ++i) {
      const auto w = static_cast<std::uint32_t>((n + i * warps / of_block) % warps);
      if (blocks.warps(b)[w].instructions == 0) continue;
      sample.add(trace.warp({static_cast<std::uint32_t>(b), w}, scratch));
    }
  }
  return sample.means();
}

}  // namespace warpstack::memory
