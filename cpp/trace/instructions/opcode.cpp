#include "trace/instructions/opcode.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

namespace warpstack::trace {
namespace {

struct TableEntry {
  std::string_view name;
  OpClass op_class;
};

using enum OpClass;

/// Base opcodes of compute capability 3.5 to 9.0 (CUDA Binary Utilities, "Instruction Set
/// Reference"), sorted by name. Memory opcodes have a table of their own below.
constexpr TableEntry op_table[] = {
    {"ACQBULK", control},
    {"ARRIVES", barrier},
    {"B2R", barrier},
    {"BAR", barrier},
    {"BFE", integer},
    {"BFI", integer},
    {"BGMMA", tensor},
    {"BMMA", tensor},
    {"BMOV", control},
    {"BMSK", integer},
    {"BPT", control},
    {"BRA", control},
    {"BREAK", control},
    {"BREV", sfu},
    {"BRK", control},
    {"BRX", control},
    {"BRXU", control},
    {"BSSY", control},
    {"BSYNC", control},
    {"CAL", control},
    {"CALL", control},
    {"CCTL", barrier},
    {"CCTLL", barrier},
    {"CCTLT", barrier},
    {"CGAERRBAR", barrier},
    {"CONT", control},
    {"CS2R", integer},
    {"CSET", integer},
    {"CSETP", integer},
    {"DADD", fp64},
    {"DEPBAR", barrier},
    {"DFMA", fp64},
    {"DMMA", tensor},
    {"DMNMX", fp64},
    {"DMUL", fp64},
    {"DSET", fp64},
    {"DSETP", fp64},
    {"ELECT", control},
    {"ENDCOLLECTIVE", control},
    {"ERRBAR", barrier},
    {"EXIT", control},
    {"F2F", sfu},
    {"F2FP", fp16},
    {"F2I", sfu},
    {"F2IP", sfu},
    {"FADD", fp32},
    {"FADD2", fp32},
    {"FADD32I", fp32},
    {"FCHK", fp32},
    {"FCMP", fp32},
    {"FENCE", barrier},
    {"FFMA", fp32},
    {"FFMA2", fp32},
    {"FFMA32I", fp32},
    {"FLO", sfu},
    {"FMNMX", fp32},
    {"FMUL", fp32},
    {"FMUL2", fp32},
    {"FMUL32I", fp32},
    {"FRND", sfu},
    {"FSEL", fp32},
    {"FSET", fp32},
    {"FSETP", fp32},
    {"FSWZ", fp32},
    {"FSWZADD", fp32},
    {"GETLMEMBASE", integer},
    {"HADD2", fp16},
    {"HADD2_32I", fp16},
    {"HFMA2", fp16},
    {"HFMA2_32I", fp16},
    {"HGMMA", tensor},
    {"HMMA", tensor},
    {"HMNMX2", fp16},
    {"HMUL2", fp16},
    {"HMUL2_32I", fp16},
    {"HSET2", fp16},
    {"HSETP2", fp16},
    {"I2F", sfu},
    {"I2FP", integer},
    {"I2I", sfu},
    {"I2IP", integer},
    {"IABS", integer},
    {"IADD", integer},
    {"IADD3", integer},
    {"IADD32I", integer},
    {"ICMP", integer},
    {"IDE", control},
    {"IDP", integer},
    {"IDP4A", integer},
    {"IGMMA", tensor},
    {"IMAD", integer},
    {"IMAD32I", integer},
    {"IMADSP", integer},
    {"IMMA", tensor},
    {"IMNMX", integer},
    {"IMUL", integer},
    {"IMUL32I", integer},
    {"IPA", sfu},
    {"ISAD", integer},
    {"ISCADD", integer},
    {"ISCADD32I", integer},
    {"ISET", integer},
    {"ISETP", integer},
    {"ISUB", integer},
    {"JCAL", control},
    {"JMP", control},
    {"JMX", control},
    {"JMXU", control},
    {"KILL", control},
    {"LDC", constant_load},
    {"LDGDEPBAR", barrier},
    {"LEA", integer},
    {"LEPC", integer},
    {"LONGJMP", control},
    {"LOP", integer},
    {"LOP3", integer},
    {"LOP32I", integer},
    {"MATCH", shuffle},
    {"MEMBAR", barrier},
    {"MOV", integer},
    {"MOV32I", integer},
    {"MOVM", shuffle},
    {"MUFU", sfu},
    {"NANOSLEEP", control},
    {"NOP", control},
    {"OUT", control},
    {"P2R", integer},
    {"PBK", control},
    {"PCNT", control},
    {"PEXIT", control},
    {"PLONGJMP", control},
    {"PLOP3", integer},
    {"PMTRIG", control},
    {"POPC", sfu},
    {"PREEXIT", control},
    {"PRET", control},
    {"PRMT", integer},
    {"PSET", integer},
    {"PSETP", integer},
    {"QGMMA", tensor},
    {"QSPC", integer},
    {"R2B", barrier},
    {"R2P", integer},
    {"R2UR", uniform},
    {"RAM", control},
    {"REDUX", uniform},
    {"RET", control},
    {"RPCMOV", control},
    {"RRO", fp32},
    {"RTT", control},
    {"S2R", integer},
    {"S2UR", uniform},
    {"SAM", control},
    {"SEL", integer},
    {"SETCTAID", integer},
    {"SETLMEMBASE", integer},
    {"SETMAXREG", control},
    {"SGXT", integer},
    {"SHF", integer},
    {"SHFL", shuffle},
    {"SHL", integer},
    {"SHR", integer},
    {"SSY", control},
    {"SUATOM", texture},
    {"SULD", texture},
    {"SUQ", texture},
    {"SURED", texture},
    {"SUST", texture},
    {"SYNC", control},
    {"SYNCS", barrier},
    {"TEX", texture},
    {"TEXDEPBAR", barrier},
    {"TEXS", texture},
    {"TLD", texture},
    {"TLD4", texture},
    {"TLD4S", texture},
    {"TLDS", texture},
    {"TMML", texture},
    {"TXD", texture},
    {"TXQ", texture},
    {"UBLKCP", uniform},
    {"UBLKPF", uniform},
    {"UBLKRED", uniform},
    {"UBMSK", uniform},
    {"UBREV", uniform},
    {"UCGABAR_ARV", barrier},
    {"UCGABAR_WAIT", barrier},
    {"UCLEA", uniform},
    {"UF2FP", uniform},
    {"UFLO", uniform},
    {"UIADD3", uniform},
    {"UIMAD", uniform},
    {"UIMNMX", uniform},
    {"UISETP", uniform},
    {"ULDC", constant_load},
    {"ULEA", uniform},
    {"ULEPC", uniform},
    {"ULOP", uniform},
    {"ULOP3", uniform},
    {"ULOP32I", uniform},
    {"UMOV", uniform},
    {"UP2UR", uniform},
    {"UPLOP3", uniform},
    {"UPOPC", uniform},
    {"UPRMT", uniform},
    {"UPSETP", uniform},
    {"UR2UP", uniform},
    {"USEL", uniform},
    {"USETMAXREG", control},
    {"USGXT", uniform},
    {"USHF", uniform},
    {"USHL", uniform},
    {"USHR", uniform},
    {"UTMACCTL", uniform},
    {"UTMACMDFLUSH", uniform},
    {"UTMALDG", uniform},
    {"UTMAPF", uniform},
    {"UTMAREDG", uniform},
    {"UTMASTG", uniform},
    {"VABSDIFF", integer},
    {"VABSDIFF4", integer},
    {"VADD", integer},
    {"VHMNMX", fp16},
    {"VIADD", integer},
    {"VIADDMNMX", integer},
    {"VIMNMX", integer},
    {"VIMNMX3", integer},
    {"VMAD", integer},
    {"VMNMX", integer},
    {"VOTE", integer},
    {"VOTEU", uniform},
    {"VSAD", integer},
    {"VSET", integer},
    {"VSETP", integer},
    {"VSHL", integer},
    {"VSHR", integer},
    {"WARPGROUP", barrier},
    {"WARPGROUPDEPBAR", barrier},
    {"WARPGROUPSET", barrier},
    {"WARPSYNC", control},
    {"XMAD", integer},
    {"YIELD", control},
};
static_assert(std::ranges::is_sorted(op_table, {}, &TableEntry::name));

struct MemoryEntry {
  std::string_view name;
  MemorySpace space;
  MemoryKind kind;
};

constexpr MemoryEntry memory_table[] = {
    {"ATOM", MemorySpace::generic, MemoryKind::atomic},
    {"ATOMG", MemorySpace::global, MemoryKind::atomic},
    {"ATOMS", MemorySpace::shared, MemoryKind::atomic},
    {"LD", MemorySpace::generic, MemoryKind::load},
    {"LDG", MemorySpace::global, MemoryKind::load},
    {"LDGSTS", MemorySpace::global, MemoryKind::async_copy},
    {"LDL", MemorySpace::local, MemoryKind::load},
    {"LDS", MemorySpace::shared, MemoryKind::load},
    {"LDSM", MemorySpace::shared, MemoryKind::load},
    {"LDU", MemorySpace::global, MemoryKind::load},
    {"RED", MemorySpace::global, MemoryKind::reduction},
    {"REDG", MemorySpace::global, MemoryKind::reduction},
    {"ST", MemorySpace::generic, MemoryKind::store},
    {"STG", MemorySpace::global, MemoryKind::store},
    {"STL", MemorySpace::local, MemoryKind::store},
    {"STS", MemorySpace::shared, MemoryKind::store},
    {"STSM", MemorySpace::shared, MemoryKind::store},
};
static_assert(std::ranges::is_sorted(memory_table, {}, &MemoryEntry::name));

template <typename Entry, std::size_t size>
const Entry* find(const Entry (&table)[size], std::string_view name) {
  const auto* entry = std::ranges::lower_bound(table, name, {}, &Entry::name);
  return entry != std::end(table) && entry->name == name ? entry : nullptr;
}

/// Calls `visit(token)` for each modifier after the base opcode, in order, until it returns true.
template <typename Visit>
void for_each_modifier(std::string_view opcode, Visit visit) {
  std::size_t dot = opcode.find('.');
  while (dot != std::string_view::npos) {
    const std::size_t next = opcode.find('.', dot + 1);
    if (visit(opcode.substr(dot + 1, next - dot - 1))) return;
    dot = next;
  }
}

}  // namespace

bool has_modifier(std::string_view opcode, std::string_view wanted) {
  bool found = false;
  for_each_modifier(opcode, [&](std::string_view token) { return found = token == wanted; });
  return found;
}

namespace {

std::optional<std::uint32_t> parse_decimal(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

/// Bits of a type modifier: `64`, `U8`, `S16`, `F32`, `F32x4`, `BF16_V2`; nothing for others.
std::optional<std::uint32_t> bits_of_type(std::string_view token) {
  if (const auto bits = parse_decimal(token)) return bits;
  if (token == "BF16_V2" || token == "F16_V2") return 32;
  if (const std::size_t by = token.find('x'); by != std::string_view::npos) {
    const auto bits = bits_of_type(token.substr(0, by));
    const auto count = parse_decimal(token.substr(by + 1));
    if (!bits || !count || by == 0 || token[0] <= '9') return {};
    return *bits * *count;
  }
  if (token.starts_with("BF")) return parse_decimal(token.substr(2));
  if (!token.empty() && (token[0] == 'U' || token[0] == 'S' || token[0] == 'F')) {
    return parse_decimal(token.substr(1));
  }
  return {};
}

/// Bytes per thread from the modifiers, 4 when they are silent. LDSM and STSM move one, two or four
/// 8 x 8 matrices of 16-bit elements, hence 4 bytes per thread and matrix: their `16` is the
/// element.
std::uint32_t access_width(std::string_view base, std::string_view opcode) {
  if (base == "LDSM" || base == "STSM") {
    if (has_modifier(opcode, "4")) return 16;
    return has_modifier(opcode, "2") ? 8 : 4;
  }
  std::uint32_t bits = 32;
  for_each_modifier(opcode, [&](std::string_view token) {
    const auto found = bits_of_type(token);
    // No machine accesses other widths; a modifier of another number is something else.
    if (!found || *found < 8 || *found > 256 || (!std::has_single_bit(*found) && *found != 96)) {
      return false;
    }
    bits = *found;
    return true;
  });
  return bits / 8;
}

CacheOperator cache_operator_of(std::string_view opcode) {
  auto result = CacheOperator::none;
  for_each_modifier(opcode, [&](std::string_view token) {
    if (token == "STRONG" || token == "BYPASS") {
      // .STRONG.CTA and .STRONG.SM are satisfied by the SM's own L1.
      if (has_modifier(opcode, "CTA") || has_modifier(opcode, "SM")) return false;
      result = CacheOperator::bypass_l1;
      return true;
    }
    if (token == "EF") result = CacheOperator::evict_first;
    if (token == "EL") result = CacheOperator::evict_last;
    if ((token == "CONSTANT" || token == "CI") && result == CacheOperator::none) {
      result = CacheOperator::read_only;
    }
    return false;
  });
  return result;
}

/// Registers per thread of the operands of a warp-level matrix instruction (PTX ISA, "Matrix
/// fragments for mma"), by shape.
OperandWidths tensor_widths(std::string_view base, std::string_view opcode) {
  std::string_view shape;
  for_each_modifier(opcode, [&](std::string_view token) {
    if (token.empty() || token[0] < '0' || token[0] > '9') return false;
    shape = token;
    return true;
  });
  OperandWidths widths;
  const auto set = [&](std::uint32_t a, std::uint32_t b, std::uint32_t accumulator) {
    widths.destination = accumulator;
    widths.source = {a, b, accumulator, 1, 1, 1, 1, 1};
  };
  if (base.ends_with("GMMA")) {
    // 64xNxK of a warp group: 64 * N accumulators over 128 threads; operands come from shared
    // memory.
    const std::size_t first = shape.find('x');
    const std::size_t second = shape.find('x', first + 1);
    const auto columns = second == std::string_view::npos
                             ? std::nullopt
                             : parse_decimal(shape.substr(first + 1, second - first - 1));
    const bool half = has_modifier(opcode, "F16") && !has_modifier(opcode, "F32");
    const std::uint32_t accumulator = columns ? std::min(*columns, 256u) / (half ? 4 : 2) : 1;
    set(1, 1, std::max(accumulator, 1u));
    return widths;
  }
  if (base == "DMMA") {
    set(2, 2, 4);
    return widths;
  }
  const bool half = base == "HMMA" && !has_modifier(opcode, "F32");
  const bool tf32 = has_modifier(opcode, "TF32");
  if (shape == "884") {
    set(2, 2, 2);
  } else if (shape == "1684") {
    set(2, 1, 4);
  } else if (shape == "1688") {
    tf32 ? set(4, 2, 4) : set(2, 1, half ? 2 : 4);
  } else if (shape == "16816") {
    base == "HMMA" ? set(4, 2, half ? 2 : 4) : set(2, 1, 4);
  } else if (shape == "16832" || shape == "16864" || shape == "168256") {
    const bool four_bits = has_modifier(opcode, "S4") || has_modifier(opcode, "U4");
    shape == "16832" && four_bits ? set(2, 1, 4) : set(4, 2, 4);
  } else if (shape == "168128") {
    set(2, 1, 4);
  } else {  // 8816, 8832, 88128
    set(1, 1, 2);
  }
  return widths;
}

/// First and second type modifier of a conversion, in bits (0 when absent).
std::array<std::uint32_t, 2> conversion_types(std::string_view opcode) {
  std::array<std::uint32_t, 2> bits{0, 0};
  std::size_t found = 0;
  for_each_modifier(opcode, [&](std::string_view token) {
    if (const auto type = bits_of_type(token)) bits[found++] = *type;
    return found == bits.size();
  });
  return bits;
}

bool has_64bit_integer(std::string_view opcode) {
  return has_modifier(opcode, "S64") || has_modifier(opcode, "U64");
}

}  // namespace

DecodedOpcode decode_opcode(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  DecodedOpcode decoded;
  if (const MemoryEntry* entry = find(memory_table, base)) {
    decoded.op_class = OpClass::memory;
    decoded.space = entry->space;
    decoded.kind = entry->kind;
    decoded.width = access_width(base, opcode);
    decoded.cache_operator = cache_operator_of(opcode);
  } else if (const TableEntry* plain = find(op_table, base)) {
    decoded.op_class = plain->op_class;
  }
  return decoded;
}

OpClass unit_of(std::string_view opcode, OpClass op_class) {
  if (op_class != OpClass::sfu) return op_class;
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  bool is_wide = false;
  for (const char* type : {"F64", "S64", "U64", "f64", "s64", "u64"}) {
    is_wide = is_wide || has_modifier(opcode, type);
  }
  for (const char* conversion : {"F2F", "F2I", "I2F", "FRND", "cvt"}) {
    if (is_wide && base == conversion) return OpClass::fp64;
  }
  return op_class;
}

bool is_block_barrier(std::string_view opcode) {
  for (const std::string_view start : {"BAR.", "bar.", "barrier."}) {
    if (!opcode.starts_with(start)) continue;
    opcode.remove_prefix(start.size());
    if (opcode.starts_with("cta.")) opcode.remove_prefix(4);
    for (const std::string_view kind : {"SYNC", "RED", "sync", "red"}) {
      if (opcode.starts_with(kind)) return true;
    }
    return false;
  }
  return false;
}

OperandWidths operand_widths(std::string_view opcode, const DecodedOpcode& decoded,
                             std::size_t num_sources) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  OperandWidths widths;
  const auto all_sources = [&](std::uint32_t width) { widths.source.fill(width); };
  switch (decoded.op_class) {
    case OpClass::memory: {
      const std::uint32_t data = std::max(decoded.width / 4, 1u);
      // `.E`: the address is a 64-bit register pair. Local and shared addresses are 32 bits wide.
      const bool wide = has_modifier(opcode, "E") && decoded.space != MemorySpace::shared &&
                        decoded.space != MemorySpace::local;
      const std::uint32_t address = wide ? 2 : 1;
      widths.destination = data;
      if (decoded.kind == MemoryKind::async_copy) {
        widths.source[0] = 1;  // shared-memory address
        widths.source[1] = address;
      } else {
        all_sources(data);
        widths.source[0] = address;
      }
      break;
    }
    case OpClass::constant_load:
      widths.destination = std::max(access_width(base, opcode) / 4, 1u);
      break;
    case OpClass::fp64:
      widths.destination = base == "DSET" ? 1 : 2;
      all_sources(2);
      break;
    case OpClass::tensor:
      widths = tensor_widths(base, opcode);
      break;
    case OpClass::sfu: {
      const auto types = conversion_types(opcode);
      const bool double_precision = has_modifier(opcode, "F64");
      if (base == "F2F") {  // destination type first
        widths.destination = types[0] == 64 ? 2 : 1;
        all_sources(types[1] == 64 ? 2 : 1);
      } else if (base == "F2I") {
        widths.destination = has_64bit_integer(opcode) ? 2 : 1;
        all_sources(double_precision ? 2 : 1);
      } else if (base == "I2F") {
        widths.destination = double_precision ? 2 : 1;
        all_sources(has_64bit_integer(opcode) ? 2 : 1);
      } else if (base == "FRND" && double_precision) {
        widths.destination = 2;
        all_sources(2);
      }
      break;
    }
    case OpClass::fp32:
      if (base == "FADD2" || base == "FFMA2" || base == "FMUL2") {
        widths.destination = 2;
        all_sources(2);
      }
      break;
    case OpClass::integer:
      if (base == "IMAD" && has_modifier(opcode, "WIDE")) {
        // The addend is 64 bits wide; with only two vector sources it is a constant or immediate.
        widths.destination = 2;
        if (num_sources >= 3) widths.source[2] = 2;
      } else if (base == "CS2R") {
        widths.destination = has_modifier(opcode, "32") ? 1 : 2;
      }
      break;
    default:
      break;
  }
  return widths;
}

}  // namespace warpstack::trace
