#include "simt/device/texture_sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "simt/arithmetic/half_bits.h"

namespace warpstack::simt {
namespace {

using Position = std::array<std::int64_t, 3>;
/// Channels as numbers (floats, normalised reads) or as integers.
using Texel = std::array<double, 4>;

bool reads_floats(const Texture& texture) {
  return texture.format == Texture::Format::floating || texture.normalized_read;
}

double channel_of(const Texture& texture, const std::byte* data) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, data, texture.channel_bytes);
  const int width = static_cast<int>(8 * texture.channel_bytes);
  switch (texture.format) {
    case Texture::Format::floating:
      return texture.channel_bytes == 2 ? half_to_double(static_cast<std::uint16_t>(bits))
                                        : std::bit_cast<float>(bits);
    case Texture::Format::uint:
      return texture.normalized_read ? bits / (std::ldexp(1.0, width) - 1) : bits;
    case Texture::Format::sint: {
      const auto value = static_cast<std::int32_t>(bits << (32 - width)) >> (32 - width);
      if (!texture.normalized_read) return value;
      return std::max(value / (std::ldexp(1.0, width - 1) - 1), -1.0);
    }
  }
  return 0;
}

Texel texel_at(const DeviceMemory& memory, const Texture& texture, const Position& at,
               TouchedWords& touched) {
  const std::uint64_t texel_bytes = std::uint64_t{texture.channels} * texture.channel_bytes;
  const std::uint64_t address = texture.address +
                                static_cast<std::uint64_t>(at[2]) * texture.slice_bytes +
                                static_cast<std::uint64_t>(at[1]) * texture.row_bytes +
                                static_cast<std::uint64_t>(at[0]) * texel_bytes;
  const Allocation* allocation = memory.find(address);
  if (allocation == nullptr || address - allocation->address + texel_bytes > allocation->bytes) {
    throw TextureFault("the texture reaches beyond its memory: " + memory.describe(address));
  }
  touched.push_back(address / texel_word_bytes * texel_word_bytes);
  if (allocation->written != nullptr) {
    const std::uint8_t* const written = allocation->written.get() + (address - allocation->address);
    if (std::find(written, written + texel_bytes, 0) != written + texel_bytes) {
      touched.unwritten = address;
    }
  }
  Texel texel{};
  for (std::uint32_t c = 0; c < texture.channels; ++c) {
    texel[c] = channel_of(texture, memory.data(address + c * texture.channel_bytes));
  }
  return texel;
}

/// A texel index under an address mode; nothing: the border's zero.
std::optional<std::int64_t> resolve(std::int64_t index, std::uint64_t size, AddressMode mode,
                                    bool normalized) {
  const auto n = static_cast<std::int64_t>(size);
  if (index >= 0 && index < n) return index;
  // Wrapping and mirroring need normalised coordinates; without them the hardware clamps.
  if (!normalized && (mode == AddressMode::wrap || mode == AddressMode::mirror)) {
    mode = AddressMode::clamp;
  }
  switch (mode) {
    case AddressMode::border:
      return std::nullopt;
    case AddressMode::clamp:
      return index < 0 ? 0 : n - 1;
    case AddressMode::wrap:
      return ((index % n) + n) % n;
    case AddressMode::mirror: {
      const std::int64_t folded = ((index % (2 * n)) + 2 * n) % (2 * n);
      return folded < n ? folded : 2 * n - 1 - folded;
    }
  }
  return std::nullopt;
}

std::array<std::uint32_t, 4> bits_of(const Texture& texture, const Texel& texel) {
  std::array<std::uint32_t, 4> bits{};
  for (std::size_t c = 0; c < 4; ++c) {
    if (reads_floats(texture)) {
      bits[c] = std::bit_cast<std::uint32_t>(static_cast<float>(texel[c]));
    } else {
      bits[c] = static_cast<std::uint32_t>(static_cast<std::int64_t>(texel[c]));
    }
  }
  return bits;
}

/// floor() as an integer; far outside values stay far outside.
std::int64_t floor_of(double value) {
  if (!(value > -1e15)) return -1000000000000000;
  if (value > 1e15) return 1000000000000000;
  return static_cast<std::int64_t>(std::floor(value));
}

void check_shape(const Texture& texture, std::uint32_t dimensions) {
  if (texture.layers > 0) {
    throw TextureFault(texture.cube ? "a cubemap is read as a plain texture"
                                    : "a layered texture is read without a layer");
  }
  if (dimensions != texture.dimensions) {
    throw TextureFault("a " + std::to_string(texture.dimensions) + "D texture is read with " +
                       std::to_string(dimensions) + " coordinates");
  }
}

}  // namespace

std::array<std::uint32_t, 4> sample(const DeviceMemory& memory, const Texture& texture,
                                    std::uint32_t dimensions,
                                    const std::array<float, 3>& coordinates, TouchedWords& touched,
                                    const TexelOffsets& offsets) {
  check_shape(texture, dimensions);
  const bool filter = texture.linear_filter && reads_floats(texture);
  std::array<std::int64_t, 3> base{};
  std::array<double, 3> weight{};
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    double x = coordinates[d];
    if (texture.normalized_coordinates) x *= static_cast<double>(texture.size[d]);
    if (filter) x -= 0.5;
    base[d] = floor_of(x) + offsets[d];
    if (filter) weight[d] = std::nearbyint((x - std::floor(x)) * 256) / 256;
  }
  Texel sum{};
  const std::uint32_t corners = filter ? 1u << dimensions : 1u;
  for (std::uint32_t corner = 0; corner < corners; ++corner) {
    Position at{};
    double share = 1;
    bool border = false;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      const bool next = ((corner >> d) & 1) != 0;
      if (filter) share *= next ? weight[d] : 1 - weight[d];
      const auto index = resolve(base[d] + (next ? 1 : 0), texture.size[d], texture.address_mode[d],
                                 texture.normalized_coordinates);
      if (!index) {
        border = true;
        break;
      }
      at[d] = *index;
    }
    if (border || share == 0) continue;
    const Texel texel = texel_at(memory, texture, at, touched);
    for (std::size_t c = 0; c < 4; ++c) sum[c] += filter ? share * texel[c] : texel[c];
  }
  return bits_of(texture, sum);
}

std::array<std::uint32_t, 4> gather(const DeviceMemory& memory, const Texture& texture,
                                    const std::array<float, 3>& coordinates,
                                    std::uint32_t component, TouchedWords& touched,
                                    const TexelOffsets& offsets) {
  check_shape(texture, 2);
  Position base{};
  for (std::uint32_t d = 0; d < 2; ++d) {
    double x = coordinates[d];
    if (texture.normalized_coordinates) x *= static_cast<double>(texture.size[d]);
    base[d] = floor_of(std::nearbyint((x - 0.5) * 256) / 256) + offsets[d];
  }
  constexpr std::array<Position, 4> order{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}};
  std::array<std::uint32_t, 4> result{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    Position at{};
    bool border = false;
    for (std::uint32_t d = 0; d < 2; ++d) {
      const auto index = resolve(base[d] + order[i][d], texture.size[d], texture.address_mode[d],
                                 texture.normalized_coordinates);
      border = border || !index;
      at[d] = index.value_or(0);
    }
    if (border) continue;
    result[i] = bits_of(texture, texel_at(memory, texture, at, touched))[component];
  }
  return result;
}

std::array<std::uint32_t, 4> fetch(const DeviceMemory& memory, const Texture& texture,
                                   std::uint32_t dimensions, const Position& position,
                                   TouchedWords& touched) {
  check_shape(texture, dimensions);
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    if (position[d] < 0 || static_cast<std::uint64_t>(position[d]) >= texture.size[d]) return {};
  }
  return bits_of(texture, texel_at(memory, texture, position, touched));
}

Texture layer_of(const Texture& texture, std::int64_t layer) {
  if (texture.layers == 0) {
    throw TextureFault("a texture or surface without layers is accessed as a layered one");
  }
  const auto nearest = static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(layer, 0, static_cast<std::int64_t>(texture.layers) - 1));
  Texture result = texture;
  result.address += nearest * texture.slice_bytes;
  result.layers = 0;
  result.cube = false;
  return result;
}

CubePoint cube_point(const Texture& texture, const std::array<float, 3>& direction,
                     std::int64_t cube) {
  if (!texture.cube) throw TextureFault("a texture that is not a cubemap is read as one");
  const auto [x, y, z] = direction;
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  std::int64_t face;
  float s, t, m;
  if (ax >= ay && ax >= az) {
    face = std::signbit(x) ? 1 : 0;
    s = std::signbit(x) ? z : -z;
    t = -y;
    m = ax;
  } else if (ay >= az) {
    face = std::signbit(y) ? 3 : 2;
    s = x;
    t = std::signbit(y) ? -z : z;
    m = ay;
  } else {
    face = std::signbit(z) ? 5 : 4;
    s = std::signbit(z) ? -x : x;
    t = -y;
    m = az;
  }
  const auto cubes = static_cast<std::int64_t>(texture.layers / 6);
  Texture side = layer_of(texture, std::clamp<std::int64_t>(cube, 0, cubes - 1) * 6 + face);
  side.normalized_coordinates = true;
  side.address_mode.fill(AddressMode::clamp);
  return {side, {(s / m + 1) / 2, (t / m + 1) / 2, 0}};
}

std::optional<std::uint64_t> surface_address(const Texture& texture, std::uint32_t dimensions,
                                             const Position& position, std::uint32_t bytes) {
  const std::uint64_t texel_bytes = std::uint64_t{texture.channels} * texture.channel_bytes;
  const std::array<std::uint64_t, 3> extent{texture.size[0] * texel_bytes, texture.size[1],
                                            texture.size[2]};
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    if (position[d] < 0 || static_cast<std::uint64_t>(position[d]) >= extent[d]) {
      return std::nullopt;
    }
  }
  if (static_cast<std::uint64_t>(position[0]) + bytes > extent[0]) return std::nullopt;
  const auto row = dimensions > 1 ? static_cast<std::uint64_t>(position[1]) : 0;
  const auto slice = dimensions > 2 ? static_cast<std::uint64_t>(position[2]) : 0;
  return texture.address + slice * texture.slice_bytes + row * texture.row_bytes +
         static_cast<std::uint64_t>(position[0]);
}

}  // namespace warpstack::simt
