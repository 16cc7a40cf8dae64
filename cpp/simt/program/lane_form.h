#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simt/program/rounding.h"
#include "simt/program/type.h"

namespace warpstack::simt {

// A warp's registers lie in slots of 32 lanes. Values of up to 32 bits take 4 bytes per lane,
// zero-extended; wider ones take 8. A predicate is 0 or ~0 in 4 bytes.

/// Byte offsets of an instruction's operands in the register file.
struct LaneOperands {
  std::uint32_t target = 0;
  std::uint32_t target2 = 0;  ///< second result: a carry
  std::array<std::uint32_t, 4> source{};
  /// lop3's table, or a Rounding other than `nearest`; see also OperandSigns and Add3Terms.
  std::uint32_t immediate = 0;
};

/// `LaneOperands::immediate` of forms with `LaneForm::signs`: the rounding, and the change of each
/// source's sign before the operation.
struct OperandSigns {
  std::uint32_t bits = 0;

  constexpr void set_rounding(Rounding rounding) { bits |= static_cast<std::uint32_t>(rounding); }
  constexpr void negate(std::uint32_t source) { bits ^= 4u << (2 * source); }
  constexpr void take_absolute(std::uint32_t source) { bits |= 8u << (2 * source); }
  [[nodiscard]] constexpr Rounding rounding() const { return static_cast<Rounding>(bits & 3); }
  [[nodiscard]] constexpr bool negates(std::uint32_t source) const {
    return (bits >> (2 * source) & 4) != 0;
  }
  /// The absolute value comes before the negation.
  [[nodiscard]] constexpr bool absolute(std::uint32_t source) const {
    return (bits >> (2 * source) & 8) != 0;
  }
};

/// `LaneOperands::immediate` of add3 and add3_carry: which sources are complemented, and a number
/// that is added to the sum.
struct Add3Terms {
  std::uint32_t bits = 0;

  constexpr void complement(std::uint32_t source) { bits |= 1u << source; }
  constexpr void increment() { bits += 16; }
  [[nodiscard]] constexpr std::uint32_t mask(std::uint32_t source) const {
    return 0u - (bits >> source & 1);
  }
  [[nodiscard]] constexpr std::uint32_t addend() const { return bits >> 4; }
};

/// At most four lanes: computing them one by one is faster than vector code for all 32.
constexpr bool is_few(std::uint32_t lanes) {
  for (int i = 0; i < 4; ++i) lanes &= lanes - 1;
  return lanes == 0;
}

/// The lanes that an instruction changes.
struct LaneMask {
  std::uint32_t bits = 0;
  /// Lanes outside `bits` may be overwritten, because nobody reads them.
  bool all = false;
  bool few = true;  ///< see is_few()
  /// ~0 for the lanes of `bits`; unset when these are few.
  alignas(64) std::array<std::uint32_t, 32> lanes{};

  void set(std::uint32_t mask) {
    bits = mask;
    few = is_few(mask);
    if (few) return;
    for (std::uint32_t lane = 0; lane < 32; ++lane) lanes[lane] = 0u - ((mask >> lane) & 1u);
  }
};

/// Computes one instruction for a warp.
using LaneFunction = void (*)(std::byte* registers, const LaneOperands& operands,
                              const LaneMask& mask);

/// The operations of the arithmetic units, by their mnemonics in PTX. C++ keeps the words and, or,
/// xor and not for itself.
enum class Operation : std::uint8_t {
  abs,
  add,
  add3,        ///< see Add3Terms
  add3_carry,  ///< source[3] is a carry in, target2 a carry out (predicates); `high`: the only
               ///< result is target, the predicate of a carry of two
  addc,        ///< source[2] is the carry in, target2 the carry out (0 or 1)
  bfe,
  bfi,
  bfind,  ///< `high`: .shiftamt
  bit_and,
  bit_not,
  bit_or,
  bit_xor,
  bmsk,
  brev,
  clz,
  cnot,
  copysign,
  cos,
  cvt,        ///< from `source` to `type`
  cos_turns,  ///< cos(2 pi a)
  div,
  division_check,  ///< whether the quotient needs more than a Newton step
  dp2a,            ///< `high`
  dp4a,
  ex2,
  fma,
  fns,
  lg2,
  lop3,
  mad24,  ///< `high`: .hi
  mad_hi,
  mad_lo,
  mad_wide,
  mad_wide_hi,  ///< upper word of a 64-bit sum
  max,
  min,
  mov,
  mul24,  ///< `high`: .hi
  mul_hi,
  mul_lo,
  mul_wide,
  narrow,  ///< see NarrowConversion; `LaneForm` says nothing else
  neg,
  pack,  ///< joins two slots to 64 bits in one
  popc,
  prmt,  ///< `mode`
  rcp,
  rcp_hi,  ///< upper word of 1 / a, given the upper word of a
  rem,
  rsqrt,
  rsqrt_hi,
  sad,
  selp,
  setp,  ///< without a second predicate
  shf_l,
  shf_r,
  shl,
  shr,
  sin,
  sin_turns,
  slct,  ///< by the sign of `source`
  sqrt,
  sub,
  subc,  ///< as addc, with source[1] complemented: a carry of 0 is a borrow
  szext,
  tanh,
  testp,  ///< `mode`
  unpack,
  widen,  ///< see NarrowConversion
};

enum class Comparison : std::uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // ordered; signed, unsigned or float by type
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,  // true when an operand is NaN
  num,
  nan,
};

/// prmt
enum class Permute : std::uint8_t { index, f4e, b4e, rc8, ecl, ecr, rc16 };

/// testp
enum class Property : std::uint8_t { finite, infinite, number, not_a_number, normal, subnormal };

/// An instruction form of the arithmetic units: all that chooses its function.
struct LaneForm {
  Operation operation = Operation::mov;
  Type type = Type::none;    ///< of the operands; cvt: of the result
  Type source = Type::none;  ///< cvt: of the source; dp4a: of b; slct: of the selector
  Rounding rounding = Rounding::nearest;
  Comparison comparison = Comparison::eq;
  std::uint8_t mode = 0;          ///< Permute or Property
  bool integer_rounding = false;  ///< cvt .rni .rzi .rmi .rpi, to a float
  bool flush = false;             ///< .ftz
  bool saturate = false;          ///< .sat
  bool clamp = false;             ///< .clamp (else .wrap) of shf, bmsk, szext
  bool high = false;
  bool propagate_nan = false;  ///< min.NaN, max.NaN
  bool xor_sign = false;       ///< .xorsign.abs
  bool relu = false;           ///< .relu
  /// 64-bit operands lie in two slots of 32-bit words, lower words first, like the registers of
  /// machine code.
  bool words = false;
  bool signs = false;  ///< `LaneOperands::immediate` holds OperandSigns
};

/// The function of a form, or null when it does not exist. Results are those of the PTX ISA;
/// approximate instructions give the correctly rounded value or the C library's nearest one.
LaneFunction find_lane_function(const LaneForm& form);

}  // namespace warpstack::simt
