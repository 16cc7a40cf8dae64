#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpstack::interval {

/// When mbarriers (trace::PhaseStep) were completed, by one warp or by all those of a block.
class PhaseTimes {
 public:
  struct Completion {
    double end = 0;
    std::uint32_t row = 0;  ///< of the instruction that made it
  };

  void clear() { barriers_.clear(); }
  void add(std::uint32_t barrier, const Completion& completion);
  [[nodiscard]] std::size_t count(std::uint32_t barrier) const { return of(barrier).size(); }
  /// The last of the first `count` completions, or of all where there are fewer; null: there are
  /// none. What others complete is not known where a warp is looked at alone.
  [[nodiscard]] const Completion* last_of(std::uint32_t barrier, std::size_t count) const;

 private:
  struct Barrier {
    std::uint32_t address = 0;
    std::vector<Completion> completions;  ///< by their ends, then by rows
  };
  [[nodiscard]] const std::vector<Completion>& of(std::uint32_t barrier) const;

  std::vector<Barrier> barriers_;
};

}  // namespace warpstack::interval
