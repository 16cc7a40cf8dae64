// The bytes of a fat binary, or of a file with some in it, are PTX text, images, or an InputError.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error.h"
#include "stand_ins/state/fat_binary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    cudart::best_ptx(bytes, 90);
  } catch (const InputError&) {
  }
  try {
    cudart::relocatable_ptx(std::array{std::span(bytes), std::span(bytes)}, 90);
  } catch (const InputError&) {
  }
  try {
    cudart::image_for(bytes, 80);
  } catch (const InputError&) {
  }
  try {
    for (const auto container : cudart::fat_binaries_in(bytes)) {
      for (const cudart::FatBinaryEntry& entry : cudart::fat_binary_entries(container)) {
        cudart::unpack(entry);
      }
    }
  } catch (const InputError&) {
  }
  try {
    cudart::unpack_lz4(bytes, size * 3);
  } catch (const InputError&) {
  }
  return 0;
}
