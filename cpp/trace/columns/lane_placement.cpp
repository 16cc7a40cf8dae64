#include "trace/columns/lane_placement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace warpstack::trace {
namespace {

constexpr std::uint32_t word_bytes = 4;
/// Local sectors hold one word of this many neighbouring lanes.
constexpr std::uint32_t lanes_per_sector = sector_bytes / word_bytes;

/// Removes the next lane from a mask and returns it.
std::uint32_t take_lane(std::uint32_t& mask) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  mask &= mask - 1;
  return lane;
}

bool contains(std::span<const std::uint64_t> units, std::uint64_t unit) {
  return std::ranges::find(units, unit) != units.end();
}

/// The number of units from `units[seen]` on that an access to units `first` to `last` adds if the
/// first `seen` were touched before; -1 if it touches other units or in another order.
int advance(std::span<const std::uint64_t> units, std::size_t seen, std::uint64_t first,
            std::uint64_t last) {
  std::size_t next = seen;
  for (std::uint64_t unit = first; unit <= last; ++unit) {
    if (contains(units.first(seen), unit)) continue;
    if (next == units.size() || units[next] != unit) return -1;
    ++next;
  }
  return static_cast<int>(next - seen);
}

/// The addresses, in units' bytes, of the shortest sequence of accesses of `width` bytes that
/// touches `units` of `unit_bytes` in this order. The touched units are always a prefix, so the
/// shortest sequence for each prefix suffices. Empty if there is none.
std::vector<std::uint64_t> shortest_reads(std::span<const std::uint64_t> units, std::uint32_t width,
                                          std::uint32_t unit_bytes) {
  struct Step {
    std::size_t accesses = std::numeric_limits<std::size_t>::max();
    std::size_t from = 0;
    std::uint64_t address = 0;
  };
  const std::uint32_t least = (width - 1) / unit_bytes + 1;
  const std::uint32_t most = (width + unit_bytes - 2) / unit_bytes + 1;
  std::vector<Step> steps(units.size() + 1);
  steps[0].accesses = 0;
  for (std::size_t seen = 0; seen < units.size(); ++seen) {
    if (steps[seen].accesses == std::numeric_limits<std::size_t>::max()) continue;
    for (std::uint32_t length = least; length <= most; ++length) {
      for (std::uint64_t back = std::min<std::uint64_t>(length - 1, units[seen]) + 1; back-- > 0;) {
        const std::uint64_t first = units[seen] - back;
        const int added = advance(units, seen, first, first + length - 1);
        if (added <= 0) continue;
        Step& step = steps[seen + static_cast<std::size_t>(added)];
        if (steps[seen].accesses + 1 >= step.accesses) continue;
        // An access that starts at a unit's last byte reaches one unit further than from its first.
        step = {steps[seen].accesses + 1, seen,
                first * unit_bytes + (length == least ? 0 : unit_bytes - 1)};
      }
    }
  }
  std::vector<std::uint64_t> addresses;
  if (steps.back().accesses == std::numeric_limits<std::size_t>::max()) return addresses;
  for (std::size_t seen = units.size(); seen > 0; seen = steps[seen].from) {
    addresses.push_back(steps[seen].address);
  }
  std::ranges::reverse(addresses);
  return addresses;
}

/// Gives the lanes these addresses in order; remaining lanes get the last one.
bool assign(std::uint32_t mask, std::span<const std::uint64_t> addresses, LaneAddresses& lanes) {
  if (addresses.empty() || addresses.size() > static_cast<std::size_t>(std::popcount(mask))) {
    return false;
  }
  for (std::size_t i = 0; mask != 0; ++i) {
    lanes.address[take_lane(mask)] = addresses[std::min(i, addresses.size() - 1)];
  }
  return true;
}

/// Gives each lane a sector, evenly spread over the lanes and, within a sector, over its bytes, as
/// in strided accesses.
void spread_reads(std::uint32_t mask, std::uint32_t width, std::span<const std::uint64_t> sectors,
                  LaneAddresses& lanes) {
  const auto num_lanes = static_cast<std::uint32_t>(std::popcount(mask));
  const auto count = static_cast<std::uint32_t>(sectors.size());
  const std::uint32_t places = sector_bytes / width;
  const auto first_lane = [&](std::uint32_t s) { return (s * num_lanes + count - 1) / count; };
  for (std::uint32_t s = 0; s < count; ++s) {
    const std::uint32_t sharing = first_lane(s + 1) - first_lane(s);
    for (std::uint32_t j = 0; j < sharing; ++j) {
      const std::uint32_t place = std::min(j * sector_bytes / sharing / width, places - 1);
      lanes.address[take_lane(mask)] = sectors[s] * sector_bytes + place * width;
    }
  }
}

/// Deals the sectors of an aligned load to lanes that take a given number of passes over the banks
/// of L1. Groups of lanes that proceed together get successive sectors, one lane each; their passes
/// are as many of these as lie at one place of their lines, the others lie at further places. Lanes
/// that are left go back to earlier sectors of the group's longest column, or stay at the last one.
class ReadsInPasses {
 public:
  ReadsInPasses(std::uint32_t mask, std::uint32_t width, std::span<const std::uint64_t> sectors,
                LaneAddresses& lanes)
      : sectors_(sectors),
        lanes_(lanes),
        bytes_(std::max(width, word_bytes)),
        failed_((most_groups + 1) * (warp_size + 1) * (warp_size + 1)) {
    const std::uint32_t size = shared_group_lanes(width, false);
    for (std::uint32_t first = 0; first < warp_size; first += size) {
      const auto group = static_cast<std::uint32_t>(((std::uint64_t{1} << size) - 1) << first);
      if ((mask & group) != 0) groups_.push_back(mask & group);
    }
  }

  bool place(std::uint32_t passes) { return passes <= warp_size && place_from(0, 0, passes); }

 private:
  static constexpr std::size_t columns = 4;  // of sectors that share their banks
  static constexpr std::size_t most_groups = 8;

  /// Places the groups from `group` on, which touch the sectors from `first` on for the first time.
  bool place_from(std::size_t group, std::size_t first, std::uint32_t passes) {
    if (group == groups_.size()) return first == sectors_.size() && passes == 0;
    const std::size_t state = (group * (warp_size + 1) + first) * (warp_size + 1) + passes;
    if (failed_[state]) return false;
    const auto lanes = static_cast<std::size_t>(std::popcount(groups_[group]));
    for (std::size_t count = std::min(lanes, sectors_.size() - first) + 1; count-- > 0;) {
      if (first + count == 0) continue;
      for (std::uint32_t here = passes; here > 0; --here) {
        const std::optional<std::size_t> column = column_of(first, count, lanes, here);
        if (!column || !place_from(group + 1, first + count, passes - here)) continue;
        place_group(groups_[group], first, count, here, *column);
        return true;
      }
    }
    failed_[state] = true;
    return false;
  }

  /// How many of these sectors lie in each column.
  [[nodiscard]] std::array<std::size_t, columns> counts(std::size_t first, std::size_t end) const {
    std::array<std::size_t, columns> result{};
    for (std::size_t s = first; s < end; ++s) ++result[sectors_[s] % columns];
    return result;
  }

  /// The column whose sectors can make a group of lanes take just so many passes.
  [[nodiscard]] std::optional<std::size_t> column_of(std::size_t first, std::size_t count,
                                                     std::size_t lanes,
                                                     std::uint32_t passes) const {
    const auto fresh = counts(first, first + count);
    const auto before = counts(0, first);
    if (*std::ranges::max_element(fresh) > passes * (sector_bytes / bytes_)) return std::nullopt;
    for (std::size_t column = 0; column < columns; ++column) {
      if (fresh[column] >= passes) return column;
      const std::size_t again = passes - fresh[column];
      if (again <= before[column] && count + again <= lanes) return column;
    }
    return std::nullopt;
  }

  void place_group(std::uint32_t group, std::size_t first, std::size_t count, std::uint32_t passes,
                   std::size_t column) {
    std::array<std::size_t, columns> seen{};
    std::uint64_t address = 0;
    for (std::size_t s = first; s < first + count; ++s) {
      address = sectors_[s] * sector_bytes + seen[sectors_[s] % columns]++ / passes * bytes_;
      lanes_.address[take_lane(group)] = address;
    }
    for (std::size_t s = 0; s < first && seen[column] < passes; ++s) {
      if (sectors_[s] % columns != column) continue;
      ++seen[column];
      address = sectors_[s] * sector_bytes;
      lanes_.address[take_lane(group)] = address;
    }
    while (group != 0) lanes_.address[take_lane(group)] = address;
  }

  std::span<const std::uint64_t> sectors_;
  LaneAddresses& lanes_;
  std::uint32_t bytes_;  ///< of a lane, at least a word
  std::vector<std::uint32_t> groups_;
  std::vector<bool> failed_;  ///< by group, sectors and passes that are left
};

/// Reads that take `passes` passes over the banks of L1 if any lanes do (0: any).
void place_reads(std::uint32_t mask, std::uint32_t width, std::span<const std::uint64_t> sectors,
                 std::uint32_t passes, LaneAddresses& lanes) {
  spread_reads(mask, width, sectors, lanes);
  if (passes == 0 || (width & (width - 1)) != 0 || l1_passes(lanes, width) == passes) {
    return;
  }
  LaneAddresses others = lanes;
  if (ReadsInPasses(mask, width, sectors, others).place(passes)) lanes = others;
}

/// The aligned pieces of `width` bytes that make up the byte masks, sector by sector; false if the
/// masks do not consist of such pieces.
bool aligned_pieces(std::uint32_t width, std::span<const std::uint64_t> sectors,
                    std::span<const std::uint32_t> store_bytes,
                    std::vector<std::uint64_t>& pieces) {
  if (width > sector_bytes || sector_bytes % width != 0) return false;
  const auto full = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
  for (std::size_t s = 0; s < sectors.size(); ++s) {
    for (std::uint32_t at = 0; at < sector_bytes; at += width) {
      const std::uint32_t bits = store_bytes[s] >> at & full;
      if (bits == full) {
        pieces.push_back(sectors[s] * sector_bytes + at);
      } else if (bits != 0) {
        return false;
      }
    }
  }
  return true;
}

/// Gives each touched word of an atomic one lane, then the first words of each sector as many as
/// may share a word, until the sector has its lanes. False if that is impossible.
bool place_atomic(std::uint32_t mask, std::uint32_t width, std::span<const std::uint64_t> sectors,
                  std::span<const std::uint32_t> store_bytes, std::span<const AtomicLanes> atomics,
                  LaneAddresses& lanes) {
  std::vector<std::uint64_t> words;
  for (std::size_t s = 0; s < sectors.size(); ++s) {
    words.clear();
    if (!aligned_pieces(width, sectors.subspan(s, 1), store_bytes.subspan(s, 1), words)) {
      return false;
    }
    if (atomics[s].sector < words.size()) return false;
    std::size_t more = atomics[s].sector - words.size();
    for (const std::uint64_t word : words) {
      const std::size_t here = std::min<std::size_t>(more, std::max(atomics[s].word - 1, 0));
      more -= here;
      for (std::size_t i = 0; i <= here; ++i) {
        if (mask == 0) return false;
        lanes.address[take_lane(mask)] = word;
      }
    }
    if (more > 0) return false;
  }
  if (mask != 0) return false;
  std::vector<AtomicLanes> found;
  append_atomic_lanes(lanes, sectors, found);
  return std::ranges::equal(found, atomics);
}

/// Misaligned stores: covers each run of written bytes with as few accesses as possible, then looks
/// for an order of these, and of accesses added to touch a sector early enough, that touches the
/// sectors in order.
std::vector<std::uint64_t> cover_writes(std::uint32_t width, std::span<const std::uint64_t> sectors,
                                        std::span<const std::uint32_t> store_bytes,
                                        std::size_t num_lanes) {
  std::vector<std::uint64_t> written;
  for (std::size_t s = 0; s < sectors.size(); ++s) {
    for (std::uint32_t rest = store_bytes[s]; rest != 0;) {
      written.push_back(sectors[s] * sector_bytes + take_lane(rest));
    }
  }
  std::ranges::sort(written);
  std::vector<std::uint64_t> open;    // first bytes of accesses still to be ordered
  std::vector<std::uint64_t> usable;  // every access that writes only wanted bytes
  for (std::size_t begin = 0; begin < written.size();) {
    std::size_t end = begin + 1;
    while (end < written.size() && written[end] == written[end - 1] + 1) ++end;
    if (end - begin < width) return {};
    const std::uint64_t last = written[end - 1] + 1 - width;
    for (std::uint64_t at = written[begin]; at < last; at += width) open.push_back(at);
    open.push_back(last);
    for (std::uint64_t at = written[begin]; at <= last; ++at) usable.push_back(at);
    begin = end;
  }
  std::vector<std::uint64_t> order;
  std::size_t seen = 0;
  const auto added = [&](std::uint64_t at) {
    return advance(sectors, seen, at / sector_bytes, (at + width - 1) / sector_bytes);
  };
  while (!open.empty() || seen < sectors.size()) {
    auto next = std::ranges::find_if(open, [&](std::uint64_t at) { return added(at) == 0; });
    if (next == open.end()) {
      next = std::ranges::find_if(open, [&](std::uint64_t at) { return added(at) > 0; });
    }
    if (next != open.end()) {
      order.push_back(*next);
      seen += static_cast<std::size_t>(added(*next));
      open.erase(next);
      continue;
    }
    const auto opener =
        std::ranges::find_if(usable, [&](std::uint64_t at) { return added(at) > 0; });
    if (opener == usable.end() || order.size() + open.size() >= num_lanes) return {};
    order.push_back(*opener);
    seen += static_cast<std::size_t>(added(*opener));
  }
  return order;
}

/// Whether the addresses are as requested. Placing is a search, so its result is always checked.
bool coalesces_to(const LaneAddresses& lanes, std::uint32_t width,
                  std::span<const std::uint64_t> sectors,
                  std::span<const std::uint32_t> store_bytes) {
  std::vector<std::uint64_t> found;
  std::vector<std::uint32_t> bytes;
  found.reserve(sectors.size() + 1);
  coalesce(lanes, width, found, store_bytes.empty() ? nullptr : &bytes);
  return std::ranges::equal(found, sectors) &&
         (store_bytes.empty() || std::ranges::equal(bytes, store_bytes));
}

bool coalesces_locally_to(const LaneAddresses& lanes, std::uint32_t width, std::uint64_t warp,
                          std::span<const std::uint64_t> sectors,
                          std::span<const std::uint32_t> store_bytes) {
  std::vector<std::uint64_t> found;
  std::vector<std::uint32_t> bytes;
  coalesce_local(lanes, width, warp, found, store_bytes.empty() ? nullptr : &bytes);
  return std::ranges::equal(found, sectors) &&
         (store_bytes.empty() || std::ranges::equal(bytes, store_bytes));
}

/// The words that a group of eight neighbouring lanes touches, in order, and the bits of each.
struct LocalGroup {
  std::vector<std::uint64_t> words;
  std::vector<std::uint32_t> bytes;
};
using LocalGroups = std::array<LocalGroup, warp_size / lanes_per_sector>;

/// Sorts the sectors of a local access by group; false if one is not the warp's.
bool split_local(std::uint64_t warp, std::span<const std::uint64_t> sectors,
                 std::span<const std::uint32_t> store_bytes, LocalGroups& groups) {
  constexpr std::uint64_t sectors_per_warp = warp_size * window_bytes / sector_bytes;
  const std::uint64_t base = local_region_sector + warp * sectors_per_warp;
  for (std::size_t s = 0; s < sectors.size(); ++s) {
    if (sectors[s] < base || sectors[s] - base >= sectors_per_warp) return false;
    const std::uint64_t offset = sectors[s] - base;
    LocalGroup& group = groups[offset % groups.size()];
    group.words.push_back(offset / groups.size());
    if (!store_bytes.empty()) group.bytes.push_back(store_bytes[s]);
  }
  return true;
}

/// Lanes of a group that write something.
std::uint32_t writers(const LocalGroup& group, std::size_t index) {
  std::uint32_t mask = 0;
  for (const std::uint32_t bytes : group.bytes) {
    for (std::uint32_t lane = 0; lane < lanes_per_sector; ++lane) {
      if (bytes >> (word_bytes * lane) & 0xf) mask |= 1u << lane;
    }
  }
  return mask << (index * lanes_per_sector);
}

}  // namespace

bool place_lanes(std::uint32_t mask, std::uint32_t width, std::span<const std::uint64_t> sectors,
                 std::span<const std::uint32_t> store_bytes, LaneAddresses& lanes,
                 std::span<const AtomicLanes> atomics, std::uint32_t passes) {
  lanes.mask = mask;
  const auto num_lanes = static_cast<std::size_t>(std::popcount(mask));
  if (sectors.empty() || num_lanes == 0 || width == 0) return false;
  if (!atomics.empty() && place_atomic(mask, width, sectors, store_bytes, atomics, lanes)) {
    return coalesces_to(lanes, width, sectors, store_bytes);
  }
  if (store_bytes.empty()) {
    if (sectors.size() <= num_lanes && width <= sector_bytes) {
      place_reads(mask, width, sectors, passes, lanes);
    } else if (!assign(mask, shortest_reads(sectors, width, sector_bytes), lanes)) {
      return false;
    }
  } else {
    std::vector<std::uint64_t> pieces;
    if (aligned_pieces(width, sectors, store_bytes, pieces) && pieces.size() <= num_lanes) {
      std::uint32_t rest = mask;
      for (std::size_t i = 0; i < num_lanes; ++i) {
        lanes.address[take_lane(rest)] = pieces[i * pieces.size() / num_lanes];
      }
    } else if (!assign(mask, cover_writes(width, sectors, store_bytes, num_lanes), lanes)) {
      return false;
    }
  }
  return coalesces_to(lanes, width, sectors, store_bytes);
}

bool place_local_lanes(std::uint32_t mask, std::uint32_t width, std::uint64_t warp,
                       std::span<const std::uint64_t> sectors,
                       std::span<const std::uint32_t> store_bytes, LaneAddresses& lanes) {
  lanes.mask = mask;
  LocalGroups groups;
  if (width == 0 || !split_local(warp, sectors, store_bytes, groups)) return false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const LocalGroup& group = groups[g];
    std::uint32_t group_mask = mask & 0xffu << (g * lanes_per_sector);
    if (group_mask == 0) continue;
    if (store_bytes.empty()) {
      if (!assign(group_mask, shortest_reads(group.words, width, word_bytes), lanes)) return false;
      continue;
    }
    // The bytes of a sector tell which lane wrote them.
    while (group_mask != 0) {
      const std::uint32_t lane = take_lane(group_mask);
      std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
      for (std::size_t i = 0; i < group.words.size(); ++i) {
        const std::uint32_t bits = group.bytes[i] >> (word_bytes * (lane % lanes_per_sector)) & 0xf;
        if (bits == 0) continue;
        first = std::min(first, group.words[i] * word_bytes +
                                    static_cast<std::uint64_t>(std::countr_zero(bits)));
      }
      if (first == std::numeric_limits<std::uint64_t>::max()) return false;
      lanes.address[lane] = first;
    }
  }
  return coalesces_locally_to(lanes, width, warp, sectors, store_bytes);
}

namespace {

/// The same for lanes n and n ^ `distance` at equal addresses; with distance 0 each lane has its
/// own.
bool place_shared_pairs(std::uint32_t mask, std::uint32_t width, std::uint32_t wavefronts,
                        LaneAddresses& lanes, SharedAccess access, std::uint32_t distance) {
  constexpr std::uint32_t bank_row_bytes = 128;
  // Both lanes of a pair get the rank of the lower one among lower lanes.
  const auto place_of = [distance](std::uint32_t lane) {
    return distance == 0 ? lane : (lane & (distance - 1)) | (lane / (2 * distance) * distance);
  };
  for (std::uint32_t rest = mask; rest != 0;) {
    const std::uint32_t lane = take_lane(rest);
    lanes.address[lane] = std::uint64_t{place_of(lane)} * width;
  }
  const std::uint32_t least = shared_wavefronts(lanes, width, access);
  if (least >= wavefronts) return least == wavefronts;
  // A place in a row of its own, at the bank of the first one, adds a wavefront to its group. If
  // lanes of a word take turns, so does the first one's word.
  const std::uint32_t group_lanes = shared_group_lanes(width, distance != 0);
  std::uint32_t missing = wavefronts - least;
  for (std::uint32_t first = 0; first < warp_size; first += group_lanes) {
    const std::uint32_t end = std::min(first + group_lanes, warp_size);
    std::uint64_t row = 0;
    std::optional<std::uint64_t> first_address;
    std::uint32_t placed = 0;  // lanes
    for (std::uint32_t lane = first; lane < end; ++lane) {
      if ((mask >> lane & 1) == 0 || (placed >> lane & 1) != 0) continue;
      if (first_address && missing > 0) {
        --missing;
        ++row;
        const bool in_turn = access == SharedAccess::in_turn;
        lanes.address[lane] = *first_address + (in_turn ? 0 : row * bank_row_bytes);
      }
      if (!first_address) first_address = lanes.address[lane];
      lanes.address[lane ^ distance] = lanes.address[lane];
      placed |= 1u << (lane ^ distance);
    }
  }
  return shared_wavefronts(lanes, width, access) == wavefronts;
}

}  // namespace

bool place_shared_lanes(std::uint32_t mask, std::uint32_t width, std::uint32_t wavefronts,
                        LaneAddresses& lanes, SharedAccess access) {
  lanes.mask = mask;
  if (width == 0) return false;
  const auto place = [&](std::uint32_t distance) {
    return place_shared_pairs(mask, width, wavefronts, lanes, access, distance);
  };
  return place(0) || (access == SharedAccess::load && (place(1) || place(2)));
}

bool place_generic_lanes(std::uint32_t mask, std::uint32_t width, std::uint64_t warp,
                         const GenericWindows& windows, std::span<const std::uint64_t> sectors,
                         std::span<const std::uint32_t> store_bytes, LaneAddresses& lanes,
                         std::span<const AtomicLanes> atomics) {
  lanes.mask = mask;
  const auto split = static_cast<std::size_t>(
      std::ranges::find_if(sectors, [](std::uint64_t s) { return s >= local_region_sector; }) -
      sectors.begin());
  const auto part = [&](auto column, std::size_t from, std::size_t to) {
    return column.empty() ? column : column.subspan(from, to - from);
  };
  const auto global = sectors.first(split);
  const auto local = sectors.subspan(split);
  const auto global_bytes = part(store_bytes, 0, split);
  const auto local_bytes = part(store_bytes, split, sectors.size());
  if (global.empty() && local.empty()) return false;

  std::uint32_t local_mask = 0;
  if (!local.empty()) {
    LocalGroups groups;
    if (!split_local(warp, local, local_bytes, groups)) return false;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].words.empty()) continue;
      if (!store_bytes.empty()) {
        local_mask |= writers(groups[g], g);
        continue;
      }
      // Use the fewest lanes that can touch the words: the others belong to another space.
      std::size_t needed = shortest_reads(groups[g].words, width, word_bytes).size();
      std::uint32_t candidates = mask & 0xffu << (g * lanes_per_sector);
      for (; needed > 0 && candidates != 0; --needed) local_mask |= 1u << take_lane(candidates);
    }
    if ((local_mask & ~mask) != 0) return false;
    if (!place_local_lanes(local_mask, width, warp, local, local_bytes, lanes)) return false;
    for (std::uint32_t rest = local_mask; rest != 0;) {
      lanes.address[take_lane(rest)] += windows.local;
    }
  }
  std::uint32_t global_mask = global.empty() ? 0 : mask & ~local_mask;
  const auto of_global = part(atomics, 0, split);
  if (!of_global.empty()) {
    std::uint32_t candidates = std::exchange(global_mask, 0);
    for (const AtomicLanes& of_sector : of_global) {
      for (std::uint32_t i = 0; i < of_sector.sector && candidates != 0; ++i) {
        global_mask |= 1u << take_lane(candidates);
      }
    }
  } else if (local.empty()) {
    global_mask &= ~std::bit_floor(global_mask);  // one lane was in shared memory
  }
  if (!global.empty() && !place_lanes(global_mask, width, global, global_bytes, lanes, of_global)) {
    return false;
  }
  for (std::uint32_t rest = mask & ~local_mask & ~global_mask; rest != 0;) {
    lanes.address[take_lane(rest)] = windows.shared;
  }
  lanes.mask = mask;
  const auto uses = [](std::uint64_t base, std::uint32_t lanes_there) {
    return base != 0 || lanes_there == 0;
  };
  return uses(windows.local, local_mask) && uses(windows.shared, mask & ~local_mask & ~global_mask);
}

}  // namespace warpstack::trace
