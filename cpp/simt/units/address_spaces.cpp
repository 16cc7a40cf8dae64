#include "simt/units/address_spaces.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/text.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

Extent extent_of(const LaneAddresses& lanes, std::uint32_t bytes) {
  Extent extent;
  if (lanes.mask == all_lanes) {
    const std::uint64_t first = lanes.address[0];
    const std::uint64_t last = lanes.address[warp_size - 1];
    // The last lane tells which pattern all lanes are checked for.
    const std::uint64_t step = last == first ? 0 : bytes;
    if (last >= first && last - first == (warp_size - 1) * step) {
      std::uint64_t others = 0;
      for (std::uint64_t lane = 0; lane < warp_size; ++lane) {
        others |= lanes.address[lane] ^ (first + lane * step);
      }
      if (others == 0) {
        return {first, last, first, step == 0 ? AddressPattern::same : AddressPattern::consecutive};
      }
    }
    for (const std::uint64_t address : lanes.address) {
      extent.least = std::min(extent.least, address);
      extent.greatest = std::max(extent.greatest, address);
      extent.any |= address;
    }
    return extent;
  }
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = lanes.address[std::countr_zero(rest)];
    extent.least = std::min(extent.least, address);
    extent.greatest = std::max(extent.greatest, address);
    extent.any |= address;
  }
  return extent;
}

/// Calls `f` with the entries of an allocation's map for the bytes of each lane, at most eight
/// entries as a number.
template <class F>
void for_places(std::uint8_t* written, std::uint64_t origin, const LaneAddresses& lanes,
                std::uint32_t bytes, F f) {
  const auto call = [&]<class T>(T) {
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      std::uint8_t* const place = written + (lanes.address[std::countr_zero(rest)] - origin);
      for (std::uint32_t b = 0; b < bytes; b += sizeof(T)) f(place + b, T{});
    }
  };
  if (bytes == 1) return call(std::uint8_t{});
  if (bytes == 2) return call(std::uint16_t{});
  if (bytes == 4) return call(std::uint32_t{});
  call(std::uint64_t{});
}

/// Entries that are all written, as a number.
template <class T>
constexpr T all_written = static_cast<T>(0x0101010101010101u);

void mark_lanes(std::uint8_t* written, std::uint64_t origin, const LaneAddresses& lanes,
                std::uint32_t bytes) {
  for_places(written, origin, lanes, bytes, []<class T>(std::uint8_t* place, T) {
    std::memcpy(place, &all_written<T>, sizeof(T));
  });
}

bool holds_lanes(std::uint8_t* written, std::uint64_t origin, const LaneAddresses& lanes,
                 std::uint32_t bytes) {
  std::uint64_t missing = 0;
  for_places(written, origin, lanes, bytes, [&]<class T>(const std::uint8_t* place, T) {
    T found;
    std::memcpy(&found, place, sizeof(T));
    missing |= found ^ all_written<T>;
  });
  return missing == 0;
}

}  // namespace

const char* verb_of(const Step& step) {
  switch (step.action) {
    case Action::store:
    case Action::matrix_store:
    case Action::fragment_store:
      return "store";
    case Action::atomic:
      return "atomic operation";
    case Action::async_copy:
    case Action::bulk_copy:
    case Action::tensor_copy:
      return "copy";
    default:
      return "load";
  }
}

std::string access_text(const Step& step, const char* problem, std::uint64_t address,
                        std::uint64_t bytes) {
  return std::string(problem) + verb_of(step) + " of " + std::to_string(bytes) + " bytes at " +
         hexadecimal(address);
}

std::string describe_shared(const KernelProgram& program, std::uint64_t address) {
  for (const SharedVariable& variable : program.shared_variables) {
    if (address - variable.offset >= variable.bytes) continue;
    return std::to_string(address - variable.offset) + " bytes into the shared variable " +
           variable.name;
  }
  if (program.uses_dynamic_shared && address >= program.dynamic_shared_offset) {
    return std::to_string(address - program.dynamic_shared_offset) +
           " bytes into the dynamic shared memory";
  }
  return "between the shared variables";
}

std::byte* AddressSpaces::pointer(Warp& warp, const Step& step, AddressSpace space,
                                  std::uint32_t lane, std::uint64_t address, std::uint32_t bytes,
                                  AccessUse use) {
  switch (space) {
    case AddressSpace::shared:
      return shared(warp, step, lane, address, bytes, use);
    case AddressSpace::local:
      return local(warp, step, lane, address, bytes, use);
    case AddressSpace::global:
      return global(warp, step, lane, address, bytes, use.reads, use.writes);
    case AddressSpace::generic:
      break;
  }
  if (in_window(address, shared_window)) {
    return shared(warp, step, lane, address - shared_window, bytes, use);
  }
  if (in_window(address, local_window)) {
    return local(warp, step, lane, address - local_window, bytes, use);
  }
  if (in_cluster(address - shared_window)) {
    return shared(warp, step, lane, address - shared_window, bytes, use);
  }
  return global(warp, step, lane, address, bytes, use.reads, use.writes);
}

std::byte* AddressSpaces::generic(Warp& warp, const Step& step, std::uint32_t lane,
                                  std::uint64_t address, std::uint32_t bytes) {
  return pointer(warp, step, AddressSpace::generic, lane, address, bytes, {});
}

std::byte* AddressSpaces::global(Warp& warp, const Step& step, std::uint32_t lane,
                                 std::uint64_t address, std::uint32_t bytes, bool reads,
                                 bool writes) {
  Allocation*& cached = recent(step);
  if (cached == nullptr || address - cached->address >= cached->bytes) {
    cached = memory_.find(address);
  }
  if (cached == nullptr || address - cached->address > cached->bytes ||
      bytes > cached->bytes - (address - cached->address)) {
    cached = nullptr;
    // A stack pointer below 0 has wrapped around in 32 bits, and is added to the window's address.
    constexpr std::uint64_t below_stack = local_window + (std::uint64_t{1} << 32);
    const bool is_below_stack =
        program_.grows_stack &&
        address - (below_stack - trace::window_bytes) < trace::window_bytes * 2;
    const std::string where = is_below_stack ? "it is below the stack: " + local_room()
                                             : "it is " + memory_.describe(address);
    if (memory_.is_mapped(address)) {
      return out_of_bounds(warp, step, lane, address, bytes, where);
    }
    faults_.stop(warp, step, lane,
                 access_text(step, "out-of-bounds ", address, bytes) + ": " +
                     (address == 0 ? "a null pointer" : where));
  }
  if (view_ != nullptr) {
    // Unwritten bytes may be bytes that an earlier block has not written yet.
    if (reads && options_.check_uninitialized && !view_->is_written(*cached, address, bytes)) {
      throw NeedsItsTurn{};
    }
    return view_->place(address, bytes, reads, writes);
  }
  if (cached->written != nullptr) {
    std::uint8_t* const written = cached->written.get() + (address - cached->address);
    if (reads && options_.check_uninitialized) {
      for (std::uint32_t b = 0; b < bytes; ++b) {
        if (written[b] != 0) continue;
        faults_.diagnose(warp, step, lane, "uninitialised", [&] {
          return access_text(step, "", address, bytes) +
                 ", which nobody has written: " + memory_.describe(address) +
                 " (copy data there first, or " + std::string(options_.without_check) + ")";
        });
        break;
      }
    }
    if (writes) std::memset(written, 1, bytes);
  }
  return memory_.data(address);
}

std::byte* AddressSpaces::shared(Warp& warp, const Step& step, std::uint32_t lane,
                                 std::uint64_t address, std::uint32_t bytes, AccessUse use) {
  if (in_cluster(address)) {
    if (rank_of_address(address) != rank_in_cluster(block_, execution_.cluster)) {
      return in_other_block(warp, step, lane, address, bytes, use);
    }
    address = offset_in_block(address);
  }
  if (address > block_.shared.size() || bytes > block_.shared.size() - address) {
    return out_of_bounds(warp, step, lane, address, bytes,
                         "the block has " +
                             std::to_string(block_.shared.size() - program_.reserved_shared_bytes) +
                             " bytes of shared memory");
  }
  if (!block_.shared_written.whole()) {
    check_written(warp, step, lane, block_.shared_written, address, address, bytes, use, true);
  }
  return block_.shared.data() + address;
}

std::byte* AddressSpaces::shared_place(Warp& warp, const Step& step, std::uint32_t lane,
                                       AddressSpace space, std::uint64_t address,
                                       std::uint32_t bytes, AccessUse use) {
  if (space == AddressSpace::generic) {
    if (!in_window(address, shared_window) && !in_cluster(address - shared_window)) {
      faults_.stop(warp, step, lane, hexadecimal(address) + " is not an address of shared memory");
    }
    address -= shared_window;
  }
  return shared(warp, step, lane, address, bytes, use);
}

std::byte* AddressSpaces::in_other_block(Warp& warp, const Step& step, std::uint32_t lane,
                                         std::uint64_t address, std::uint32_t bytes,
                                         AccessUse use) {
  const std::uint32_t rank = rank_of_address(address);
  const std::uint64_t offset = offset_in_block(address);
  Block* const block = block_of_rank(execution_, rank);
  const std::string whose = "the block of rank " + std::to_string(rank) + " in the cluster";
  if (block == nullptr) {
    faults_.stop(warp, step, lane,
                 access_text(step, "", address, bytes) + " of shared memory of " + whose +
                     (rank < cluster_blocks(execution_.cluster)
                          ? ", which has ended (a barrier of the cluster keeps it)"
                          : ", which has " + std::to_string(cluster_blocks(execution_.cluster)) +
                                " blocks"));
  }
  if (offset > block->shared.size() || bytes > block->shared.size() - offset) {
    return out_of_bounds(
        warp, step, lane, address, bytes,
        whose + " has " + std::to_string(block->shared.size()) + " bytes of shared memory");
  }
  if (!block->shared_written.whole()) {
    check_written(warp, step, lane, block->shared_written, offset, offset, bytes, use, true);
  }
  return block->shared.data() + offset;
}

void AddressSpaces::check_alignment(Warp& warp, const Step& step, const LaneAddresses& lanes,
                                    std::uint32_t bytes) const {
  if (std::has_single_bit(bytes) && lanes.mask == all_lanes) {
    std::uint64_t any = 0;
    for (const std::uint64_t address : lanes.address) any |= address;
    if ((any & (bytes - 1)) == 0) return;
  }
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (lanes.address[lane] % bytes != 0) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                   access_text(step, "misaligned ", lanes.address[lane], bytes) +
                       ", which is not a multiple of " + std::to_string(bytes));
    }
  }
}

HostRange AddressSpaces::common_range(const Step& step, const LaneAddresses& lanes,
                                      std::uint32_t bytes, bool is_load, LaneAddresses& places) {
  const Extent extent = extent_of(lanes, bytes);
  if ((extent.any & (bytes - 1)) != 0) return {};
  Allocation*& cached = recent(step);
  if (cached == nullptr || extent.least - cached->address >= cached->bytes) {
    cached = memory_.find(extent.least);
  }
  if (cached == nullptr || cached->bytes < bytes ||
      extent.greatest - cached->address > cached->bytes - bytes) {
    return {};
  }
  if (cached->written != nullptr) {
    std::uint8_t* const written = cached->written.get();
    if (!is_load) {
      if (view_ == nullptr) mark_lanes(written, cached->address, lanes, bytes);
    } else if (options_.check_uninitialized &&
               !holds_lanes(written, cached->address, lanes, bytes)) {
      return {};
    }
  }
  if (view_ != nullptr) return range_in_view(*cached, lanes, extent, bytes, is_load, places);
  return {memory_.data(cached->address), cached->address, extent.pattern};
}

HostRange AddressSpaces::range_in_view(const Allocation& allocation, const LaneAddresses& lanes,
                                       const Extent& extent, std::uint32_t bytes, bool is_load,
                                       LaneAddresses& places) {
  if (is_load && !view_->may_have_copies(extent.least, extent.greatest + bytes)) {
    view_->note_reads(lanes, bytes);
    return {memory_.data(allocation.address), allocation.address, extent.pattern};
  }
  if (extent.pattern != AddressPattern::any) {
    const std::uint64_t length = extent.greatest - extent.least + bytes;
    std::byte* const range = is_load ? view_->read_range(extent.least, length)
                                     : view_->write_range(extent.least, length);
    if (range != nullptr) return {range, extent.least, extent.pattern};
  }
  view_->place_lanes(lanes, bytes, !is_load, places);
  return {.data = memory_.data(allocation.address), .origin = allocation.address, .moved = true};
}

HostRange AddressSpaces::common_shared_range(const LaneAddresses& lanes, std::uint32_t bytes,
                                             bool is_load) {
  const Extent extent = extent_of(lanes, bytes);
  if ((extent.any & (bytes - 1)) != 0 || block_.shared.size() < bytes ||
      extent.greatest > block_.shared.size() - bytes) {
    return {};
  }
  if (!block_.shared_written.whole()) {
    if (!is_load) {
      block_.shared_written.mark_lanes(lanes, bytes);
    } else if (!block_.shared_written.holds_lanes(lanes, bytes)) {
      return {};
    }
  }
  return {block_.shared.data(), 0, extent.pattern};
}

HostRange AddressSpaces::common_local_range(Warp& warp, const LaneAddresses& lanes,
                                            std::uint32_t bytes, bool is_load,
                                            LaneAddresses& places) {
  const std::uint64_t size = execution_.local_bytes;
  if (size < bytes || size % bytes != 0) return {};
  places.mask = lanes.mask;
  std::uint64_t greatest = 0;
  std::uint64_t any = 0;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = lanes.address[lane];
    greatest = std::max(greatest, address);
    any |= address;
    places.address[lane] = static_cast<std::uint64_t>(lane) * size + address;
  }
  if ((any & (bytes - 1)) != 0 || greatest > size - bytes) return {};
  if (!warp.local_written.whole()) {
    if (!is_load) {
      warp.local_written.mark_lanes(places, bytes);
    } else if (!warp.local_written.holds_lanes(places, bytes)) {
      return {};
    }
  }
  return {.data = reinterpret_cast<std::byte*>(warp.local.get()), .moved = true};
}

std::byte* AddressSpaces::local(Warp& warp, const Step& step, std::uint32_t lane,
                                std::uint64_t address, std::uint32_t bytes, AccessUse use) {
  if (address > execution_.local_bytes || bytes > execution_.local_bytes - address) {
    return out_of_bounds(warp, step, lane, address, bytes, local_room());
  }
  const std::uint64_t place = lane * execution_.local_bytes + address;
  if (!warp.local_written.whole()) {
    check_written(warp, step, lane, warp.local_written, place, address, bytes, use, false);
  }
  return reinterpret_cast<std::byte*>(warp.local.get()) + place;
}

std::string AddressSpaces::local_room() const {
  return "the thread has " + std::to_string(execution_.local_bytes) + " bytes of local memory" +
         (program_.grows_stack
              ? ", as the launch says (stack_bytes in Python, cudaLimitStackSize in "
                "a program)"
              : "");
}

std::byte* AddressSpaces::out_of_bounds(const Warp& warp, const Step& step, std::uint32_t lane,
                                        std::uint64_t address, std::uint64_t bytes,
                                        const std::string& where) {
  faults_.diagnose(warp, step, lane, "out-of-bounds", [&] {
    return access_text(step, "out-of-bounds ", address, bytes) + ": " + where;
  });
  outside_.fill(std::byte{0});
  return outside_.data();
}

void AddressSpaces::check_written(Warp& warp, const Step& step, std::uint32_t lane,
                                  WrittenBytes& written, std::uint64_t place, std::uint64_t address,
                                  std::uint32_t bytes, AccessUse use, bool is_shared) {
  if (use.reads && !written.any(place, bytes)) {
    const auto what = [&] {
      return access_text(step, "", address, bytes) + " of " +
             (is_shared ? "shared memory" : "local memory") + ", which nobody has written" +
             (is_shared ? ": " + describe_shared(program_, address) : "") +
             " (write it first, or " + std::string(options_.without_check) + ")";
    };
    if (is_shared) {
      faults_.diagnose(warp, step, lane, "uninitialised", what);
    } else {
      faults_.note(warp, step, lane, "uninitialised", what);
    }
  }
  if (use.writes) written.mark(place, bytes);
}

}  // namespace warpstack::simt
