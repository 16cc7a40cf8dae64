#include "timing/sm/grid_dispatcher.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace warpstack::timing {

GridDispatcher::Room& GridDispatcher::Room::operator+=(const Room& other) {
  blocks += other.blocks;
  warps += other.warps;
  threads += other.threads;
  registers += other.registers;
  shared_memory += other.shared_memory;
  return *this;
}

GridDispatcher::Room& GridDispatcher::Room::operator-=(const Room& other) {
  blocks -= other.blocks;
  warps -= other.warps;
  threads -= other.threads;
  registers -= other.registers;
  shared_memory -= other.shared_memory;
  return *this;
}

GridDispatcher::Room GridDispatcher::Room::shared_with(const Room& other) const {
  return {std::min(blocks, other.blocks), std::min(warps, other.warps),
          std::min(threads, other.threads), std::min(registers, other.registers),
          std::min(shared_memory, other.shared_memory)};
}

GridDispatcher::GridDispatcher(std::span<const GridLaunch> launches, const TimingConfig& config,
                               const std::optional<std::uint64_t>& shared_memory_bytes,
                               std::uint32_t num_sms)
    : launches_(launches),
      config_(config),
      interval_(to_ticks(config.gpu.block_interval_cycles)),
      replacement_(whole_cycles(config.block_replacement_cycles)),
      most_grids_(config.gpu.concurrent_grids),
      grids_(launches.size()),
      ended_(launches.size(), false),
      rooms_(num_sms),
      since_(num_sms),
      earliest_(num_sms, -1),
      num_blocks_(num_sms) {
  constexpr std::int64_t without_limit = std::numeric_limits<std::int64_t>::max() / 4;
  const gpu::SmLimits& sm = config.memory.sm;
  Room whole{sm.blocks, sm.warps, sm.threads, without_limit, without_limit};
  if (sm.registers) whole.registers = static_cast<std::int64_t>(*sm.registers);
  if (shared_memory_bytes) whole.shared_memory = static_cast<std::int64_t>(*shared_memory_bytes);
  for (std::vector<FreeRoom>& rooms : rooms_) rooms.push_back({0, number_++, whole});
  for (std::uint32_t g = 0; g < grids_.size(); ++g) {
    grids_[g].need = need_of(launches[g].trace->header());
    skip(g);
    grids_[g].num_awaited = static_cast<std::uint32_t>(launches[g].after.size());
    for (const std::uint32_t before : launches[g].after) grids_[before].followers.push_back(g);
    const auto& primaries = launches[g].after_trigger;
    grids_[g].num_untriggered = static_cast<std::uint32_t>(primaries.size());
    grids_[g].num_unended = grids_[g].num_untriggered;
    for (const std::uint32_t before : primaries) grids_[before].dependents.push_back(g);
    num_held_ += is_held(g);
    num_waiting_ += grids_[g].num_unended > 0;
  }
  std::vector<std::uint32_t> nothing_to_do;
  for (std::uint32_t g = 0; g < grids_.size(); ++g) {
    const auto& blocks = launches[g].trace->blocks();
    for (std::uint32_t b = 0; !grids_[g].dependents.empty() && b < blocks.size(); ++b) {
      grids_[g].blocks_to_trigger += blocks.counts(b).instructions > 0;
    }
    if (is_held(g)) continue;
    if (has_blocks(g)) {
      ++num_left_;
    } else {
      nothing_to_do.push_back(g);
    }
  }
  release(std::move(nothing_to_do));
  is_at_rest_ = num_left_ == 0;
  find_first();
}

GridDispatcher::Room GridDispatcher::need_of(const trace::KernelHeader& kernel) const {
  const gpu::SmLimits& sm = config_.memory.sm;
  return {1, static_cast<std::int64_t>(kernel.warps_per_block()),
          static_cast<std::int64_t>(kernel.threads_per_block()),
          static_cast<std::int64_t>(memory::registers_per_block(kernel, sm)),
          static_cast<std::int64_t>(memory::shared_memory_per_block(kernel, sm))};
}

void GridDispatcher::skip(std::uint32_t grid) {
  const auto& blocks = launches_[grid].trace->blocks();
  std::uint32_t& next = grids_[grid].next_block;
  while (next < blocks.size() && blocks.counts(next).instructions == 0) ++next;
}

void GridDispatcher::find_first() {
  first_ = nobody;
  is_place_known_ = false;
  std::ranges::fill(earliest_, -1);
  waits_for_end_ = (num_held_ > 0 || num_waiting_ > 0) && !is_at_rest_;
  has_new_ = false;
  for (std::uint32_t g = 0; g < grids_.size(); ++g) {
    if (ended_[g] || is_held(g) || !has_blocks(g)) continue;
    has_new_ = has_new_ || grids_[g].start == never;
    if (grids_[g].start == never && most_grids_ > 0 && num_running_ >= most_grids_) {
      waits_for_end_ = true;
      continue;
    }
    if (first_ == nobody || launches_[g].priority > launches_[first_].priority) first_ = g;
  }
  if (first_ == nobody) return;
  for (std::uint32_t sm = 0; sm < rooms_.size(); ++sm) {
    since_[sm] = room_since(sm, grids_[first_].need);
  }
}

void GridDispatcher::find_place() {
  is_place_known_ = true;
  place_ = nobody;
  if (first_ == nobody) return;
  const auto best = std::ranges::min_element(
      since_, [](const Since& left, const Since& right) { return left < right; });
  if (best != since_.end() && best->cycle < never) {
    place_ = static_cast<std::uint32_t>(best - since_.begin());
  }
}

GridDispatcher::Since GridDispatcher::room_since(std::uint32_t sm, const Room& need) const {
  Room sum;
  for (const FreeRoom& one : rooms_[sm]) {
    sum += one.room;
    if (sum.holds(need)) return {one.cycle, one.number};
  }
  return {};
}

void GridDispatcher::take(std::uint32_t sm, const Room& need) {
  std::vector<FreeRoom>& rooms = rooms_[sm];
  Room left = need;
  std::size_t last = 0;
  for (; !left.is_nothing(); ++last) {
    const Room part = rooms[last].room.shared_with(left);
    rooms[last].room -= part;
    left -= part;
  }
  // What is left of the newest goes behind the room of other SMs that got free in the same cycle.
  rooms[last - 1].number = number_++;
  std::erase_if(rooms, [](const FreeRoom& one) { return one.room.is_nothing(); });
  std::ranges::sort(rooms, [](const FreeRoom& one, const FreeRoom& other) {
    return std::pair(one.cycle, one.number) < std::pair(other.cycle, other.number);
  });
}

Cycle GridDispatcher::next() {
  if (!is_place_known_) find_place();
  if (place_ == nobody) return never;
  return std::max({since_[place_].cycle, cycle_at_or_after(free_), not_before_});
}

Cycle GridDispatcher::earliest_start(std::uint32_t sm) {
  // The end of a grid anywhere lets another one start, whatever this SM has done meanwhile. Where
  // a grid has not started yet, the end of the last block anywhere gives it all places at once.
  // The SMs have yet to hear of warps that need not wait any more.
  if (waits_for_end_ || !released_.empty() || (has_new_ && num_blocks_[sm] == 0)) return 0;
  Cycle& earliest = earliest_[sm];
  if (earliest < 0) {
    earliest = never;
    for (std::uint32_t g = 0; g < grids_.size(); ++g) {
      if (ended_[g] || is_held(g) || !has_blocks(g)) continue;
      earliest = std::min(earliest, room_since(sm, grids_[g].need).cycle);
    }
  }
  return std::max(earliest, cycle_at_or_after(free_));
}

std::optional<BlockStart> GridDispatcher::start(Cycle now) {
  if (next() > now) return {};
  Grid& grid = grids_[first_];
  const std::uint32_t sm = place_;
  const BlockStart start{sm, grid.next_block++, first_};
  take(sm, grid.need);
  earliest_[sm] = -1;
  since_[sm] = room_since(sm, grid.need);
  is_place_known_ = false;
  skip(first_);
  ++grid.unfinished;
  ++num_blocks_[sm];
  ++num_blocks_in_all_;
  const bool is_new = grid.start == never;
  if (is_new) {
    grid.start = now;
    ++num_running_;
  }
  if (!has_blocks(first_)) --num_left_;
  // A start that had to wait for a cycle's edge does not delay the one behind it.
  free_ = std::max(free_, (now - 1) * ticks_per_cycle) + interval_;
  if (is_new || !has_blocks(first_)) find_first();
  return start;
}

void GridDispatcher::free_place(std::uint32_t sm, std::uint32_t grid, bool has_triggered,
                                Cycle now) {
  not_before_ = std::max(not_before_, now + 1);
  if (empty() && num_waiting_ == 0) return;
  rooms_[sm].push_back({now + replacement_, number_++, grids_[grid].need});
  earliest_[sm] = -1;
  is_place_known_ = false;
  if (first_ != nobody) since_[sm] = room_since(sm, grids_[first_].need);
  --num_blocks_[sm];
  --num_blocks_in_all_;
  if (--grids_[grid].unfinished == 0 && !has_blocks(grid)) {
    end(grid);
  } else if (!has_triggered) {
    trigger(grid, now);
  }
  // Nobody's place is replaced where a grid finds an empty machine: it starts as any launch does.
  if (num_blocks_in_all_ > 0 || first_ == nobody || grids_[first_].start != never) return;
  for (std::vector<FreeRoom>& rooms : rooms_) {
    for (FreeRoom& room : rooms) room.cycle = std::min(room.cycle, now);
  }
  find_first();
}

void GridDispatcher::trigger(std::uint32_t grid, Cycle now) {
  if (grids_[grid].dependents.empty() || --grids_[grid].blocks_to_trigger > 0) return;
  not_before_ = std::max(not_before_, now + 1);
  std::vector<std::uint32_t> finished;
  let_dependents_start(grid, finished);
  release(std::move(finished));
  find_first();
}

void GridDispatcher::end(std::uint32_t grid) {
  --num_running_;
  if (num_running_ == 0 && num_left_ == 0) {
    ended_[grid] = true;
    is_at_rest_ = num_held_ > 0;
  } else {
    release({grid});
  }
  find_first();
}

void GridDispatcher::may_start(std::uint32_t grid, std::vector<std::uint32_t>& finished) {
  if (is_held(grid)) return;
  --num_held_;
  if (has_blocks(grid)) {
    ++num_left_;
  } else {
    finished.push_back(grid);
  }
}

void GridDispatcher::let_dependents_start(std::uint32_t grid,
                                          std::vector<std::uint32_t>& finished) {
  if (std::exchange(grids_[grid].has_triggered, true)) return;
  for (const std::uint32_t g : grids_[grid].dependents) {
    --grids_[g].num_untriggered;
    may_start(g, finished);
  }
}

void GridDispatcher::release(std::vector<std::uint32_t> finished) {
  while (!finished.empty()) {
    const std::uint32_t grid = finished.back();
    finished.pop_back();
    grids_[grid].is_finished = true;
    let_dependents_start(grid, finished);
    if (grids_[grid].num_unended > 0 || ended_[grid]) continue;
    ended_[grid] = true;
    for (const std::uint32_t g : grids_[grid].followers) {
      --grids_[g].num_awaited;
      may_start(g, finished);
    }
    for (const std::uint32_t g : grids_[grid].dependents) {
      if (--grids_[g].num_unended > 0) continue;
      --num_waiting_;
      released_.push_back(g);
      if (grids_[g].is_finished) finished.push_back(g);
    }
  }
}

std::optional<BlockStart> GridDispatcher::start_on(std::uint32_t sm, Cycle now) {
  if (!is_place_known_) find_place();
  if (place_ != sm || since_[sm].cycle > now || free_ > now * ticks_per_cycle) return {};
  const Cycle not_before = not_before_;
  not_before_ = now;
  const auto start = this->start(now);
  not_before_ = not_before;
  return start;
}

}  // namespace warpstack::timing
