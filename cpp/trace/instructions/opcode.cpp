#include "trace/instructions/opcode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace warpstack::trace {
namespace {

/// The rows of sass.inc in the order of their names.
constexpr auto sass_opcodes = [] {
  using enum OpClass;
  constexpr bool warp = false;
  constexpr bool group = true;
  auto rows = std::to_array<SassOpcode>({
#define SASS_OPERATION(name, op_class, registers, handler) \
  SassOpcode{#name, op_class, Registers::registers},
#define SASS_MEMORY(name, space, kind, registers, handler) \
  SassOpcode{#name, memory, Registers::registers, MemorySpace::space, MemoryKind::kind},
#define SASS_MATRIX(opcode, kind, warps, handler) \
  SassOpcode{.name = #opcode,                     \
             .op_class = tensor,                  \
             .registers = Registers::fragments,   \
             .factors = Factors::kind,            \
             .is_of_group = warps},
#include "trace/instructions/sass.inc"
  });
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].row = static_cast<std::uint16_t>(row);
  }
  std::ranges::sort(rows, {}, &SassOpcode::name);
  return rows;
}();
static_assert(std::ranges::adjacent_find(sass_opcodes, {}, &SassOpcode::name) == sass_opcodes.end(),
              "two rows of sass.inc have one name");

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

const SassOpcode* find_sass_opcode(std::string_view base) {
  const auto row = std::ranges::lower_bound(sass_opcodes, base, {}, &SassOpcode::name);
  return row != sass_opcodes.end() && row->name == base ? &*row : nullptr;
}

std::vector<std::string_view> words_of(std::string_view opcode) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t dot = opcode.find('.');
    words.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return words;
    opcode.remove_prefix(dot + 1);
  }
}

std::optional<std::uint32_t> decimal(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

bool has_modifier(std::string_view opcode, std::string_view wanted) {
  bool found = false;
  for_each_modifier(opcode, [&](std::string_view token) { return found = token == wanted; });
  return found;
}

namespace {

/// Bits of a type modifier: `64`, `U8`, `S16`, `F32`, `F32x4`, `BF16_V2`; nothing for others.
std::optional<std::uint32_t> bits_of_type(std::string_view token) {
  if (const auto bits = decimal(token)) return bits;
  if (token == "BF16_V2" || token == "F16_V2") return 32;
  if (const std::size_t by = token.find('x'); by != std::string_view::npos) {
    const auto bits = bits_of_type(token.substr(0, by));
    const auto count = decimal(token.substr(by + 1));
    if (!bits || !count || by == 0 || token[0] <= '9') return {};
    return *bits * *count;
  }
  if (token.starts_with("BF")) return decimal(token.substr(2));
  if (!token.empty() && (token[0] == 'U' || token[0] == 'S' || token[0] == 'F')) {
    return decimal(token.substr(1));
  }
  return {};
}

/// Bytes per thread from the modifiers, 4 when they are silent. Accesses to matrices move one, two
/// or four of 8 x 8 elements of 16 bits, hence 4 bytes per thread and matrix: their `16` is the
/// element.
std::uint32_t access_width(Registers registers, std::string_view opcode) {
  if (registers == Registers::matrices) {
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
OperandWidths fragment_widths(const DecodedOpcode& decoded, std::string_view opcode) {
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
  if (decoded.is_of_group) {
    // 64xNxK of a warp group: 64 * N accumulators over 128 threads; operands come from shared
    // memory.
    const std::size_t first = shape.find('x');
    const std::size_t second = shape.find('x', first + 1);
    const auto columns = second == std::string_view::npos
                             ? std::nullopt
                             : decimal(shape.substr(first + 1, second - first - 1));
    const bool half = has_modifier(opcode, "F16") && !has_modifier(opcode, "F32");
    const std::uint32_t accumulator = columns ? std::min(*columns, 256u) / (half ? 4 : 2) : 1;
    set(1, 1, std::max(accumulator, 1u));
    return widths;
  }
  if (decoded.factors == Factors::fp64) {
    set(2, 2, 4);
    return widths;
  }
  const bool of_halves = decoded.factors == Factors::half;
  const bool has_float_sums = of_halves || decoded.factors == Factors::fp8;
  const bool half = has_float_sums && !has_modifier(opcode, "F32");
  const bool tf32 = has_modifier(opcode, "TF32");
  if (shape == "884") {
    set(2, 2, 2);
  } else if (shape == "1684") {
    set(2, 1, 4);
  } else if (shape == "1688") {
    tf32 ? set(4, 2, 4) : set(2, 1, half ? 2 : 4);
  } else if (shape == "16816") {
    of_halves ? set(4, 2, half ? 2 : 4) : set(2, 1, half ? 2 : 4);
  } else if (shape == "16832" || shape == "16864" || shape == "168256") {
    const bool four_bits = has_modifier(opcode, "S4") || has_modifier(opcode, "U4");
    shape == "16832" && four_bits ? set(2, 1, 4) : set(4, 2, half ? 2 : 4);
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

}  // namespace

DecodedOpcode decode_opcode(std::string_view opcode) {
  DecodedOpcode decoded;
  const SassOpcode* row = find_sass_opcode(opcode.substr(0, opcode.find('.')));
  if (row == nullptr) return decoded;
  decoded.op_class = row->op_class;
  decoded.space = row->space;
  decoded.kind = row->kind;
  decoded.registers = row->registers;
  decoded.factors = row->factors;
  decoded.is_of_group = row->is_of_group;
  if (decoded.is_memory()) {
    decoded.width = access_width(decoded.registers, opcode);
    decoded.cache_operator = cache_operator_of(opcode);
  }
  return decoded;
}

OperandWidths operand_widths(std::string_view opcode, const DecodedOpcode& decoded,
                             std::size_t num_sources) {
  OperandWidths widths;
  const auto set = [&widths](std::uint32_t destination, std::uint32_t sources) {
    widths.destination = destination;
    widths.source.fill(sources);
  };
  const auto of_float = [&] { return has_modifier(opcode, "F64") ? 2u : 1u; };
  const auto of_integer = [&] {
    return has_modifier(opcode, "S64") || has_modifier(opcode, "U64") ? 2u : 1u;
  };
  switch (decoded.registers) {
    case Registers::words:
    case Registers::sources:
      break;
    case Registers::pairs:
    case Registers::pair_sources:
      set(2, 2);
      break;
    case Registers::pairs_to_word:
      set(1, 2);
      break;
    case Registers::between_floats: {
      const auto [destination, source] = conversion_types(opcode);
      set(destination == 64 ? 2 : 1, source == 64 ? 2 : 1);
      break;
    }
    case Registers::to_integer:
      set(of_integer(), of_float());
      break;
    case Registers::from_integer:
      set(of_float(), of_integer());
      break;
    case Registers::rounding:
      set(of_float(), of_float());
      break;
    case Registers::wide_product:
      if (!has_modifier(opcode, "WIDE")) break;
      // The addend is 64 bits wide; with only two vector sources it is a constant or immediate.
      widths.destination = 2;
      if (num_sources >= 3) widths.source[2] = 2;
      break;
    case Registers::clock:
      widths.destination = has_modifier(opcode, "32") ? 1 : 2;
      break;
    case Registers::constants:
      widths.destination = std::max(access_width(decoded.registers, opcode) / 4, 1u);
      break;
    case Registers::data:
    case Registers::matrices: {
      const std::uint32_t data = std::max(decoded.width / 4, 1u);
      // `.E`: the address is a 64-bit register pair. Local and shared addresses are 32 bits wide.
      const bool wide = has_modifier(opcode, "E") && decoded.space != MemorySpace::shared &&
                        decoded.space != MemorySpace::local;
      const std::uint32_t address = wide ? 2 : 1;
      widths.destination = data;
      if (decoded.kind == MemoryKind::async_copy) {
        widths.source[1] = address;  // behind the address in shared memory
      } else {
        widths.source.fill(data);
        widths.source[0] = address;
      }
      break;
    }
    case Registers::fragments:
      widths = fragment_widths(decoded, opcode);
      break;
  }
  return widths;
}

}  // namespace warpstack::trace
