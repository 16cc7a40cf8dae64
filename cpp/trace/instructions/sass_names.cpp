#include "trace/instructions/sass_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "trace/instructions/barrier_steps.h"

namespace warpstack::trace {
namespace {

constexpr std::array<std::uint64_t, 5> versions{70, 75, 80, 86, 90};

/// A name for the PTX operations that begin with `ptx` (a whole opcode up to its first dot) and
/// have this class. An empty `ptx` stands for every other operation of the class.
struct Name {
  std::string_view ptx;
  OpClass op_class;
  std::string_view sass;
  std::uint64_t since = 70;
};

using enum OpClass;

/// Asked in this order. Only opcodes that Accel-Sim knows for the binary version, too.
constexpr Name names[] = {
    {"mov", integer, "MOV"},
    {"ld", integer, "MOV"},  // kernel parameters are constants, folded into their readers
    {"cvta", integer, "MOV"},
    {"mul", integer, "IMAD"},
    {"mad", integer, "IMAD"},
    {"mul24", integer, "IMAD"},
    {"mad24", integer, "IMAD"},
    {"madc", integer, "IMAD.X"},
    {"addc", integer, "IADD3.X"},
    {"subc", integer, "IADD3.X"},
    {"min", integer, "IMNMX"},
    {"max", integer, "IMNMX"},
    {"abs", integer, "IABS"},
    {"sad", integer, "VABSDIFF"},
    {"dp4a", integer, "IDP.4A"},
    {"dp2a", integer, "IDP.2A"},
    {"and", integer, "LOP3.LUT"},
    {"or", integer, "LOP3.LUT"},
    {"xor", integer, "LOP3.LUT"},
    {"not", integer, "LOP3.LUT"},
    {"cnot", integer, "LOP3.LUT"},
    {"lop3", integer, "LOP3.LUT"},
    {"bfi", integer, "LOP3.LUT"},
    {"shl", integer, "SHF.L"},
    {"shr", integer, "SHF.R"},
    {"shf", integer, "SHF.L"},
    {"bfe", integer, "SGXT"},
    {"szext", integer, "SGXT"},
    {"bmsk", integer, "BMSK"},
    {"prmt", integer, "PRMT"},
    {"cvt", integer, "PRMT"},
    {"selp", integer, "SEL"},
    {"slct", integer, "SEL"},
    {"set", integer, "SEL"},
    {"setp", integer, "ISETP"},
    {"testp", integer, "ISETP"},
    {"vote", integer, "VOTE.ANY"},
    {"activemask", integer, "VOTE.ANY"},
    {"isspacep", integer, "QSPC"},
    {"", integer, "IADD3"},
    {"add", fp32, "FADD"},
    {"sub", fp32, "FADD"},
    {"neg", fp32, "FADD"},
    {"abs", fp32, "FADD"},
    {"mul", fp32, "FMUL"},
    {"min", fp32, "FMNMX"},
    {"max", fp32, "FMNMX"},
    {"selp", fp32, "FSEL"},
    {"slct", fp32, "FSEL"},
    {"set", fp32, "FSET"},
    {"setp", fp32, "FSETP"},
    {"testp", fp32, "FSETP"},
    {"", fp32, "FFMA"},
    {"add", fp16, "HADD2"},
    {"sub", fp16, "HADD2"},
    {"neg", fp16, "HADD2"},
    {"abs", fp16, "HADD2"},
    {"mul", fp16, "HMUL2"},
    {"cvt", fp16, "F2FP", 80},
    {"cvt", fp16, "HADD2"},
    {"min", fp16, "HMNMX2", 80},
    {"max", fp16, "HMNMX2", 80},
    {"min", fp16, "HSET2"},
    {"max", fp16, "HSET2"},
    {"set", fp16, "HSET2"},
    {"setp", fp16, "HSETP2"},
    {"", fp16, "HFMA2"},
    {"add", fp64, "DADD"},
    {"sub", fp64, "DADD"},
    {"neg", fp64, "DADD"},
    {"abs", fp64, "DADD"},
    {"mul", fp64, "DMUL"},
    {"min", fp64, "DSETP"},
    {"max", fp64, "DSETP"},
    {"set", fp64, "DSETP"},
    {"setp", fp64, "DSETP"},
    {"testp", fp64, "DSETP"},
    {"", fp64, "DFMA"},
    {"rcp", sfu, "MUFU.RCP"},
    {"sqrt", sfu, "MUFU.SQRT"},
    {"rsqrt", sfu, "MUFU.RSQ"},
    {"sin", sfu, "MUFU.SIN"},
    {"cos", sfu, "MUFU.COS"},
    {"ex2", sfu, "MUFU.EX2"},
    {"lg2", sfu, "MUFU.LG2"},
    {"tanh", sfu, "MUFU.TANH"},
    {"popc", sfu, "POPC"},
    {"clz", sfu, "FLO"},
    {"bfind", sfu, "FLO"},
    {"brev", sfu, "BREV"},
    {"", sfu, "MUFU"},
    {"", tensor, "HMMA.16816.F32", 80},
    {"", tensor, "HMMA.1688.F32", 75},
    {"", tensor, "HMMA.884.F32"},
    {"redux", uniform, "REDUX", 80},
    {"vote", uniform, "VOTEU.ANY", 75},
    {"", uniform, "UMOV", 75},
    {"exit", control, "EXIT"},
    {"call", control, "CALL.REL"},
    {"brx", control, "BRX"},
    {"trap", control, "BPT.TRAP"},
    {"brkpt", control, "BPT"},
    {"nanosleep", control, "NANOSLEEP"},
    {"bar", control, "WARPSYNC"},
    {"", control, "BRA"},
    {"membar", barrier, "MEMBAR"},
    {"fence", barrier, "MEMBAR"},
    {"cp", barrier, "LDGDEPBAR", 80},
    {"", barrier, "BAR.SYNC"},
    {"match", shuffle, "MATCH"},
    {"movmatrix", shuffle, "MOVM", 75},
    {"", shuffle, "SHFL"},
    {"", constant_load, "LDC"},
    {"", texture, "TEX"},
    // A class that nothing is known of is timed as integer.
    {"", unknown, "IADD3"},
};

bool has(const std::vector<std::string_view>& tokens, std::string_view wanted) {
  return std::ranges::find(tokens, wanted) != tokens.end();
}

/// What a SASS opcode may be made of in a trace file.
bool is_sass_text(std::string_view opcode) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  return !opcode.empty() && is_upper(opcode.front()) && std::ranges::all_of(opcode, [&](char c) {
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
  });
}

[[noreturn]] void fail(const StaticInstruction& instruction, const std::string& why) {
  throw InputError("the instruction " + instruction.opcode + " has no SASS name: " + why);
}

/// `64`, `U8`: tokens that Accel-Sim and our reader take the width from; none for four bytes.
std::string width_modifier(const StaticInstruction& instruction) {
  switch (instruction.width) {
    case 1:
      return ".U8";
    case 2:
      return ".U16";
    case 4:
      return "";
    case 8:
      return ".64";
    case 16:
      return ".128";
    default:
      fail(instruction, "no access is " + std::to_string(instruction.width) +
                            " bytes wide; the widths are 1, 2, 4, 8 and 16");
  }
}

std::string_view cache_modifier(CacheOperator cache_operator) {
  switch (cache_operator) {
    case CacheOperator::bypass_l1:
      return ".STRONG.GPU";
    case CacheOperator::evict_first:
      return ".EF";
    case CacheOperator::evict_last:
      return ".EL";
    case CacheOperator::read_only:
      return ".CONSTANT";
    default:
      return "";
  }
}

std::string_view atomic_modifier(const std::vector<std::string_view>& tokens) {
  struct Operation {
    std::string_view ptx, sass;
  };
  static constexpr Operation operations[] = {{"count_lanes", ".POPC.INC"},
                                             {"and", ".AND"},
                                             {"or", ".OR"},
                                             {"xor", ".XOR"},
                                             {"cas", ".CAS"},
                                             {"exch", ".EXCH"},
                                             {"inc", ".INC"},
                                             {"dec", ".DEC"},
                                             {"min", ".MIN"},
                                             {"max", ".MAX"}};
  for (const Operation& operation : operations) {
    if (has(tokens, operation.ptx)) return operation.sass;
  }
  return ".ADD";
}

std::string memory_opcode(const StaticInstruction& instruction, std::uint64_t binary_version) {
  const auto tokens = words_of(instruction.opcode);
  const MemorySpace space = instruction.space;
  const bool is_atomic = instruction.is_atomic();
  std::string opcode;
  switch (instruction.kind) {
    case MemoryKind::load:
      opcode = "LD";
      break;
    case MemoryKind::store:
      opcode = "ST";
      break;
    case MemoryKind::async_copy:
      if (binary_version < 80) fail(instruction, "asynchronous copies need binary version 80");
      opcode = "LDGSTS";
      break;
    default:
      opcode = "ATOM";
      break;
  }
  if (instruction.kind == MemoryKind::reduction && space == MemorySpace::global) {
    opcode = "RED";
  } else if (instruction.kind != MemoryKind::async_copy) {
    switch (space) {
      case MemorySpace::global:
        opcode += "G";
        break;
      case MemorySpace::shared:
        opcode += "S";
        break;
      case MemorySpace::local:
        // There are no atomics of local memory but generic ones that resolve to it.
        if (!is_atomic) opcode += "L";
        break;
      default:
        break;
    }
  }
  const bool wide_address = space != MemorySpace::shared && space != MemorySpace::local;
  if (wide_address) opcode += ".E";
  if (is_atomic) opcode += atomic_modifier(tokens);
  opcode += width_modifier(instruction);
  return opcode + std::string(cache_modifier(instruction.cache_operator));
}

/// A conversion's opcode, from its types in PTX: cvt.DESTINATION.SOURCE.
std::string conversion_opcode(const std::vector<std::string_view>& tokens) {
  std::vector<std::string_view> types;
  for (const std::string_view token : tokens) {
    if (token.size() < 2 || token.find_first_not_of("0123456789", 1) != std::string_view::npos) {
      continue;
    }
    if (token[0] == 'f' || token[0] == 's' || token[0] == 'u') types.push_back(token);
  }
  if (types.size() < 2) return "F2F.F32.F32";
  const std::string_view destination = types[types.size() - 2];
  const std::string_view source = types.back();
  const auto upper = [](std::string_view type) {
    std::string text(type);
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  };
  if (source[0] != 'f') {
    return "I2F" + std::string(destination == "f64" ? ".F64" : "") +
           (source.substr(1) == "64" || source[0] == 'u' ? "." + upper(source) : "");
  }
  if (destination[0] != 'f') {
    return "F2I" + (destination == "s32" ? "" : "." + upper(destination)) +
           (source == "f64" ? ".F64" : "");
  }
  const bool rounds = source == destination;
  return rounds ? "FRND" + std::string(source == "f64" ? ".F64" : "")
                : "F2F." + upper(destination) + "." + upper(source);
}

}  // namespace

std::span<const std::uint64_t> sass_versions() { return versions; }

bool sass_opcode_describes(const std::string& opcode, const StaticInstruction& instruction) {
  if (!is_sass_text(opcode)) return false;
  const StaticInstruction read =
      make_static_instruction(instruction.pc, opcode, instruction.destinations, {},
                              instruction.source_line, instruction.width);
  const bool same_space =
      read.space == instruction.space ||
      (read.space == MemorySpace::generic && instruction.space != MemorySpace::none);
  return read.op_class == instruction.op_class && read.kind == instruction.kind && same_space &&
         read.known_opcode == instruction.known_opcode &&
         read.cache_operator == instruction.cache_operator &&
         (!read.is_memory() || read.width == instruction.width);
}

std::string sass_opcode(const StaticInstruction& instruction, std::uint64_t binary_version,
                        ReturnKind returns) {
  if (sass_opcode_describes(instruction.opcode, instruction)) return instruction.opcode;
  if (std::ranges::find(versions, binary_version) == versions.end()) {
    fail(instruction, "its opcode is not SASS, and binary version " +
                          std::to_string(binary_version) +
                          " has no table of names; choose 70, 75, 80, 86 or 90");
  }
  if (instruction.is_memory()) return memory_opcode(instruction, binary_version);
  const auto tokens = words_of(instruction.opcode);
  if (instruction.op_class == control && tokens[0] == "ret") {
    return returns == ReturnKind::exit ? "EXIT" : "RET.REL.NODEC";
  }
  if (instruction.op_class == sfu && tokens[0] == "cvt") return conversion_opcode(tokens);
  const bool is_of_block =
      (tokens[0] == "bar" || tokens[0] == "barrier") && !has(tokens, "cluster");
  if (instruction.op_class == barrier && is_of_block) {
    // Where the trace says which barrier it is, so does the name.
    const BarrierStep step = barrier_step(instruction.opcode);
    const std::string name = has(tokens, "arrive") ? "BAR.ARV" : "BAR.SYNC";
    const bool says = step.kind != BarrierStep::Kind::none &&
                      step != BarrierStep{.kind = BarrierStep::Kind::wait};
    return says ? barrier_opcode(name, step) : name;
  }
  for (const Name& name : names) {
    if (name.op_class != instruction.op_class || name.since > binary_version) continue;
    if (name.ptx.empty() || name.ptx == tokens[0]) return std::string(name.sass);
  }
  fail(instruction, "binary version " + std::to_string(binary_version) + " has no " +
                        std::string(name_of(instruction.op_class)) + " instructions");
}

}  // namespace warpstack::trace
