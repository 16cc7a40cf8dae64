#include "simt/program/matrix.h"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sass/lower/handlers.h"
#include "sass/lower/memory_operands.h"

namespace warpstack::sass {
namespace {

using simt::MatrixElement;
using simt::MatrixFragment;
using simt::MatrixRole;

struct Shape {
  std::string_view name;
  std::uint32_t m, n, k;
};

// Shapes as opcodes name them, by the digits of M, N and K, for each kind of element.
constexpr Shape half_shapes[] = {{"1688", 16, 8, 8}, {"16816", 16, 8, 16}};
constexpr Shape tf32_shapes[] = {{"1684", 16, 8, 4}, {"1688", 16, 8, 8}};
constexpr Shape small_float_shapes[] = {{"16816", 16, 8, 16}, {"16832", 16, 8, 32}};
constexpr Shape byte_shapes[] = {{"8816", 8, 8, 16}, {"16816", 16, 8, 16}, {"16832", 16, 8, 32}};
constexpr Shape nibble_shapes[] = {{"8832", 8, 8, 32}, {"16832", 16, 8, 32}, {"16864", 16, 8, 64}};
constexpr Shape double_shapes[] = {{"884", 8, 8, 4},
                                   {"8x8x4", 8, 8, 4},
                                   {"16x8x4", 16, 8, 4},
                                   {"16x8x8", 16, 8, 8},
                                   {"16x8x16", 16, 8, 16}};
/// K in words.
constexpr Shape bit_shapes[] = {{"88128", 8, 8, 4}, {"168128", 16, 8, 4}, {"168256", 16, 8, 8}};

Shape shape_in(Lowerer& to, Form& form, std::span<const Shape> shapes) {
  for (const Shape& shape : shapes) {
    if (form.take(shape.name)) return shape;
  }
  to.refuse("matrices of this shape and these elements are not executed");
}

/// The registers of a fragment, which in machine code have the same order as in PTX.
void set_values(Lowerer& to, const Operand& operand, const MatrixFragment& fragment, bool is_target,
                std::array<std::uint32_t, 8>& values) {
  if (!operand.is_register() || fragment.num_registers() > values.size()) {
    to.refuse("operand " + operand.text + " does not hold a matrix");
  }
  // These words give the order of the factors' rows and columns, and are always there.
  if (fragment.role != MatrixRole::accumulator &&
      operand.suffix == (fragment.role == MatrixRole::a ? "ROW" : "COL")) {
    to.applies(operand, suffix);
  }
  const bool is_zero = operand.index == zero_register;
  if (is_zero && is_target) to.refuse("a result that nobody reads is not executed");
  const Slot first = is_target ? to.target(operand) : to.word(operand);
  const bool are_pairs = fragment.element == MatrixElement::f64;
  for (std::uint32_t i = 0; i < fragment.num_registers(); ++i) {
    values[i] = is_zero ? first : first + (are_pairs ? 2 : 1) * i * Frame::slot_bytes;
    if (!are_pairs) continue;
    const Slot packed = to.temporary();
    if (!is_target) to.emit(Operation::pack, Type::b64, packed, {values[i]});
    values[i] = packed;
  }
}

void emit_multiply(Lowerer& to, Form& form, const Shape& shape, MatrixElement a, MatrixElement b,
                   MatrixElement accumulator, simt::MatrixMultiply multiply = {}) {
  multiply.a = {MatrixRole::a, a, shape.m, shape.k};
  multiply.b = {MatrixRole::b, b, shape.k, shape.n};
  multiply.c = {MatrixRole::accumulator, accumulator, shape.m, shape.n};
  multiply.d = multiply.c;
  const Operand& d = form.next();
  set_values(to, d, multiply.d, true, multiply.d_values);
  set_values(to, form.next(), multiply.a, false, multiply.a_values);
  set_values(to, form.next(), multiply.b, false, multiply.b_values);
  set_values(to, form.next(), multiply.c, false, multiply.c_values);
  to.row_follows();
  to.emit(Action::matrix_multiply, static_cast<std::uint32_t>(to.program().multiplications.size()));
  to.program().multiplications.push_back(multiply);
  if (accumulator != MatrixElement::f64) return;
  for (std::uint32_t i = 0; i < multiply.d.num_registers(); ++i) {
    to.emit(Operation::unpack, Type::b64, to.target(d) + 2 * i * Frame::slot_bytes,
            {multiply.d_values[i]});
  }
}

/// Takes the types of both factors, in order: the same one may be there twice.
std::array<MatrixElement, 2> take_factors(
    Lowerer& to, Form& form, std::span<const std::pair<std::string_view, MatrixElement>> elements) {
  const std::string_view opcode = form.instruction().opcode;
  std::array<MatrixElement, 2> types{};
  std::array<std::size_t, 2> places{};
  std::size_t found = 0;
  for (const auto& [name, element] : elements) {
    for (std::size_t from = 0; found < 2 && form.take(name); ++found) {
      places[found] = opcode.find("." + std::string(name), from);
      from = places[found] + 1;
      types[found] = element;
    }
  }
  if (found != 2) to.refuse("it does not name the types of both factors");
  if (places[1] < places[0]) std::swap(types[0], types[1]);
  return types;
}

}  // namespace

void handlers::hmma(Lowerer& to, Form& form) {
  const MatrixElement accumulator = form.take("F32") ? MatrixElement::f32 : MatrixElement::f16;
  if (accumulator == MatrixElement::f16) form.take("F16");
  MatrixElement element = MatrixElement::f16;
  if (accumulator == MatrixElement::f32) {  // the others have no sums of 16 bits
    if (form.take("BF16")) {
      element = MatrixElement::bf16;
    } else if (form.take("TF32")) {
      element = MatrixElement::tf32;
    }
  }
  const Shape shape = element == MatrixElement::tf32 ? shape_in(to, form, tf32_shapes)
                                                     : shape_in(to, form, half_shapes);
  emit_multiply(to, form, shape, element, element, accumulator);
}

void handlers::imma(Lowerer& to, Form& form) {
  constexpr std::pair<std::string_view, MatrixElement> elements[] = {{"S8", MatrixElement::s8},
                                                                     {"U8", MatrixElement::u8},
                                                                     {"S4", MatrixElement::s4},
                                                                     {"U4", MatrixElement::u4}};
  const std::array<MatrixElement, 2> types = take_factors(to, form, elements);
  if (simt::bits_of(types[0]) != simt::bits_of(types[1])) {
    to.refuse("factors of different widths are not executed");
  }
  const Shape shape = simt::bits_of(types[0]) == 8 ? shape_in(to, form, byte_shapes)
                                                   : shape_in(to, form, nibble_shapes);
  simt::MatrixMultiply multiply;
  multiply.saturate = form.take("SAT");
  emit_multiply(to, form, shape, types[0], types[1], MatrixElement::s32, multiply);
}

/// Floats of at most 8 bits.
void handlers::qmma(Lowerer& to, Form& form) {
  constexpr std::pair<std::string_view, MatrixElement> elements[] = {{"E4M3", MatrixElement::e4m3},
                                                                     {"E5M2", MatrixElement::e5m2},
                                                                     {"E2M3", MatrixElement::e2m3},
                                                                     {"E3M2", MatrixElement::e3m2},
                                                                     {"E2M1", MatrixElement::e2m1}};
  const MatrixElement sums = form.take("F32") ? MatrixElement::f32 : MatrixElement::f16;
  if (sums == MatrixElement::f16) form.take("F16");
  const std::array<MatrixElement, 2> types = take_factors(to, form, elements);
  emit_multiply(to, form, shape_in(to, form, small_float_shapes), types[0], types[1], sums);
}

void handlers::dmma(Lowerer& to, Form& form) {
  constexpr MatrixElement element = MatrixElement::f64;
  emit_multiply(to, form, shape_in(to, form, double_shapes), element, element, element);
}

/// Counts the ones in the `and` or `xor` of rows and columns of bits.
void handlers::bmma(Lowerer& to, Form& form) {
  const Shape shape = shape_in(to, form, bit_shapes);
  simt::MatrixMultiply multiply;
  multiply.by_and = form.take("AND");
  if (!multiply.by_and && !form.take("XOR")) to.refuse("neither AND nor XOR");
  if (!form.take("POPC")) to.refuse("only the form that counts ones is executed");
  emit_multiply(to, form, shape, MatrixElement::b1, MatrixElement::b1, MatrixElement::s32,
                multiply);
}

/// 8 x 8 matrices of 16 bits from or to shared memory.
static void access_matrices(Lowerer& to, Form& form, bool is_load) {
  simt::MatrixAccess access;
  access.transposed = form.take("MT88");
  if (!form.take("16") || (!access.transposed && !form.take("M88"))) {
    to.refuse("the shape of its matrices is not executed");
  }
  access.matrices = form.take("4") ? 4 : form.take("2") ? 2 : 1;
  const Operand& first = form.next();
  const Operand& second = form.next();
  const Operand& registers = is_load ? first : second;
  const bool is_zero = registers.index == zero_register;
  const Slot values = is_load ? to.target(registers) : to.word(registers);
  simt::MemoryAccess place;
  set_address(to, place, is_load ? second : first, false);
  if (place.address == simt::none) {
    access.address = Frame::zero;
  } else {
    access.address = place.address;
  }
  access.address_is_64_bits = false;
  access.offset = place.offset;
  for (std::uint32_t i = 0; i < access.matrices; ++i) {
    access.values[i] = is_zero && !is_load ? values : values + i * Frame::slot_bytes;
  }
  to.row_follows();
  to.emit(is_load ? Action::matrix_load : Action::matrix_store,
          static_cast<std::uint32_t>(to.program().matrix_accesses.size()));
  to.program().matrix_accesses.push_back(access);
}

void handlers::ldsm(Lowerer& to, Form& form) { access_matrices(to, form, true); }
void handlers::stsm(Lowerer& to, Form& form) { access_matrices(to, form, false); }

/// The transpose of an 8 x 8 matrix of 16 bits.
void handlers::movm(Lowerer& to, Form& form) {
  if (!form.take("16") || !form.take("MT88")) to.refuse("only MOVM.16.MT88 is executed");
  const Slot target = to.target(form.next());
  const Slot source = to.integer(form.next());
  simt::Step& step = to.emit(Action::matrix_transpose);
  step.operands.target = target;
  step.operands.source[0] = source;
}

}  // namespace warpstack::sass
