#pragma once

#include "simt/program/lane_form.h"
#include "simt/program/matrix.h"

// The functions of the lanes are compiled once per instruction set of the host, each time in a
// namespace of its own (see CMakeLists.txt), so that no code for a newer processor is shared with
// the others. All definitions in these files and headers lie in that namespace or have internal
// linkage.
#ifndef WARPSTACK_ISA
#define WARPSTACK_ISA baseline
#endif

namespace warpstack::simt::WARPSTACK_ISA {

/// See lane_form.h and matrix.h.
LaneFunction find_lane_function(const LaneForm& form);
void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply);

// The same for one group of forms each; null for a form of another group.

/// Arithmetic on integers.
LaneFunction integer_function(const LaneForm& form);
/// Bits of any type: moves, logic, shifts, fields, bytes, selections.
LaneFunction bit_function(const LaneForm& form);
/// Arithmetic on f32 and f64.
LaneFunction real_function(const LaneForm& form);
/// Arithmetic on f16, bf16 and pairs of them.
LaneFunction half_function(const LaneForm& form);
/// setp
LaneFunction comparison_function(const LaneForm& form);
/// Forms with `words` or `signs`, and operations that only they have.
LaneFunction word_function(const LaneForm& form);
/// narrow and widen
LaneFunction narrow_function(const LaneForm& form);
/// cvt
LaneFunction conversion_function(const LaneForm& form);

}  // namespace warpstack::simt::WARPSTACK_ISA
