#include "simt/units/load_store.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

template <class T>
void load_element(std::byte* registers, const MemoryAccess& access, std::uint32_t element,
                  const LaneAddresses& lanes, const HostRange& range) {
  const std::uint32_t slot = access.values[element];
  const std::uint32_t bytes = access.value_bytes[element];
  const HostRange from = range.behind(std::uint64_t{element} * sizeof(T));
  // The plain case: the register is as wide as the value.
  if (bytes == sizeof(T) && sizeof(T) >= 4) {
    T* const target = reinterpret_cast<T*>(registers + slot);
    if (range.pattern == AddressPattern::same) {
      T value;
      std::memcpy(&value, from.at(lanes.address[0]), sizeof(T));
      std::fill_n(target, warp_size, value);
    } else if (range.pattern == AddressPattern::consecutive && access.elements == 1) {
      std::memcpy(target, from.at(lanes.address[0]), warp_size * sizeof(T));
    } else if (lanes.mask == all_lanes) {
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        std::memcpy(&target[lane], from.at(lanes.address[lane]), sizeof(T));
      }
    } else {
      for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        std::memcpy(&target[lane], from.at(lanes.address[lane]), sizeof(T));
      }
    }
    return;
  }
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    T value;
    std::memcpy(&value, from.at(lanes.address[lane]), sizeof(T));
    write_lane(registers, slot, bytes, lane, extended(value, sizeof(T), access.sign_extend));
  }
}

template <class T>
void store_element(const std::byte* registers, const MemoryAccess& access, std::uint32_t element,
                   const LaneAddresses& lanes, const HostRange& range) {
  const std::uint32_t slot = access.values[element];
  const HostRange to = range.behind(std::uint64_t{element} * sizeof(T));
  const std::uint32_t stride = access.value_bytes[element] == 8 ? 8 : 4;
  if (range.pattern == AddressPattern::consecutive && access.elements == 1 && stride == sizeof(T)) {
    std::memcpy(to.at(lanes.address[0]), registers + slot, warp_size * sizeof(T));
    return;
  }
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    T value;
    std::memcpy(&value, registers + slot + stride * static_cast<std::uint32_t>(lane), sizeof(T));
    std::memcpy(to.at(lanes.address[lane]), &value, sizeof(T));
  }
}

template <class F>
void for_width(std::uint32_t bytes, F f) {
  switch (bytes) {
    case 1:
      f(std::uint8_t{});
      break;
    case 2:
      f(std::uint16_t{});
      break;
    case 4:
      f(std::uint32_t{});
      break;
    default:
      f(std::uint64_t{});
      break;
  }
}

/// The detector that follows a warp's accesses to memory that others see; mostly null.
SpinDetector* detector_of(const Warp& warp, const MemoryAccess& access) {
  return access.space == AddressSpace::local ? nullptr : warp.detector.get();
}

template <class F>
void for_lanes(const LaneAddresses& lanes, F f) {
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    f(std::countr_zero(rest));
  }
}

/// Bytes that a lane of an asynchronous copy reads; zeros follow them.
std::uint32_t bytes_read(const MemoryAccess& access, const std::byte* registers, int lane) {
  if (access.source_bytes == none) return access.bytes;
  return std::min<std::uint32_t>(access.bytes, lane_u32(registers, access.source_bytes, lane));
}

/// Loads or stores if a single range of host memory serves all lanes.
void move_elements(std::byte* registers, const MemoryAccess& access, const LaneAddresses& lanes,
                   const HostRange& range, bool is_load) {
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    for_width(access.bytes, [&]<class T>(T) {
      if (is_load) {
        load_element<T>(registers, access, e, lanes, range);
      } else {
        store_element<T>(registers, access, e, lanes, range);
      }
    });
  }
}

}  // namespace

void LoadStore::access(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  const MemoryAccess& access = program_.memory[step.detail];
  LaneAddresses& lanes = addresses_;
  warp.clock = nullptr;  // it does more than watch the clock
  read_addresses(registers, access, mask, lanes);
  const bool is_copy = step.action == Action::async_copy;
  drop_own_ranks(execution_, is_copy ? AddressSpace::shared : access.space, lanes);
  if (is_copy) {
    copy_async(warp, step, access, registers, lanes);
    return;
  }
  const std::uint32_t bytes = std::uint32_t{access.bytes} * access.elements;
  if (step.action == Action::atomic) {
    spaces_.check_alignment(warp, step, lanes, bytes);
    update(warp, step, access, registers, lanes);
  } else {
    const bool is_load = step.action == Action::load;
    const HostRange range = range_of(warp, step, access, bytes, is_load);
    const LaneAddresses& places = range.moved ? places_ : lanes;
    const bool notes_changes = races_.is_on() && !is_load;
    if (notes_changes) races_.keep_bytes(access.space, lanes, bytes);
    SpinDetector* const detector = detector_of(warp, access);
    if (detector != nullptr) detector->begin_access(step.detail, mask);
    if (range) {
      if (detector != nullptr) {
        for_lanes(lanes, [&](int lane) {
          detector->before(lanes.address[lane], range.at(places.address[lane]), bytes);
        });
      }
      move_elements(registers, access, places, range, is_load);
      if (detector != nullptr) {
        for_lanes(lanes, [&](int lane) { detector->after(range.at(places.address[lane]), bytes); });
      }
    } else {
      spaces_.check_alignment(warp, step, lanes, bytes);
      LaneAddresses one;
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        one.mask = 1u << lane;
        one.address[lane] = 0;
        std::byte* const place =
            spaces_.pointer(warp, step, access.space, static_cast<std::uint32_t>(lane),
                            lanes.address[lane], bytes, {.reads = is_load, .writes = !is_load});
        if (detector != nullptr) detector->before(lanes.address[lane], place, bytes);
        move_elements(registers, access, one, {.data = place}, is_load);
        if (detector != nullptr) detector->after(place, bytes);
      }
    }
    if (detector != nullptr) {
      detector->end_access(step, is_load && access.strong && access.space != AddressSpace::shared);
    }
    if (notes_changes) races_.find_changes(access.space, lanes, bytes);
  }
  if (races_.is_on() && !access.constant) {
    const bool is_load = step.action == Action::load;
    races_.check(warp, step, access.space, lanes, bytes,
                 is_load         ? access.strong ? RaceKind::strong_load : RaceKind::load
                 : access.strong ? RaceKind::strong_store
                                 : RaceKind::store,
                 &access);
  }
  if (access.strong && step.action == Action::load) warp.may_wait = execution_.in_turns;
  if (access.constant) {
    recorder_.record(warp, step, mask);
  } else {
    if (access.space == AddressSpace::generic) fold_cluster(lanes);
    recorder_.record_access(warp, step, mask, &lanes);
  }
}

void LoadStore::fold_cluster(LaneAddresses& lanes) const {
  if (cluster_blocks(execution_.cluster) == 1) return;
  for_lanes(lanes, [&](int lane) {
    std::uint64_t& address = lanes.address[lane];
    if (in_cluster(address - shared_window)) {
      address = shared_window + address % trace::window_bytes;
    }
  });
}

HostRange LoadStore::range_of(Warp& warp, const Step& step, const MemoryAccess& access,
                              std::uint32_t bytes, bool is_load) {
  switch (access.space) {
    case AddressSpace::shared:
      return spaces_.common_shared_range(addresses_, bytes, is_load);
    case AddressSpace::local:
      return spaces_.common_local_range(warp, addresses_, bytes, is_load, places_);
    default:
      return spaces_.common_range(step, addresses_, bytes, is_load, places_);
  }
}

void LoadStore::update(Warp& warp, const Step& step, const MemoryAccess& access,
                       std::byte* registers, const LaneAddresses& lanes) {
  const std::uint32_t register_bytes = access.bytes;
  const std::uint32_t bytes = std::uint32_t{access.bytes} * access.elements;
  // A program may drop some of a vector's results.
  const bool has_result =
      access.result != none ||
      std::ranges::any_of(access.more_results, [](std::uint32_t slot) { return slot != none; });
  SpinDetector* const detector = detector_of(warp, access);
  if (detector != nullptr) detector->begin_access(step.detail, lanes.mask);
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::byte* const place =
        spaces_.pointer(warp, step, access.space, static_cast<std::uint32_t>(lane),
                        lanes.address[lane], bytes, {.reads = !access.overwrites, .writes = true});
    if (detector != nullptr) detector->before(lanes.address[lane], place, bytes);
    // All elements are read before results are written, which may be in the same registers.
    std::array<std::uint64_t, 8> old{};
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      std::byte* const element = place + std::size_t{e} * access.bytes;
      std::memcpy(&old[e], element, access.bytes);
      const std::uint32_t operand = e == 0 ? access.operand_b : access.more_operands[e - 1];
      const std::uint64_t b = read_lane(registers, operand, register_bytes, lane);
      const std::uint64_t c = access.operand_c == none
                                  ? 0
                                  : read_lane(registers, access.operand_c, register_bytes, lane);
      if (access.counts && access.space != AddressSpace::shared) {
        old[e] = with_others(access, old[e], b);
      }
      const std::uint64_t value = access.atomic(old[e], b, c);
      std::memcpy(element, &value, access.bytes);
    }
    if (detector != nullptr) detector->after(place, bytes);
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      const std::uint32_t result = e == 0 ? access.result : access.more_results[e - 1];
      if (result != none) write_lane(registers, result, register_bytes, lane, old[e]);
    }
  }
  if (detector != nullptr) {
    detector->end_access(step, has_result && access.space != AddressSpace::shared);
  }
  if (access.takes_locks) ++warp.spins;
  if (has_result) warp.may_wait = execution_.in_turns;
}

std::uint64_t LoadStore::with_others(const MemoryAccess& access, std::uint64_t count,
                                     std::uint64_t step) {
  const std::uint64_t all = execution_.recorded.num_blocks();
  const std::uint64_t own = execution_.num_blocks;
  if (own == all) return count;
  std::vector<std::uint64_t>& taken = execution_.counts_taken;
  taken.resize(program_.memory.size());
  const std::uint64_t before = taken[static_cast<std::size_t>(&access - program_.memory.data())]++;
  // Counts of all blocks up to this one and up to the one before it, less this one.
  const auto of_all = [&](std::uint64_t counts) {
    return counts / own * all + counts % own * all / own;
  };
  std::uint64_t others = of_all(before + 1) - of_all(before) - 1;
  for (; others > 0; --others) count = access.atomic(count, step, 0);
  return count;
}

void LoadStore::copy_async(Warp& warp, const Step& step, const MemoryAccess& access,
                           std::byte* registers, const LaneAddresses& to) {
  if (warp.detector != nullptr) warp.detector->work();
  LaneAddresses from;
  read_addresses(registers, access.second_address, access.second_is_64_bits, access.second_offset,
                 to.mask, from);
  spaces_.check_alignment(warp, step, to, access.bytes);
  spaces_.check_alignment(warp, step, from, access.bytes);
  if (!copy_together(step, access, registers, to, from)) {
    copy_one_by_one(warp, step, access, registers, to, from);
  }
  if (races_.is_on()) {
    races_.check(warp, step, AddressSpace::shared, to, access.bytes, RaceKind::store);
  }
  recorder_.record_access(warp, step, to.mask, &from);
}

bool LoadStore::copy_together(const Step& step, const MemoryAccess& access,
                              const std::byte* registers, const LaneAddresses& to,
                              LaneAddresses& from) {
  if (races_.is_on()) return false;
  std::uint32_t readers = to.mask;
  if (access.source_bytes != none) {
    for_lanes(to, [&](int lane) {
      if (bytes_read(access, registers, lane) == 0) readers &= ~(1u << lane);
    });
    const auto reads_all = [&](int lane) {
      return bytes_read(access, registers, lane) == access.bytes;
    };
    for (std::uint32_t rest = readers; rest != 0; rest &= rest - 1) {
      if (!reads_all(std::countr_zero(rest))) return false;
    }
  }
  const HostRange target = spaces_.common_shared_range(to, access.bytes, false);
  if (!target) return false;
  const LaneAddresses* places = &from;
  HostRange source;
  from.mask = readers;  // the others read nothing, as past the end of a matrix
  if (readers != 0) {
    source = spaces_.common_range(step, from, access.bytes, true, places_);
    if (!source) {
      from.mask = to.mask;
      return false;
    }
    if (source.moved) places = &places_;
  }
  const auto copy = [&]<class Bytes>(Bytes) {
    for_lanes(to, [&](int lane) {
      Bytes bytes{};
      if ((readers >> lane & 1) != 0) {
        std::memcpy(&bytes, source.at(places->address[lane]), sizeof bytes);
      }
      std::memcpy(target.at(to.address[lane]), &bytes, sizeof bytes);
    });
  };
  switch (access.bytes) {
    case 4:
      copy(std::array<std::byte, 4>{});
      return true;
    case 8:
      copy(std::array<std::byte, 8>{});
      return true;
    default:
      copy(std::array<std::byte, 16>{});
      return true;
  }
}

void LoadStore::copy_one_by_one(Warp& warp, const Step& step, const MemoryAccess& access,
                                const std::byte* registers, const LaneAddresses& to,
                                LaneAddresses& from) {
  for (std::uint32_t rest = to.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t bytes = bytes_read(access, registers, lane);
    std::byte* const target =
        spaces_.shared(warp, step, static_cast<std::uint32_t>(lane), to.address[lane], access.bytes,
                       {.reads = false, .writes = true});
    std::memset(target, 0, access.bytes);
    if (bytes == 0) {  // nothing is read, as past the end of a matrix
      from.mask &= ~(1u << lane);
      continue;
    }
    const std::byte* const source = spaces_.global(warp, step, static_cast<std::uint32_t>(lane),
                                                   from.address[lane], bytes, true, false);
    std::memcpy(target, source, bytes);
    if (races_.is_on()) {
      LaneAddresses one = from;
      one.mask = 1u << lane;
      races_.check(warp, step, AddressSpace::global, one, bytes, RaceKind::load);
    }
  }
}

void read_addresses(const std::byte* registers, std::uint32_t slot, bool is_64_bits,
                    std::int64_t offset, std::uint32_t mask, LaneAddresses& lanes) {
  lanes.mask = mask;
  const auto addend = static_cast<std::uint64_t>(offset);
  if (slot == none) {
    lanes.address.fill(addend);
  } else if (is_few(mask)) {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      lanes.address[lane] = is_64_bits ? lane_u64(registers, slot, lane) + addend
                                       : (lane_u32(registers, slot, lane) + addend) & 0xffffffffu;
    }
  } else if (is_64_bits) {
    std::memcpy(lanes.address.data(), registers + slot, sizeof lanes.address);
    for (std::uint64_t& address : lanes.address) address += addend;
  } else {
    std::array<std::uint32_t, warp_size> narrow;
    std::memcpy(narrow.data(), registers + slot, sizeof narrow);
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      lanes.address[lane] = (narrow[lane] + addend) & 0xffffffffu;
    }
  }
}

void read_addresses(const std::byte* registers, const MemoryAccess& access, std::uint32_t mask,
                    LaneAddresses& lanes) {
  if (access.address_high == none) {
    read_addresses(registers, access.address, access.address_is_64_bits, access.offset, mask,
                   lanes);
    return;
  }
  lanes.mask = mask;
  const auto addend = static_cast<std::uint64_t>(access.offset);
  if (is_few(mask)) {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t high = lane_u32(registers, access.address_high, lane);
      lanes.address[lane] = (lane_u32(registers, access.address, lane) | high << 32) + addend;
    }
    return;
  }
  std::array<std::uint32_t, warp_size> low;
  std::array<std::uint32_t, warp_size> high;
  std::memcpy(low.data(), registers + access.address, sizeof low);
  std::memcpy(high.data(), registers + access.address_high, sizeof high);
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    lanes.address[lane] = (low[lane] | (std::uint64_t{high[lane]} << 32)) + addend;
  }
}

void query_address(const Execution& execution, const Step& step, std::byte* registers,
                   std::uint32_t mask) {
  const bool has_ranks = has_ranks_in_addresses(execution);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t address = lane_u64(registers, step.operands.source[0], lane);
    if (has_ranks) address = without_own_rank(execution, AddressSpace::generic, address);
    const bool in_shared = in_window(address, shared_window);
    const bool in_local = in_window(address, local_window);
    const bool in_others = in_cluster(address - shared_window);
    bool holds = !in_shared && !in_local && !in_others;  // global and const share one range
    if (step.operands.immediate == 2) holds = in_shared;
    if (step.operands.immediate == 5) holds = in_shared || in_others;
    if (step.operands.immediate == 3) holds = in_local;
    write_lane(registers, step.operands.target, 4, lane, holds ? ~std::uint64_t{0} : 0);
  }
}

}  // namespace warpstack::simt
