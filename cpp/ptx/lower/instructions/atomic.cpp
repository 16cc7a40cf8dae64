#include <string>
#include <string_view>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "simt/arithmetic/atomics.h"

// Atomics and reductions.

namespace warpstack::ptx::handlers {
namespace {

void atomic(Emitter& e, Modifiers& modifiers, bool returns) {
  const MemoryModifiers space = take_space(e, modifiers);
  const bool keeps_subnormals = modifiers.take("noftz");
  const std::uint8_t elements = take_elements(modifiers);
  static constexpr std::string_view names[] = {"add",  "min", "max", "inc", "dec",
                                               "exch", "cas", "and", "or",  "xor"};
  std::string_view name;
  for (const std::string_view candidate : names) {
    if (modifiers.take(candidate)) name = candidate;
  }
  const Type type = modifiers.need_type();
  MemoryAccess access;
  access.space = space.space;
  access.strong = true;
  access.acquires = space.acquires;
  access.releases = space.releases;
  if (elements > 1) {
    atomic_vector(e, access, name, type,
                  {.elements = elements, .returns = returns, .keeps_subnormals = keeps_subnormals});
    return;
  }
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.atomic = find_atomic(name, type, space.space != AddressSpace::shared);
  // f16 and bf16 have minima and maxima only for vectors.
  const bool exists = access.atomic != nullptr && (!is_float(type) || name == "add");
  if (!exists) throw Unsupported{"this atomic operation is not supported"};
  const std::size_t first = returns ? 1 : 0;
  take_address(e, access, e.operand(first));
  access.operand_b = e.in(first + 1, type);
  access.operand_c = name == "cas" ? e.in(first + 2, type) : none;
  access.takes_locks = name == "cas" || name == "exch";
  access.counts = returns && name == "add" && !is_float(type);
  // Unless the result is read (add_rows()), the lanes are only counted.
  const bool counts = space.space == AddressSpace::shared && name == "add" &&
                      (type == Type::u32 || type == Type::s32) && e.is_constant(access.operand_b) &&
                      access.operand_b == e.constant(1, 4);
  if (counts) e.row().opcode = e.opcode_text() + std::string(trace::lane_count_suffix);
  if (returns) access.result = e.out(0, type);
  e.emit(Action::atomic, e.program().memory, access, {access.result},
         {access.address, access.operand_b, access.operand_c});
  e.row().cache_operator = CacheOperator::none;
  set_memory_row(e, space.space, returns ? MemoryKind::atomic : MemoryKind::reduction,
                 bytes_of(type));
}

}  // namespace

void atom(Emitter& e, Modifiers& modifiers) { atomic(e, modifiers, true); }

void red(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("async")) throw Unsupported{"stores with an mbarrier are not supported"};
  atomic(e, modifiers, false);
}

}  // namespace warpstack::ptx::handlers
