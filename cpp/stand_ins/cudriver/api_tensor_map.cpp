// Tensor maps: descriptions of tensors for kernels that copy tiles of them.

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>

#include "common/error.h"
#include "simt/program/tensor_map.h"
#include "stand_ins/cudriver/driver.h"

using namespace warpstack::cudriver;
using warpstack::simt::Swizzle;
using warpstack::simt::TensorElement;
using warpstack::simt::TensorMap;

namespace {

/// By CUtensorMapDataType, whose order differs from that of PTX.
constexpr TensorElement elements[] = {
    TensorElement::u8,      TensorElement::u16,  TensorElement::u32,     TensorElement::s32,
    TensorElement::u64,     TensorElement::s64,  TensorElement::f16,     TensorElement::f32,
    TensorElement::f64,     TensorElement::bf16, TensorElement::f32_ftz, TensorElement::tf32,
    TensorElement::tf32_ftz};

/// Numbers that the program gives, one for each of `count` dimensions.
template <typename Number>
std::span<const Number> numbers_of(Runtime& runtime, const Number* numbers, std::uint32_t count,
                                   const char* what) {
  if (count == 0) return {};
  require(numbers != nullptr, what);
  runtime.check_host(address_of(numbers), count * sizeof(Number), false);
  return {numbers, count};
}

void check_place(Runtime& runtime, void* map) {
  constexpr std::uintptr_t alignment = 64;
  require(map != nullptr && address_of(map) % alignment == 0,
          "a CUtensorMap lies at a multiple of 64 bytes");
  runtime.check_host(address_of(map), TensorMap::bytes, true);
}

/// Writes a map if a copy can work with it.
void store(void* place, const TensorMap& map) {
  try {
    map.check();
  } catch (const warpstack::InputError& error) {
    throw Failure(Error::invalid_value, error.what());
  }
  const auto packed = map.pack();
  std::memcpy(place, packed.data(), packed.size());
}

[[noreturn]] void refuse(const char* what) { throw Failure(Error::not_supported, what, true); }

}  // namespace

CUDART_EXPORT Error cuTensorMapEncodeTiled(void* place, int element, std::uint32_t rank,
                                           void* address, const std::uint64_t* sizes,
                                           const std::uint64_t* strides, const std::uint32_t* box,
                                           const std::uint32_t* steps, int interleave, int swizzle,
                                           int l2_promotion, int fill) {
  return drive(
      __func__,
      [&](Runtime& runtime) {
        check_place(runtime, place);
        require(rank >= 1 && rank <= TensorMap::max_rank, "a tensor has 1 to 5 dimensions");
        require(element >= 0 && element <= 15, "unknown type of elements");
        if (static_cast<std::size_t>(element) >= std::size(elements)) {
          refuse("tensors of packed elements of 4 and 6 bits are not supported");
        }
        require(interleave >= 0 && interleave <= 2, "unknown interleaving");
        if (interleave != 0) refuse("interleaved tensors are not supported");
        require(swizzle >= 0 && swizzle <= 6, "unknown swizzle");
        if (!warpstack::simt::is_swizzle(static_cast<std::uint64_t>(swizzle))) {
          refuse("the swizzle that also flips 8 bytes is not supported");
        }
        require(l2_promotion >= 0 && l2_promotion <= 3, "unknown promotion in L2");
        require(fill == 0 || fill == 1, "unknown fill");
        TensorMap map;
        map.address = address_of(address);
        map.rank = static_cast<std::uint8_t>(rank);
        map.element = elements[element];
        map.swizzle = static_cast<Swizzle>(swizzle);
        map.fills_nan = fill == 1;
        constexpr std::uint64_t most = std::uint64_t{1} << 32;
        std::uint32_t d = 0;
        for (const std::uint64_t size : numbers_of(runtime, sizes, rank, "no sizes")) {
          require(size >= 1 && size <= most, "a tensor has 1 to 2^32 elements along a dimension");
          map.sizes[d++] = static_cast<std::uint32_t>(size);  // 0 stands for 2^32
        }
        d = 0;
        for (const std::uint64_t stride : numbers_of(runtime, strides, rank - 1, "no strides")) {
          map.strides[d++] = stride;
        }
        const auto boxes = numbers_of(runtime, box, rank, "no sizes of the box");
        std::ranges::copy(boxes, map.box.begin());
        std::ranges::copy(numbers_of(runtime, steps, rank, "no strides of elements"),
                          map.steps.begin());
        store(place, map);
      },
      Needs::initialization);
}

CUDART_EXPORT Error cuTensorMapReplaceAddress(void* place, void* address) {
  return drive(
      __func__,
      [&](Runtime& runtime) {
        check_place(runtime, place);
        std::array<std::byte, TensorMap::bytes> packed;
        std::memcpy(packed.data(), place, packed.size());
        TensorMap map = TensorMap::unpack(packed);
        map.address = address_of(address);
        store(place, map);
      },
      Needs::initialization);
}
