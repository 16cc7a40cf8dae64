#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "simt/device/device_memory.h"
#include "simt/device/texture.h"

namespace warpstack::simt {

// Reads of textures as functions of memory. The instructions that ask for them are in
// texture_unit.h.

/// A texture or surface access that the device cannot do. The message says why, but not where.
class TextureFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Addresses of the words that texels were read from; reads append to it.
struct TouchedWords : std::vector<std::uint64_t> {
  using vector::vector;
  /// The last texel with a byte that was never written.
  std::optional<std::uint64_t> unwritten;
};

/// Texels that are added to a position; of each dimension.
using TexelOffsets = std::array<std::int64_t, 3>;

/// The four channels of a texture at a point, as bits of floats, or of integers if the format is an
/// integer format that is not read as normalised floats. Filtering uses the hardware's 8-bit
/// fractions (CUDA C++ Programming Guide, "Texture Fetching"). Throws TextureFault.
std::array<std::uint32_t, 4> sample(const DeviceMemory& memory, const Texture& texture,
                                    std::uint32_t dimensions,
                                    const std::array<float, 3>& coordinates, TouchedWords& touched,
                                    const TexelOffsets& offsets = {});

/// One channel of the four texels of a plane that a linear filter would weight at a point, in the
/// order of PTX: with i and j the lower column and row, (i, j + 1), (i + 1, j + 1), (i + 1, j),
/// (i, j). The point is rounded to 1/256 of a texel first, so that one within 1/512 of the next
/// four has those. Throws TextureFault.
std::array<std::uint32_t, 4> gather(const DeviceMemory& memory, const Texture& texture,
                                    const std::array<float, 3>& coordinates,
                                    std::uint32_t component, TouchedWords& touched,
                                    const TexelOffsets& offsets = {});

/// The same at integer texel positions, without filter or address mode; outside: zero.
std::array<std::uint32_t, 4> fetch(const DeviceMemory& memory, const Texture& texture,
                                   std::uint32_t dimensions,
                                   const std::array<std::int64_t, 3>& position,
                                   TouchedWords& touched);

/// A layer of a layered texture, or a face of a cube, as a texture of its own. A number out of
/// range gives the nearest layer. Throws TextureFault when the texture has no layers.
Texture layer_of(const Texture& texture, std::int64_t layer);

/// A face of a cube as a plane with normalised coordinates, and a point on it.
struct CubePoint {
  Texture side;
  std::array<float, 3> coordinates{};
};

/// Where the direction of a vector meets cube `cube` of a cubemap (CUDA C++ Programming Guide,
/// "Cubemap Textures"). Among equal components x decides before y before z. Filters end at a face's
/// edges. Throws TextureFault.
CubePoint cube_point(const Texture& texture, const std::array<float, 3>& direction,
                     std::int64_t cube);

/// Address of a byte position (x in bytes, y and z in rows and slices) of a surface; nothing when
/// it lies outside.
std::optional<std::uint64_t> surface_address(const Texture& texture, std::uint32_t dimensions,
                                             const std::array<std::int64_t, 3>& position,
                                             std::uint32_t bytes);

}  // namespace warpstack::simt
