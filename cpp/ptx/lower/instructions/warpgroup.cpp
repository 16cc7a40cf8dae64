#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "simt/arithmetic/matrix_descriptor.h"
#include "trace/instructions/copy_groups.h"

// Products of matrices by four warps.

namespace warpstack::ptx::handlers {
namespace {

using simt::FactorElement;
using simt::WarpgroupMultiply;
using simt::WarpgroupWait;

struct Factors {
  FactorElement a = FactorElement::none;
  FactorElement b = FactorElement::none;
  FactorElement d = FactorElement::none;
};

FactorElement take_element(Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, FactorElement> names[] = {
      {"f16", FactorElement::f16},   {"bf16", FactorElement::bf16}, {"tf32", FactorElement::tf32},
      {"e4m3", FactorElement::e4m3}, {"e5m2", FactorElement::e5m2}, {"s8", FactorElement::s8},
      {"u8", FactorElement::u8},     {"b1", FactorElement::b1},     {"f32", FactorElement::f32},
      {"s32", FactorElement::s32}};
  const std::string_view word = modifiers.next();
  for (const auto& [name, element] : names) {
    if (word == name) return element;
  }
  throw Unsupported{word.empty() ? std::string("it names too few types")
                                 : "matrices of ." + std::string(word) + " are not supported"};
}

bool fits(const Factors& f) {
  const auto is_small = [](FactorElement e) {
    return e == FactorElement::e4m3 || e == FactorElement::e5m2;
  };
  const auto is_byte = [](FactorElement e) {
    return e == FactorElement::s8 || e == FactorElement::u8;
  };
  const bool to_float = f.d == FactorElement::f32;
  if (f.a == FactorElement::f16) return f.b == f.a && (to_float || f.d == FactorElement::f16);
  if (is_small(f.a)) return is_small(f.b) && (to_float || f.d == FactorElement::f16);
  if (f.a == FactorElement::bf16 || f.a == FactorElement::tf32) return f.b == f.a && to_float;
  if (is_byte(f.a)) return is_byte(f.b) && f.d == FactorElement::s32;
  return f.a == FactorElement::b1 && f.b == f.a && f.d == FactorElement::s32;
}

/// N of `m64n128k16`; K is the number of elements in 32 bytes.
std::uint32_t columns_of(std::string_view shape, const Factors& factors) {
  const auto number = [&shape](char letter) {
    std::uint32_t value = 0;
    const std::size_t at = shape.find(letter);
    if (at == std::string_view::npos) return value;
    std::from_chars(shape.data() + at + 1, shape.data() + shape.size(), value);
    return value;
  };
  const std::uint32_t n = number('n');
  const std::uint32_t bits = factors.a == FactorElement::b1 ? 1 : bits_of(factors.a);
  const bool is_integer = factors.d == FactorElement::s32;
  // Integers have fewer shapes (PTX ISA, table of shapes of wgmma.mma_async).
  const bool has_n = n >= 8 && n <= 256 && n % 8 == 0 && (!is_integer || n <= 24 || n % 16 == 0);
  const std::string named =
      "m64n" + std::to_string(n) + "k" + std::to_string(simt::factor_bytes * 8 / bits);
  if (!has_n || shape != named) {
    throw Unsupported{"these types are not multiplied in the shape ." + std::string(shape)};
  }
  return n;
}

/// 1 or -1, as an operand.
bool is_negated(Emitter& e, std::size_t i) {
  const std::int64_t value = e.operand(i).integer;
  if (value != 1 && value != -1) {
    throw Unsupported{"operand " + std::to_string(i) + " is " + std::to_string(value) +
                      ", not 1 or -1"};
  }
  return value == -1;
}

/// Takes the operands behind the factors: whether D counts, signs, and which factors are stored by
/// columns.
void take_scales(Emitter& e, WarpgroupMultiply& multiply, bool has_signs, bool has_orders) {
  std::size_t next = 3;
  if (e.num_operands() > next) {
    const Operand& counts = e.operand(next++);
    multiply.accumulates = counts.kind == Operand::Kind::integer
                               ? e.constant(counts.integer != 0 ? ~std::uint32_t{0} : 0, 4)
                               : e.in(counts, Type::pred);
  }
  if (!has_signs || e.num_operands() <= next) return;
  multiply.negate_a = is_negated(e, next++);
  multiply.negate_b = is_negated(e, next++);
  if (!has_orders) return;
  if (multiply.a_descriptor != none) multiply.transpose_a = e.operand(next++).integer != 0;
  multiply.transpose_b = e.operand(next).integer != 0;
}

void multiply_async(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("sp")) throw Unsupported{"sparse matrices are not supported"};
  modifiers.take("sync");
  modifiers.take("aligned");
  WarpgroupMultiply multiply;
  multiply.saturate = modifiers.take("satfinite");
  if (modifiers.take("and")) modifiers.take("popc");
  const std::string shape(modifiers.next());
  Factors factors;
  factors.d = take_element(modifiers);
  factors.a = take_element(modifiers);
  factors.b = take_element(modifiers);
  if (!fits(factors)) throw Unsupported{"these types are not multiplied"};
  multiply.a = factors.a;
  multiply.b = factors.b;
  multiply.d = factors.d;
  multiply.columns = columns_of(shape, factors);
  std::vector<std::uint32_t> uses;
  if (e.operand(1).kind == Operand::Kind::vector) {
    const auto registers = elements_of(e.operand(1));
    if (registers.size() != multiply.a_values.size()) {
      throw Unsupported{"A has " + std::to_string(registers.size()) + " registers instead of 4"};
    }
    for (std::size_t i = 0; i < registers.size(); ++i) {
      multiply.a_values[i] = e.in(*registers[i], Type::b32);
      uses.push_back(multiply.a_values[i]);
    }
  } else {
    multiply.a_descriptor = e.in(1, Type::b64);
    uses.push_back(multiply.a_descriptor);
  }
  multiply.b_descriptor = e.in(2, Type::b64);
  const bool is_integer = factors.d == FactorElement::s32;
  const bool is_half = factors.a == FactorElement::f16 || factors.a == FactorElement::bf16;
  take_scales(e, multiply, !is_integer, is_half);
  uses.push_back(multiply.b_descriptor);
  uses.push_back(multiply.accumulates);
  const auto registers = elements_of(e.operand(0));
  const std::size_t needed = multiply.columns / (factors.d == FactorElement::f16 ? 4 : 2);
  if (registers.size() != needed) {
    throw Unsupported{"D has " + std::to_string(registers.size()) + " registers instead of " +
                      std::to_string(needed)};
  }
  const Type type = factors.d == FactorElement::f32 ? Type::f32 : Type::b32;
  for (const Operand* reg : registers) {
    const std::uint32_t value = e.in(*reg, type);
    if (value != e.out(*reg, type)) throw Unsupported{"D is not a register"};
    multiply.d_values.push_back(value);
  }
  std::vector<std::uint32_t> definitions = multiply.d_values;
  uses.insert(uses.end(), definitions.begin(), definitions.end());
  std::vector<std::uint32_t> sources = uses;
  std::erase(sources, none);
  e.emit(Action::warpgroup_multiply, e.program().warpgroup_multiplications, multiply, definitions,
         uses);
  // Its reads of factors from shared memory are a row of their own.
  trace::StaticInstruction reads;
  reads.opcode = "wgmma.operands.shared";
  reads.op_class = OpClass::memory;
  reads.space = MemorySpace::shared;
  reads.kind = MemoryKind::load;
  reads.width = 16;
  std::vector<std::uint32_t> descriptors{multiply.b_descriptor};
  if (multiply.a_descriptor != none) descriptors.push_back(multiply.a_descriptor);
  e.add_part(std::move(reads), {}, std::move(descriptors));
  e.set_class(OpClass::tensor);
  e.add_part(std::move(definitions), std::move(sources));
}

}  // namespace

void wgmma(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("mma_async")) {
    multiply_async(e, modifiers);
    return;
  }
  modifiers.take("sync");
  modifiers.take("aligned");
  if (modifiers.take("commit_group")) {
    e.emit(Action::warpgroup_commit, {}, {});
  } else if (modifiers.take("wait_group")) {
    const WarpgroupWait wait{static_cast<std::uint64_t>(e.operand(0).integer)};
    e.emit(Action::warpgroup_wait, e.program().warpgroup_waits, wait, {}, {});
    e.row().opcode = trace::wait_opcode("wgmma.wait_group.sync.aligned",
                                        static_cast<std::uint32_t>(wait.pending));
  } else if (!modifiers.take("fence")) {
    throw Unsupported{"it is not an mma_async, fence, commit_group or wait_group"};
  }
}

}  // namespace warpstack::ptx::handlers
