#include "simt/address_spaces.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/text.h"
#include "simt/registers.h"

namespace warpstack::simt {

const char* verb_of(const Step& step) {
  switch (step.action) {
    case Action::store:
    case Action::matrix_store:
    case Action::fragment_store:
      return "store";
    case Action::atomic:
      return "atomic operation";
    case Action::async_copy:
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
  return global(warp, step, lane, address, bytes, use.reads, use.writes);
}

std::byte* AddressSpaces::generic(Warp& warp, const Step& step, std::uint32_t lane,
                                  std::uint64_t address, std::uint32_t bytes) {
  return pointer(warp, step, AddressSpace::generic, lane, address, bytes, {});
}

std::byte* AddressSpaces::global(Warp& warp, const Step& step, std::uint32_t lane,
                                 std::uint64_t address, std::uint32_t bytes, bool reads,
                                 bool writes) {
  if (cached_ == nullptr || address - cached_->address >= cached_->bytes) {
    cached_ = memory_.find(address);
  }
  if (cached_ == nullptr || address - cached_->address > cached_->bytes ||
      bytes > cached_->bytes - (address - cached_->address)) {
    cached_ = nullptr;
    const std::string where = "it is " + memory_.describe(address);
    if (memory_.is_mapped(address)) {
      return out_of_bounds(warp, step, lane, address, bytes, where);
    }
    faults_.stop(warp, step, lane,
                 access_text(step, "out-of-bounds ", address, bytes) + ": " +
                     (address == 0 ? "a null pointer" : where));
  }
  if (cached_->written != nullptr) {
    std::uint8_t* const written = cached_->written.get() + (address - cached_->address);
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
  if (address > block_.shared.size() || bytes > block_.shared.size() - address) {
    return out_of_bounds(
        warp, step, lane, address, bytes,
        "the block has " + std::to_string(block_.shared.size()) + " bytes of shared memory");
  }
  if (!block_.shared_written.whole()) {
    check_written(warp, step, lane, block_.shared_written, address, address, bytes, use, true);
  }
  return block_.shared.data() + address;
}

void AddressSpaces::check_alignment(Warp& warp, const Step& step, const LaneAddresses& lanes,
                                    std::uint32_t bytes) const {
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (lanes.address[lane] % bytes != 0) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                   access_text(step, "misaligned ", lanes.address[lane], bytes) +
                       ", which is not a multiple of " + std::to_string(bytes));
    }
  }
}

HostRange AddressSpaces::common_range(const LaneAddresses& lanes, std::uint32_t bytes) {
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t greatest = 0;
  std::uint64_t any = 0;
  if (lanes.mask == all_lanes) {
    for (const std::uint64_t address : lanes.address) {
      least = std::min(least, address);
      greatest = std::max(greatest, address);
      any |= address;
    }
  } else {
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const std::uint64_t address = lanes.address[std::countr_zero(rest)];
      least = std::min(least, address);
      greatest = std::max(greatest, address);
      any |= address;
    }
  }
  if ((any & (bytes - 1)) != 0) return {};
  if (cached_ == nullptr || least - cached_->address >= cached_->bytes) {
    cached_ = memory_.find(least);
  }
  if (cached_ == nullptr || cached_->written != nullptr || cached_->bytes < bytes ||
      greatest - cached_->address > cached_->bytes - bytes) {
    return {};
  }
  return {memory_.data(cached_->address), cached_->address};
}

HostRange AddressSpaces::common_shared_range(const LaneAddresses& lanes, std::uint32_t bytes,
                                             bool is_load) {
  std::uint64_t greatest = 0;
  std::uint64_t any = 0;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = lanes.address[std::countr_zero(rest)];
    greatest = std::max(greatest, address);
    any |= address;
  }
  if ((any & (bytes - 1)) != 0 || block_.shared.size() < bytes ||
      greatest > block_.shared.size() - bytes) {
    return {};
  }
  if (!block_.shared_written.whole()) {
    if (!is_load) {
      block_.shared_written.mark_lanes(lanes, bytes);
    } else if (!block_.shared_written.holds_lanes(lanes, bytes)) {
      return {};
    }
  }
  return {block_.shared.data(), 0};
}

std::byte* AddressSpaces::local(Warp& warp, const Step& step, std::uint32_t lane,
                                std::uint64_t address, std::uint32_t bytes, AccessUse use) {
  if (address > program_.local_bytes || bytes > program_.local_bytes - address) {
    return out_of_bounds(
        warp, step, lane, address, bytes,
        "the thread has " + std::to_string(program_.local_bytes) + " bytes of local memory");
  }
  const std::uint64_t place = lane * program_.local_bytes + address;
  if (!warp.local_written.whole()) {
    check_written(warp, step, lane, warp.local_written, place, address, bytes, use, false);
  }
  return reinterpret_cast<std::byte*>(warp.local.get()) + place;
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
