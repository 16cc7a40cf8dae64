#include "trace/accelsim/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/error.h"
#include "trace/instructions/sass_names.h"

namespace warpstack::trace {
namespace {

constexpr std::uint64_t default_binary_version = 80;
/// Accel-Sim keeps one destination per instruction, and its releases four or five sources.
constexpr std::size_t max_named_destinations = 1;
constexpr std::size_t max_named_sources = 5;
constexpr std::size_t max_listed_sources = 4;
/// Windows for traces with generic accesses but unknown windows: above every address of a GPU,
/// below the region of local sectors, in the order that Accel-Sim assumes.
constexpr std::uint64_t default_shared_window = std::uint64_t{1} << 56;
constexpr std::uint64_t default_local_window = default_shared_window + window_bytes;

void append_decimal(std::string& text, std::uint64_t value) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), end);
}

void append_signed(std::string& text, std::int64_t value) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), end);
}

/// Appends a number in at least `least` hexadecimal digits.
void append_hex(std::string& text, std::uint64_t value, std::size_t least = 1) {
  std::array<char, 16> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  const auto length = static_cast<std::size_t>(end - digits.data());
  if (length < least) text.append(least - length, '0');
  text.append(digits.data(), length);
}

std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text = "0x";
  append_hex(text, value, digits);
  return text;
}

std::string dimensions(const Dim3& dims, const char* separator = ",") {
  return std::to_string(dims[0]) + separator + std::to_string(dims[1]) + separator +
         std::to_string(dims[2]);
}

/// The file's number of a dense register: 255 is the zero register, so later ones move up.
std::uint16_t number_of(std::uint16_t dense) {
  return static_cast<std::uint16_t>(dense < zero_register ? dense : dense + 1);
}

std::string register_list(std::span<const std::uint16_t> registers) {
  std::string text;
  for (const std::uint16_t reg : registers) text += "R" + std::to_string(reg) + " ";
  if (!text.empty()) text.pop_back();
  return text;
}

/// Finds the first registers of tuples of these widths that expand to `wanted`, in order.
bool name_tuples(std::span<const std::uint32_t> widths, std::span<const std::uint16_t> wanted,
                 const std::vector<std::uint16_t>& expanded, std::vector<std::uint16_t>& names) {
  if (widths.empty()) return expanded.size() == wanted.size();
  const auto try_name = [&](std::uint16_t name) {
    std::vector<std::uint16_t> longer = expanded;
    append_register_tuple(longer, name, widths[0]);
    if (longer.size() > wanted.size() ||
        !std::equal(longer.begin(), longer.end(), wanted.begin())) {
      return false;
    }
    names.push_back(name);
    if (name_tuples(widths.subspan(1), wanted, longer, names)) return true;
    names.pop_back();
    return false;
  };
  if (expanded.size() < wanted.size()) {
    // The next register is in the tuple, perhaps after registers that are named already.
    const std::uint16_t next = wanted[expanded.size()];
    for (std::uint32_t back = 0; back < widths[0] && back <= next; ++back) {
      if (try_name(static_cast<std::uint16_t>(next - back))) return true;
    }
  }
  return try_name(zero_register);
}

std::vector<std::uint16_t> numbers_of(const std::vector<std::uint16_t>& dense) {
  std::vector<std::uint16_t> numbers;
  for (const std::uint16_t reg : dense) numbers.push_back(number_of(reg));
  return numbers;
}

/// The registers of an instruction as a header line lists them.
std::string file_registers(const StaticInstruction& instruction) {
  return register_list(numbers_of(instruction.destinations)) + " / " +
         register_list(numbers_of(instruction.sources));
}

std::string text_at(std::uint32_t pc, const std::string& text) {
  std::string result;
  append_hex(result, pc, 4);
  return result + " " + text;
}

/// ASCII for the header; the reader takes nothing else.
std::string printable(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += "\\x";
      append_hex(text, static_cast<unsigned char>(c), 2);
    }
  }
  return text;
}

}  // namespace

AccelSimWriter::AccelSimWriter(const KernelTrace& trace, std::uint64_t binary_version,
                               const std::optional<std::uint64_t>& stream,
                               const InterruptCheck& interrupt)
    : trace_(trace), header_(trace.header()) {
  if (stream) header_.stream = *stream;
  if (binary_version != 0) header_.binary_version = binary_version;
  if (header_.binary_version == 0) header_.binary_version = default_binary_version;
  has_line_info_ = std::ranges::any_of(
      trace.instructions(), [](const StaticInstruction& i) { return i.source_line != 0; });
  find_returns(interrupt);
  make_forms();
  choose_windows();
}

void AccelSimWriter::find_returns(const InterruptCheck& interrupt) {
  const auto& rows = trace_.instructions();
  std::vector<bool> is_return(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    is_return[row] = rows[row].opcode == "ret" || rows[row].opcode.starts_with("ret.");
  }
  returns_from_function_.assign(rows.size(), false);
  if (std::ranges::find(is_return, true) == is_return.end()) return;
  // A lane that is active after a `ret` has returned from a function; otherwise it has exited.
  for (std::size_t b = 0; b < trace_.blocks().size(); ++b) {
    if (interrupt && b % 1024 == 0) interrupt();
    const ColumnView columns =
        trace_.blocks().read(b, {}, {trace_.blocks().counts(b).instructions, 0, 0, 0}, scratch_);
    std::size_t end = 0;
    for (const WarpEntry& warp : trace_.blocks().warps(b)) {
      const std::size_t begin = end;
      end += warp.instructions;
      std::uint32_t later = 0;
      for (std::size_t i = end; i-- > begin;) {
        const std::uint32_t row = columns.instruction[i];
        if (is_return[row] && (columns.active_mask[i] & later) != 0) {
          returns_from_function_[row] = true;
        }
        later |= columns.active_mask[i];
      }
    }
  }
}

AccelSimWriter::Names AccelSimWriter::name_registers(const std::string& opcode,
                                                     const StaticInstruction& instruction) const {
  const DecodedOpcode decoded = decode_opcode(opcode);
  const std::vector<std::uint16_t> destinations = numbers_of(instruction.destinations);
  const std::vector<std::uint16_t> sources = numbers_of(instruction.sources);
  // An opcode outside the table takes its width from the trace.
  DecodedOpcode shape = decoded;
  if (shape.op_class == OpClass::unknown && instruction.is_memory()) {
    shape.op_class = OpClass::memory;
    shape.width = instruction.width;
    shape.kind = instruction.kind;
  }
  Names names;
  bool has_destinations = false;
  for (std::size_t n = 0; n <= max_named_destinations && !has_destinations; ++n) {
    const std::vector<std::uint32_t> widths(n, operand_widths(opcode, shape, 0).destination);
    has_destinations = name_tuples(widths, destinations, {}, names.destinations);
  }
  for (std::size_t n = 0; n <= max_named_sources && has_destinations && !names.exact; ++n) {
    const OperandWidths widths = operand_widths(opcode, shape, n);
    names.exact = name_tuples(std::span(widths.source).first(n), sources, {}, names.sources);
  }
  if (names.exact) return names;

  const auto first_of = [](const std::vector<std::uint16_t>& list, std::size_t most) {
    return std::vector<std::uint16_t>(
        list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(most, list.size())));
  };
  names.destinations = first_of(destinations, max_named_destinations);
  names.sources = first_of(sources, max_listed_sources);
  if (shape.op_class == OpClass::tensor) {
    // The first register of each of the three matrices says more than the first four of one.
    const OperandWidths widths = operand_widths(opcode, shape, 3);
    const std::span<const std::uint32_t> parts = std::span(widths.source).first(3);
    if (std::accumulate(parts.begin(), parts.end(), std::size_t{0}) == sources.size()) {
      names.sources = {sources[0], sources[parts[0]], sources[parts[0] + parts[1]]};
    }
  }
  return names;
}

void AccelSimWriter::make_forms() {
  std::unordered_map<std::string, std::string> texts;
  for (std::size_t row = 0; row < trace_.instructions().size(); ++row) {
    const StaticInstruction& instruction = trace_.instructions()[row];
    Form& form = forms_.emplace_back();
    if (trace_.row_counts()[row].issued == 0) continue;
    const std::string opcode =
        sass_opcode(instruction, header_.binary_version,
                    returns_from_function_[row] ? ReturnKind::from_function : ReturnKind::exit);
    form.is_exit = opcode == "EXIT" || opcode.starts_with("EXIT.");
    form.opcode_is_generic =
        instruction.is_memory() &&
        make_static_instruction(0, opcode, {}, {}, 0, 1).space == MemorySpace::generic;
    const Names names = name_registers(opcode, instruction);
    std::string& after = form.after;
    after = std::to_string(names.destinations.size()) + " ";
    if (!names.destinations.empty()) after += register_list(names.destinations) + " ";
    after += opcode + " " + std::to_string(names.sources.size()) + " ";
    if (!names.sources.empty()) after += register_list(names.sources) + " ";
    append_decimal(after, instruction.is_memory() ? instruction.width : 0);
    if (has_line_info_) form.before = std::to_string(instruction.source_line) + " ";
    // One text at one PC stands for one list of registers; a second list goes to the next PC.
    const std::string registers = file_registers(instruction);
    std::uint32_t pc = instruction.pc;
    auto known = texts.try_emplace(text_at(pc, after), registers);
    while (known.first->second != registers) {
      known = texts.try_emplace(text_at(++pc, after), registers);
    }
    if (!names.exact && known.second) {
      register_lines_.push_back("-warpstack registers of " + known.first->first + " = " +
                                registers);
    }
    append_hex(form.before, pc, 4);
    form.before += ' ';
  }
}

void AccelSimWriter::choose_windows() {
  const bool any_generic =
      std::ranges::any_of(forms_, [](const Form& form) { return form.opcode_is_generic; });
  // A trace from Accel-Sim is written as it was read: without windows if it had none.
  if (!any_generic || header_.source == "accelsim") return;
  if (header_.shared_window == 0) header_.shared_window = default_shared_window;
  if (header_.local_window == 0) header_.local_window = default_local_window;
}

std::string AccelSimWriter::header() const {
  std::string text;
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += "-";
    text += key;
    text += " = " + value + "\n";
  };
  add("kernel name", printable(header_.name));
  add("kernel id", std::to_string(header_.launch_id));
  add("grid dim", "(" + dimensions(header_.grid) + ")");
  add("block dim", "(" + dimensions(header_.block) + ")");
  add("shmem", std::to_string(header_.shared_memory_bytes));
  add("nregs", std::to_string(header_.registers_per_thread));
  add("binary version", std::to_string(header_.binary_version));
  add("cuda stream id", std::to_string(header_.stream));
  add("shmem base_addr", hex(header_.shared_window, 16));
  add("local mem base_addr", hex(header_.local_window, 16));
  add("nvbit version", "none (written by warpstack)");
  add("accelsim tracer version", "4");
  add("enable lineinfo", has_line_info_ ? "1" : "0");
  if (trace_.num_registers() > zero_register) {
    add("warpstack registers", std::to_string(trace_.num_registers() + 1));
  }
  for (const std::string& line : register_lines_) text += line + "\n";
  return text +
         "\n#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] "
         "mem_width [adrrescompress?] [mem_addresses]\n\n";
}

std::string AccelSimWriter::blocks(std::size_t first, std::size_t last) {
  std::string text;
  for (std::size_t b = first; b < std::min(last, trace_.blocks().size()); ++b) {
    append_block(b, text);
  }
  return text;
}

void AccelSimWriter::append_block(std::size_t block, std::string& text) {
  const std::uint64_t linear = trace_.blocks().linear_index(block);
  const Dim3& grid = header_.grid;
  text += "\n#BEGIN_TB\n\nthread block = ";
  text += dimensions({linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]});
  text += "\n";
  const ColumnView columns = trace_.block(block, scratch_);
  const auto& rows = trace_.instructions();
  Access access;
  access.block = linear;
  std::size_t i = 0, memory = 0, sector = 0, store = 0;
  for (const WarpEntry& warp : trace_.blocks().warps(block)) {
    access.warp_number = warp.number;
    access.warp_id = linear * header_.warps_per_block() + warp.number;
    text += "\nwarp = ";
    append_decimal(text, warp.number);
    text += "\ninsts = ";
    append_decimal(text, warp.instructions);
    text += "\n";
    for (const std::size_t end = i + warp.instructions; i < end; ++i) {
      const std::uint32_t row = columns.instruction[i];
      const Form& form = forms_[row];
      text += form.before;
      access.mask = columns.active_mask[i];
      if (rows[row].is_memory()) {
        access.row = row;
        access.passes = columns.l1_passes.empty() ? 0 : columns.l1_passes[memory];
        access.count = columns.memory_count[memory++];
        if (access.count == 0) access.mask = 0;
        access.sectors = {};
        access.store_bytes = {};
        access.atomics = {};
        if (rows[row].uses_caches()) {
          access.sectors = columns.sector.subspan(sector, access.count);
          sector += access.count;
          if (access.passes == 0) access.passes = implied_passes(access.sectors);
        }
        if (rows[row].writes_memory()) {
          access.store_bytes = columns.store_bytes.subspan(store, access.count);
          if (rows[row].is_atomic() && access.count > 0) {
            access.atomics = columns.atomic_lanes.subspan(store, access.count);
          }
          store += access.count;
        }
      }
      append_hex(text, access.mask, 8);
      text += ' ';
      text += form.after;
      if (rows[row].is_memory()) append_access(access, text);
      text += '\n';
    }
    if (warp.instructions > 0 && !forms_[columns.instruction[i - 1]].is_exit) {
      ++warps_without_exit_;
    }
  }
  text += "\n#END_TB\n";
}

void AccelSimWriter::append_access(const Access& access, std::string& text) const {
  if (access.mask == 0) {
    text += " 1 0x0 0";
    return;
  }
  LaneAddresses lanes;
  place(access, lanes);
  const int first = std::countr_zero(access.mask);
  const std::uint32_t run = access.mask >> first;
  std::array<std::int64_t, warp_size> deltas;
  std::size_t count = 0;
  std::uint64_t previous = lanes.address[static_cast<std::size_t>(first)];
  for (std::uint32_t rest = access.mask & (access.mask - 1); rest != 0; rest &= rest - 1) {
    const std::uint64_t next = lanes.address[static_cast<std::size_t>(std::countr_zero(rest))];
    deltas[count++] = static_cast<std::int64_t>(next - previous);
    previous = next;
  }
  const std::span<const std::int64_t> steps = std::span(deltas).first(count);
  // Accel-Sim keeps a stride in 32 bits.
  const bool has_stride =
      (run & (run + 1)) == 0 &&
      std::ranges::all_of(steps, [&](std::int64_t step) { return step == steps[0]; }) &&
      (count == 0 || std::in_range<std::int32_t>(steps[0]));
  text += has_stride ? " 1 0x" : " 2 0x";
  append_hex(text, lanes.address[static_cast<std::size_t>(first)]);
  for (const std::int64_t step :
       has_stride ? steps.first(std::min<std::size_t>(count, 1)) : steps) {
    text += ' ';
    append_signed(text, step);
  }
  if (has_stride && count == 0) text += " 0";
}

bool AccelSimWriter::resolves(const Access& access, const LaneAddresses& lanes) const {
  const LaneAddresses global = header_.lanes_in(MemorySpace::global, lanes);
  const LaneAddresses local = header_.lanes_in(MemorySpace::local, lanes);
  const std::uint32_t shared_mask = lanes.mask & ~(global.mask | local.mask);
  const StaticInstruction& instruction = trace_.instructions()[access.row];
  switch (instruction.space) {
    case MemorySpace::shared:
      return shared_mask == access.mask;
    case MemorySpace::local:
      return local.mask == access.mask;
    case MemorySpace::global:
      return global.mask == access.mask;
    default:
      break;
  }
  if (std::max({shared_mask, local.mask, global.mask}) == access.mask) return false;
  std::vector<std::uint64_t> sectors;
  std::vector<std::uint32_t> bytes;
  coalesce(global, instruction.width, sectors, &bytes);
  coalesce_local(local, instruction.width, access.warp_id, sectors, &bytes);
  return std::ranges::equal(sectors, access.sectors) &&
         (access.store_bytes.empty() || std::ranges::equal(bytes, access.store_bytes));
}

void AccelSimWriter::place(const Access& access, LaneAddresses& lanes) const {
  const StaticInstruction& instruction = trace_.instructions()[access.row];
  const bool through_window = forms_[access.row].opcode_is_generic;
  bool found = false;
  std::uint64_t window = 0;
  bool needs_window = false;
  switch (instruction.space) {
    case MemorySpace::shared:
      found = place_shared_lanes(access.mask, instruction.width, access.count, lanes,
                                 trace_.effects()[access.row].shared_access);
      // Starting at the next row of banks, offsets keep their banks.
      window = (header_.shared_window + 127) / 128 * 128;
      needs_window = through_window;
      break;
    case MemorySpace::local:
      found = place_local_lanes(access.mask, instruction.width, access.warp_id, access.sectors,
                                access.store_bytes, lanes);
      window = header_.local_window;
      needs_window = through_window;
      break;
    case MemorySpace::generic:
      if (header_.shared_window != 0 || header_.local_window != 0) {
        found = place_generic_lanes(access.mask, instruction.width, access.warp_id,
                                    {header_.shared_window, header_.local_window}, access.sectors,
                                    access.store_bytes, lanes, access.atomics);
        break;
      }
      [[fallthrough]];
    default:
      found = place_lanes(access.mask, instruction.width, access.sectors, access.store_bytes, lanes,
                          access.atomics, access.passes);
      break;
  }
  if (needs_window) {
    found = found && window != 0;
    for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
      lanes.address[static_cast<std::size_t>(std::countr_zero(rest))] += window;
    }
  }
  if (found && (!through_window || resolves(access, lanes))) return;
  std::string where = "thread block " + std::to_string(access.block) + ", warp " +
                      std::to_string(access.warp_number) + ", PC 0x";
  append_hex(where, instruction.pc, 4);
  throw InputError(
      where + ", " + instruction.opcode + ": no addresses of " +
      std::to_string(std::popcount(access.mask)) + " lanes touch exactly the " +
      std::to_string(access.count) + (instruction.uses_caches() ? " sectors" : " wavefronts") +
      " of this access; misaligned stores, filtered reads of textures, and windows that "
      "begin inside a sector may be like this");
}

}  // namespace warpstack::trace
