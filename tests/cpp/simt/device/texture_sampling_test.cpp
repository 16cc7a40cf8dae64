#include "simt/device/texture_sampling.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace {

using namespace warpstack::simt;

class Sampling : public testing::Test {
 protected:
  template <class T>
  Texture texture(const std::vector<T>& texels, std::array<std::uint64_t, 3> size,
                  std::uint32_t dimensions, Texture::Format format, std::uint32_t channels = 1) {
    Texture made;
    made.address = memory.allocate(texels.size() * sizeof(T));
    memory.write(made.address, texels.data(), texels.size() * sizeof(T));
    made.dimensions = dimensions;
    made.size = size;
    made.row_bytes = size[0] * channels * sizeof(T);
    made.slice_bytes = made.row_bytes * size[1];
    made.format = format;
    made.channels = channels;
    made.channel_bytes = sizeof(T);
    return made;
  }
  static void set_mode(Texture& texture, AddressMode mode) { texture.address_mode.fill(mode); }
  float at(const Texture& texture, float x, float y = 0, float z = 0) {
    return std::bit_cast<float>(sample(memory, texture, texture.dimensions, {x, y, z}, touched)[0]);
  }

  DeviceMemory memory{1 << 20};
  TouchedWords touched;
};

TEST_F(Sampling, PointTakesTheTexelThatHoldsTheCoordinate) {
  const Texture t = texture<float>({10, 11, 12, 13}, {4, 1, 1}, 1, Texture::Format::floating);
  EXPECT_EQ(at(t, 0), 10);
  EXPECT_EQ(at(t, 0.99f), 10);
  EXPECT_EQ(at(t, 1), 11);
  EXPECT_EQ(at(t, 3.5f), 13);
  EXPECT_EQ(at(t, -5), 10);
  EXPECT_EQ(at(t, 99), 13);
  EXPECT_EQ(at(t, 1e30f), 13);
  EXPECT_EQ(at(t, -1e30f), 10);
}

TEST_F(Sampling, AddressModesOfNormalizedCoordinates) {
  Texture t = texture<float>({10, 11, 12, 13}, {4, 1, 1}, 1, Texture::Format::floating);
  t.normalized_coordinates = true;
  set_mode(t, AddressMode::wrap);
  EXPECT_EQ(at(t, 1.125f), 10);
  EXPECT_EQ(at(t, -0.125f), 13);
  set_mode(t, AddressMode::mirror);
  EXPECT_EQ(at(t, 1.125f), 13);
  EXPECT_EQ(at(t, -0.125f), 10);
  EXPECT_EQ(at(t, 2.125f), 10);
  set_mode(t, AddressMode::border);
  EXPECT_EQ(at(t, 1.125f), 0);
  EXPECT_EQ(at(t, 0.875f), 13);
  // Without normalised coordinates wrapping and mirroring clamp.
  t.normalized_coordinates = false;
  set_mode(t, AddressMode::wrap);
  EXPECT_EQ(at(t, 5), 13);
  EXPECT_EQ(at(t, -1), 10);
}

TEST_F(Sampling, LinearFilterHasEightBitsOfFraction) {
  Texture t = texture<float>({0, 256}, {2, 1, 1}, 1, Texture::Format::floating);
  t.linear_filter = true;
  EXPECT_EQ(at(t, 0.5f), 0);
  EXPECT_EQ(at(t, 1), 128);
  EXPECT_EQ(at(t, 1.5f), 256);
  EXPECT_EQ(at(t, 0.5f + 10.0f / 256), 10);
  EXPECT_EQ(at(t, 0.5f + 10.4f / 256), 10) << "rounded to 1/256";
  EXPECT_EQ(at(t, 0.5f + 10.6f / 256), 11);
  set_mode(t, AddressMode::border);
  EXPECT_EQ(at(t, 2), 128) << "half of the texel, half of the border";
}

TEST_F(Sampling, LinearFilterInThreeDimensions) {
  const std::vector<float> texels{0, 1, 10, 11, 100, 101, 110, 111};
  Texture t = texture(texels, {2, 2, 2}, 3, Texture::Format::floating);
  t.linear_filter = true;
  EXPECT_FLOAT_EQ(at(t, 1, 1, 1), 55.5f);
  EXPECT_FLOAT_EQ(at(t, 0.75f, 1.25f, 1.5f), 0.25f + 7.5f + 100);
}

TEST_F(Sampling, FormatsAndNormalizedReads) {
  Texture bytes = texture<std::uint8_t>({0, 128, 255, 1}, {4, 1, 1}, 1, Texture::Format::uint);
  EXPECT_EQ(sample(memory, bytes, 1, {2.5f}, touched)[0], 255u);
  EXPECT_EQ(sample(memory, bytes, 1, {2.5f}, touched)[1], 0u);
  bytes.normalized_read = true;
  EXPECT_EQ(at(bytes, 2.5f), 1.0f);
  EXPECT_FLOAT_EQ(at(bytes, 1.5f), 128.0f / 255.0f);
  Texture shorts =
      texture<std::int16_t>({-32768, -32767, 32767, -1}, {4, 1, 1}, 1, Texture::Format::sint);
  EXPECT_EQ(sample(memory, shorts, 1, {3.5f}, touched)[0], 0xffffffffu);
  shorts.normalized_read = true;
  EXPECT_EQ(at(shorts, 0.5f), -1.0f);
  EXPECT_EQ(at(shorts, 1.5f), -1.0f);
  EXPECT_EQ(at(shorts, 2.5f), 1.0f);
  const Texture halves =
      texture<std::uint16_t>({0x3c00, 0xc000}, {1, 1, 1}, 1, Texture::Format::floating, 2);
  EXPECT_EQ(std::bit_cast<float>(sample(memory, halves, 1, {0.5f}, touched)[0]), 1.0f);
  EXPECT_EQ(std::bit_cast<float>(sample(memory, halves, 1, {0.5f}, touched)[1]), -2.0f);
}

TEST_F(Sampling, FetchHasNoAddressMode) {
  Texture t = texture<float>({0, 1, 2, 3, 4, 5}, {3, 2, 1}, 2, Texture::Format::floating);
  set_mode(t, AddressMode::wrap);
  EXPECT_EQ(fetch(memory, t, 2, {2, 1, 0}, touched)[0], std::bit_cast<std::uint32_t>(5.0f));
  EXPECT_EQ(fetch(memory, t, 2, {3, 1, 0}, touched)[0], 0u);
  EXPECT_EQ(fetch(memory, t, 2, {-1, 0, 0}, touched)[0], 0u);
}

TEST_F(Sampling, SaysWhichWordsItRead) {
  Texture t = texture<std::uint8_t>({0, 1, 2, 3, 4, 5, 6, 7}, {8, 1, 1}, 1, Texture::Format::uint);
  sample(memory, t, 1, {6.5f}, touched);
  EXPECT_EQ(touched, (TouchedWords{t.address + 4}));
  // A filter reads both neighbours, but none whose share is 0.
  t.normalized_read = t.linear_filter = true;
  touched.clear();
  sample(memory, t, 1, {4.25f}, touched);
  EXPECT_EQ(touched, (TouchedWords{t.address, t.address + 4}));
  touched.clear();
  sample(memory, t, 1, {4.5f}, touched);
  EXPECT_EQ(touched, (TouchedWords{t.address + 4}));
  touched.clear();
  fetch(memory, t, 1, {9, 0, 0}, touched);
  EXPECT_TRUE(touched.empty()) << "the border is no memory";
}

TEST_F(Sampling, FaultsSayWhy) {
  Texture t = texture<float>({0, 1, 2, 3}, {2, 2, 1}, 2, Texture::Format::floating);
  EXPECT_THROW(sample(memory, t, 1, {0}, touched), TextureFault);
  EXPECT_THROW(fetch(memory, t, 3, {0, 0, 0}, touched), TextureFault);
  t.size[1] = 3;
  EXPECT_THROW(fetch(memory, t, 2, {0, 2, 0}, touched), TextureFault);
}

TEST_F(Sampling, SurfaceAddressesCountBytesInARow) {
  const Texture t =
      texture<std::uint32_t>(std::vector<std::uint32_t>(24), {4, 3, 2}, 3, Texture::Format::uint);
  EXPECT_EQ(surface_address(t, 3, {12, 2, 1}, 4), t.address + 48 + 32 + 12);
  EXPECT_EQ(surface_address(t, 3, {13, 2, 1}, 4), std::nullopt);
  EXPECT_EQ(surface_address(t, 3, {0, 3, 0}, 4), std::nullopt);
  EXPECT_EQ(surface_address(t, 3, {-4, 0, 0}, 4), std::nullopt);
  EXPECT_EQ(surface_address(t, 1, {4, 99, 99}, 8), t.address + 4) << "y and z do not count";
}

TEST_F(Sampling, ALayerIsATextureOfItsOwn) {
  // Three layers of two rows of two texels: layer l begins with 10 l.
  Texture t = texture<float>({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, {2, 2, 1}, 2,
                             Texture::Format::floating);
  EXPECT_THROW(layer_of(t, 0), TextureFault);
  t.layers = 3;
  EXPECT_THROW(at(t, 0, 0), TextureFault) << "its layer is missing";
  EXPECT_EQ(at(layer_of(t, 1), 1, 1), 13);
  EXPECT_EQ(at(layer_of(t, 99), 0, 0), 20);
  EXPECT_EQ(at(layer_of(t, -1), 0, 0), 0);
}

TEST_F(Sampling, CubesHaveAFacePerDirection) {
  // Faces of one texel, their number.
  Texture t = texture<float>({0, 1, 2, 3, 4, 5}, {1, 1, 1}, 2, Texture::Format::floating);
  t.layers = 6;
  EXPECT_THROW(cube_point(t, {1, 0, 0}, 0), TextureFault);
  t.cube = true;
  const auto face = [&](float x, float y, float z) {
    const auto [side, point] = cube_point(t, {x, y, z}, 0);
    return std::bit_cast<float>(sample(memory, side, 2, point, touched)[0]);
  };
  EXPECT_EQ(face(2, 1, -1), 0);
  EXPECT_EQ(face(-2, 1, 1), 1);
  EXPECT_EQ(face(1, 2, 1), 2);
  EXPECT_EQ(face(1, -2, 1), 3);
  EXPECT_EQ(face(-1, 1, 2), 4);
  EXPECT_EQ(face(1, 1, -2), 5);
  EXPECT_EQ(face(1, 1, 1), 0) << "of equal components x decides";
  EXPECT_EQ(face(0, -1, 1), 3) << "then y";
  EXPECT_EQ(face(0, 0, 0), 0) << "no direction: some texel";
}

}  // namespace
