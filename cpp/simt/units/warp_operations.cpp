#include "simt/units/warp_operations.h"

#include <bit>

#include "common/text.h"
#include "simt/program/registers.h"

namespace warpstack::simt {

template <class What>
void WarpOperations::refuse_unknown(const Warp& warp, const Step& step, std::uint32_t lane,
                                    const What& what) const {
  if (step.action != Action::match && step.action != Action::reduce &&
      step.action != Action::elect) {
    return;
  }
  faults_.stop(warp, step, lane,
               what() +
                   ": what a GPU gives is not known, so that on_fault does not apply (correct the "
                   "mask)");
}

void WarpOperations::meet(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  const Collective& c = program_.collectives[step.detail];
  if (mask == 0) {
    ++warp.paths.back().pc;
    return;
  }
  if (c.members == none ||
      (alike(registers, c.members, mask) == mask &&
       (lane_u32(registers, c.members, std::countr_zero(mask)) & warp.live) == mask)) {
    exchange_all(warp, step, registers, mask);
    ++warp.paths.back().pc;
    return;
  }
  // Visits each mask with the lanes that name it.
  std::uint32_t outside = 0;
  std::uint32_t disagreeing = 0;
  std::uint32_t waiting = 0;
  std::uint32_t left = 0;
  for (std::uint32_t rest = mask; rest != 0;) {
    const std::uint32_t same = alike(registers, c.members, rest);
    const std::uint32_t members = lane_u32(registers, c.members, std::countr_zero(rest));
    refuse_callers(warp, step, same, members);
    left |= warp.elsewhere(members);
    outside |= same & ~members;
    if ((members & mask & ~same) != 0) disagreeing |= same;
    if ((members & ~mask & warp.reachable()) != 0) waiting |= same;
    rest &= ~same;
  }
  if (outside != 0 || disagreeing != 0) {
    const auto lane =
        static_cast<std::uint32_t>(std::countr_zero(outside != 0 ? outside : disagreeing));
    const std::string members = hexadecimal(lane_u32(registers, c.members, static_cast<int>(lane)));
    const auto text = [&] {
      return (outside != 0
                  ? "masks leave out lanes that execute this with them: " + lanes_text(outside)
                  : "lanes execute this together and their masks differ: " +
                        lanes_text(disagreeing)) +
             " of the warp, lane " + std::to_string(lane) + " with the mask " + members;
    };
    refuse_unknown(warp, step, lane, text);
    faults_.diagnose(warp, step, lane, "mask", [&] { return text() + mask_remedy; });
  } else if (waiting != 0) {
    warp.park(mask, c.members);
    return;
  }
  if (left != 0) note_left(warp, step, mask, left);
  exchange_all(warp, step, registers, mask);
  ++warp.paths.back().pc;
}

void WarpOperations::converge(Warp& warp, const Step& step, std::byte* registers,
                              std::uint32_t mask) {
  const std::uint32_t slot = program_.convergences[step.detail].members;
  const std::uint32_t reachable = warp.reachable();
  std::uint32_t waiting = 0;
  for (std::uint32_t rest = mask; rest != 0;) {
    const std::uint32_t same = alike(registers, slot, rest);
    const std::uint32_t members = lane_u32(registers, slot, std::countr_zero(rest));
    rest &= ~same;
    // Lanes that do not name themselves wait for nobody.
    if ((members & same) == same && (members & reachable & ~same) != 0) waiting |= same;
  }
  if (waiting == 0) {
    ++warp.paths.back().pc;
    return;
  }
  warp.park(waiting, slot);
}

void WarpOperations::leave_convergence(Warp& warp, const Step& step, std::byte* registers,
                                       std::uint32_t mask) const {
  const std::uint32_t slot = program_.convergences[step.detail].members;
  std::uint32_t names = 0;  // of those that leave
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    names |= lane_u32(registers, slot, std::countr_zero(rest));
  }
  for (std::uint32_t rest = names | mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t members = lane_u32(registers, slot, lane);
    write_lane(registers, slot, 4, lane, members & ~mask);
  }
  for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
    PathEntry& path = warp.paths[i];
    if (path.pc != parked || (path.mask & names) == 0) continue;
    const Step& place = warp.step_of(path);
    if (place.action == Action::converge && program_.convergences[place.detail].members == slot) {
      path.members &= ~mask;
    }
  }
}

void WarpOperations::let_others_come(Warp& warp) {
  if (complete_operation(warp) || warp.let_others_go()) return;
  if (go_on_without(warp)) return;
  const std::size_t bottom = warp.frames.back().first_path;
  for (std::size_t i = warp.paths.size(); i-- > bottom;) {
    if (warp.paths[i].members != 0) report_missing(warp, warp.paths[i]);
  }
  barriers_.arrive_parted(warp);
}

void WarpOperations::exchange_all(Warp& warp, const Step& step, std::byte* registers,
                                  std::uint32_t mask) {
  Exchange exchange;
  exchange_.bring(step, registers, mask, exchange);
  exchange_.take(warp, step, registers, mask, exchange);
}

bool WarpOperations::complete_operation(Warp& warp) {
  for (std::size_t i = warp.paths.size(); i-- > warp.frames.back().first_path;) {
    const PathEntry path = warp.paths[i];
    if (path.pc != parked || path.members == 0) continue;
    const std::uint32_t here = lanes_at_operation(warp, path);
    if ((path.members & warp.reachable() & ~here) != 0) continue;
    const bool converges = warp.step_of(path).action == Action::converge;
    if (const std::uint32_t left = converges ? 0 : warp.elsewhere(path.members)) {
      note_left(warp, warp.step_of(path), path.mask, left);
    }
    run_operation(warp, i);
    return true;
  }
  return false;
}

bool WarpOperations::go_on_without(Warp& warp) {
  const std::size_t bottom = warp.frames.back().first_path;
  for (std::size_t i = warp.paths.size(); i-- > bottom;) {
    const PathEntry path = warp.paths[i];
    if (path.members == 0) continue;
    const std::uint32_t here = lanes_at_operation(warp, path);
    const Step& step = warp.step_of(path);
    const bool syncs = step.action == Action::warp_sync;
    std::uint32_t others = 0;  // at other operations
    for (std::size_t j = bottom; j < warp.paths.size(); ++j) {
      const PathEntry& other = warp.paths[j];
      if (other.members == 0) continue;
      // Where paths join, lanes wait for each other in turn.
      if (syncs && warp.step_of(other).action == Action::converge) continue;
      others |= other.mask & ~here;
    }
    if ((path.members & others) != 0) continue;
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(path.mask));
    const auto what = [&](const char* remedy) {
      return missing_text(warp, path, path.members & warp.reachable() & ~here) +
             ": a GPU may wait for ever (name those lanes alone that execute this" + remedy;
    };
    if (syncs) {
      // The operation computes nothing from lanes, and lanes that wait elsewhere have done their
      // work up to there; Numba's reductions rely on this.
      faults_.note(warp, step, lane, "absent lanes", [&] { return what(")"); });
    } else {
      faults_.diagnose(warp, step, lane, "absent lanes", [&] {
        return what(
            "; on_fault=\"continue\" of a launch, --on-fault continue of warpstack "
            "trace, goes on without the others)");
      });
    }
    run_operation(warp, i);
    return true;
  }
  return false;
}

void WarpOperations::run_operation(Warp& warp, std::size_t i) {
  const PathEntry path = warp.paths[i];
  const std::uint32_t here = lanes_at_operation(warp, path);
  const std::size_t bottom = warp.frames.back().first_path;
  const bool exchanges = warp.step_of(path).action != Action::converge;
  Exchange exchange;
  std::byte* const registers = warp.registers();
  for (std::size_t j = bottom; exchanges && j < warp.paths.size(); ++j) {
    if (!same_operation(warp, path, warp.paths[j])) continue;
    exchange_.bring(warp.step_of(warp.paths[j]), registers, warp.paths[j].mask, exchange);
  }
  for (std::size_t j = bottom; j < warp.paths.size(); ++j) {
    PathEntry& each = warp.paths[j];
    if (!same_operation(warp, path, each)) continue;
    if (exchanges) exchange_.take(warp, warp.step_of(each), registers, each.mask, exchange);
    each = {each.resume + 1, each.reconvergence, each.mask};
  }
  warp.join_paths(here);
}

bool WarpOperations::same_operation(const Warp& warp, const PathEntry& a,
                                    const PathEntry& b) const {
  if (a.pc != parked || b.pc != parked || a.members != b.members) return false;
  const Step& s = warp.step_of(a);
  const Step& t = warp.step_of(b);
  if (s.action != t.action) return false;
  if (s.action == Action::converge) {
    return program_.convergences[s.detail].members == program_.convergences[t.detail].members;
  }
  const Collective& c = program_.collectives[s.detail];
  const Collective& d = program_.collectives[t.detail];
  return c.mode == d.mode && c.type == d.type && c.combine == d.combine;
}

std::uint32_t WarpOperations::lanes_at_operation(const Warp& warp, const PathEntry& path) const {
  std::uint32_t here = 0;
  for (std::size_t j = warp.frames.back().first_path; j < warp.paths.size(); ++j) {
    if (same_operation(warp, path, warp.paths[j])) here |= warp.paths[j].mask;
  }
  return here;
}

void WarpOperations::refuse_callers(const Warp& warp, const Step& step, std::uint32_t mask,
                                    std::uint32_t members) const {
  const std::uint32_t callers = warp.elsewhere(members) & ~warp.frames.back().mask;
  if (callers == 0) return;
  faults_.stop(
      warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
      lanes_text(mask) + " of the warp wait here for " + lanes_text(callers) +
          ", which their mask " + hexadecimal(members) + " names and which wait in a caller of " +
          warp.frames.back().function->name +
          ": on_fault does not apply (name those lanes alone that call the function together, "
          "or have it inlined)");
}

void WarpOperations::note_left(const Warp& warp, const Step& step, std::uint32_t mask,
                               std::uint32_t left) {
  faults_.diagnose(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)), "absent lanes",
                   [&] {
                     return lanes_text(mask) + " of the warp name " + lanes_text(left) +
                            " in their masks, which have returned from " +
                            warp.frames.back().function->name + mask_remedy;
                   });
}

void WarpOperations::report_missing(const Warp& warp, const PathEntry& path) const {
  const std::uint32_t missing = path.members & warp.reachable() & ~path.mask;
  faults_.stop(
      warp, warp.step_of(path), static_cast<std::uint32_t>(std::countr_zero(path.mask)),
      missing_text(warp, path, missing) +
          ": a GPU may wait for ever, so that on_fault does not apply (name those lanes alone "
          "that execute this)");
}

std::string WarpOperations::missing_text(const Warp& warp, const PathEntry& path,
                                         std::uint32_t missing) const {
  std::string where;
  for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
    const PathEntry& other = warp.paths[i];
    if (other.pc != parked || (other.mask & missing) == 0) continue;
    where = "; " + lanes_text(other.mask & missing) + " wait at " +
            faults_.place_of(warp, warp.step_of(other));
  }
  return lanes_text(path.mask) + " of the warp wait here for " + lanes_text(missing) +
         ", which their mask " + hexadecimal(path.members) + " names and which do not come" + where;
}

}  // namespace warpstack::simt
