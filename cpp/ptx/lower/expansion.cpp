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

/// Quotients and remainders: an estimate by the reciprocal, then corrections. Those of 32 bits
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

}  // namespace

std::vector<TraceRow> expand(const std::string& opcode, const Instruction& instruction,
                             const StaticInstruction& row) {
  const Type type = last_type(instruction);
  const bool approximate = instruction.has("approx");
  // The lengths are those of the fast path in the machine code of compute capability 7.5 to 9.0;
  // the slow paths (subnormal operands) are calls that few warps take.
  if (opcode == "div") {
    switch (type) {
      case Type::f32:
        if (approximate || instruction.has("full")) {
          return sequence({{"rcp.approx.ftz.f32", OpClass::sfu, 1}, {"mul.f32", OpClass::fp32, 1}});
        }
        return sequence({{"rcp.approx.ftz.f32", OpClass::sfu, 1},
                         {"fma.rn.f32", OpClass::fp32, 6},
                         {"testp.normal.f32", OpClass::fp32, 1}});
      case Type::f64:
        return sequence(
            {{"rcp.approx.ftz.f64", OpClass::sfu, 1}, {"fma.rn.f64", OpClass::fp64, 8}});
      default:
        return integer_division(bytes_of(type), "add.u32", 5);
    }
  }
  if (opcode == "rem") return integer_division(bytes_of(type), "sub.u32", 4);
  if (opcode == "rcp" && !approximate) {
    if (type == Type::f64) {
      return sequence({{"rcp.approx.ftz.f64", OpClass::sfu, 1}, {"fma.rn.f64", OpClass::fp64, 4}});
    }
    return sequence({{"rcp.approx.ftz.f32", OpClass::sfu, 1}, {"fma.rn.f32", OpClass::fp32, 3}});
  }
  if (opcode == "sqrt") {
    if (type == Type::f64) {
      return sequence(
          {{"rsqrt.approx.ftz.f64", OpClass::sfu, 1}, {"fma.rn.f64", OpClass::fp64, 7}});
    }
    if (approximate) {
      return sequence({{"rsqrt.approx.ftz.f32", OpClass::sfu, 1}, {"mul.f32", OpClass::fp32, 1}});
    }
    return sequence({{"rsqrt.approx.ftz.f32", OpClass::sfu, 1}, {"fma.rn.f32", OpClass::fp32, 6}});
  }
  if (opcode == "sin" || opcode == "cos") {
    return sequence(
        {{"mul.rz.f32", OpClass::fp32, 1},
         {opcode == "sin" ? "sin.approx.ftz.f32" : "cos.approx.ftz.f32", OpClass::sfu, 1}});
  }
  return {{instruction.full_opcode(), row.op_class}};
}

}  // namespace warpstack::ptx
