#include "simt/program/tensor_map.h"

#include <cstring>

#include "common/error.h"

namespace warpstack::simt {
namespace {

/// The layout of a CUtensorMap here. All zeros are a map of rank 1, which tensormap.replace fills
/// in.
struct Layout {
  std::uint64_t address;
  std::uint64_t strides[TensorMap::max_rank - 1];
  std::uint32_t sizes[TensorMap::max_rank];
  std::uint32_t box[TensorMap::max_rank];
  std::uint32_t steps[TensorMap::max_rank];
  std::uint8_t last_dimension;
  std::uint8_t element;
  std::uint8_t interleave;
  std::uint8_t swizzle;
  std::uint8_t fills_nan;
  std::uint8_t unused[23];
};
static_assert(sizeof(Layout) == TensorMap::bytes);

[[noreturn]] void fail(const std::string& what) { throw InputError("tensor map: " + what); }

void require_at_most(const char* field, std::uint64_t value, std::uint64_t most) {
  if (value > most) {
    fail(std::string(field) + " is " + std::to_string(value) + ", at most " + std::to_string(most) +
         " is possible");
  }
}

}  // namespace

std::array<std::byte, TensorMap::bytes> TensorMap::pack() const {
  Layout layout{};
  layout.address = address;
  for (std::uint32_t d = 0; d < max_rank; ++d) {
    if (d + 1 < max_rank) layout.strides[d] = strides[d];
    layout.sizes[d] = sizes[d];
    layout.box[d] = box[d];
    layout.steps[d] = steps[d];
  }
  layout.last_dimension = static_cast<std::uint8_t>(rank - 1);
  layout.element = static_cast<std::uint8_t>(element);
  layout.interleave = interleave;
  layout.swizzle = static_cast<std::uint8_t>(swizzle);
  layout.fills_nan = fills_nan ? 1 : 0;
  std::array<std::byte, bytes> packed;
  std::memcpy(packed.data(), &layout, bytes);
  return packed;
}

TensorMap TensorMap::unpack(std::span<const std::byte, bytes> packed) {
  Layout layout;
  std::memcpy(&layout, packed.data(), bytes);
  TensorMap map;
  map.address = layout.address;
  for (std::uint32_t d = 0; d < max_rank; ++d) {
    if (d + 1 < max_rank) map.strides[d] = layout.strides[d];
    map.sizes[d] = layout.sizes[d];
    map.box[d] = layout.box[d];
    map.steps[d] = layout.steps[d];
  }
  // If the bytes are no map, check() finds out.
  map.rank = static_cast<std::uint8_t>(layout.last_dimension + 1);
  map.element = static_cast<TensorElement>(layout.element);
  map.interleave = layout.interleave;
  map.swizzle = static_cast<Swizzle>(layout.swizzle);
  map.fills_nan = layout.fills_nan != 0;
  return map;
}

void TensorMap::replace(TensorMapField field, std::uint32_t ordinal, std::uint64_t value) {
  const auto narrow = static_cast<std::uint32_t>(value);
  require_at_most("the number of the dimension", ordinal,
                  field == TensorMapField::global_stride ? max_rank - 2 : max_rank - 1);
  switch (field) {
    case TensorMapField::global_address:
      address = value;
      break;
    case TensorMapField::rank:
      require_at_most("the rank less one", value, max_rank - 1);
      rank = static_cast<std::uint8_t>(value + 1);
      break;
    case TensorMapField::box_dim:
      box[ordinal] = narrow;
      break;
    case TensorMapField::global_dim:
      sizes[ordinal] = narrow;
      break;
    case TensorMapField::global_stride:
      strides[ordinal] = value;
      break;
    case TensorMapField::element_stride:
      steps[ordinal] = narrow;
      break;
    case TensorMapField::elemtype:
      require_at_most("elemtype", value, num_tensor_elements - 1);
      element = static_cast<TensorElement>(value);
      break;
    case TensorMapField::interleave_layout:
      require_at_most("interleave_layout", value, 2);
      interleave = static_cast<std::uint8_t>(value);
      break;
    case TensorMapField::swizzle_mode:
      require_at_most("swizzle_mode", value, 3);
      swizzle = static_cast<Swizzle>(value);
      break;
    case TensorMapField::fill_mode:
      require_at_most("fill_mode", value, 1);
      fills_nan = value != 0;
      break;
  }
}

void TensorMap::check() const {
  if (rank < 1 || rank > max_rank) {
    fail("its rank is " + std::to_string(rank) +
         ", not 1 to 5; is this a CUtensorMap that "
         "cuTensorMapEncodeTiled has made?");
  }
  require_at_most("the number of its element type", static_cast<std::uint64_t>(element),
                  num_tensor_elements - 1);
  require_at_most("the number of its swizzle", static_cast<std::uint64_t>(swizzle), 3);
  if (interleave != 0) fail("interleaved layouts are not supported");
  if (fills_nan && !is_float(element)) fail("only tensors of floats are filled with NaN");
  if (address % 16 != 0) fail("the address of the tensor is not a multiple of 16");
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::string which = " of dimension " + std::to_string(d);
    if (box[d] < 1 || box[d] > 256) {
      fail("the box" + which + " has " + std::to_string(box[d]) + " elements, not 1 to 256");
    }
    if (steps[d] < 1 || steps[d] > 8) {
      fail("the element stride" + which + " is " + std::to_string(steps[d]) + ", not 1 to 8");
    }
    if (d > 0 && strides[d - 1] % 16 != 0) {
      fail("the stride" + which + ", " + std::to_string(strides[d - 1]) +
           " bytes, is not a multiple of 16");
    }
    if (d > 0) require_at_most("a stride in bytes", strides[d - 1], (std::uint64_t{1} << 40) - 1);
  }
  const std::uint32_t row = tile_size(0) * bytes_of(element);
  if (row % 16 != 0) {
    fail("a row of the box has " + std::to_string(row) + " bytes, which is not a multiple of 16");
  }
  const std::uint32_t span = 16u << static_cast<unsigned>(swizzle);
  if (swizzle != Swizzle::none && row > span) {
    fail("a row of the box has " + std::to_string(row) + " bytes, and its swizzle is of " +
         std::to_string(span));
  }
}

std::uint64_t TensorMap::tile_bytes() const {
  std::uint64_t result = bytes_of(element);
  for (std::uint32_t d = 0; d < rank; ++d) result *= tile_size(d);
  return result;
}

}  // namespace warpstack::simt
