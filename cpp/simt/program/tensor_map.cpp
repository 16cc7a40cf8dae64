#include "simt/program/tensor_map.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"

namespace warpstack::simt {
namespace {

/// A CUtensorMap: fields lie where the code does that ptxas makes of tensormap.replace for sm_90a,
/// so that machine code can change a map. Sizes, boxes and steps are one less there, strides are in
/// units of 16 bytes. All zeros are a map of rank 1 of one byte.
struct Layout {
  std::uint64_t address;
  std::uint32_t kinds;
  std::uint32_t strides[TensorMap::max_rank - 1];
  std::uint32_t upper_strides;  ///< four bits each
  std::uint32_t sizes[TensorMap::max_rank];
  std::uint32_t steps;  ///< three bits each; the first box in the upper byte
  std::uint32_t boxes;  ///< the others
  std::uint32_t unused;
  // Bits of wrong values that have no place there, so that check() can name these.
  std::uint32_t more_strides[TensorMap::max_rank - 1];
  std::uint32_t more_box[TensorMap::max_rank];
  std::uint32_t more_steps[TensorMap::max_rank];
  std::uint64_t rest;
};
static_assert(sizeof(Layout) == TensorMap::bytes);

/// Bits of Layout::kinds.
namespace kind {
constexpr std::uint32_t rank = 4;     ///< less one
constexpr std::uint32_t element = 7;  ///< four bits
constexpr std::uint32_t interleave = 11;
constexpr std::uint32_t swizzle = 13;  ///< two bits
constexpr std::uint32_t fills_nan = 15;
constexpr std::uint32_t tf32 = 16;           ///< the element is f32 and rounded
constexpr std::uint32_t larger_pieces = 17;  ///< the third bit of the swizzle
}  // namespace kind

constexpr std::uint64_t stride_bits = 40;

/// A tf32 element has the number of an f32 and a bit of its own.
std::uint32_t packed_element(TensorElement element) {
  const auto number = static_cast<std::uint32_t>(element);
  if (element != TensorElement::tf32 && element != TensorElement::tf32_ftz) {
    return number << kind::element;
  }
  const auto plain = element == TensorElement::tf32 ? TensorElement::f32 : TensorElement::f32_ftz;
  return static_cast<std::uint32_t>(plain) << kind::element | 1u << kind::tf32;
}

TensorElement unpacked_element(std::uint32_t kinds) {
  const auto element = static_cast<TensorElement>(kinds >> kind::element & 15);
  if ((kinds >> kind::tf32 & 1) == 0) return element;
  if (element == TensorElement::f32) return TensorElement::tf32;
  return element == TensorElement::f32_ftz ? TensorElement::tf32_ftz : element;
}

/// Place of a box's size in `boxes`; the first one lies elsewhere.
constexpr std::uint32_t box_shift(std::uint32_t dimension) { return 8 * (dimension - 1); }

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
  layout.kinds = (rank - 1u) << kind::rank | packed_element(element) |
                 std::uint32_t{interleave} << kind::interleave |
                 (static_cast<std::uint32_t>(swizzle) & 3) << kind::swizzle |
                 static_cast<std::uint32_t>(swizzle) >> 2 << kind::larger_pieces |
                 std::uint32_t{fills_nan} << kind::fills_nan;
  for (std::uint32_t d = 0; d < max_rank; ++d) {
    layout.sizes[d] = sizes[d] - 1;
    const std::uint32_t side = (box[d] - 1) & 0xff;
    if (d == 0) {
      layout.steps |= side << 24;
    } else {
      layout.boxes |= side << box_shift(d);
    }
    layout.more_box[d] = (box[d] - 1) ^ side;
    const std::uint32_t step = (steps[d] - 1) & 7;
    layout.steps |= step << 3 * d;
    layout.more_steps[d] = (steps[d] - 1) ^ step;
    if (d + 1 == max_rank) break;
    layout.strides[d] = static_cast<std::uint32_t>(strides[d] >> 4);
    layout.upper_strides |= (strides[d] >> 36 & 15) << 4 * d;
    layout.more_strides[d] =
        static_cast<std::uint32_t>(strides[d] & 15) |
        static_cast<std::uint32_t>(std::min<std::uint64_t>(strides[d] >> stride_bits, 1) << 4);
  }
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
    map.sizes[d] = layout.sizes[d] + 1;
    const std::uint32_t side = (d == 0 ? layout.steps >> 24 : layout.boxes >> box_shift(d)) & 0xff;
    map.box[d] = (side ^ layout.more_box[d]) + 1;
    map.steps[d] = ((layout.steps >> 3 * d & 7) ^ layout.more_steps[d]) + 1;
    if (d + 1 == max_rank) break;
    map.strides[d] = std::uint64_t{layout.strides[d]} << 4 |
                     std::uint64_t{layout.upper_strides >> 4 * d & 15} << 36 |
                     (layout.more_strides[d] & 15) |
                     std::uint64_t{layout.more_strides[d] >> 4} << stride_bits;
  }
  // If the bytes are no map, check() finds out.
  map.rank = static_cast<std::uint8_t>((layout.kinds >> kind::rank & 7) + 1);
  map.element = unpacked_element(layout.kinds);
  map.interleave = static_cast<std::uint8_t>(layout.kinds >> kind::interleave & 3);
  map.swizzle = static_cast<Swizzle>((layout.kinds >> kind::swizzle & 3) |
                                     (layout.kinds >> kind::larger_pieces & 1) << 2);
  map.fills_nan = (layout.kinds >> kind::fills_nan & 1) != 0;
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
  if (!is_swizzle(static_cast<std::uint64_t>(swizzle))) {
    fail("the number of its swizzle is " + std::to_string(static_cast<unsigned>(swizzle)) +
         ", not 0 to 4 or 6");
  }
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
  const std::uint32_t span = span_of(swizzle);
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
