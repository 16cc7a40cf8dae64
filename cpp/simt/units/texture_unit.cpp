#include "simt/units/texture_unit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "simt/device/texture_sampling.h"
#include "simt/program/registers.h"

namespace warpstack::simt {

void TextureUnit::access(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  execution_.need_turn();  // it reads memory as all see it
  const TextureAccess& access = program_.textures[step.detail];
  touched_.clear();
  touched_.unwritten.reset();
  addresses_.mask = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Texture& texture = texture_of(warp, step, access, registers, lane);
    try {
      if (step.action == Action::texture) {
        sample_lane(access, texture, registers, lane);
        check_written(warp, step, texture, lane);
      } else if (step.action == Action::texture_query) {
        write_lane(registers, access.values[0], 4, lane, texture.size[access.query]);
      } else {
        access_surface(warp, step, access, texture, registers, lane);
      }
    } catch (const TextureFault& problem) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane), problem.what());
    }
  }
  if (step.action == Action::texture) {
    recorder_.record_texels(warp, step, mask, touched_);
  } else if (step.action != Action::texture_query) {
    recorder_.record_access(warp, step, mask, &addresses_);
  }
}

const Texture& TextureUnit::texture_of(Warp& warp, const Step& step, const TextureAccess& access,
                                       const std::byte* registers, int lane) const {
  const std::uint64_t handle = access.reference != none
                                   ? execution_.bound_textures[access.reference]
                                   : lane_u64(registers, access.object, lane);
  const Texture* texture = execution_.device.textures.find(handle);
  if (texture == nullptr) {
    faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                 access.reference != none
                     ? std::string("the texture reference is not bound")
                     : std::to_string(handle) + " is not a texture or surface object");
  }
  return *texture;
}

void TextureUnit::sample_lane(const TextureAccess& access, const Texture& texture,
                              std::byte* registers, int lane) {
  const auto integer = [&](std::uint32_t i) {
    return std::int64_t{
        static_cast<std::int32_t>(lane_u32(registers, access.coordinates[i], lane))};
  };
  const std::uint32_t first = access.layered ? 1 : 0;
  std::array<std::int64_t, 3> position{};
  std::array<float, 3> coordinates{};
  for (std::uint32_t d = 0; d < access.dimensions; ++d) {
    position[d] = integer(first + d);
    coordinates[d] = std::bit_cast<float>(lane_u32(registers, access.coordinates[first + d], lane));
  }
  TexelOffsets offsets{};
  for (std::uint32_t d = 0; d < access.dimensions && access.offsets[d] != none; ++d) {
    const std::uint32_t bits = lane_u32(registers, access.offsets[d], lane);
    const int unused = 32 - access.offset_bits;
    offsets[d] = static_cast<std::int32_t>(bits >> access.offset_shifts[d] << unused) >> unused;
    position[d] += offsets[d];
  }
  // The index is unsigned; one that is too large means the last layer.
  const std::int64_t number =
      access.layered ? lane_u32(registers, access.coordinates[0], lane) & access.layer_mask : 0;
  std::array<std::uint32_t, 4> texel;
  if (access.cube) {
    const auto [side, point] = cube_point(texture, coordinates, number);
    texel = access.gather ? gather(memory_, side, point, access.component, touched_)
                          : sample(memory_, side, 2, point, touched_);
  } else {
    // A layer is a texture of its own, made here; others are not copied.
    std::optional<Texture> layer;
    if (access.layered) layer = layer_of(texture, number);
    const Texture& plane = layer ? *layer : texture;
    const bool is_line = lines_are_planes_ && access.dimensions == 2 && plane.dimensions == 1;
    const std::uint32_t dimensions = is_line ? 1 : access.dimensions;
    texel = access.gather ? gather(memory_, plane, coordinates, access.component, touched_, offsets)
            : access.fetch ? fetch(memory_, plane, dimensions, position, touched_)
                           : sample(memory_, plane, dimensions, coordinates, touched_, offsets);
  }
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    write_lane(registers, access.values[e], 4, lane, texel[e]);
  }
}

void TextureUnit::check_written(const Warp& warp, const Step& step, const Texture& texture,
                                int lane) {
  if (!touched_.unwritten) return;
  const std::uint64_t address = *std::exchange(touched_.unwritten, std::nullopt);
  if (!execution_.options.check_uninitialized) return;
  faults_.diagnose(warp, step, static_cast<std::uint32_t>(lane), "uninitialised", [&] {
    return access_text(step, "", address, std::uint64_t{texture.channels} * texture.channel_bytes) +
           " of a texture, which nobody has written: " + memory_.describe(address) +
           " (copy data there first, or " + std::string(execution_.options.without_check) + ")";
  });
}

void TextureUnit::access_surface(Warp& warp, const Step& step, const TextureAccess& access,
                                 const Texture& texture, std::byte* registers, int lane) {
  const std::uint32_t first = access.layered ? 1 : 0;
  std::array<std::int64_t, 3> position{};
  for (std::uint32_t d = 0; d < access.dimensions; ++d) {
    position[d] =
        static_cast<std::int32_t>(lane_u32(registers, access.coordinates[first + d], lane));
  }
  const std::uint32_t bytes = std::uint32_t{access.element_bytes} * access.elements;
  const bool is_load = step.action == Action::surface_load;
  std::int64_t layer = 0;
  if (access.layered) {
    layer = static_cast<std::int32_t>(lane_u32(registers, access.coordinates[0], lane));
  }
  const Texture& plane = access.layered ? layer_of(texture, layer) : texture;
  auto address = surface_address(plane, access.dimensions, position, bytes);
  if (access.layered && (layer < 0 || static_cast<std::uint64_t>(layer) >= texture.layers)) {
    address.reset();
  }
  if (!address && access.out_of_bounds == 0) {
    faults_.stop(warp, step, static_cast<std::uint32_t>(lane), "access outside the surface");
  }
  if (!address && access.out_of_bounds == 1) {
    const auto texel = std::int64_t{plane.channels} * plane.channel_bytes;
    const std::array<std::int64_t, 3> last{static_cast<std::int64_t>(plane.size[0]) * texel - bytes,
                                           static_cast<std::int64_t>(plane.size[1]) - 1,
                                           static_cast<std::int64_t>(plane.size[2]) - 1};
    for (std::uint32_t d = 0; d < access.dimensions; ++d) {
      position[d] = std::clamp<std::int64_t>(position[d], 0, std::max<std::int64_t>(last[d], 0));
    }
    address = surface_address(plane, access.dimensions, position, bytes);
  }
  std::byte* const place = address ? spaces_.global(warp, step, static_cast<std::uint32_t>(lane),
                                                    *address, bytes, is_load, !is_load)
                                   : nullptr;
  if (place != nullptr) {
    addresses_.mask |= 1u << lane;
    addresses_.address[static_cast<std::size_t>(lane)] = *address;
  }
  if (races_.is_on() && place != nullptr) {
    LaneAddresses one;
    one.mask = 1u << lane;
    one.address[lane] = *address;
    races_.check(warp, step, AddressSpace::global, one, bytes,
                 is_load ? RaceKind::load : RaceKind::store);
  }
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    const std::uint32_t width = access.element_bytes == 8 ? 8 : access.element_bytes < 4 ? 2 : 4;
    if (is_load) {
      std::uint64_t value = 0;
      if (place != nullptr) {
        std::memcpy(&value, place + e * access.element_bytes, access.element_bytes);
      }
      write_lane(registers, access.values[e], width, lane, value);
    } else if (place != nullptr) {
      const std::uint64_t value = read_lane(registers, access.values[e], width, lane);
      std::memcpy(place + e * access.element_bytes, &value, access.element_bytes);
    }
  }
}

void make_texel_access(trace::StaticInstruction& row, Action action, const TextureAccess& access) {
  const bool is_store = action == Action::surface_store;
  row.op_class = trace::OpClass::memory;
  row.space = trace::MemorySpace::global;
  row.kind = is_store ? trace::MemoryKind::store : trace::MemoryKind::load;
  row.width = action == Action::texture ? texel_word_bytes
                                        : std::uint32_t{access.element_bytes} * access.elements;
  row.cache_operator = is_store ? trace::CacheOperator::none : trace::CacheOperator::read_only;
}

}  // namespace warpstack::simt
