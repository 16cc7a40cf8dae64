#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace warpstack::simt {

enum class AddressMode : std::uint8_t { wrap, clamp, mirror, border };  // cudaTextureAddressMode

/// The target of a texture or surface object: device memory with a shape, and how it is sampled.
struct Texture {
  enum class Format : std::uint8_t { sint, uint, floating };

  std::uint64_t address = 0;  ///< first texel
  std::uint32_t dimensions = 1;
  std::array<std::uint64_t, 3> size{1, 1, 1};  ///< texels
  std::uint64_t row_bytes = 0;                 ///< distance of rows
  std::uint64_t slice_bytes = 0;               ///< distance of slices, or layers
  std::uint64_t layers = 0;                    ///< each of one or two dimensions; 0: not layered
  bool cube = false;  ///< six layers are the faces of a cube: +x, -x, +y, …
  Format format = Format::floating;
  std::uint32_t channels = 1;       ///< 1, 2 or 4
  std::uint32_t channel_bytes = 4;  ///< 1, 2 or 4
  std::array<AddressMode, 3> address_mode{AddressMode::clamp, AddressMode::clamp,
                                          AddressMode::clamp};
  bool linear_filter = false;
  bool normalized_coordinates = false;
  bool normalized_read = false;  ///< integers become floats in [0, 1] or [-1, 1]
};

/// In a trace the aligned word that holds its first byte stands for a texel. A larger texel lies
/// within the same sector.
inline constexpr std::uint32_t texel_word_bytes = 4;

/// Texture and surface objects by handle. Handles are small numbers that are never reused, never 0.
class TextureTable {
 public:
  std::uint64_t add(const Texture& texture) {
    textures_.emplace(next_, texture);
    return next_++;
  }
  /// Returns false for a handle that refers to nothing.
  bool remove(std::uint64_t handle) { return textures_.erase(handle) > 0; }
  [[nodiscard]] const Texture* find(std::uint64_t handle) const {
    const auto found = textures_.find(handle);
    return found == textures_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::uint64_t, Texture> textures_;
  std::uint64_t next_ = 1;
};

}  // namespace warpstack::simt
