// The instruction lines of an Accel-Sim trace: their tokens, the instruction's text, and the
// addresses.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "trace/accelsim/reader.h"
#include "trace/accelsim/text.h"

namespace warpstack::trace {
namespace {

/// PCs below this have a slot in the direct-mapped form cache.
constexpr std::uint32_t max_cached_pc = 1 << 24;
/// More different instructions than any kernel has; they are kept in memory.
constexpr std::size_t max_forms = 1 << 20;
/// The first tracer version whose lines end in an immediate.
constexpr std::uint32_t immediate_version = 5;
/// The first tracer version that names uniform registers, every destination, and values behind the
/// immediates.
constexpr std::uint32_t value_version = 6;
/// Numbers of registers that are not vector registers begin here, 256 for each register file.
constexpr std::uint32_t first_scalar_register = 0xF000;

/// The values of hexadecimal digits, -1 for other characters.
constexpr std::array<std::int8_t, 256> make_hex_values() {
  std::array<std::int8_t, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int8_t>(hex_digit(static_cast<char>(i)));
  }
  return values;
}

int hex_value(char c) {
  static constexpr std::array<std::int8_t, 256> values = make_hex_values();
  return values[static_cast<unsigned char>(c)];
}

/// A PC as trace lines have it: at least four digits.
std::string hex_pc(std::uint32_t pc) {
  std::array<char, 8> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), pc, 16);
  std::string text(digits.data(), end);
  return std::string(4 - std::min<std::size_t>(text.size(), 4), '0') + text;
}

bool is_opcode(std::string_view text) {
  return text.front() >= 'A' && text.front() <= 'Z' && std::ranges::all_of(text, [](char c) {
           return hex_digit(c) >= 0 || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  c == '.' || c == '_';
         });
}

/// Instructions that move whole tensors or blocks. Their lines have fields of their own.
bool is_bulk_copy(std::string_view opcode) {
  static constexpr std::array<std::string_view, 7> names{"UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG",
                                                         "UBLKCP",  "UBLKPF",  "UBLKRED"};
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  return std::ranges::find(names, base) != names.end();
}

/// How many uniform registers an instruction writes, by its modifiers.
std::uint32_t uniform_destination_width(std::string_view opcode) {
  if (has_modifier(opcode, "128")) return 4;
  return has_modifier(opcode, "64") || has_modifier(opcode, "WIDE") ? 2 : 1;
}

bool is_hex_token(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return hex_digit(c) >= 0; });
}

}  // namespace

std::string_view AccelSimReader::token(Cursor& cursor, const char* field) {
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  const char* begin = cursor.next;
  while (cursor.next != cursor.end && !is_blank(*cursor.next)) ++cursor.next;
  if (begin == cursor.next) {
    fail(std::string("the line ends before its ") + field + "; the file is cut or edited");
  }
  return {begin, static_cast<std::size_t>(cursor.next - begin)};
}

template <typename Number>
bool AccelSimReader::take_decimal(Cursor& cursor, Number& value) {
  const char* begin = cursor.next;
  while (begin != cursor.end && is_blank(*begin)) ++begin;
  const auto [end, error] = std::from_chars(begin, cursor.end, value);
  if (error != std::errc{} || (end != cursor.end && !is_blank(*end))) return false;
  cursor.next = end;
  return true;
}

std::uint64_t AccelSimReader::decimal(Cursor& cursor, const char* field) {
  if (std::uint64_t number = 0; take_decimal(cursor, number)) return number;
  const std::string_view text = token(cursor, field);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(field) + " " + quoted(text) + " is not a decimal number");
  }
  return value;
}

std::int64_t AccelSimReader::signed_decimal(Cursor& cursor, const char* field) {
  if (std::int64_t number = 0; take_decimal(cursor, number)) return number;
  const std::string_view text = token(cursor, field);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(field) + " " + quoted(text) + " is not a decimal number");
  }
  return value;
}

std::uint64_t AccelSimReader::hexadecimal(Cursor& cursor, const char* field) {
  const char* next = cursor.next;
  while (next != cursor.end && is_blank(*next)) ++next;
  const char* const first = next;
  std::uint64_t number = 0;
  for (int digit; next != cursor.end && (digit = hex_value(*next)) >= 0; ++next) {
    number = number << 4 | static_cast<std::uint64_t>(digit);
  }
  if (next - first > 0 && next - first <= 16 && (next == cursor.end || is_blank(*next))) {
    cursor.next = next;
    return number;
  }
  const std::string_view text = token(cursor, field);
  std::uint64_t value = 0;
  bool good = text.size() <= 16;
  for (const char c : text) {
    const int digit = hex_digit(c);
    good = good && digit >= 0;
    value = value << 4 | static_cast<std::uint64_t>(digit & 15);
  }
  if (!good) fail(std::string(field) + " " + quoted(text) + " is not a hexadecimal number");
  return value;
}

std::uint64_t AccelSimReader::address(Cursor& cursor) {
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  if (cursor.end - cursor.next < 3 || cursor.next[0] != '0' || cursor.next[1] != 'x') {
    const std::string_view text = token(cursor, "address");
    fail("address " + quoted(text) + " does not begin with 0x");
  }
  cursor.next += 2;
  return hexadecimal(cursor, "address");
}

std::uint16_t AccelSimReader::vector_register(Cursor& cursor, const char* field) {
  const std::string_view text = token(cursor, field);
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (text.front() != 'R' || text.size() < 2 || error != std::errc{} ||
      end != text.data() + text.size() || number > max_register_) {
    fail(std::string(field) + " " + quoted(text) + " is not a register R0 to R" +
         std::to_string(max_register_));
  }
  return number;
}

AccelSimReader::Operand AccelSimReader::operand(Cursor& cursor, const char* field) {
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  const char* begin = cursor.next;
  const std::string_view text = token(cursor, field);
  if (text == "RZ" || text == "SRZ" || text.starts_with("SR_")) return {.constant = true};
  if (text == "URZ") return {RegisterFile::uniform, 0, true};
  if (text == "PT") return {RegisterFile::predicate, 0, true};
  if (text == "UPT") return {RegisterFile::uniform_predicate, 0, true};
  struct Prefix {
    std::string_view text;
    RegisterFile file;
    std::uint16_t largest;
    std::uint16_t constant;  ///< number of the register that is constant, or more than `largest`
  };
  // URZ is UR63 until compute capability 10.0 has 256 uniform registers.
  const std::uint16_t uniform_zero =
      header_.binary_version != 0 && header_.binary_version < 100 ? 63 : 255;
  const std::array<Prefix, 4> prefixes{{
      {"UR", RegisterFile::uniform, 255, uniform_zero},
      {"UP", RegisterFile::uniform_predicate, 7, 7},
      {"P", RegisterFile::predicate, 7, 7},
      {"B", RegisterFile::barrier, 15, 16},
  }};
  for (const Prefix& prefix : prefixes) {
    if (!text.starts_with(prefix.text)) continue;
    const std::string_view digits = text.substr(prefix.text.size());
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() ||
        number > prefix.largest) {
      fail(std::string(field) + " " + quoted(text) + " is not a register " +
           std::string(prefix.text) + "0 to " + std::string(prefix.text) +
           std::to_string(prefix.largest));
    }
    return {prefix.file, number, number == prefix.constant};
  }
  cursor.next = begin;
  const std::uint16_t number = vector_register(cursor, field);
  return {RegisterFile::vector, number, number == zero_register};
}

void AccelSimReader::skip_decimal(Cursor& cursor, const char* field) {
  // Tracers print some 64-bit values as signed numbers and others as unsigned ones.
  const std::string_view text = token(cursor, field);
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  if (digits.empty() || digits.size() > 20 ||
      !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
    fail(std::string(field) + " " + quoted(text) + " is not a decimal number");
  }
}

void AccelSimReader::skip_hexadecimal(Cursor& cursor, const char* field) {
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  if (cursor.end - cursor.next > 2 && cursor.next[0] == '0' && cursor.next[1] == 'x') {
    cursor.next += 2;
  }
  hexadecimal(cursor, field);
}

void AccelSimReader::measure_raw_prefix(std::string_view line) {
  // Raw lines begin with the block index and the warp, sometimes with an SM and a warp slot or with
  // cluster coordinates too. The mask, eight hexadecimal digits wide, shows where the rest begins.
  Cursor cursor{line.data(), line.data() + line.size()};
  std::size_t position = 0;
  std::string_view text = token(cursor, "thread block index");
  while (text.size() != 8 || !is_hex_token(text)) {
    ++position;
    if (position > 16) fail("the line has no active mask of eight hexadecimal digits");
    text = token(cursor, "active mask");
  }
  const std::size_t after_prefix = has_line_info_ ? 2 : 1;
  if (position < 4 + after_prefix) {
    fail(
        "an instruction outside #BEGIN_TB and #END_TB without its thread block and warp: neither a "
        "grouped nor a raw Accel-Sim trace");
  }
  raw_prefix_tokens_ = position - after_prefix;
}

AccelSimReader::RawWarp& AccelSimReader::raw_warp(Cursor& cursor) {
  Dim3 index{};
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] = decimal(cursor, "thread block index");
    if (index[i] >= header_.grid[i]) {
      fail("thread block index " + std::to_string(index[i]) + " is outside the grid");
    }
  }
  const std::uint64_t warp = decimal(cursor, "warp");
  if (warp >= header_.warps_per_block()) {
    fail("warp " + std::to_string(warp) + " is outside a block of " +
         std::to_string(header_.warps_per_block()) + " warps");
  }
  for (std::size_t i = 4; i < raw_prefix_tokens_; ++i) token(cursor, "prefix");
  warp_index_ = static_cast<std::uint32_t>(warp);
  block_index_ = index;
  return raw_blocks_[linear_block_index()][warp_index_];
}

void AccelSimReader::skip_prefix(Cursor& cursor) {
  for (const std::uint64_t expected :
       {block_index_[0], block_index_[1], block_index_[2], std::uint64_t{warp_index_}}) {
    const std::uint64_t found = decimal(cursor, "thread block and warp");
    if (found != expected) {
      fail("the line belongs to another thread block or warp (" + std::to_string(found) +
           " where " + std::to_string(expected) + " was expected)");
    }
  }
}

const AccelSimReader::LineForm& AccelSimReader::line_form(Cursor& cursor, std::uint32_t pc,
                                                          std::uint32_t source_line) {
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  const auto rest = static_cast<std::size_t>(cursor.end - cursor.next);
  const std::vector<LineForm>& forms = trunk_ ? trunk_->forms_ : forms_;
  const std::size_t slot = pc / 8;
  if (slot < form_by_pc_.size() && form_by_pc_[slot] != 0) {
    // The form last seen at this PC nearly always recurs.
    const LineForm& form = forms[form_by_pc_[slot] - 1];
    const std::size_t length = form.text.size();
    if (form.pc == pc && length <= rest && form.text.compare(0, length, cursor.next, length) == 0 &&
        (length == rest || is_blank(cursor.next[length]))) {
      cursor.next += length;
      return form;
    }
  }
  const char* begin = cursor.next;
  const auto registers = [&](const char* count_field, const char* field) {
    const std::uint64_t count = decimal(cursor, count_field);
    if (count > max_operands) {
      fail(std::string(count_field) + " = " + std::to_string(count) + " is more than " +
           std::to_string(max_operands));
    }
    std::vector<Operand> list(count);
    for (Operand& named : list) named = operand(cursor, field);
    return list;
  };
  const auto destinations = registers("number of destination registers", "destination register");
  const std::string opcode(token(cursor, "opcode"));
  if (!is_opcode(opcode)) fail("opcode " + quoted(opcode) + " is not an opcode");
  const auto sources = registers("number of source registers", "source register");
  // A flag of warpgroup matrix instructions: whether it ends a group.
  if (version_ >= value_version && opcode.find("GMMA") != std::string::npos) {
    decimal(cursor, "group flag");
  }
  const std::uint64_t width = decimal(cursor, "memory width");
  if (width > 256) fail("memory width = " + std::to_string(width) + " is more than 256 bytes");

  const std::string text(begin, cursor.next);
  std::string key = std::to_string(pc) + ':' + text;
  const auto remember = [&](std::uint32_t number) -> const LineForm& {
    if (pc < max_cached_pc) {
      if (slot >= form_by_pc_.size()) form_by_pc_.resize(std::bit_ceil(slot + 1));
      form_by_pc_[slot] = number + 1;
    }
    return forms[number];
  };
  if (trunk_) {
    const auto known = trunk_->form_by_text_.find(key);
    if (known == trunk_->form_by_text_.end()) throw TraceBranch::NewRow{};
    return remember(known->second);
  }
  const auto [entry, is_new] =
      form_by_text_.try_emplace(std::move(key), static_cast<std::uint32_t>(forms_.size()));
  if (is_new) {
    if (forms_.size() == max_forms) {
      fail("more than " + std::to_string(max_forms) +
           " different instructions; no kernel has so many");
    }
    StaticInstruction instruction = instruction_of(pc, opcode, destinations, sources, source_line,
                                                   static_cast<std::uint32_t>(width));
    if (!listed_registers_.empty()) {
      const auto listed = listed_registers_.find(hex_pc(pc) + ' ' + text);
      if (listed != listed_registers_.end()) {
        instruction.destinations = listed->second.destinations;
        instruction.sources = listed->second.sources;
      }
    }
    const bool is_memory = instruction.is_memory();
    const bool is_async_copy = instruction.kind == MemoryKind::async_copy;
    const bool is_bulk = version_ >= value_version && is_bulk_copy(opcode);
    forms_.push_back({pc, text, builder_->intern(std::move(instruction)), width > 0 && !is_bulk,
                      is_memory, is_async_copy, is_bulk});
  }
  return remember(entry->second);
}

void AccelSimReader::append_scalar_registers(std::vector<std::uint16_t>& registers,
                                             const Operand& operand, std::uint32_t width) const {
  if (operand.constant) return;
  if (max_register_ >= first_scalar_register) {
    fail("registers other than R in a trace with -warpstack registers = " +
         std::to_string(max_register_));
  }
  const std::uint32_t first =
      first_scalar_register + 256 * static_cast<std::uint32_t>(operand.file) + operand.number;
  // A tuple ends with its register file.
  const std::uint32_t end = std::min<std::uint32_t>(operand.number + width, 256) - operand.number;
  append_register_tuple(registers, static_cast<std::uint16_t>(first), end);
}

StaticInstruction AccelSimReader::instruction_of(std::uint32_t pc, const std::string& opcode,
                                                 const std::vector<Operand>& destinations,
                                                 const std::vector<Operand>& sources,
                                                 std::uint32_t source_line,
                                                 std::uint32_t width) const {
  const DecodedOpcode decoded = decode_opcode(opcode);
  // The width of a source follows from its position. Uniform registers take positions like vector
  // registers, except in memory instructions, which name them in addition to address and data.
  const auto takes_place = [&](const Operand& operand) {
    return operand.file == RegisterFile::vector ||
           (operand.file == RegisterFile::uniform && !decoded.is_memory());
  };
  const auto places = [&](const std::vector<Operand>& operands) {
    std::vector<std::uint16_t> list;
    for (const Operand& operand : operands) {
      if (!takes_place(operand)) continue;
      const bool is_register = operand.file == RegisterFile::vector && !operand.constant;
      list.push_back(is_register ? operand.number : zero_register);
    }
    return list;
  };
  const std::vector<std::uint16_t> written = places(destinations);
  const std::vector<std::uint16_t> read = places(sources);
  StaticInstruction result = make_static_instruction(pc, opcode, written, read, source_line, width);
  const bool names_each = version_ >= value_version && written.size() > 1;
  if (names_each) {  // all registers of a tuple, not only the first
    result.destinations.clear();
    for (const std::uint16_t reg : written) append_register_tuple(result.destinations, reg, 1);
  }
  const std::uint32_t uniform_width = names_each ? 1 : uniform_destination_width(opcode);
  for (const Operand& operand : destinations) {
    if (operand.file == RegisterFile::vector) continue;
    append_scalar_registers(result.destinations, operand,
                            operand.file == RegisterFile::uniform ? uniform_width : 1);
  }
  const OperandWidths widths = operand_widths(opcode, decoded, read.size());
  const std::uint32_t address_width =
      decoded.space == MemorySpace::shared || decoded.space == MemorySpace::local ? 1 : 2;
  std::size_t place = 0;
  for (const Operand& operand : sources) {
    const std::uint32_t at_place = widths.source[std::min(place, max_operands - 1)];
    if (takes_place(operand)) ++place;
    if (operand.file == RegisterFile::vector) continue;
    const bool is_uniform = operand.file == RegisterFile::uniform;
    const std::uint32_t source_width = decoded.is_memory() ? address_width : at_place;
    append_scalar_registers(result.sources, operand, is_uniform ? source_width : 1);
  }
  return result;
}

void AccelSimReader::parse_addresses(Cursor& cursor, LaneAddresses& lanes) {
  const std::uint64_t mode = decimal(cursor, "address mode");
  const std::uint32_t mask = lanes.mask;
  const auto store = [&](int lane, std::uint64_t value) {
    if (value > max_address)
      fail("address " + std::to_string(value) + " is beyond the address space");
    lanes.address[static_cast<std::size_t>(lane)] = value;
  };
  if (mode == 0) {  // every address
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      store(std::countr_zero(rest), address(cursor));
    }
  } else if (mode == 1) {  // base and stride over one run of lanes
    const std::uint64_t base = address(cursor);
    const auto stride = static_cast<std::uint64_t>(signed_decimal(cursor, "stride"));
    if (mask == 0) return;
    const int first = std::countr_zero(mask);
    const std::uint32_t run = mask >> first;
    if ((run & (run + 1)) != 0) {
      fail("base and stride for an active mask with gaps; only one run of lanes has a stride");
    }
    const int count = std::popcount(mask);
    for (int i = 0; i < count; ++i) store(first + i, base + static_cast<std::uint64_t>(i) * stride);
  } else if (mode == 2) {  // base, then the difference to the previous active lane
    std::uint64_t value = address(cursor);
    for (std::uint32_t rest = mask; rest != 0;) {
      store(std::countr_zero(rest), value);
      rest &= rest - 1;
      if (rest != 0) value += static_cast<std::uint64_t>(signed_decimal(cursor, "address delta"));
    }
  } else {
    fail("address mode " + std::to_string(mode) +
         " is not 0 (list), 1 (base and stride) or 2 (base "
         "and deltas)");
  }
}

void AccelSimReader::skip_bulk_copy(Cursor& cursor) {
  skip_hexadecimal(cursor, "address of the mbarrier");
  if (decimal(cursor, "multicast flag") != 0) skip_hexadecimal(cursor, "multicast mask");
  decimal(cursor, "copied bytes");
  decimal(cursor, "bytes out of bounds");
  const std::uint64_t mode = decimal(cursor, "address mode");
  if (mode != 3 && mode != 4) {
    fail("address mode " + std::to_string(mode) +
         " of a bulk copy is not 3 (list) or 4 (base and deltas)");
  }
  if (mode == 4) skip_hexadecimal(cursor, "address");
  std::uint64_t count = decimal(cursor, "number of addresses");
  if (mode == 4 && count > 0) --count;
  for (; count > 0; --count) {
    if (mode == 3) {
      skip_hexadecimal(cursor, "address");
    } else {
      skip_decimal(cursor, "address delta");
    }
  }
  ++num_bulk_copies_;
}

void AccelSimReader::skip_tail(Cursor& cursor) {
  const auto skip_blanks = [&cursor] {
    while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
    return cursor.next != cursor.end;
  };
  if (version_ >= immediate_version) skip_decimal(cursor, "immediate");
  if (!skip_blanks()) return;
  const auto is_number = [&cursor] {
    return *cursor.next == '-' || (*cursor.next >= '0' && *cursor.next <= '9');
  };
  if (version_ >= value_version) {
    if (is_number()) {
      skip_decimal(cursor, "second immediate");
      if (!skip_blanks()) return;
    }
    const std::string_view rest(cursor.next, static_cast<std::size_t>(cursor.end - cursor.next));
    if (rest.starts_with("NoVal")) {
      cursor.next += 5;
      if (!skip_blanks()) return;
    } else if (rest.starts_with("Val")) {
      return;  // register values, on which timing does not depend
    }
  }
  const char* begin = cursor.next;
  const std::string_view field = token(cursor, "field");
  // An unexpected number means that the line's operands were misread or edited.
  const bool is_name = (*begin >= 'A' && *begin <= 'Z') || (*begin >= 'a' && *begin <= 'z');
  if (version_ <= value_version && !is_name) {
    fail("the line has more than its operands: " +
         quoted({begin, static_cast<std::size_t>(cursor.end - begin)}));
  }
  if (unknown_fields_.lines++ == 0) {
    unknown_fields_.first_line = line_number_;
    unknown_fields_.first_field = quoted(field);
  }
}

void AccelSimReader::parse_instruction(std::string_view line) {
  if (header_lines_.empty() && !branch_) {
    fail("the line " + quoted(line) + " is not a header line; this is not an Accel-Sim trace");
  }
  if (hex_digit(line.front()) < 0) fail("the line " + quoted(line) + " is not an instruction");
  start_body();
  Cursor cursor{line.data(), line.data() + line.size()};
  RawWarp* raw = nullptr;
  if (in_block_) {
    if (!announced_instructions_ || !in_warp_) fail("an instruction before warp = and insts =");
    if (version_ < 3) skip_prefix(cursor);
  } else {
    if (grouped_) fail("an instruction outside #BEGIN_TB and #END_TB");
    if (raw_prefix_tokens_ == 0) measure_raw_prefix(line);
    raw = &raw_warp(cursor);
  }
  std::uint32_t source_line = 0;
  if (has_line_info_) source_line = static_cast<std::uint32_t>(decimal(cursor, "source line"));
  const std::uint64_t pc = hexadecimal(cursor, "PC");
  if (pc > std::numeric_limits<std::uint32_t>::max()) {
    fail("PC " + std::to_string(pc) + " is beyond 4 GiB; PCs are offsets in a function");
  }
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  std::uint64_t mask = 0xffffffff;
  const char* const mask_begin = cursor.next;
  if (cursor.end - mask_begin > 8 && std::memcmp(mask_begin, "ffffffff ", 9) == 0) {
    cursor.next += 8;  // nearly always
  } else {
    mask = hexadecimal(cursor, "active mask");
    const std::string_view text(mask_begin, static_cast<std::size_t>(cursor.next - mask_begin));
    if (text.size() != 8) fail("active mask " + quoted(text) + " is not eight digits long");
  }

  const LineForm& form = line_form(cursor, static_cast<std::uint32_t>(pc), source_line);
  LaneAddresses lanes;
  lanes.mask = static_cast<std::uint32_t>(mask);
  if (form.has_addresses) parse_addresses(cursor, lanes);
  if (form.is_bulk_copy) skip_bulk_copy(cursor);
  skip_tail(cursor);

  const LaneAddresses* access = form.is_memory && form.has_addresses ? &lanes : nullptr;
  if (raw == nullptr) {
    append_issued(form.row, lanes.mask, access);
    return;
  }
  if (form.is_async_copy) {
    // The raw trace has LDGSTS twice: with its shared address, then with its global one.
    raw->expects_global_half = !raw->expects_global_half;
    if (raw->expects_global_half) return;
  }
  raw->last_row = form.row;
  const std::uint64_t before = bytes_of(raw->columns.counts());
  builder_->append_to(raw->columns, linear_block_index() * header_.warps_per_block() + warp_index_,
                      form.row, lanes.mask, access);
  raw_bytes_ += bytes_of(raw->columns.counts()) - before;
}

}  // namespace warpstack::trace
