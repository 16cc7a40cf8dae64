#include "simt/state/race_check.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack::simt {
namespace {

// The place of an access: site, lane and actor in one number.
constexpr std::uint32_t actor_bits = 6;
constexpr std::uint32_t lane_bits = 5;

constexpr std::uint32_t actor_of(std::uint32_t where) { return where & ((1u << actor_bits) - 1); }
constexpr std::uint32_t lane_of(std::uint32_t where) {
  return where >> actor_bits & ((1u << lane_bits) - 1);
}
constexpr std::uint32_t site_of(std::uint32_t where) { return where >> (actor_bits + lane_bits); }
constexpr std::uint32_t where_of(const RaceAccess& access) {
  return access.site << (actor_bits + lane_bits) | access.lane << actor_bits | access.warp;
}
static_assert(where_of({.site = max_race_sites - 1}) >> (actor_bits + lane_bits) ==
              max_race_sites - 1);

constexpr std::size_t index_of(RaceKind kind) { return static_cast<std::size_t>(kind); }

/// Whether two unordered accesses of these kinds race. `changes` says that the later one changes
/// the byte.
bool conflict(RaceKind earlier, RaceKind later, bool changes) {
  const auto writes = [](RaceKind kind) {
    return kind == RaceKind::store || kind == RaceKind::strong_store;
  };
  const auto strong = [](RaceKind kind) {
    return kind == RaceKind::strong_load || kind == RaceKind::strong_store;
  };
  if (strong(earlier) && strong(later)) return false;
  if (writes(earlier) && writes(later)) return changes;
  return writes(earlier) || writes(later);
}

}  // namespace

RaceCheck::RaceCheck(std::uint32_t num_warps, bool has_async, RaceBudget& budget)
    : num_warps_(num_warps),
      first_copier_(num_warps + (num_warps + warps_of_product - 1) / warps_of_product),
      num_actors_(has_async ? first_copier_ + num_copiers : num_warps),
      budget_(budget) {
  static_assert(max_actors <= 1u << actor_bits);
  begin_block();
}

RaceCheck::~RaceCheck() { budget_.used -= taken_; }

void RaceCheck::begin_block() {
  clocks_ = {};
  for (std::uint32_t actor = 0; actor < num_actors_; ++actor) clocks_[actor][actor] = 1;
  fenced_ = {};
  observed_ = {};
  barriers_ = {};
  ended_ = {};
  for (std::vector<std::uint32_t>& times : commits_) times.clear();
  copiers_.clear();
  releases_.clear();
  pages_.clear();
  recent_ = {};
  vectors_.clear();
  splits_.clear();
  // Pages are kept for the next block.
  pool_used_ = 0;
  budget_.used -= taken_;
  taken_ = pool_.size() * sizeof(Page);
  budget_.used += taken_;
}

void RaceCheck::take(std::uint64_t bytes) {
  if (bytes > budget_.limit - std::min(budget_.used, budget_.limit)) {
    throw InputError("the check for races takes more than " + std::to_string(budget_.limit >> 20) +
                     " MiB for what one block touches: launch it on less data, or with check_races "
                     "off");
  }
  budget_.used += bytes;
  taken_ += bytes;
}

void RaceCheck::join(Clock& to, const Clock& from) {
  for (std::uint32_t actor = 0; actor < max_actors; ++actor) {
    to[actor] = std::max(to[actor], from[actor]);
  }
}

void RaceCheck::tick(std::uint32_t warp) {
  if (++clocks_[warp][warp] >= last_time) {
    throw InputError(
        "the check for races cannot count the barriers and fences of this block: "
        "launch it with check_races off");
  }
}

void RaceCheck::fence(std::uint32_t warp) {
  join(clocks_[warp], observed_[warp]);
  fenced_[warp] = clocks_[warp];
  tick(warp);
}

void RaceCheck::arrive(std::uint32_t warp, std::uint32_t barrier) {
  join(barriers_[barrier], clocks_[warp]);
  tick(warp);
}

void RaceCheck::pass(std::uint32_t warp, std::uint32_t barrier, bool all) {
  join(clocks_[warp], barriers_[barrier]);
  if (all) join(clocks_[warp], ended_);
}

void RaceCheck::reset(std::uint32_t barrier) { barriers_[barrier] = {}; }

void RaceCheck::end_warp(std::uint32_t warp) { join(ended_, clocks_[warp]); }

void RaceCheck::follow(std::uint32_t actor, std::uint32_t warp) {
  // Its own time alone covers what it did for other warps.
  const std::uint32_t own = clocks_[actor][actor];
  clocks_[actor] = clocks_[warp];
  clocks_[actor][actor] = own;
}

std::uint32_t RaceCheck::begin_copy(std::uint32_t warp, std::uint64_t barrier) {
  const auto number = static_cast<std::uint32_t>(copiers_.size() % num_copiers);
  const std::uint32_t actor = copiers_.try_emplace(barrier, first_copier_ + number).first->second;
  follow(actor, warp);
  return actor;
}

void RaceCheck::complete_copy(std::uint32_t actor, std::uint64_t barrier, std::uint32_t bytes) {
  const auto [entry, is_new] = releases_.try_emplace(barrier);
  if (is_new) take(sizeof(Release) + 32);
  entry->second.bytes = bytes;
  entry->second.clock[actor] = clocks_[actor][actor];
  tick(actor);
}

std::uint32_t RaceCheck::begin_product(std::uint32_t warp) {
  const std::uint32_t actor = num_warps_ + warp / warps_of_product;
  follow(actor, warp);
  return actor;
}

void RaceCheck::commit_products(std::uint32_t warp) {
  const std::uint32_t actor = num_warps_ + warp / warps_of_product;
  commits_[warp].push_back(clocks_[actor][actor]);
  tick(actor);
}

void RaceCheck::wait_for_products(std::uint32_t warp, std::uint64_t pending) {
  const std::size_t committed = commits_[warp].size();
  if (committed <= pending) return;
  const std::size_t last = committed - pending - 1;
  const std::uint32_t actor = num_warps_ + warp / warps_of_product;
  const std::uint32_t first = warp - warp % warps_of_product;
  for (std::uint32_t other = first; other < first + warps_of_product; ++other) {
    // A finished warp may have committed fewer.
    if (other >= num_warps_ || commits_[other].size() <= last) continue;
    clocks_[warp][actor] = std::max(clocks_[warp][actor], commits_[other][last]);
  }
}

void RaceCheck::acquire(const RaceAccess& access) {
  const auto found = releases_.find(access.address);
  if (found == releases_.end()) return;
  join(access.acquires ? clocks_[access.warp] : observed_[access.warp], found->second.clock);
}

void RaceCheck::release(const RaceAccess& access) {
  const Clock& clock = access.releases ? clocks_[access.warp] : fenced_[access.warp];
  const bool carries = clock[access.warp] != 0;
  // An atomic operation passes on what the value carried; another write does not.
  if (!carries) {
    if (!access.atomic) releases_.erase(access.address);
    return;
  }
  const auto [entry, is_new] = releases_.try_emplace(access.address);
  if (is_new) take(sizeof(Release) + 32);
  if (!access.atomic) entry->second = {};
  entry->second.bytes = access.bytes;
  join(entry->second.clock, clock);
  if (access.releases) tick(access.warp);
}

void RaceCheck::overwrite(const RaceAccess& access) {
  if (releases_.empty()) return;
  constexpr std::uint64_t widest = 31;
  const std::uint64_t end = access.address + access.bytes;
  for (std::uint64_t first = access.address - widest; first < end; ++first) {
    const auto found = releases_.find(first);
    if (found == releases_.end() || first + found->second.bytes <= access.address) continue;
    releases_.erase(found);
  }
}

RaceCheck::Cell& RaceCheck::cell_of(std::uint64_t address) {
  const std::uint64_t word = address / 4;
  const std::uint64_t number = word / page_words;
  Recent& recent = recent_[number % recent_.size()];
  if (recent.number != number) {
    const auto [entry, is_new] = pages_.try_emplace(number);
    if (is_new) {
      if (pool_used_ == pool_.size()) {
        take(sizeof(Page));
        pool_.push_back(std::make_unique<Page>());
      }
      entry->second = pool_[pool_used_++].get();
      *entry->second = {};
    }
    recent = {number, entry->second};
  }
  return (*recent.page)[word % page_words];
}

void RaceCheck::split(Cell& cell) {
  take(sizeof splits_[0]);
  std::array<Cell, 4>& bytes = splits_.emplace_back();
  bytes.fill(cell);
  for (Cell& byte : bytes) {
    for (Record& record : byte) {
      if (record.time != by_warp) continue;
      take(num_actors_ * sizeof(Record));
      const std::size_t from = std::size_t{record.where} * num_actors_;
      record.where = static_cast<std::uint32_t>(vectors_.size() / num_actors_);
      for (std::size_t actor = 0; actor < num_actors_; ++actor) {
        vectors_.push_back(Record(vectors_[from + actor]));
      }
    }
  }
  cell = {};
  cell[0] = {by_byte, static_cast<std::uint32_t>(splits_.size() - 1)};
}

bool RaceCheck::is_ordered(const Record& record, std::uint32_t warp) const {
  return record.time <= clocks_[warp][actor_of(record.where)];
}

const RaceCheck::Record* RaceCheck::unordered(const Record& record, std::uint32_t warp) const {
  if (record.time == 0) return nullptr;
  if (record.time != by_warp) return is_ordered(record, warp) ? nullptr : &record;
  const Record* const first = vectors_.data() + std::size_t{record.where} * num_actors_;
  const Record* const last = first + num_actors_;
  const Record* const found = std::find_if(
      first, last, [&](const Record& one) { return one.time != 0 && !is_ordered(one, warp); });
  return found == last ? nullptr : found;
}

/// Puts the access in place of those ordered before it, beside the others.
void RaceCheck::put(Record& record, Record last, std::uint32_t warp) {
  if (record.time != by_warp) {
    if (record.time == 0 || is_ordered(record, warp)) {
      record = last;
      return;
    }
    take(num_actors_ * sizeof(Record));
    const Record other = record;
    record = {by_warp, static_cast<std::uint32_t>(vectors_.size() / num_actors_)};
    vectors_.resize(vectors_.size() + num_actors_);
    vectors_[std::size_t{record.where} * num_actors_ + actor_of(other.where)] = other;
  }
  vectors_[std::size_t{record.where} * num_actors_ + warp] = last;
}

void RaceCheck::touch(Cell& cell, const RaceAccess& access, std::uint64_t address, bool changes) {
  bool alone = access.kind == RaceKind::store;
  for (std::size_t k = 0; k < num_race_kinds; ++k) {
    const auto kind = static_cast<RaceKind>(k);
    const bool conflicts = conflict(kind, access.kind, changes);
    if (!conflicts && !alone) continue;
    const Record* const other = unordered(cell[k], access.warp);
    if (other == nullptr) continue;
    alone = false;
    const std::uint32_t site = site_of(other->where);
    if (!conflicts || std::ranges::count(races_, site, &Race::site) > 0) continue;
    races_.push_back({.address = address,
                      .kind = kind,
                      .warp = actor_of(other->where),
                      .lane = lane_of(other->where),
                      .site = site});
  }
  // If all accesses are ordered before a plain store, what races with one of them races with the
  // store, too.
  if (alone) cell = {};
  const Record last{clocks_[access.warp][access.warp], where_of(access)};
  put(cell[index_of(access.kind)], last, access.warp);
}

std::span<const Race> RaceCheck::access(const RaceAccess& access) {
  const bool strong = access.kind == RaceKind::strong_load || access.kind == RaceKind::strong_store;
  if (strong && (access.kind == RaceKind::strong_load || access.atomic)) acquire(access);
  races_.clear();
  for (std::uint32_t done = 0; done < access.bytes;) {
    const std::uint64_t address = access.address + done;
    const auto first = static_cast<std::uint32_t>(address % 4);
    const std::uint32_t count = std::min(4 - first, access.bytes - done);
    const std::uint32_t changes = access.changes >> done;
    const std::uint32_t all = (1u << count) - 1;
    Cell& cell = cell_of(address);
    // Bytes of a word share a cell as long as the same happens to all.
    const bool uniform = count == 4 && ((changes & all) == 0 || (changes & all) == all);
    if (!uniform && cell[0].time != by_byte) split(cell);
    if (cell[0].time != by_byte) {
      touch(cell, access, address, (changes & 1) != 0);
    } else {
      std::array<Cell, 4>& bytes = splits_[cell[0].where];
      for (std::uint32_t b = 0; b < count; ++b) {
        touch(bytes[first + b], access, address + b, (changes >> b & 1) != 0);
      }
    }
    done += count;
  }
  if (access.kind == RaceKind::strong_store) {
    release(access);
  } else if (access.kind == RaceKind::store) {
    overwrite(access);
  }
  return races_;
}

void RaceCheck::forget(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = (address + bytes + 3) / 4;
  for (std::uint64_t word = address / 4; word < end;) {
    const auto page = pages_.find(word / page_words);
    const std::uint64_t next = std::min((word / page_words + 1) * page_words, end);
    if (page != pages_.end()) {
      for (; word < next; ++word) (*page->second)[word % page_words] = {};
    }
    word = next;
  }
}

}  // namespace warpstack::simt
