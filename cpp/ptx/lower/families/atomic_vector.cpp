#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "ptx/lower/families.h"
#include "ptx/lower/memory_operands.h"
#include "simt/atomics.h"

// Atomics on vectors of floats. Values of 16 bits are done two at a time.

namespace warpstack::ptx::families {
namespace {

constexpr std::uint32_t half_bits = 16;

/// Two halves in a word.
std::uint32_t joined(Emitter& e, std::uint32_t low, std::uint32_t high) {
  const std::uint32_t above = e.temporary(4);
  e.lanes({.operation = Operation::shl, .type = Type::b32}, above,
          {high, e.constant(half_bits, 4)});
  const std::uint32_t result = e.temporary(4);
  e.lanes({.operation = Operation::bit_or, .type = Type::b32}, result, {low, above});
  return result;
}

void check_form(const MemoryAccess& access, std::string_view name, Type type,
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
  check_form(access, name, type, vector.elements, vector.keeps_subnormals);
  const std::size_t first = vector.returns ? 1 : 0;
  const bool is_half = bytes_of(type) == 2;
  const Type word = type == Type::f16 ? Type::f16x2 : type == Type::bf16 ? Type::bf16x2 : type;
  const Operand& values = e.operand(first + 1);
  const auto has_elements = [&](const Operand& operand) {
    return operand.kind == Operand::Kind::vector && operand.elements.size() == vector.elements;
  };
  if (!has_elements(values) || (vector.returns && !has_elements(e.operand(0)))) {
    throw Unsupported{"it has too few or many registers"};
  }
  access.bytes = 4;
  access.elements = static_cast<std::uint8_t>(is_half ? vector.elements / 2 : vector.elements);
  access.atomic = simt::find_atomic(name, word, true);
  take_address(e, access, e.operand(first));
  std::array<std::uint32_t, 4> operands{none, none, none, none};
  std::array<std::uint32_t, 4> results{none, none, none, none};
  for (std::size_t i = 0; i < access.elements; ++i) {
    operands[i] = is_half ? joined(e, e.in(values.elements[2 * i], type),
                                   e.in(values.elements[2 * i + 1], type))
                          : e.in(values.elements[i], type);
    // Through temporaries: a result may be in a register that another element is read from.
    if (vector.returns) results[i] = e.temporary(4);
  }
  access.operand_b = operands[0];
  access.result = results[0];
  std::copy_n(operands.begin() + 1, 3, access.more_operands.begin());
  std::copy_n(results.begin() + 1, 3, access.more_results.begin());
  std::vector<std::uint32_t> uses(operands.begin(), operands.end());
  uses.push_back(access.address);
  e.emit(Action::atomic, e.program().memory, access, {results.begin(), results.end()}, uses);
  e.row().cache_operator = CacheOperator::none;
  set_memory_row(e, access.space, vector.returns ? MemoryKind::atomic : MemoryKind::reduction,
                 access.bytes * access.elements);
  if (!vector.returns) return;
  for (std::size_t i = 0; i < vector.elements; ++i) {
    const std::uint32_t target = e.out(e.operand(0).elements[i], is_half ? Type::b16 : Type::b32);
    if (!is_half) {
      e.copy(target, results[i], Type::b32);
      continue;
    }
    const std::uint32_t shifted = e.temporary(4);
    e.lanes({.operation = Operation::shr, .type = Type::u32}, shifted,
            {results[i / 2], e.constant(half_bits * (i % 2), 4)});
    e.lanes({.operation = Operation::cvt, .type = Type::u16, .source = Type::u32}, target,
            {shifted});
  }
}

}  // namespace warpstack::ptx::families
