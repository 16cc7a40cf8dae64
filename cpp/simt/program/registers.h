#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trace/instructions/coalescing.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warpstack::simt {

using trace::LaneAddresses;
using trace::warp_size;

// Access to single lanes of a warp's registers, whose layout lane_form.h explains.

inline constexpr std::uint32_t all_lanes = ~std::uint32_t{0};

inline std::uint32_t lane_u32(const std::byte* registers, std::uint32_t slot, int lane) {
  std::uint32_t value;
  std::memcpy(&value, registers + slot + 4 * lane, 4);
  return value;
}

inline std::uint64_t lane_u64(const std::byte* registers, std::uint32_t slot, int lane) {
  std::uint64_t value;
  std::memcpy(&value, registers + slot + 8 * lane, 8);
  return value;
}

/// Values of registers of 2, 4 or 8 bytes, zero-extended.
inline std::uint64_t read_lane(const std::byte* registers, std::uint32_t slot, std::uint32_t bytes,
                               int lane) {
  return bytes == 8 ? lane_u64(registers, slot, lane) : lane_u32(registers, slot, lane);
}

inline void write_lane(std::byte* registers, std::uint32_t slot, std::uint32_t bytes, int lane,
                       std::uint64_t value) {
  if (bytes == 8) {
    std::memcpy(registers + slot + 8 * lane, &value, 8);
  } else {
    const auto low = static_cast<std::uint32_t>(bytes == 2 ? value & 0xffff : value);
    std::memcpy(registers + slot + 4 * lane, &low, 4);
  }
}

/// A number of 1, 2, 4 or 8 bytes in memory.
inline std::uint64_t read_value(const std::byte* place, std::uint32_t bytes) {
  const auto read = [place]<class T>(T value) -> std::uint64_t {
    std::memcpy(&value, place, sizeof(T));
    return value;
  };
  switch (bytes) {
    case 1:
      return read(std::uint8_t{});
    case 2:
      return read(std::uint16_t{});
    case 4:
      return read(std::uint32_t{});
    default:
      return read(std::uint64_t{});
  }
}

/// Gives all lanes of `mask` the same value.
inline void broadcast(std::byte* registers, std::uint32_t slot, std::uint32_t bytes,
                      std::uint32_t mask, std::uint64_t value) {
  if (mask == all_lanes && bytes == 8) {
    std::fill_n(reinterpret_cast<std::uint64_t*>(registers + slot), warp_size, value);
    return;
  }
  if (mask == all_lanes && bytes == 4) {
    std::fill_n(reinterpret_cast<std::uint32_t*>(registers + slot), warp_size,
                static_cast<std::uint32_t>(value));
    return;
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    write_lane(registers, slot, bytes, std::countr_zero(rest), value);
  }
}

/// A value of `bytes` as a register holds it.
inline std::uint64_t extended(std::uint64_t value, std::uint32_t bytes, bool sign_extend) {
  if (!sign_extend || bytes == 8) return value;
  const std::uint32_t shift = 64 - 8 * bytes;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
}

/// Bits of the lanes whose predicate holds.
inline std::uint32_t predicate_bits(const std::byte* predicate) {
  std::uint32_t bits = 0;
#if defined(__SSE2__)
  for (int group = 0; group < 8; ++group) {
    const __m128 lanes = _mm_loadu_ps(reinterpret_cast<const float*>(predicate + group * 16));
    bits |= static_cast<std::uint32_t>(_mm_movemask_ps(lanes)) << (4 * group);
  }
#else
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    std::uint32_t value;
    std::memcpy(&value, predicate + 4 * lane, 4);
    bits |= (value & 1) << lane;
  }
#endif
  return bits;
}

/// Those of `lanes` whose 32-bit value in a slot equals that of the first.
inline std::uint32_t alike(const std::byte* registers, std::uint32_t slot, std::uint32_t lanes) {
  const std::uint32_t value = lane_u32(registers, slot, std::countr_zero(lanes));
  std::uint32_t same = 0;
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    same |= std::uint32_t{lane_u32(registers, slot, static_cast<int>(lane)) == value} << lane;
  }
  return same & lanes;
}

}  // namespace warpstack::simt
