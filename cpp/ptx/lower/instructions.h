#pragma once

#include <cstdint>
#include <string_view>

#include "simt/program/program.h"

/// The handlers that opcodes.inc names; they are in instructions/.
namespace warpstack::ptx {

class Emitter;
class Modifiers;
struct Instruction;

namespace handlers {

#define PTX_LANES(mnemonic, handler, operation, signature, row_class, expansion) \
  void handler(Emitter&, Modifiers&);
#define PTX_STEPS(mnemonic, handler, row_class) void handler(Emitter&, Modifiers&);
#include "ptx/lower/opcodes.inc"
#undef PTX_LANES
#undef PTX_STEPS

/// Whether convert_narrow() handles this conversion.
bool is_narrow_conversion(const Instruction& instruction);
void convert_narrow(Emitter& e, Modifiers& modifiers);
/// cvt.pack
void convert_packed(Emitter& e, Modifiers& modifiers);
/// The other modifiers of an atomic on a vector.
struct AtomicVector {
  std::uint32_t elements = 2;
  bool returns = false;
  bool keeps_subnormals = false;  ///< .noftz
};
/// atom and red of `.v2`, `.v4` and `.v8`
void atomic_vector(Emitter& e, simt::MemoryAccess access, std::string_view name, simt::Type type,
                   const AtomicVector& vector);
/// cp.async.mbarrier.arrive
void copies_arrive(Emitter& e, Modifiers& modifiers);
/// cp.async.bulk, cp.reduce.async.bulk
void bulk_copy(Emitter& e, Modifiers& modifiers, bool reduces);
/// barrier.cluster
void cluster_barrier(Emitter& e, Modifiers& modifiers);

}  // namespace handlers
}  // namespace warpstack::ptx
