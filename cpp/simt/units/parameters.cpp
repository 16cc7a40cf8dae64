#include "simt/units/parameters.h"

#include <bit>
#include <cstring>
#include <string>

#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

/// The largest alignment of a parameter, that of a tensor map.
constexpr std::uint64_t alignment = 64;

}  // namespace

Parameters::~Parameters() {
  if (parameter_address_ != 0) memory_.free(parameter_address_);
}

std::uint64_t Parameters::parameter_address() {
  if (parameter_address_ == 0) {
    execution_.need_turn();
    // Parameters of machine code are aligned together with what lies before them in bank 0.
    before_ = program_.parameter_offset == none ? 0 : program_.parameter_offset % alignment;
    const std::size_t bytes = execution_.parameters.size();
    parameter_address_ = memory_.allocate(before_ + bytes, "(kernel parameters)");
    memory_.write(parameter_address_ + before_, execution_.parameters.data(), bytes);
    spaces_.forget_allocation();
  }
  return parameter_address_ + before_;
}

void Parameters::load_kernel_parameter(Warp& warp, const Step& step, std::byte* registers,
                                       std::uint32_t mask) {
  const ParameterAccess& access = program_.parameter_accesses[step.detail];
  const std::uint64_t given = execution_.parameters.size();
  const std::uint64_t wanted = std::uint64_t{access.bytes} * access.elements;
  if (access.address == none && access.offset <= given && wanted <= given - access.offset) {
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      const std::byte* const place =
          execution_.parameters.data() + access.offset + std::size_t{e} * access.bytes;
      broadcast(registers, access.values[e], access.value_bytes[e], mask,
                extended(read_value(place, access.bytes), access.bytes, access.sign_extend));
    }
    return;
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t offset = access.offset;
    if (access.address != none) {
      offset += read_lane(registers, access.address, access.address_is_64_bits ? 8 : 4, lane);
    }
    const std::uint64_t bytes = std::uint64_t{access.bytes} * access.elements;
    if (offset > execution_.parameters.size() || bytes > execution_.parameters.size() - offset) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                   "load of " + std::to_string(bytes) + " bytes at offset " +
                       std::to_string(offset) + " of " +
                       std::to_string(execution_.parameters.size()) + " bytes of parameters");
    }
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      std::uint64_t value = 0;
      std::memcpy(&value, execution_.parameters.data() + offset + e * access.bytes, access.bytes);
      write_lane(registers, access.values[e], access.value_bytes[e], lane,
                 extended(value, access.bytes, access.sign_extend));
    }
  }
}

void Parameters::access_parameter(Warp& warp, const Step& step, std::byte* registers,
                                  std::uint32_t mask, bool is_load) {
  const ParameterAccess& access = program_.parameter_accesses[step.detail];
  const ProgramFunction& function = *warp.frames.back().function;
  std::byte* const area = registers + function.register_bytes;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t offset = access.offset;
    if (access.address != none) {
      offset += read_lane(registers, access.address, access.address_is_64_bits ? 8 : 4, lane);
    }
    const std::uint64_t bytes = std::uint64_t{access.bytes} * access.elements;
    if (offset > function.parameter_bytes || bytes > function.parameter_bytes - offset) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                   "access beyond the parameters of " + function.name);
    }
    std::byte* place = area + static_cast<std::size_t>(lane) * function.parameter_bytes + offset;
    for (std::uint32_t e = 0; e < access.elements; ++e, place += access.bytes) {
      std::uint64_t value = 0;
      if (is_load) {
        std::memcpy(&value, place, access.bytes);
        write_lane(registers, access.values[e], access.value_bytes[e], lane,
                   extended(value, access.bytes, access.sign_extend));
      } else {
        value = read_lane(registers, access.values[e], access.value_bytes[e], lane);
        std::memcpy(place, &value, access.bytes);
      }
    }
  }
}

}  // namespace warpstack::simt
