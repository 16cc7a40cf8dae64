#include "timing/sm/control_barriers.h"

#include <algorithm>

namespace warpstack::timing {
namespace {

/// Copies go through the caches.
constexpr auto copy_cause = static_cast<std::uint32_t>(StackDetail::l1_latency);

}  // namespace

void ControlBarriers::clear(std::uint32_t slot) {
  WarpBarriers& warp = warps_[slot];
  for (std::vector<Hold>& holds : warp.holds) holds.clear();
  warp.copies.clear();
  warp.groups = 0;
  warp.copies_done = -1;
}

void ControlBarriers::add(std::uint32_t slot, std::uint32_t barrier, const Hold& hold, Cycle now) {
  std::vector<Hold>& holds = warps_[slot].holds[barrier];
  std::erase_if(holds, [now](const Hold& one) { return one.until <= now; });
  holds.push_back(hold);
}

void ControlBarriers::hold(std::uint32_t slot, std::uint32_t barrier, Cycle until, Cycle now) {
  add(slot, barrier, {.until = until}, now);
}

void ControlBarriers::hold_for_load(std::uint32_t slot, std::uint32_t barrier, std::uint32_t load,
                                    Cycle now) {
  add(slot, barrier, {.what = For::load, .id = load, .cause = first_load_cause + load}, now);
}

void ControlBarriers::hold_for_copies(std::uint32_t slot, std::uint32_t barrier, Cycle now) {
  WarpBarriers& warp = warps_[slot];
  const bool is_done = warp.copies.empty();
  add(slot, barrier,
      {.what = For::copies,
       .id = warp.groups++,
       .until = is_done ? std::max(warp.copies_done, now + 1) : never,
       .cause = copy_cause,
       .copies_done = warp.copies_done},
      now);
}

void ControlBarriers::hold_for_reading(std::uint32_t slot, std::uint32_t barrier, Cycle now) {
  add(slot, barrier, {.what = For::reading, .cause = load_store_unit_cause}, now);
}

void ControlBarriers::load_is_done(std::uint32_t slot, std::uint32_t barrier, std::uint32_t load,
                                   Cycle done, std::uint32_t cause) {
  for (Hold& hold : warps_[slot].holds[barrier]) {
    if (hold.what != For::load || hold.id != load || hold.until != never) continue;
    hold.until = done;
    hold.cause = cause;
  }
}

void ControlBarriers::copy_is_done(std::uint32_t slot, std::uint32_t load, Cycle done,
                                   std::uint32_t cause) {
  WarpBarriers& warp = warps_[slot];
  const auto copy = std::ranges::find(warp.copies, load, &Copy::load);
  const std::uint32_t group = copy->group;
  warp.copies.erase(copy);
  warp.copies_done = std::max(warp.copies_done, done);
  warp.copies_cause = cause;
  for (std::vector<Hold>& holds : warp.holds) {
    for (Hold& hold : holds) {
      if (hold.what != For::copies || hold.until != never || hold.id < group) continue;
      hold.copies_done = std::max(hold.copies_done, done);
      // A group waits for those before it, too.
      if (!warp.copies.empty() && warp.copies.front().group <= hold.id) continue;
      hold.until = hold.copies_done;
      hold.cause = cause;
    }
  }
}

void ControlBarriers::sources_are_read(std::uint32_t slot, std::uint32_t barrier, Cycle done) {
  for (Hold& hold : warps_[slot].holds[barrier]) {
    if (hold.what != For::reading || hold.until != never) continue;
    hold.until = done;
    hold.cause = static_cast<std::uint32_t>(StackDetail::arithmetic);
    return;
  }
}

ControlBarriers::Wait ControlBarriers::wait_of(const WarpBarriers& warp, const Hold& hold) {
  const bool is_pending_copy = hold.what == For::copies && hold.until == never;
  return {hold.until, is_pending_copy ? first_load_cause + warp.copies.front().load : hold.cause};
}

ControlBarriers::Wait ControlBarriers::wait(std::uint32_t slot, const trace::Control& control) {
  const WarpBarriers& warp = warps_[slot];
  Wait result;
  const auto consider = [&result](const Wait& wait) {
    if (wait.until > result.until) result = wait;
  };
  for (std::uint32_t barrier = 0; barrier < trace::num_control_barriers; ++barrier) {
    if ((control.wait_mask >> barrier & 1) == 0) continue;
    for (const Hold& hold : warp.holds[barrier]) consider(wait_of(warp, hold));
  }
  if (control.counted_barrier != trace::no_control_barrier) {
    consider(wait_for_most(slot, control.counted_barrier, control.counted_most));
  }
  return result;
}

ControlBarriers::Wait ControlBarriers::wait_for_most(std::uint32_t slot, std::uint32_t barrier,
                                                     std::uint32_t most) {
  const WarpBarriers& warp = warps_[slot];
  const std::vector<Hold>& holds = warp.holds[barrier];
  if (holds.size() <= most) return {};
  // When all but so many of those that end last have ended.
  by_end_.clear();
  for (const Hold& hold : holds) by_end_.push_back(&hold);
  std::ranges::stable_sort(by_end_, std::greater<>(), &Hold::until);
  return wait_of(warp, *by_end_[most]);
}

ControlBarriers::Wait ControlBarriers::wait_for_copies(std::uint32_t slot) const {
  const WarpBarriers& warp = warps_[slot];
  if (warp.copies.empty()) return {warp.copies_done, warp.copies_cause};
  return {never, first_load_cause + warp.copies.front().load};
}

}  // namespace warpstack::timing
