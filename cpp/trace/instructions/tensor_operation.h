#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/enum_names.h"

namespace warpstack::trace {

/// What tensor cores multiply, by the rates that they have for it.
enum class TensorType : std::uint8_t {
  f16,      ///< half precision with sums in half precision
  f16_f32,  ///< half precision with sums in single precision
  bf16,
  tf32,
  f64,
  f8,
  s8,
  s4,
  b1,
};
constexpr auto names_of(TensorType) {
  return enum_names("type of matrices", "f16", "f16_f32", "bf16", "tf32", "f64", "f8", "s8", "s4",
                    "b1");
}
inline constexpr std::size_t num_tensor_types = num_values<TensorType>;

/// A matrix instruction: what the tensor cores of one scheduler do of it.
struct TensorOperation {
  TensorType type = TensorType::f16;
  std::uint64_t multiply_adds = 0;
  /// Done by the tensor cores of all schedulers, a quarter each, for a group of four warps (wgmma,
  /// GMMA) or for one thread (tcgen05); products into the same sums follow each other without
  /// waiting.
  bool is_of_group = false;
  /// For one thread: its warp alone issues it, and all schedulers' tensor cores are busy.
  bool is_of_sm = false;

  bool operator==(const TensorOperation&) const = default;
};

/// Reads shape and types of an opcode of PTX (`mma`, `wmma.mma`, `wgmma.mma_async`, `tcgen05.mma`)
/// or SASS (`HMMA`, `IMMA`, `BMMA`, `DMMA`, `QMMA`, those with G of four warps, as `HGMMA`, and
/// those with UTC of tensor memory, as `UTCHMMA`). Of matrices with zeros
/// (`mma.sp`) it counts what is multiplied, of 4-bit floats of block-scaled kinds (`mxf4`), which
/// take half the time, half, of two SMs' products one SM's half. Nothing for other instructions and
/// types.
std::optional<TensorOperation> tensor_operation(std::string_view opcode);

}  // namespace warpstack::trace
