#include "simt/units/race_monitor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/text.h"
#include "simt/state/cluster.h"
#include "simt/units/address_spaces.h"

namespace warpstack::simt {
namespace {

bool writes(RaceKind kind) { return kind == RaceKind::store || kind == RaceKind::strong_store; }

}  // namespace

void RaceMonitor::keep_bytes(AddressSpace space, const LaneAddresses& lanes, std::uint32_t bytes) {
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::byte* const place = peek(space, lanes.address[lane], bytes);
    if (place != nullptr) std::memcpy(kept_[lane].data(), place, bytes);
  }
}

void RaceMonitor::find_changes(AddressSpace space, const LaneAddresses& lanes,
                               std::uint32_t bytes) {
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::byte* const place = peek(space, lanes.address[lane], bytes);
    std::uint32_t changes = 0;
    for (std::uint32_t b = 0; place != nullptr && b < bytes; ++b) {
      changes |= std::uint32_t{place[b] != kept_[lane][b]} << b;
    }
    changes_[lane] = changes;
  }
}

void RaceMonitor::check(const Warp& warp, const Step& step, AddressSpace space,
                        const LaneAddresses& lanes, std::uint32_t bytes, RaceKind kind,
                        const MemoryAccess* access) {
  if (space == AddressSpace::local) return;
  RaceAccess one =
      access_of(warp, step, static_cast<std::uint32_t>(std::countr_zero(lanes.mask)), bytes, kind);
  one.atomic = step.action == Action::atomic || (access != nullptr && is_async(step.action));
  one.acquires = access != nullptr && access->acquires;
  one.releases = access != nullptr && access->releases;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    one.lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    one.address = lanes.address[one.lane];
    if (space == AddressSpace::shared) one.address += shared_window;
    if (in_window(one.address, local_window)) continue;
    if (access != nullptr && step.action == Action::store) one.changes = changes_[one.lane];
    for (const Race& race : block_.races->access(one)) report_race(warp, step, one, race);
  }
}

void RaceMonitor::check_async(const Warp& warp, const Step& step, AddressSpace space,
                              std::uint32_t lane, std::uint64_t address, std::uint32_t bytes,
                              RaceKind kind, std::uint32_t actor) {
  RaceAccess one = access_of(warp, step, lane, bytes, kind);
  one.warp = actor;
  one.address = space == AddressSpace::shared ? address + shared_window : address;
  for (const Race& race : block_.races->access(one)) report_race(warp, step, one, race);
}

std::optional<std::uint64_t> RaceMonitor::own_offset(std::uint64_t shared_address) const {
  if (!in_cluster(shared_address)) return shared_address;
  if (rank_of_address(shared_address) != rank_in_cluster(block_, execution_.cluster)) return {};
  return offset_in_block(shared_address);
}

RaceAccess RaceMonitor::access_of(const Warp& warp, const Step& step, std::uint32_t lane,
                                  std::uint32_t bytes, RaceKind kind) {
  const ProgramFunction& function = *warp.frames.back().function;
  RaceAccess one{
      .bytes = bytes,
      .kind = kind,
      .warp = warp.number,
      .lane = lane,
      .site = first_site(function) + static_cast<std::uint32_t>(&step - function.steps.data())};
  if (one.site >= max_race_sites) {
    faults_.stop(warp, step, lane,
                 "the kernel is too large for the check for races: launch it with check_races off");
  }
  return one;
}

const std::byte* RaceMonitor::peek(AddressSpace space, std::uint64_t address, std::uint32_t bytes) {
  if (space == AddressSpace::local || in_window(address, local_window)) return nullptr;
  if (space == AddressSpace::generic && in_window(address, shared_window)) {
    address -= shared_window;
    space = AddressSpace::shared;
  }
  if (space == AddressSpace::shared) {
    const std::uint64_t size = block_.shared.size();
    return address <= size && bytes <= size - address ? block_.shared.data() + address : nullptr;
  }
  const Allocation* const owner = memory_.find(address);
  if (owner == nullptr || bytes > owner->bytes - (address - owner->address)) return nullptr;
  return memory_.data(address);
}

std::uint32_t RaceMonitor::first_site(const ProgramFunction& function) const {
  std::size_t first = 0;
  for (const ProgramFunction* other = program_.functions.data(); other != &function; ++other) {
    first += other->steps.size();
  }
  return static_cast<std::uint32_t>(std::min<std::size_t>(first, max_race_sites));
}

const SourceInstruction& RaceMonitor::text_of_site(std::uint32_t site) const {
  std::size_t index = site;
  const ProgramFunction* function = program_.functions.data();
  for (; index >= function->steps.size(); ++function) index -= function->steps.size();
  return function->instructions[function->steps[index].instruction];
}

std::string RaceMonitor::pair_text(std::uint32_t later, std::uint32_t earlier) const {
  const std::uint32_t warps = execution_.num_warps;
  if (later < warps && earlier < warps) {
    return "warps " + std::to_string(later) + " and " + std::to_string(earlier);
  }
  const auto name = [&](std::uint32_t actor) -> std::string {
    if (actor < warps) return "warp " + std::to_string(actor);
    return block_.races->is_copier(actor) ? "a bulk copy" : "a product of four warps";
  };
  return name(later) + " and " + name(earlier);
}

void RaceMonitor::report_race(const Warp& warp, const Step& step, const RaceAccess& later,
                              const Race& earlier) {
  const SourceInstruction& text = warp.text_of(step);
  const SourceInstruction& other = text_of_site(earlier.site);
  const auto what = [&] {
    const bool is_shared = in_window(earlier.address, shared_window);
    const std::uint64_t address = is_shared ? earlier.address - shared_window : earlier.address;
    std::string who;
    std::string remedy = "have no barrier between them (add __syncthreads(), or make both atomic)";
    if (earlier.warp < execution_.num_warps) {
      const auto thread = execution_.thread_index(block_.warps[earlier.warp], earlier.lane);
      who = ", thread (" + std::to_string(thread[0]) + ", " + std::to_string(thread[1]) + ", " +
            std::to_string(thread[2]) + ")";
    } else if (block_.races->is_copier(earlier.warp)) {
      remedy = "have nothing between them that waits for the copy (wait at its mbarrier)";
    } else {
      remedy = "have nothing between them that waits for the product (wgmma.wait_group)";
    }
    const bool both_write = writes(later.kind) && writes(earlier.kind);
    return std::string(both_write ? "write-write" : "read-write") + " race between " +
           pair_text(later.warp, earlier.warp) + " at " + hexadecimal(address) + " of " +
           (is_shared ? "shared" : "global") + " memory, " +
           (is_shared ? describe_shared(program_, address) : memory_.describe(address)) +
           ": this " + verb_of(step) + " and the " + (writes(earlier.kind) ? "write" : "read") +
           " at " + Faults::place_of(other) + who + ", " + remedy;
  };
  if (options_.on_fault == OnFault::stop) faults_.stop(warp, step, later.lane, what());
  // One note per pair of lines, whichever comes first.
  const auto pair = pairs_.insert(std::minmax({&text, &other})).first;
  Note& note = faults_.book().note("race", &*pair, [&] {
    std::string first = Faults::line_of(text);
    std::string second = Faults::line_of(other);
    if (second < first) std::swap(first, second);
    return first + " " + second;
  });
  if (note.count++ > 0) return;
  note.place = faults_.place_of(warp, step, later.lane);
  note.what = what();
}

}  // namespace warpstack::simt
