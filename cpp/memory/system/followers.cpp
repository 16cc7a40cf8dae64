#include "memory/system/followers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "memory/cache/line_parts.h"

namespace warpstack::memory {
namespace {

constexpr std::uint64_t all_of_them = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Followers::Followers(const Launch& launch, const std::vector<std::uint32_t>& leader,
                     std::vector<std::vector<std::uint32_t>> followers, std::size_t num_before)
    : launch_(launch),
      instructions_(launch.trace.instructions()),
      leader_blocks_(leader),
      blocks_(std::move(followers)),
      grouper_(launch.l1.line_bytes),
      l1_sectors_(launch.l1.line_bytes / trace::sector_bytes),
      l2_sectors_(launch.l2.config().line_bytes / trace::sector_bytes),
      first_local_line_(trace::local_region_sector / l1_sectors_),
      num_before_(num_before),
      per_row_(instructions_.size()) {
  std::size_t places = leader.size();
  for (const auto& blocks : blocks_) places = std::max(places, blocks.size());
  state_.resize(places);
  for (std::size_t place = 0; place < leader.size(); ++place) place_of_[leader[place]] = place;
  const std::uint32_t unit_sectors = launch.l1.sector_bytes / trace::sector_bytes;
  for (std::uint32_t mask = 0; mask < units_.size(); ++mask) {
    for (std::uint32_t s = 0; s < max_sectors_per_line; ++s) {
      if (!(mask >> s & 1)) continue;
      const std::uint32_t first = s / unit_sectors * unit_sectors;
      for (std::uint32_t i = first; i < std::min(first + unit_sectors, max_sectors_per_line); ++i) {
        units_[mask] |= static_cast<SectorMask>(1u << i);
      }
    }
  }
}

void Followers::begin_batch() {
  for (Queue& queue : queues_) {
    end_access(queue);
    queue.requests.clear();
    queue.first_of_turn.clear();
  }
  bytes_.resize(1);
  turn_ = 0;
}

void Followers::begin_turns_until(std::size_t turn) {
  for (; turn_ < turn; ++turn_) {
    for (Queue& queue : queues_) {
      queue.first_of_turn.push_back(static_cast<std::uint32_t>(queue.requests.size()));
    }
  }
}

void Followers::open(std::size_t place) {
  Block& block = state_[place];
  const trace::BlockStorage& storage = launch_.trace.blocks();
  if (place < leader_blocks_.size()) {
    for (const trace::WarpEntry& warp : storage.warps(leader_blocks_[place])) {
      block.leader.push_back({0, warp.memory});
    }
  }
  block.warps.resize(blocks_.size());
  for (std::size_t f = 0; f < blocks_.size(); ++f) {
    if (place >= blocks_[f].size()) continue;
    const std::uint32_t number = blocks_[f][place];
    const std::size_t num_warps = storage.warps(number).size();
    block.warps[f].resize(num_warps);
    block.running += num_warps;
    for (std::uint32_t w = 0; w < num_warps; ++w) {
      std::optional<FollowerWarp>& warp = block.warps[f][w];
      warp.emplace(FollowerWarp{WarpStream(launch_.trace, launch_.flags, {number, w}), 0,
                                storage.warps(number)[w].memory});
      // A warp without a leader makes its accesses at once.
      const bool is_led = w < block.leader.size() && block.leader[w].memory > 0;
      advance(block, warp, f, is_led ? 0 : all_of_them);
    }
  }
}

void Followers::follow(const trace::WarpPosition& leader, bool is_last) {
  const std::size_t place = place_of_.at(leader.block);
  while (next_ <= place) open(next_++);
  Block& block = state_[place];
  LeaderWarp& mine = block.leader[leader.warp];
  ++mine.made;
  for (std::size_t f = 0; f < block.warps.size(); ++f) {
    if (leader.warp >= block.warps[f].size()) continue;
    std::optional<FollowerWarp>& warp = block.warps[f][leader.warp];
    if (!warp) continue;
    advance(
        block, warp, f,
        is_last ? all_of_them : mine.made * warp->memory / std::max<std::uint64_t>(mine.memory, 1));
  }
  hits_.clear();
}

void Followers::finish() {
  hits_.clear();
  while (next_ < state_.size()) open(next_++);
  for (Block& block : state_) {
    for (std::size_t f = 0; f < block.warps.size(); ++f) {
      for (std::optional<FollowerWarp>& warp : block.warps[f]) {
        if (warp) advance(block, warp, f, all_of_them);
      }
    }
  }
}

void Followers::advance(Block& block, std::optional<FollowerWarp>& warp, std::size_t follower,
                        std::uint64_t until) {
  while (!warp->stream.done() && warp->made < until) {
    access(warp->stream.current(), follower);
    warp->stream.advance();
    ++warp->made;
  }
  if (!warp->stream.done()) {
    warp->stream.prefetch();
    return;
  }
  warp.reset();
  --block.running;
}

void Followers::access(const MemoryAccess& access, std::size_t follower) {
  const trace::StaticInstruction& instruction = instructions_[access.row];
  const std::span<const LineAccess> lines = grouper_.group(access);
  FollowerCounts& counts = per_row_[access.row];
  counts.sectors += access.sectors.size();
  counts.requests += lines.size();
  if (!instruction.is_atomic()) counts.l1_passes += access.l1_passes();
  const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
  Queue& queue = of(follower < num_before_ ? Side::before : Side::after);
  const std::size_t first = queue.requests.size();
  if (instruction.writes_memory()) {
    const Request::Kind kind =
        instruction.is_atomic() ? Request::Kind::atomic : Request::Kind::write;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const SectorLanes* lanes = instruction.is_atomic() ? &grouper_.lanes(i) : nullptr;
      leave(queue, lines[i].line, lines[i].mask, kind, evict_first, &grouper_.bytes(i), lanes,
            access.row);
    }
  } else {
    const bool bypass = instruction.cache_operator == trace::CacheOperator::bypass_l1;
    const bool keeps_global =
        launch_.l1_caches_global || instruction.cache_operator == trace::CacheOperator::read_only;
    const bool knows_hits = hits_.size() == lines.size();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool passes = bypass || (lines[i].line < first_local_line_ && !keeps_global);
      if (!passes && knows_hits && hits_[i]) continue;
      const SectorMask asked = passes ? lines[i].mask : units_[lines[i].mask];
      leave(queue, lines[i].line, asked, Request::Kind::read, evict_first, nullptr, nullptr,
            access.row);
    }
  }
  if (first < queue.requests.size()) queue.requests[first].owner = 1;
}

void Followers::leave(Queue& queue, std::uint64_t l1_line, SectorMask mask, Request::Kind kind,
                      bool evict_first, const ByteMasks* bytes, const SectorLanes* lanes,
                      std::uint32_t row) {
  bool continues = false;
  for_each_part(l1_line, mask, bytes, l1_sectors_, l2_sectors_,
                [&](std::uint64_t line, SectorMask part, const ByteMasks* part_bytes) {
                  std::uint32_t position = 0;
                  const bool counts_lanes = lanes && launch_.atomics.counts_lanes();
                  if (part_bytes && (launch_.keeps_bytes || counts_lanes)) {
                    position = static_cast<std::uint32_t>(bytes_.size());
                    bytes_.push_back(*part_bytes);
                  }
                  if (counts_lanes) {
                    turns_.resize(bytes_.size());
                    turns_.back() = in_parts(launch_.atomics.turns(
                        lanes_of_part(*lanes, l1_line, l1_sectors_, line, l2_sectors_), part));
                  }
                  const std::uint32_t set = launch_.l2.set_of(line);
                  launch_.l2.prefetch(set, line);
                  queue.requests.push_back(
                      {line, set, row, position, part, 0, kind, continues, evict_first, false});
                  continues = true;
                });
}

void Followers::count(Queue& queue, const Request& request, const Outcome& outcome) {
  if (request.owner != 0) {
    end_access(queue);
    queue.is_open = true;
    queue.row = request.writer;
    queue.asked_dram = false;
  }
  if (!request.continues) queue.missed = false;
  FollowerCounts& counts = per_row_[request.writer];
  counts.dram_requests += outcome.missed && !queue.missed;
  counts.dram_sectors += outcome.dram_sectors;
  queue.missed = queue.missed || outcome.missed;
  queue.asked_dram = queue.asked_dram || outcome.asks_dram;
}

void Followers::end_access(Queue& queue) {
  if (!queue.is_open) return;
  FollowerCounts& counts = per_row_[queue.row];
  ++(queue.asked_dram ? counts.dram_events : counts.l2_events);
  queue.is_open = false;
}

}  // namespace warpstack::memory
