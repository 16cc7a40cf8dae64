#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace warpstack::trace {

inline constexpr std::uint32_t warp_size = 32;
/// Unit of all memory accounting: a DRAM and cache sector.
inline constexpr std::uint32_t sector_bytes = 32;

/// Byte addresses of the active lanes of one warp instruction.
struct LaneAddresses {
  std::uint32_t mask = 0;                        ///< active lanes
  std::array<std::uint64_t, warp_size> address;  ///< of active lanes; the others have no value
};

/// The highest first byte of an access: sector arithmetic beyond it would wrap around.
inline constexpr std::uint64_t max_address = ~std::uint64_t{0} - 64;

/// Coalesces a warp's accesses of `width` bytes per lane: appends each touched 32-byte sector
/// (address / 32) once, in lane order of first touch, and returns how many there are. With
/// `store_bytes` it also appends the byte mask of each of these sectors (bit b: byte b is
/// accessed). `passes` gets l1_passes().
std::uint32_t coalesce(const LaneAddresses& lanes, std::uint32_t width,
                       std::vector<std::uint64_t>& sectors, std::vector<std::uint32_t>* store_bytes,
                       std::uint32_t* passes = nullptr);

/// The same of addresses whose lanes do not matter, more than one of a lane among them.
std::uint32_t coalesce(std::span<const std::uint64_t> addresses, std::uint32_t width,
                       std::vector<std::uint64_t>& sectors);

/// Coalesces accesses to local memory, which the hardware interleaves so that the 32-bit words at
/// one private offset of a warp's 32 lanes are neighbours: word w of lane l of warp `warp` lies at
/// warp * 32 * window + (w * 32 + l) * 4. `lanes.address` holds private byte offsets, taken modulo
/// the 16 MiB window. The sectors lie in a region of their own, above every global address.
std::uint32_t coalesce_local(const LaneAddresses& lanes, std::uint32_t width, std::uint64_t warp,
                             std::vector<std::uint64_t>& sectors,
                             std::vector<std::uint32_t>* store_bytes);

/// Where the first bytes of such accesses lie.
LaneAddresses local_addresses(const LaneAddresses& lanes, std::uint64_t warp);

/// First sector of the local-memory region.
inline constexpr std::uint64_t local_region_sector = std::uint64_t{1} << 58;

/// Passes over the 32 banks of 4 bytes of L1 that an access to so many different sectors takes, if
/// its lanes want all of their words: the most sectors that share eight banks. That is exact for
/// aligned neighbouring words and for distances of a power of two; else at least what it takes.
std::uint32_t implied_passes(std::span<const std::uint64_t> sectors);

/// Passes over these banks that the lanes of a load or store take: the most different words on one
/// bank. Lanes that want the same word share a pass. Accesses of 8 and 16 bytes take their passes
/// for each half or quarter of the warp. 0: unknown, of lanes with more than 32 bytes.
std::uint32_t l1_passes(const LaneAddresses& lanes, std::uint32_t width);

/// Size of the windows through which generic addresses reach shared and local memory (24-bit
/// offsets).
inline constexpr std::uint64_t window_bytes = std::uint64_t{1} << 24;

/// What lanes of one shared-memory access have in common.
enum class SharedAccess : std::uint8_t {
  load,     ///< lanes of a word share it, and pairs of lanes their registers' way back
  other,    ///< lanes of a word share it
  in_turn,  ///< lanes of a word change it one after the other: atomics
};

/// Shared-memory wavefronts of a warp access: 32 banks of 4 bytes; lanes that want different words
/// of one bank conflict, lanes that want the same word do not, unless they take turns. 8- and
/// 16-byte accesses proceed in two and four groups of lanes, because a wavefront returns 128 bytes;
/// a load in half as many where all active lanes n and n^1, or all n and n^2, have equal addresses
/// (NVIDIA, on compute capabilities 7.0 to 7.5). 1 means no conflict; 0 means no active lane.
std::uint32_t shared_wavefronts(const LaneAddresses& lanes, std::uint32_t width,
                                SharedAccess access = SharedAccess::other);

/// How many neighbouring lanes proceed together, in pairs of equal addresses or not.
std::uint32_t shared_group_lanes(std::uint32_t width, bool is_paired);

}  // namespace warpstack::trace
