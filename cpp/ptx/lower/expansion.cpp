#include "ptx/lower/expansion.h"

#include <initializer_list>
#include <string_view>
#include <utility>

namespace warpstack::ptx {
namespace {

struct Part {
  std::string_view opcode;
  OpClass op_class;
  int count;
};

std::vector<TraceRow> sequence(std::initializer_list<Part> parts) {
  std::vector<TraceRow> rows;
  for (const Part& part : parts) {
    for (int i = 0; i < part.count; ++i) {
      rows.push_back({std::string(part.opcode), part.op_class});
    }
  }
  return rows;
}

Type last_type(const Instruction& instruction) {
  for (auto word = instruction.modifiers.rbegin(); word != instruction.modifiers.rend(); ++word) {
    const Type type = type_named(*word);
    if (type != Type::none) return type;
  }
  return Type::none;
}

/// Quotients and remainders: an estimate from the reciprocal, then corrections. For 32 bits they
/// differ in the last operations.
std::vector<TraceRow> integer_division(std::uint32_t bytes, std::string_view last, int count) {
  if (bytes == 8) {
    return sequence({{"cvt.rp.f32.u64", OpClass::sfu, 1},
                     {"rcp.approx.ftz.f32", OpClass::sfu, 1},
                     {"cvt.rzi.u64.f32", OpClass::sfu, 1},
                     {"mad.wide.u32", OpClass::integer, 24},
                     {"add.cc.u32", OpClass::integer, 24},
                     {"setp.ge.u32", OpClass::integer, 8},
                     {"selp.u32", OpClass::integer, 8}});
  }
  return sequence({{"cvt.rp.f32.u32", OpClass::sfu, 1},
                   {"rcp.approx.ftz.f32", OpClass::sfu, 1},
                   {"cvt.rzi.u32.f32", OpClass::sfu, 1},
                   {"mad.lo.u32", OpClass::integer, 3},
                   {"mul.hi.u32", OpClass::integer, 2},
                   {"setp.ge.u32", OpClass::integer, 3},
                   {last, OpClass::integer, count}});
}

bool is_approximate(const Instruction& instruction) { return instruction.has("approx"); }

}  // namespace

// The lengths are those of the fast path in the machine code of compute capability 7.5 to 9.0; the
// slow paths (subnormal operands) are calls that few warps make.

std::vector<TraceRow> expand_div(const Instruction& instruction) {
  switch (const Type type = last_type(instruction)) {
    case Type::f32:
      if (is_approximate(instruction) || instruction.has("full")) {
        return sequence({{"rcp.approx.ftz.f32", OpClass::sfu, 1}, {"mul.f32", OpClass::fp32, 1}});
      }
      return sequence({{"rcp.approx.ftz.f32", OpClass::sfu, 1},
                       {"fma.rn.f32", OpClass::fp32, 6},
                       {"testp.normal.f32", OpClass::fp32, 1}});
    case Type::f64:
      return sequence({{"rcp.approx.ftz.f64", OpClass::sfu, 1}, {"fma.rn.f64", OpClass::fp64, 8}});
    default:
      return integer_division(bytes_of(type), "add.u32", 5);
  }
}

std::vector<TraceRow> expand_rem(const Instruction& instruction) {
  return integer_division(bytes_of(last_type(instruction)), "sub.u32", 4);
}

std::vector<TraceRow> expand_rcp(const Instruction& instruction) {
  if (is_approximate(instruction)) return {};
  if (last_type(instruction) == Type::f64) {
    return sequence({{"rcp.approx.ftz.f64", OpClass::sfu, 1}, {"fma.rn.f64", OpClass::fp64, 4}});
  }
  return sequence({{"rcp.approx.ftz.f32", OpClass::sfu, 1}, {"fma.rn.f32", OpClass::fp32, 3}});
}

std::vector<TraceRow> expand_sqrt(const Instruction& instruction) {
  if (last_type(instruction) == Type::f64) {
    return sequence({{"rsqrt.approx.ftz.f64", OpClass::sfu, 1}, {"fma.rn.f64", OpClass::fp64, 7}});
  }
  if (is_approximate(instruction)) {
    return sequence({{"rsqrt.approx.ftz.f32", OpClass::sfu, 1}, {"mul.f32", OpClass::fp32, 1}});
  }
  return sequence({{"rsqrt.approx.ftz.f32", OpClass::sfu, 1}, {"fma.rn.f32", OpClass::fp32, 6}});
}

std::vector<TraceRow> expand_sin(const Instruction&) {
  return sequence({{"mul.rz.f32", OpClass::fp32, 1}, {"sin.approx.ftz.f32", OpClass::sfu, 1}});
}

std::vector<TraceRow> expand_cos(const Instruction&) {
  return sequence({{"mul.rz.f32", OpClass::fp32, 1}, {"cos.approx.ftz.f32", OpClass::sfu, 1}});
}

}  // namespace warpstack::ptx
