#pragma once

/// The families of instructions: the functions that opcodes.inc names, in families/.
namespace warpstack::ptx {

class Emitter;
class Modifiers;

namespace families {

#define PTX_LANES(mnemonic, handler, operation, signature, row_class, expansion) \
  void handler(Emitter&, Modifiers&);
#define PTX_STEPS(mnemonic, handler, row_class) void handler(Emitter&, Modifiers&);
#include "ptx/lower/opcodes.inc"
#undef PTX_LANES
#undef PTX_STEPS

/// cp.async.mbarrier.arrive
void copies_arrive(Emitter& e, Modifiers& modifiers);
/// cp.async.bulk, cp.reduce.async.bulk
void bulk_copy(Emitter& e, Modifiers& modifiers, bool reduces);
/// barrier.cluster
void cluster_barrier(Emitter& e, Modifiers& modifiers);

}  // namespace families
}  // namespace warpstack::ptx
