#include <string_view>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "simt/arithmetic/atomics.h"

// Atomics on vectors of floats.

namespace warpstack::ptx::handlers {
namespace {

void check_vector(const MemoryAccess& access, std::string_view name, Type type,
                  std::uint32_t elements, bool keeps_subnormals) {
  const bool is_f32 = type == Type::f32;
  const bool is_half = type == Type::f16 || type == Type::bf16;
  const bool is_pair = type == Type::f16x2 || type == Type::bf16x2;
  if (!is_f32 && !is_half && !is_pair) {
    throw Unsupported{"atomics on vectors have floats of 16 and 32 bits"};
  }
  if (access.space == AddressSpace::shared) {
    throw Unsupported{"atomics on vectors are of global memory"};
  }
  if (name != "add" && (is_f32 || (name != "min" && name != "max"))) {
    throw Unsupported{"there is no ." + std::string(name) + " of vectors of its type"};
  }
  if (elements == 8 && !is_half) throw Unsupported{"vectors of eight are of f16 and bf16"};
  if (!is_f32 && !keeps_subnormals) throw Unsupported{"it needs .noftz"};
}

}  // namespace

void atomic_vector(Emitter& e, MemoryAccess access, std::string_view name, Type type,
                   const AtomicVector& vector) {
  check_vector(access, name, type, vector.elements, vector.keeps_subnormals);
  const std::size_t first = vector.returns ? 1 : 0;
  const Operand& values = e.operand(first + 1);
  const auto has_elements = [&](const Operand& operand) {
    return operand.kind == Operand::Kind::vector && operand.elements.size() == vector.elements;
  };
  if (!has_elements(values) || (vector.returns && !has_elements(e.operand(0)))) {
    throw Unsupported{"it has too few or many registers"};
  }
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.elements = static_cast<std::uint8_t>(vector.elements);
  access.atomic = simt::find_atomic(name, type, true);
  take_address(e, access, e.operand(first));
  std::vector<std::uint32_t> uses{access.address};
  std::vector<std::uint32_t> results;
  for (std::size_t i = 0; i < access.elements; ++i) {
    uses.push_back(e.in(values.elements[i], type));
    (i == 0 ? access.operand_b : access.more_operands[i - 1]) = uses.back();
  }
  for (std::size_t i = 0; vector.returns && i < access.elements; ++i) {
    results.push_back(e.out(e.operand(0).elements[i], type));
    (i == 0 ? access.result : access.more_results[i - 1]) = results.back();
  }
  e.emit(Action::atomic, e.program().memory, access, results, uses);
  e.row().cache_operator = CacheOperator::none;
  set_memory_row(e, access.space, vector.returns ? MemoryKind::atomic : MemoryKind::reduction,
                 bytes_of(type) * vector.elements);
}

}  // namespace warpstack::ptx::handlers
