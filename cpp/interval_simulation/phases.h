#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interval_simulation/machine.h"

namespace warpstack::interval_simulation {

/// The mbarriers of a block (trace::PhaseStep): what completes their phases, and when it is done.
class Phases {
 public:
  /// A completion is made at `earliest`, or when `pending` accesses are done if that is later.
  /// Returns its number, for access_is_done().
  std::uint32_t complete(std::uint32_t barrier, std::uint32_t pending, Cycle earliest) {
    const auto number = static_cast<std::uint32_t>(completions_.size());
    completions_.push_back({barrier, pending, earliest});
    if (pending == 0) make(completions_.back());
    return number;
  }
  /// One of the accesses that a completion waits for is done. Returns whether it is made now.
  bool access_is_done(std::uint32_t number, Cycle done) {
    Completion& completion = completions_[number];
    completion.at = std::max(completion.at, done);
    if (--completion.pending > 0) return false;
    make(completion);
    return true;
  }
  /// When the first `count` completions of a barrier are made; nothing while that is not known.
  [[nodiscard]] std::optional<Cycle> made(std::uint32_t barrier, std::size_t count) const {
    if (count == 0) return Cycle{0};
    const auto found = std::ranges::find(barriers_, barrier, &Barrier::address);
    if (found == barriers_.end() || found->made.size() < count) return {};
    return found->made[count - 1];
  }

 private:
  struct Barrier {
    std::uint32_t address = 0;
    std::vector<Cycle> made;  ///< ascending
  };
  struct Completion {
    std::uint32_t barrier = 0;
    std::uint32_t pending = 0;
    Cycle at = 0;
  };

  void make(const Completion& completion) {
    auto found = std::ranges::find(barriers_, completion.barrier, &Barrier::address);
    if (found == barriers_.end()) {
      found = barriers_.insert(barriers_.end(), Barrier{completion.barrier, {}});
    }
    found->made.insert(std::ranges::upper_bound(found->made, completion.at), completion.at);
  }

  std::vector<Barrier> barriers_;
  std::vector<Completion> completions_;
};

}  // namespace warpstack::interval_simulation
