// Tensor maps: what kernels need to copy tiles of tensors.

#include <cstring>
#include <iterator>

#include "common/error.h"
#include "cudriver/driver.h"
#include "simt/tensor_map.h"

using namespace warpstack::cudriver;
using warpstack::simt::Swizzle;
using warpstack::simt::TensorElement;
using warpstack::simt::TensorMap;

namespace {

/// CUtensorMapDataType, which is in another order than the numbers of tensormap.replace.
constexpr TensorElement elements[] = {
    TensorElement::u8,      TensorElement::u16,  TensorElement::u32,     TensorElement::s32,
    TensorElement::u64,     TensorElement::s64,  TensorElement::f16,     TensorElement::f32,
    TensorElement::f64,     TensorElement::bf16, TensorElement::f32_ftz, TensorElement::tf32,
    TensorElement::tf32_ftz};

TensorMap encode(int element, std::uint32_t rank, std::uint64_t address, const std::uint64_t* sizes,
                 const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,
                 int interleave, int swizzle, int fill) {
  require(sizes != nullptr && box != nullptr && steps != nullptr,
          "sizes, box or element strides are missing");
  require(rank >= 1 && rank <= TensorMap::max_rank, "a tensor has 1 to 5 dimensions");
  require(rank == 1 || strides != nullptr, "strides are missing");
  require(element >= 0 && element < static_cast<int>(std::size(elements)),
          "unknown type of elements");
  require(interleave >= 0 && interleave <= 2, "unknown interleaved layout");
  require(swizzle >= 0 && swizzle <= 3, "this swizzle is not supported");
  TensorMap map;
  map.address = address;
  map.rank = static_cast<std::uint8_t>(rank);
  for (std::uint32_t d = 0; d < rank; ++d) {
    require(sizes[d] >= 1 && sizes[d] <= std::uint64_t{1} << 32,
            "a dimension has 1 to 2^32 elements");
    map.sizes[d] = static_cast<std::uint32_t>(sizes[d]);
    map.box[d] = box[d];
    map.steps[d] = steps[d];
    if (d > 0) map.strides[d - 1] = strides[d - 1];
  }
  map.element = elements[element];
  map.interleave = static_cast<std::uint8_t>(interleave);
  map.swizzle = static_cast<Swizzle>(swizzle);
  map.fills_nan = fill != 0;
  try {
    map.check();
  } catch (const warpstack::InputError& error) {
    throw Failure(Error::invalid_value, error.what());
  }
  return map;
}

}  // namespace

CUDART_EXPORT Error cuTensorMapEncodeTiled(void* tensor_map, int element, std::uint32_t rank,
                                           void* address, const std::uint64_t* sizes,
                                           const std::uint64_t* strides, const std::uint32_t* box,
                                           const std::uint32_t* steps, int interleave, int swizzle,
                                           int /*l2_promotion*/, int fill) {
  return drive(__func__, [&](Runtime&) {
    require(tensor_map != nullptr, "nowhere to put the map");
    const auto packed = encode(element, rank, address_of(address), sizes, strides, box, steps,
                               interleave, swizzle, fill)
                            .pack();
    std::memcpy(tensor_map, packed.data(), packed.size());
  });
}

CUDART_EXPORT Error cuTensorMapReplaceAddress(void* tensor_map, void* address) {
  return drive(__func__, [&](Runtime&) {
    require(tensor_map != nullptr, "there is no map");
    std::array<std::byte, TensorMap::bytes> packed;
    std::memcpy(packed.data(), tensor_map, packed.size());
    TensorMap map = TensorMap::unpack(packed);
    map.address = address_of(address);
    try {
      map.check();
    } catch (const warpstack::InputError& error) {
      throw Failure(Error::invalid_value, error.what());
    }
    packed = map.pack();
    std::memcpy(tensor_map, packed.data(), packed.size());
  });
}
