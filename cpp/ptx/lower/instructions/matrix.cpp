#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"

// Matrices.

namespace warpstack::ptx::handlers {
namespace {

MatrixElement element_named(std::string_view word) {
  static constexpr std::pair<std::string_view, MatrixElement> names[] = {
      {"f16", MatrixElement::f16},   {"bf16", MatrixElement::bf16}, {"tf32", MatrixElement::tf32},
      {"f32", MatrixElement::f32},   {"f64", MatrixElement::f64},   {"s32", MatrixElement::s32},
      {"s8", MatrixElement::s8},     {"u8", MatrixElement::u8},     {"s4", MatrixElement::s4},
      {"u4", MatrixElement::u4},     {"b1", MatrixElement::b1},     {"e4m3", MatrixElement::e4m3},
      {"e5m2", MatrixElement::e5m2}, {"e2m3", MatrixElement::e2m3}, {"e3m2", MatrixElement::e3m2},
      {"e2m1", MatrixElement::e2m1}};
  for (const auto& [name, element] : names) {
    if (word == name) return element;
  }
  throw Unsupported{word.empty() ? std::string("it names too few types")
                                 : "matrices of ." + std::string(word) + " are not supported"};
}

/// M, N and K.
struct MatrixShape {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
};
MatrixShape take_matrix_shape(Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, MatrixShape> names[] = {
      {"m8n8k4", {8, 8, 4}},       {"m8n8k16", {8, 8, 16}},     {"m8n8k32", {8, 8, 32}},
      {"m8n8k128", {8, 8, 128}},   {"m16n8k4", {16, 8, 4}},     {"m16n8k8", {16, 8, 8}},
      {"m16n8k16", {16, 8, 16}},   {"m16n8k32", {16, 8, 32}},   {"m16n8k64", {16, 8, 64}},
      {"m16n8k128", {16, 8, 128}}, {"m16n8k256", {16, 8, 256}}, {"m16n16k8", {16, 16, 8}},
      {"m16n16k16", {16, 16, 16}}, {"m8n32k16", {8, 32, 16}},   {"m32n8k16", {32, 8, 16}}};
  for (const auto& [name, shape] : names) {
    if (modifiers.take(name)) return shape;
  }
  throw Unsupported{"this shape is not supported"};
}

/// Whether the machine multiplies such matrices (PTX ISA, tables of shapes of mma and wmma).
bool has_matrix_shape(const MatrixShape& shape, MatrixElement element, bool wmma) {
  const std::uint32_t bits = element == MatrixElement::b1 ? 1 : bits_of(element);
  const std::uint32_t row_bits = shape.k * bits;
  if (element == MatrixElement::f64) {
    if (shape.m == 8) return shape.n == 8 && shape.k == 4;
    return !wmma && shape.m == 16 && shape.n == 8 &&
           (shape.k == 4 || shape.k == 8 || shape.k == 16);
  }
  if (wmma) {
    if (bits == 16 || bits == 8) return shape.k == 16 && shape.m * shape.n == 256;
    if (bits == 32) return shape.n == 16 && shape.k == 8;
    return shape.m == 8 && shape.n == 8 && row_bits == 128;
  }
  if (shape.n != 8) return false;
  if (shape.m == 8) return bits <= 8 && row_bits == 128;
  return shape.m == 16 && (row_bits == 128 || row_bits == 256);
}

/// The fragment of a matrix; modifiers count single bits of b1.
MatrixFragment fragment_of(MatrixRole role, MatrixElement element, MatrixShape shape) {
  if (element == MatrixElement::b1) shape.k /= 32;
  switch (role) {
    case MatrixRole::a:
      return {role, element, shape.m, shape.k};
    case MatrixRole::b:
      return {role, element, shape.k, shape.n};
    case MatrixRole::accumulator:
      break;
  }
  return {role, element, shape.m, shape.n};
}

/// Registers of a fragment: f16 fragments of wmma have eight, which repeat elements.
std::size_t num_registers(const MatrixFragment& fragment, bool wmma) {
  const bool repeats =
      wmma && fragment.element == MatrixElement::f16 && fragment.role != MatrixRole::accumulator;
  return repeats ? 8 : fragment.num_registers();
}

std::vector<const Operand*> matrix_registers(Emitter& e, std::size_t i,
                                             const MatrixFragment& fragment, bool wmma) {
  auto registers = elements_of(e.operand(i));
  const std::size_t needed = num_registers(fragment, wmma);
  if (registers.size() != needed) {
    throw Unsupported{"operand " + std::to_string(i) + " has " + std::to_string(registers.size()) +
                      " registers instead of " + std::to_string(needed)};
  }
  return registers;
}

Type register_type(const MatrixFragment& fragment) {
  switch (fragment.element) {
    case MatrixElement::f64:
      return Type::f64;
    case MatrixElement::f32:
      return Type::f32;
    default:
      return Type::b32;
  }
}

void check_matrix_types(const MatrixShape& shape, MatrixElement a, MatrixElement b, MatrixElement c,
                        MatrixElement d, bool wmma) {
  if (shape.m == 8 && shape.n == 8 && shape.k == 4 && a == MatrixElement::f16) {
    throw Unsupported{"m8n8k4 of f16, which is for compute capability 7.0, is not supported"};
  }
  const auto is_integer = [](MatrixElement e) {
    return e >= MatrixElement::s8 && e <= MatrixElement::u4;
  };
  if (is_small_float(a) && is_small_float(b)) {
    const bool sums_fit = c == d && (c == MatrixElement::f16 || c == MatrixElement::f32);
    if (sums_fit && !wmma && shape.m == 16 && has_matrix_shape(shape, a, wmma)) return;
  }
  const bool same = a == b || (is_integer(a) && is_integer(b) && bits_of(a) == bits_of(b));
  bool fits = false;
  switch (a) {
    case MatrixElement::f16:
      fits = (c == MatrixElement::f16 || c == MatrixElement::f32) &&
             (d == MatrixElement::f16 || d == MatrixElement::f32);
      break;
    case MatrixElement::bf16:
    case MatrixElement::tf32:
      fits = c == MatrixElement::f32 && d == MatrixElement::f32;
      break;
    case MatrixElement::f64:
      fits = c == MatrixElement::f64 && d == MatrixElement::f64;
      break;
    case MatrixElement::f32:
    case MatrixElement::s32:
    case MatrixElement::none:
      break;
    case MatrixElement::e4m3:
    case MatrixElement::e5m2:
    case MatrixElement::e2m3:
    case MatrixElement::e3m2:
    case MatrixElement::e2m1:
      break;
    default:
      fits = c == MatrixElement::s32 && d == MatrixElement::s32;
      break;
  }
  if (!same || !fits || !has_matrix_shape(shape, a, wmma)) {
    throw Unsupported{"these types are not multiplied in this shape"};
  }
}

void multiply(Emitter& e, Modifiers& modifiers, bool wmma) {
  modifiers.take("sync");
  modifiers.take("aligned");
  const MatrixShape shape = take_matrix_shape(modifiers);
  const bool has_columns = modifiers.take("col");
  const bool has_rows = modifiers.take("row");
  MatrixMultiply multiply;
  multiply.saturate = modifiers.take("satfinite");
  modifiers.take("rn");
  if (modifiers.take_one_of({"rz", "rm", "rp"})) {
    throw Unsupported{"matrices are rounded to nearest alone"};
  }
  multiply.by_and = modifiers.take("and");
  modifiers.take("xor");
  modifiers.take("popc");
  const MatrixElement d = element_named(modifiers.next());
  const MatrixElement second = element_named(modifiers.next());
  MatrixElement a = second, b = second, c = second;
  // wmma of f16 only names the types of D and C.
  const bool short_form = wmma && (second == MatrixElement::f16 || second == MatrixElement::f32);
  const std::string_view third = modifiers.next();
  if (short_form && third.empty()) {
    a = b = MatrixElement::f16;
  } else {
    b = element_named(third);
    c = element_named(modifiers.next());
  }
  check_matrix_types(shape, a, b, c, d, wmma);
  if (!wmma && !(has_rows && has_columns)) {
    throw Unsupported{"of these matrices A lies in rows and B in columns"};
  }
  multiply.a = fragment_of(MatrixRole::a, a, shape);
  multiply.b = fragment_of(MatrixRole::b, b, shape);
  multiply.c = fragment_of(MatrixRole::accumulator, c, shape);
  multiply.d = fragment_of(MatrixRole::accumulator, d, shape);
  std::vector<std::uint32_t> uses, definitions;
  const auto read_all = [&](std::size_t i, const MatrixFragment& fragment,
                            std::array<std::uint32_t, 8>& values) {
    std::vector<std::uint32_t> read;
    for (const Operand* reg : matrix_registers(e, i, fragment, wmma)) {
      const std::uint32_t value = e.in(*reg, register_type(fragment));
      if (read.size() < fragment.num_registers()) values[read.size()] = value;
      read.push_back(value);
    }
    read.resize(fragment.num_registers());
    uses.insert(uses.end(), read.begin(), read.end());
    return read;
  };
  const auto a_read = read_all(1, multiply.a, multiply.a_values);
  const auto b_read = read_all(2, multiply.b, multiply.b_values);
  const auto c_read = read_all(3, multiply.c, multiply.c_values);
  for (const Operand* reg : matrix_registers(e, 0, multiply.d, wmma)) {
    multiply.d_values[definitions.size()] = e.out(*reg, register_type(multiply.d));
    definitions.push_back(multiply.d_values[definitions.size()]);
  }
  e.emit(Action::matrix_multiply, e.program().multiplications, multiply, definitions, uses);
  e.set_class(OpClass::tensor);
  // The machine multiplies 16 x 8 at most; larger products are two of half the result each.
  const std::size_t parts = shape.m * shape.n > 128 ? 2 : 1;
  const auto half = [parts](const std::vector<std::uint32_t>& all, std::size_t part) {
    const auto size = static_cast<std::ptrdiff_t>(all.size() / parts);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(part) * size;
    return std::vector<std::uint32_t>(first, first + size);
  };
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<std::uint32_t> sources = a_read;
    sources.insert(sources.end(), b_read.begin(), b_read.end());
    const auto added = half(c_read, part);
    sources.insert(sources.end(), added.begin(), added.end());
    e.add_part(half(definitions, part), std::move(sources));
  }
}

void access_fragment(Emitter& e, Modifiers& modifiers, bool is_load) {
  const auto matrix = modifiers.take_one_of({"a", "b", "c", "d"});
  if (!matrix || is_load != (*matrix < 3)) throw Unsupported{"it names no matrix"};
  const MatrixRole role = *matrix == 0   ? MatrixRole::a
                          : *matrix == 1 ? MatrixRole::b
                                         : MatrixRole::accumulator;
  modifiers.take("sync");
  modifiers.take("aligned");
  const MatrixShape shape = take_matrix_shape(modifiers);
  FragmentAccess access;
  access.column_major = modifiers.take("col");
  if (modifiers.take("row") == access.column_major) throw Unsupported{"it is neither row nor col"};
  const MemoryModifiers space = take_space(e, modifiers);
  if (space.constant || space.parameter || space.space == AddressSpace::local) {
    throw Unsupported{"matrices lie in global or shared memory"};
  }
  access.space = space.space;
  const MatrixElement element = element_named(modifiers.next());
  const bool accumulates = element == MatrixElement::f32 || element == MatrixElement::s32;
  const bool both = element == MatrixElement::f16 || element == MatrixElement::f64;
  if (role == MatrixRole::accumulator ? !accumulates && !both : accumulates) {
    throw Unsupported{"there is no such matrix"};
  }
  // Accumulators of f32 and s32 may have the shapes of any factors.
  const bool has_shape =
      accumulates ? shape.m * shape.n == 256 || (element == MatrixElement::s32 && shape.m == 8 &&
                                                 shape.n == 8 && shape.k >= 32)
                  : has_matrix_shape(shape, element, true);
  if (!has_shape) throw Unsupported{"these types are not multiplied in this shape"};
  access.fragment = fragment_of(role, element, shape);
  if (bits_of(element) < 8 || element == MatrixElement::b1) {
    if (!access.is_contiguous()) {
      throw Unsupported{"of these matrices A lies in rows and B in columns"};
    }
  }
  take_address(e, access, e.operand(is_load ? 1 : 0));
  std::vector<std::uint32_t> uses{access.address};
  if (e.num_operands() > 2) {
    access.stride = e.in(2, Type::u32);
    uses.push_back(access.stride);
  }
  const std::vector<std::uint32_t> address_sources = e.values_read();
  const auto registers = matrix_registers(e, is_load ? 0 : 1, access.fragment, true);
  const Type type = register_type(access.fragment);
  std::vector<std::uint32_t> values;
  for (const Operand* reg : registers) {
    values.push_back(is_load ? e.out(*reg, type) : e.in(*reg, type));
    access.values[values.size() - 1] = values.back();
  }
  access.registers = static_cast<std::uint8_t>(values.size());
  if (!is_load) uses.insert(uses.end(), values.begin(), values.end());
  e.emit(is_load ? Action::fragment_load : Action::fragment_store, e.program().fragment_accesses,
         access, is_load ? values : std::vector<std::uint32_t>{}, uses);
  e.set_class(OpClass::memory);
  set_memory_row(e, access.space, is_load ? MemoryKind::load : MemoryKind::store,
                 access.access_bytes());
  const std::uint32_t tiles = access.fragment.num_tiles();
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    // Every access of a tile works on its registers.
    std::vector<std::uint32_t> moved;
    const std::size_t distinct = access.fragment.num_registers();
    for (std::size_t r = 0; r < values.size(); ++r) {
      if (r % distinct * tiles / distinct == tile) moved.push_back(values[r]);
    }
    for (std::uint32_t i = 0; i < access.accesses_per_tile(); ++i) {
      std::vector<std::uint32_t> sources = address_sources;
      if (!is_load) sources.insert(sources.end(), moved.begin(), moved.end());
      e.add_part(is_load ? moved : std::vector<std::uint32_t>{}, std::move(sources));
    }
  }
}

void access_matrices(Emitter& e, Modifiers& modifiers, bool is_load) {
  modifiers.take("sync");
  modifiers.take("aligned");
  if (!modifiers.take("m8n8")) throw Unsupported{"this shape is not supported"};
  const auto count = modifiers.take_one_of({"x1", "x2", "x4"});
  if (!count) throw Unsupported{"it names no number of matrices"};
  MatrixAccess access;
  access.matrices = static_cast<std::uint8_t>(1u << *count);
  access.transposed = modifiers.take("trans");
  const MemoryModifiers space = take_space(e, modifiers);
  if (space.space != AddressSpace::shared && space.space != AddressSpace::generic) {
    throw Unsupported{"these matrices lie in shared memory"};
  }
  access.space = space.space;
  if (modifiers.take_type() != Type::b16) throw Unsupported{"only matrices of .b16 are supported"};
  take_address(e, access, e.operand(is_load ? 1 : 0));
  const auto registers = elements_of(e.operand(is_load ? 0 : 1));
  if (registers.size() != access.matrices) throw Unsupported{"it has too few or many registers"};
  std::vector<std::uint32_t> values;
  for (const Operand* reg : registers) {
    values.push_back(is_load ? e.out(*reg, Type::b32) : e.in(*reg, Type::b32));
    access.values[values.size() - 1] = values.back();
  }
  std::vector<std::uint32_t> uses{access.address};
  if (!is_load) uses.insert(uses.end(), values.begin(), values.end());
  e.emit(is_load ? Action::matrix_load : Action::matrix_store, e.program().matrix_accesses, access,
         is_load ? values : std::vector<std::uint32_t>{}, uses);
  set_memory_row(e, AddressSpace::shared, is_load ? MemoryKind::load : MemoryKind::store,
                 4u * access.matrices);
}

}  // namespace

void mma(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("sp") || modifiers.take_prefix("sp::")) {
    throw Unsupported{"sparse matrices are not supported"};
  }
  if (modifiers.take("block_scale")) {
    throw Unsupported{"matrices with scales for blocks are not supported"};
  }
  modifiers.take("kind::f8f6f4");
  multiply(e, modifiers, false);
}

void wmma(Emitter& e, Modifiers& modifiers) {
  const auto verb = modifiers.take_one_of({"mma", "load", "store"});
  if (!verb) throw Unsupported{"it is not a load, mma or store"};
  if (*verb == 0) {
    multiply(e, modifiers, true);
  } else {
    access_fragment(e, modifiers, *verb == 1);
  }
}

void ldmatrix(Emitter& e, Modifiers& modifiers) { access_matrices(e, modifiers, true); }

void stmatrix(Emitter& e, Modifiers& modifiers) { access_matrices(e, modifiers, false); }

void movmatrix(Emitter& e, Modifiers& modifiers) {
  modifiers.take("sync");
  modifiers.take("aligned");
  if (!modifiers.take("m8n8") || !modifiers.take("trans") || modifiers.take_type() != Type::b16) {
    throw Unsupported{"only m8n8.trans.b16 is supported"};
  }
  const std::uint32_t source = e.in(1, Type::b32);
  const std::uint32_t target = e.out(0, Type::b32);
  Step& step = e.emit(Action::matrix_transpose, {target}, {source});
  step.operands.target = target;
  step.operands.source[0] = source;
}

}  // namespace warpstack::ptx::handlers
