#include "trace/instructions/coalescing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace warpstack::trace {
namespace {

/// Collects the unique sectors of one warp instruction in order of first touch.
class SectorCollector {
 public:
  SectorCollector(std::vector<std::uint64_t>& sectors, std::vector<std::uint32_t>* bytes)
      : sectors_(sectors),
        bytes_(bytes),
        first_(sectors.size()),
        byte_first_(bytes ? bytes->size() : 0) {}

  void touch(std::uint64_t address, std::uint32_t width) {
    const std::uint64_t last = (address + width - 1) / sector_bytes;
    for (std::uint64_t sector = address / sector_bytes; sector <= last; ++sector) {
      const std::uint64_t begin = std::max(address, sector * sector_bytes) % sector_bytes;
      const std::uint64_t end = std::min(address + width, (sector + 1) * sector_bytes);
      const std::uint64_t length = end - (sector * sector_bytes + begin);
      const auto mask = static_cast<std::uint32_t>(((std::uint64_t{1} << length) - 1) << begin);
      const std::size_t index = find_or_append(sector);
      if (bytes_) (*bytes_)[byte_first_ + index] |= mask;
    }
  }

  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(sectors_.size() - first_);
  }

 private:
  std::size_t find_or_append(std::uint64_t sector) {
    // Neighbouring lanes mostly share a sector or move on in one direction; only a sector inside
    // the range seen so far needs a search.
    if (sector > highest_ || sector < lowest_) {
      highest_ = std::max(highest_, sector);
      lowest_ = std::min(lowest_, sector);
    } else {
      for (std::size_t i = sectors_.size(); i-- > first_;) {
        if (sectors_[i] == sector) return i - first_;
      }
    }
    sectors_.push_back(sector);
    if (bytes_) bytes_->push_back(0);
    return sectors_.size() - 1 - first_;
  }

  std::vector<std::uint64_t>& sectors_;
  std::vector<std::uint32_t>* bytes_;
  std::size_t first_;
  std::size_t byte_first_;
  std::uint64_t highest_ = 0;
  std::uint64_t lowest_ = std::numeric_limits<std::uint64_t>::max();
};

/// The bits in which the addresses of a full warp differ from the first lane's.
std::uint64_t differing_bits(const LaneAddresses& lanes) {
  const std::uint64_t first = lanes.address[0];
  std::uint64_t bits = 0;
  for (const std::uint64_t address : lanes.address) bits |= address ^ first;
  return bits;
}

/// Lane i of a full warp accesses first + i * width.
bool is_consecutive(const LaneAddresses& lanes, std::uint32_t width) {
  std::uint64_t bits = 0;
  for (std::uint64_t lane = 0; lane < warp_size; ++lane) {
    bits |= lanes.address[lane] ^ (lanes.address[0] + lane * width);
  }
  return bits == 0;
}

/// The common accesses of a full warp: naturally aligned, and consecutive or within one sector.
/// Returns 0 when the access is another.
std::uint32_t coalesce_simple(const LaneAddresses& lanes, std::uint32_t width,
                              std::vector<std::uint64_t>& sectors,
                              std::vector<std::uint32_t>* store_bytes) {
  if (lanes.mask != ~std::uint32_t{0} || width == 0 || (width & (width - 1)) != 0 ||
      width > sector_bytes) {
    return 0;
  }
  const std::uint64_t first = lanes.address[0];
  const std::uint64_t bits = differing_bits(lanes);
  if (((first | bits) & (width - 1)) != 0) return 0;
  if (bits < sector_bytes && store_bytes == nullptr) {
    sectors.push_back(first / sector_bytes);
    return 1;
  }
  if (!is_consecutive(lanes, width)) return 0;
  const std::uint64_t end = first + warp_size * width;
  const std::uint64_t begin_sector = first / sector_bytes;
  const std::uint64_t end_sector = (end + sector_bytes - 1) / sector_bytes;
  for (std::uint64_t sector = begin_sector; sector < end_sector; ++sector) {
    sectors.push_back(sector);
    if (store_bytes == nullptr) continue;
    const std::uint64_t from = std::max(first, sector * sector_bytes) % sector_bytes;
    const std::uint64_t length =
        std::min(end, (sector + 1) * sector_bytes) - (sector * sector_bytes + from);
    store_bytes->push_back(static_cast<std::uint32_t>(((std::uint64_t{1} << length) - 1) << from));
  }
  return static_cast<std::uint32_t>(end_sector - begin_sector);
}

/// Passes over the banks of L1 of lanes with `unit` bytes each, or less of a word, if all are
/// active, aligned, and one distance apart; else 0.
std::uint32_t passes_of_stride(const LaneAddresses& lanes, std::uint32_t unit) {
  const std::uint64_t stride = lanes.address[1] - lanes.address[0];
  if (lanes.mask != ~std::uint32_t{0} || ((stride | lanes.address[0]) & (unit - 1)) != 0) return 0;
  std::uint64_t bits = 0;
  for (std::uint64_t lane = 0; lane < warp_size; ++lane) {
    bits |= lanes.address[lane] ^ (lanes.address[0] + lane * stride);
  }
  if (bits != 0) return 0;
  // So many lanes of a group, a power of two, come back to the first one's place in a line.
  const std::uint64_t places = warp_size / (unit / 4);
  const std::uint64_t step = stride / unit;
  const std::uint64_t at_one_place = stride == 0 ? 1 : std::min(step & -step, places);
  return static_cast<std::uint32_t>(at_one_place * (unit / 4));
}

/// For each mask of the eight words of a sector: a byte per word, 1 if it is in the mask.
constexpr std::array<std::uint64_t, 256> spread_words = [] {
  std::array<std::uint64_t, 256> result{};
  for (std::uint32_t mask = 0; mask < result.size(); ++mask) {
    for (std::uint32_t word = 0; word < 8; ++word) {
      result[mask] |= std::uint64_t{mask >> word & 1} << 8 * word;
    }
  }
  return result;
}();

/// Passes over the banks of L1 of lanes that proceed together, from the bytes that they want of
/// each sector: the most sectors at one place in a line of which one word is wanted.
std::uint32_t passes_of_bytes(std::span<const std::uint64_t> sectors,
                              std::span<const std::uint32_t> bytes) {
  std::array<std::uint64_t, 4> wanted{};  // a byte per bank
  for (std::size_t i = 0; i < sectors.size(); ++i) {
    // A bit for each word: the lowest of its four, then the eight bits side by side.
    std::uint32_t words = bytes[i] | bytes[i] >> 1;
    words = (words | words >> 2) & 0x11111111u;
    words = (words | words >> 3) & 0x03030303u;
    words = (words | words >> 6) & 0x000f000fu;
    words = (words | words >> 12) & 0xffu;
    wanted[sectors[i] % wanted.size()] += spread_words[words];
  }
  std::uint64_t most = 0;
  for (const std::uint64_t banks : wanted) {
    for (std::uint32_t bank = 0; bank < 8; ++bank) most = std::max(most, banks >> 8 * bank & 0xff);
  }
  return static_cast<std::uint32_t>(most);
}

/// Accesses that lie in one sector each, as naturally aligned ones do, wherever that is. Returns 0
/// when one of them does not. `passes` gets those of lanes that proceed together, if they do.
std::uint32_t coalesce_scattered(const LaneAddresses& lanes, std::uint32_t width,
                                 std::vector<std::uint64_t>& sectors,
                                 std::vector<std::uint32_t>* store_bytes, std::uint32_t* passes) {
  if (width == 0 || width > sector_bytes) return 0;
  std::array<std::uint64_t, warp_size> found;
  std::array<std::uint32_t, warp_size> bytes;
  // A set bit may stand for another sector, but a bit that is not set stands for none.
  std::array<std::uint64_t, 4> seen{};
  std::uint32_t count = 0;
  const std::uint64_t pattern = (std::uint64_t{1} << width) - 1;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = lanes.address[std::countr_zero(rest)];
    const std::uint64_t place = address % sector_bytes;
    if (place + width > sector_bytes) return 0;
    const std::uint64_t sector = address / sector_bytes;
    const std::uint64_t hash = sector * 0x9e3779b97f4a7c15u >> 56;
    const std::uint64_t bit = std::uint64_t{1} << hash % 64;
    std::uint32_t i = count;
    if (count > 0 && found[count - 1] == sector) {
      i = count - 1;
    } else if ((seen[hash / 64] & bit) != 0) {
      i = static_cast<std::uint32_t>(std::find(found.begin(), found.begin() + count, sector) -
                                     found.begin());
    }
    if (i == count) {
      seen[hash / 64] |= bit;
      found[count] = sector;
      bytes[count++] = 0;
    }
    bytes[i] |= static_cast<std::uint32_t>(pattern << place);
  }
  if (passes != nullptr && width <= 4) {
    *passes = count == 1 ? 1 : passes_of_bytes({found.data(), count}, {bytes.data(), count});
  }
  sectors.insert(sectors.end(), found.begin(), found.begin() + count);
  if (store_bytes != nullptr) {
    store_bytes->insert(store_bytes->end(), bytes.begin(), bytes.begin() + count);
  }
  return count;
}

}  // namespace

std::uint32_t coalesce(const LaneAddresses& lanes, std::uint32_t width,
                       std::vector<std::uint64_t>& sectors, std::vector<std::uint32_t>* store_bytes,
                       std::uint32_t* passes) {
  const std::uint32_t simple = coalesce_simple(lanes, width, sectors, store_bytes);
  if (simple != 0) {
    // Neighbouring or equal words do not conflict.
    if (passes != nullptr) *passes = std::max(width / 4, 1u);
    return simple;
  }
  if (passes != nullptr)
    *passes = width <= 4 ? passes_of_stride(lanes, 4) : l1_passes(lanes, width);
  const bool is_open = passes != nullptr && *passes == 0;
  const std::uint32_t scattered =
      coalesce_scattered(lanes, width, sectors, store_bytes, is_open ? passes : nullptr);
  if (is_open && *passes == 0) *passes = l1_passes(lanes, width);
  if (scattered != 0) return scattered;
  SectorCollector collector(sectors, store_bytes);
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    collector.touch(lanes.address[std::countr_zero(rest)], width);
  }
  return collector.count();
}

std::uint32_t coalesce(std::span<const std::uint64_t> addresses, std::uint32_t width,
                       std::vector<std::uint64_t>& sectors) {
  SectorCollector collector(sectors, nullptr);
  for (const std::uint64_t address : addresses) collector.touch(address, width);
  return collector.count();
}

namespace {

/// Where a byte at a private offset of a lane lies.
std::uint64_t local_address(std::uint64_t offset, std::uint64_t lane, std::uint64_t warp) {
  const std::uint64_t base = local_region_sector * sector_bytes + warp * warp_size * window_bytes;
  return base + (offset / 4 * warp_size + lane) * 4 + offset % 4;
}

}  // namespace

std::uint32_t coalesce_local(const LaneAddresses& lanes, std::uint32_t width, std::uint64_t warp,
                             std::vector<std::uint64_t>& sectors,
                             std::vector<std::uint32_t>* store_bytes) {
  SectorCollector collector(sectors, store_bytes);
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint64_t>(std::countr_zero(rest));
    const std::uint64_t offset = lanes.address[lane] % window_bytes;
    // Word by word, because neighbouring words of one lane lie a whole row apart.
    for (std::uint64_t byte = offset; byte < offset + width;) {
      const std::uint64_t word = byte / 4;
      const std::uint64_t end = std::min((word + 1) * 4, offset + width);
      collector.touch(local_address(byte, lane, warp), static_cast<std::uint32_t>(end - byte));
      byte = end;
    }
  }
  return collector.count();
}

LaneAddresses local_addresses(const LaneAddresses& lanes, std::uint64_t warp) {
  LaneAddresses result = lanes;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint64_t>(std::countr_zero(rest));
    result.address[lane] = local_address(lanes.address[lane] % window_bytes, lane, warp);
  }
  return result;
}

namespace {

/// Whether all active lanes n and n ^ `distance` have equal addresses.
bool are_pairs(const LaneAddresses& lanes, std::uint32_t distance) {
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint32_t other = lane ^ distance;
    if ((lanes.mask >> other & 1) != 0 && lanes.address[lane] != lanes.address[other]) return false;
  }
  return true;
}

}  // namespace

std::uint32_t implied_passes(std::span<const std::uint64_t> sectors) {
  constexpr std::size_t sectors_per_pass = 4;
  if (sectors.size() <= 0xff) {  // a byte per place in a line
    std::uint32_t counts = 0;
    for (const std::uint64_t sector : sectors) counts += 1u << 8 * (sector % sectors_per_pass);
    return std::max({counts & 0xff, counts >> 8 & 0xff, counts >> 16 & 0xff, counts >> 24});
  }
  std::array<std::uint32_t, sectors_per_pass> wanted{};
  for (const std::uint64_t sector : sectors) ++wanted[sector % sectors_per_pass];
  return *std::ranges::max_element(wanted);
}

namespace {

/// A set of up to 65 units, which counts them by their places in a line. Nothing is cleared but two
/// words of bits and the counts.
class UnitsOfPlaces {
 public:
  explicit UnitsOfPlaces(std::uint32_t places) : last_place_(places - 1) {}

  void add(std::uint64_t unit) {
    for (std::uint64_t slot = unit * 0x9e3779b97f4a7c15u >> 57;; slot = (slot + 1) % num_slots) {
      std::uint64_t& used = used_[slot / 64];
      const std::uint64_t bit = std::uint64_t{1} << slot % 64;
      if ((used & bit) == 0) {
        used |= bit;
        units_[slot] = unit;
        most_ = std::max<std::uint32_t>(most_, ++at_place_[unit & last_place_]);
        return;
      }
      if (units_[slot] == unit) return;
    }
  }
  [[nodiscard]] std::uint32_t most() const { return most_; }

 private:
  static constexpr std::size_t num_slots = 128;
  std::uint64_t last_place_;
  std::array<std::uint64_t, num_slots> units_;
  std::array<std::uint64_t, 2> used_{};
  std::array<std::uint8_t, 32> at_place_{};
  std::uint32_t most_ = 0;
};

bool are_aligned(const LaneAddresses& lanes, std::uint32_t width) {
  if (lanes.mask == ~std::uint32_t{0}) {
    std::uint64_t bits = 0;
    for (const std::uint64_t address : lanes.address) bits |= address;
    return (bits & (width - 1)) == 0;
  }
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    if ((lanes.address[std::countr_zero(rest)] & (width - 1)) != 0) return false;
  }
  return true;
}

/// Passes over 32 banks of lanes with `width` aligned bytes each, a power of two of 4 to 32, which
/// proceed in groups. Lanes conflict with all their words or none.
std::uint32_t aligned_passes(const LaneAddresses& lanes, std::uint32_t width,
                             std::uint32_t lanes_per_group) {
  const std::uint32_t places = 4 * warp_size / width;
  const int shift = std::countr_zero(width);
  std::uint32_t passes = 0;
  for (std::uint32_t first = 0; first < warp_size; first += lanes_per_group) {
    const auto group = static_cast<std::uint32_t>(
        lanes.mask & ((std::uint64_t{1} << lanes_per_group) - 1) << first);
    std::uint32_t taken = 0;
    for (std::uint32_t rest = group; rest != 0; rest &= rest - 1) {
      taken |= 1u << (lanes.address[std::countr_zero(rest)] >> shift & (places - 1));
    }
    if (std::popcount(taken) == std::popcount(group)) {  // as a rule: each has a place of its own
      passes += group != 0 ? 1 : 0;
      continue;
    }
    UnitsOfPlaces units(places);
    for (std::uint32_t rest = group; rest != 0; rest &= rest - 1) {
      units.add(lanes.address[std::countr_zero(rest)] >> shift);
    }
    passes += units.most();
  }
  return passes;
}

}  // namespace

std::uint32_t l1_passes(const LaneAddresses& lanes, std::uint32_t width) {
  constexpr std::uint32_t most_bytes = 32;
  if (width == 0 || width > most_bytes) return 0;
  const bool is_power = (width & (width - 1)) == 0;
  const std::uint32_t unit = is_power && width > 4 ? width : 4;
  if (width <= unit) {
    if (const std::uint32_t passes = passes_of_stride(lanes, unit); passes != 0) return passes;
  }
  const std::uint32_t lanes_per_group = shared_group_lanes(width, false);
  if (width == unit && are_aligned(lanes, unit)) {
    return aligned_passes(lanes, unit, lanes_per_group);
  }
  constexpr std::uint32_t bytes = 4;
  std::uint32_t passes = 0;
  for (std::uint32_t first = 0; first < warp_size; first += lanes_per_group) {
    const std::uint64_t group = ((std::uint64_t{1} << lanes_per_group) - 1) << first;
    UnitsOfPlaces units(warp_size);
    for (auto rest = static_cast<std::uint32_t>(lanes.mask & group); rest != 0; rest &= rest - 1) {
      const std::uint64_t address = lanes.address[std::countr_zero(rest)];
      for (std::uint64_t next = address / bytes; next <= (address + width - 1) / bytes; ++next) {
        units.add(next);
      }
    }
    passes += units.most();
  }
  return passes;
}

std::uint32_t shared_group_lanes(std::uint32_t width, bool is_paired) {
  const std::uint32_t words_per_lane = std::max((width + 3) / 4, 1u);
  const std::uint32_t lanes = std::max(warp_size / words_per_lane, 1u);
  return is_paired ? std::min(2 * lanes, warp_size) : lanes;
}

std::uint32_t shared_wavefronts(const LaneAddresses& lanes, std::uint32_t width,
                                SharedAccess access) {
  const bool in_turn = access == SharedAccess::in_turn;
  constexpr std::uint32_t num_banks = 32;
  if (!in_turn && lanes.mask == ~std::uint32_t{0} && width == 4) {
    // Aligned words of one line of 32 lie in different banks or are the same word.
    const std::uint64_t bits = differing_bits(lanes);
    if (bits < 4 * num_banks && ((lanes.address[0] | bits) & 3) == 0) return 1;
  }
  const bool is_paired = access == SharedAccess::load && (width == 8 || width == 16) &&
                         (are_pairs(lanes, 1) || are_pairs(lanes, 2));
  const std::uint32_t lanes_per_group = shared_group_lanes(width, is_paired);
  if (!in_turn && (width == 4 || width == 8 || width == 16) && are_aligned(lanes, width)) {
    return aligned_passes(lanes, width, lanes_per_group);
  }
  std::uint32_t wavefronts = 0;
  // A group has at most 32 lanes of one word, fewer of wider accesses, and misaligned lanes touch
  // one word more: 64 words, or 65 of the widest access, 256 bytes. Pairs have up to 96.
  std::array<std::uint64_t, 96> words;
  for (std::uint32_t first = 0; first < warp_size; first += lanes_per_group) {
    const std::uint64_t group_mask = ((std::uint64_t{1} << lanes_per_group) - 1) << first;
    std::size_t num_words = 0;
    for (auto rest = static_cast<std::uint32_t>(lanes.mask & group_mask); rest != 0;
         rest &= rest - 1) {
      const std::uint64_t address = lanes.address[std::countr_zero(rest)];
      for (std::uint64_t word = address / 4; word <= (address + width - 1) / 4; ++word) {
        words[num_words++] = word;
      }
    }
    std::sort(words.begin(), words.begin() + num_words);
    std::array<std::uint32_t, num_banks> load{};
    std::uint32_t worst = 0;
    for (std::size_t i = 0; i < num_words; ++i) {
      if (!in_turn && i > 0 && words[i] == words[i - 1]) continue;  // broadcast
      worst = std::max(worst, ++load[words[i] % num_banks]);
    }
    wavefronts += worst;
  }
  return wavefronts;
}

}  // namespace warpstack::trace
