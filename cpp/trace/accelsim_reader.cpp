#include "trace/accelsim_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>

#include "common/error.h"

namespace warpstack {
namespace {

/// No line of a trace comes near this; a longer one means that the file is something else.
constexpr std::size_t max_line_bytes = 1 << 16;
/// PCs below this have a slot in the direct-mapped form cache.
constexpr std::uint32_t max_cached_pc = 1 << 24;
/// The first tracer version whose lines end in an immediate.
constexpr std::uint32_t immediate_version = 5;
/// What precedes PC and text in the header lines that list registers.
constexpr std::string_view register_line_key = "warpstack registers of ";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Text as it may stand in a message: short and printable.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) {
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result + (text.size() > 60 ? "...\"" : "\"");
}

/// Splits `key = value`; the key is empty when there is no such form.
std::pair<std::string_view, std::string_view> split_assignment(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return {};
  return {trim(line.substr(0, equals)), trim(line.substr(equals + 1))};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// A PC as trace lines have it: at least four digits.
std::string hex_pc(std::uint32_t pc) {
  std::array<char, 8> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), pc, 16);
  std::string text(digits.data(), end);
  return std::string(4 - std::min<std::size_t>(text.size(), 4), '0') + text;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool is_opcode(std::string_view text) {
  return text.front() >= 'A' && text.front() <= 'Z' && std::ranges::all_of(text, [](char c) {
           return hex_digit(c) >= 0 || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  c == '.' || c == '_';
         });
}

bool is_hex_token(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return hex_digit(c) >= 0; });
}

}  // namespace

AccelSimReader::AccelSimReader(std::string file_name, std::shared_ptr<StorageBudget> budget)
    : file_name_(std::move(file_name)), budget_(std::move(budget)) {
  header_.source = "accelsim";
}

void AccelSimReader::fail(const std::string& what) const {
  throw InputError(file_name_ + ":" + std::to_string(line_number_) + ": " + what);
}

template <typename Call>
void AccelSimReader::located(Call call) const {
  try {
    call();
  } catch (const InputError& error) {
    fail(error.what());
  }
}

void AccelSimReader::feed(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    if (partial_line_.size() + std::min(newline, text.size()) > max_line_bytes) {
      ++line_number_;
      fail("a line is longer than 64 KiB; this is not an Accel-Sim trace");
    }
    if (newline == std::string_view::npos) {
      partial_line_ += text;
      return;
    }
    if (partial_line_.empty()) {
      parse_line(text.substr(0, newline));
    } else {
      partial_line_ += text.substr(0, newline);
      const std::string line = std::exchange(partial_line_, {});
      parse_line(line);
    }
    text.remove_prefix(newline + 1);
  }
}

void AccelSimReader::parse_line(std::string_view line) {
  ++line_number_;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return;
  line.remove_prefix(start);
  switch (line.front()) {
    case '-':
      parse_header_line(line);
      break;
    case '#':
      parse_hash_line(line);
      break;
    case 't':  // thread block = x,y,z
    case 'w':  // warp = n
    case 'i':  // insts = n
      parse_key_line(line);
      break;
    default:
      if (line.starts_with("cluster ")) return;  // thread block clusters: not modelled
      parse_instruction(line);
      break;
  }
}

// --- header -------------------------------------------------------------------------------------

std::uint64_t AccelSimReader::header_number(std::string_view key, std::string_view value) {
  std::string_view digits = value;
  int base = 10;
  if (digits.starts_with("0x")) {
    digits.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    fail("-" + std::string(key) + " = " + quoted(value) + " is not a number");
  }
  return number;
}

Dim3 AccelSimReader::header_dimensions(std::string_view key, std::string_view value) {
  Dim3 dims{};
  std::string_view rest = value;
  bool good = rest.size() >= 2 && rest.front() == '(' && rest.back() == ')';
  if (good) rest = rest.substr(1, rest.size() - 2);
  for (std::size_t i = 0; good && i < dims.size(); ++i) {
    const std::size_t comma = rest.find(',');
    good = (comma == std::string_view::npos) == (i == 2);
    const std::string_view number = trim(rest.substr(0, comma));
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), dims[i]);
    good = good && error == std::errc{} && end == number.data() + number.size();
    if (good && i < 2) rest.remove_prefix(comma + 1);
  }
  if (!good) fail("-" + std::string(key) + " = " + quoted(value) + " is not of the form (x,y,z)");
  return dims;
}

void AccelSimReader::parse_header_line(std::string_view line) {
  if (builder_) fail("a header line " + quoted(line) + " after the first thread block");
  const auto [key, value] = split_assignment(line.substr(1));
  if (key.empty()) fail("the header line " + quoted(line) + " is not of the form -key = value");
  if (!header_lines_.emplace(key, line_number_).second) {
    fail("a second header line -" + std::string(key) + " = ...");
  }
  if (key == "kernel name") {
    if (!is_printable(value)) fail("-kernel name = " + quoted(value) + " is not printable text");
    header_.name = value;
  } else if (key == "kernel id") {
    header_.launch_id = header_number(key, value);
  } else if (key == "grid dim") {
    header_.grid = header_dimensions(key, value);
  } else if (key == "block dim") {
    header_.block = header_dimensions(key, value);
  } else if (key == "shmem") {
    header_.shared_memory_bytes = header_number(key, value);
  } else if (key == "nregs") {
    header_.registers_per_thread = header_number(key, value);
  } else if (key == "binary version") {
    header_.binary_version = header_number(key, value);
  } else if (key == "cuda stream id") {
    header_.stream = header_number(key, value);
  } else if (key == "shmem base_addr") {
    header_.shared_window = header_number(key, value);
  } else if (key == "local mem base_addr") {
    header_.local_window = header_number(key, value);
  } else if (key == "accelsim tracer version") {
    version_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(header_number(key, value.substr(0, value.find('.'))), 1000));
  } else if (key == "enable lineinfo") {
    has_line_info_ = header_number(key, value) != 0;
  } else if (key == "warpstack registers") {
    max_register_ = std::clamp<std::uint64_t>(header_number(key, value), zero_register,
                                              std::numeric_limits<std::uint16_t>::max());
  } else if (key.starts_with(register_line_key)) {
    parse_register_line(key.substr(register_line_key.size()), value);
  }
  located([this] { header_.validate(); });  // fields not read yet have valid defaults
}

void AccelSimReader::parse_register_line(std::string_view form, std::string_view value) {
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) {
    fail("-" + std::string(register_line_key) + quoted(form) + " lists " + quoted(value) +
         ", not destinations / sources");
  }
  const auto registers = [this](std::string_view text) {
    std::vector<std::uint16_t> list;
    Cursor cursor{text.data(), text.data() + text.size()};
    while (cursor.next != cursor.end) {
      const std::uint16_t reg = vector_register(cursor, "listed register");
      if (reg != zero_register) append_register_tuple(list, reg, 1);
      while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
    }
    return list;
  };
  listed_registers_[std::string(form)] = {registers(trim(value.substr(0, slash))),
                                          registers(trim(value.substr(slash + 1)))};
}

void AccelSimReader::start_body() {
  if (builder_) return;
  for (const std::string_view key : {"kernel name", "grid dim", "block dim", "shmem", "nregs"}) {
    if (!header_lines_.contains(key)) {
      fail("the header has no line -" + std::string(key) +
           " = ...; this is not an Accel-Sim trace");
    }
  }
  builder_.emplace(header_, budget_);
}

// --- structure ----------------------------------------------------------------------------------

void AccelSimReader::parse_hash_line(std::string_view line) {
  line = trim(line);
  if (line == "#BEGIN_TB") {
    if (in_block_) fail("#BEGIN_TB before the #END_TB of the previous thread block");
    if (!raw_blocks_.empty()) fail("#BEGIN_TB after ungrouped instructions");
    start_body();
    grouped_ = in_block_ = true;
    in_warp_ = false;
    block_index_ = {~std::uint64_t{0}, 0, 0};
  } else if (line == "#END_TB") {
    if (!in_block_) fail("#END_TB without #BEGIN_TB");
    if (block_index_[0] == ~std::uint64_t{0})
      fail("a thread block without a line thread block = x,y,z");
    end_warp();
    located([this] { builder_->end_block(); });
    in_block_ = false;
  }
}

void AccelSimReader::end_warp() {
  if (!in_warp_) return;
  in_warp_ = false;
  const std::uint64_t found = builder_->open_warp_instructions();
  if (!announced_instructions_) {
    fail("warp " + std::to_string(warp_index_) + " has no line insts = n");
  }
  if (found != *announced_instructions_) {
    fail("warp " + std::to_string(warp_index_) + " of this thread block announces " +
         std::to_string(*announced_instructions_) + " instructions but has " +
         std::to_string(found) + "; the file is cut or edited");
  }
}

std::uint64_t AccelSimReader::linear_block_index() const {
  return block_index_[0] + header_.grid[0] * (block_index_[1] + header_.grid[1] * block_index_[2]);
}

void AccelSimReader::parse_thread_block(std::string_view value) {
  if (block_index_[0] != ~std::uint64_t{0})
    fail("a second line thread block = in one thread block");
  const Dim3 index = header_dimensions("thread block", "(" + std::string(value) + ")");
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] >= header_.grid[i]) {
      fail("thread block = " + std::string(value) + " is outside the grid of (" +
           std::to_string(header_.grid[0]) + "," + std::to_string(header_.grid[1]) + "," +
           std::to_string(header_.grid[2]) + ")");
    }
  }
  block_index_ = index;
  located([&] { builder_->begin_block(linear_block_index()); });
}

void AccelSimReader::parse_key_line(std::string_view line) {
  const auto [key, value] = split_assignment(line);
  if (key != "thread block" && key != "warp" && key != "insts") {
    fail("the line " + quoted(line) + " is no line of an Accel-Sim trace");
  }
  if (!in_block_) fail(std::string(key) + " = outside #BEGIN_TB and #END_TB");
  if (key == "thread block") {
    parse_thread_block(value);
    return;
  }
  const std::uint64_t number = header_number(key, value);
  if (key == "warp") {
    if (block_index_[0] == ~std::uint64_t{0}) fail("warp = before thread block =");
    end_warp();
    warp_index_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(number, 1 << 30));
    located([this] { builder_->begin_warp(warp_index_); });
    in_warp_ = true;
    announced_instructions_.reset();
  } else {
    if (!in_warp_) fail("insts = before warp =");
    if (announced_instructions_)
      fail("a second line insts = for warp " + std::to_string(warp_index_));
    announced_instructions_ = number;
  }
}

// --- instructions -------------------------------------------------------------------------------

std::string_view AccelSimReader::token(Cursor& cursor, const char* field) {
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  const char* begin = cursor.next;
  while (cursor.next != cursor.end && !is_blank(*cursor.next)) ++cursor.next;
  if (begin == cursor.next) {
    fail(std::string("the line ends before its ") + field + "; the file is cut or edited");
  }
  return {begin, static_cast<std::size_t>(cursor.next - begin)};
}

std::uint64_t AccelSimReader::decimal(Cursor& cursor, const char* field) {
  const std::string_view text = token(cursor, field);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(field) + " " + quoted(text) + " is not a decimal number");
  }
  return value;
}

std::int64_t AccelSimReader::signed_decimal(Cursor& cursor, const char* field) {
  const std::string_view text = token(cursor, field);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(field) + " " + quoted(text) + " is not a decimal number");
  }
  return value;
}

std::uint64_t AccelSimReader::hexadecimal(Cursor& cursor, const char* field) {
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
  const std::size_t slot = pc / 8;
  if (slot < form_by_pc_.size() && form_by_pc_[slot] != 0) {
    // The form seen last at this PC nearly always comes again.
    const LineForm& form = forms_[form_by_pc_[slot] - 1];
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
    std::vector<std::uint16_t> list(count);
    for (std::uint16_t& reg : list) reg = vector_register(cursor, field);
    return list;
  };
  const auto destinations = registers("number of destination registers", "destination register");
  const std::string opcode(token(cursor, "opcode"));
  if (!is_opcode(opcode)) fail("opcode " + quoted(opcode) + " is not an opcode");
  const auto sources = registers("number of source registers", "source register");
  const std::uint64_t width = decimal(cursor, "memory width");
  if (width > 256) fail("memory width = " + std::to_string(width) + " is more than 256 bytes");

  const std::string text(begin, cursor.next);
  const auto [entry, is_new] = form_by_text_.try_emplace(std::to_string(pc) + ':' + text,
                                                         static_cast<std::uint32_t>(forms_.size()));
  if (is_new) {
    StaticInstruction instruction = make_static_instruction(
        pc, opcode, destinations, sources, source_line, static_cast<std::uint32_t>(width));
    if (!listed_registers_.empty()) {
      const auto listed = listed_registers_.find(hex_pc(pc) + ' ' + text);
      if (listed != listed_registers_.end()) {
        instruction.destinations = listed->second.destinations;
        instruction.sources = listed->second.sources;
      }
    }
    const bool is_memory = instruction.is_memory();
    const bool is_async_copy = instruction.kind == MemoryKind::async_copy;
    forms_.push_back(
        {pc, text, builder_->intern(std::move(instruction)), width > 0, is_memory, is_async_copy});
  }
  if (pc < max_cached_pc) {
    if (slot >= form_by_pc_.size()) form_by_pc_.resize(std::bit_ceil(slot + 1));
    form_by_pc_[slot] = entry->second + 1;
  }
  return forms_[entry->second];
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

void AccelSimReader::parse_instruction(std::string_view line) {
  if (header_lines_.empty()) {
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
  const std::string_view mask_text = token(cursor, "active mask");
  Cursor mask_cursor{mask_text.data(), mask_text.data() + mask_text.size()};
  const std::uint64_t mask = hexadecimal(mask_cursor, "active mask");
  if (mask_text.size() != 8) fail("active mask " + quoted(mask_text) + " is not eight digits long");

  const LineForm& form = line_form(cursor, static_cast<std::uint32_t>(pc), source_line);
  LaneAddresses lanes;
  lanes.mask = static_cast<std::uint32_t>(mask);
  if (form.has_addresses) parse_addresses(cursor, lanes);
  if (version_ >= immediate_version) signed_decimal(cursor, "immediate");
  while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
  // Versions after 5 append further operands.
  if (cursor.next != cursor.end && version_ <= immediate_version) {
    fail("the line has more than its operands: " +
         quoted({cursor.next, static_cast<std::size_t>(cursor.end - cursor.next)}));
  }

  const LaneAddresses* access = form.is_memory && form.has_addresses ? &lanes : nullptr;
  if (raw == nullptr) {
    builder_->append(form.row, lanes.mask, access);
    return;
  }
  if (form.is_async_copy) {
    // The raw trace has LDGSTS twice: with its shared address, then with its global one.
    raw->expects_global_half = !raw->expects_global_half;
    if (raw->expects_global_half) return;
  }
  raw->last_row = form.row;
  builder_->append_to(raw->columns, linear_block_index() * header_.warps_per_block() + warp_index_,
                      form.row, lanes.mask, access);
}

void AccelSimReader::finish_raw() {
  for (auto& [linear, warps] : raw_blocks_) {
    builder_->begin_block(linear);
    for (auto& [warp, raw] : warps) {
      // A raw trace has no end mark but the EXIT of each warp.
      if (raw.expects_global_half ||
          !builder_->instruction(raw.last_row).opcode.starts_with("EXIT")) {
        fail("the file ends before warp " + std::to_string(warp) + " of thread block " +
             std::to_string(linear) + " reaches its EXIT; it is cut");
      }
      builder_->begin_warp(warp);
      builder_->append_columns(raw.columns.view());
      raw.columns = ColumnBuffers{};
    }
    builder_->end_block();
  }
  raw_blocks_.clear();
}

KernelTrace AccelSimReader::finish() {
  if (!partial_line_.empty()) parse_line(std::exchange(partial_line_, {}));
  if (in_block_) fail("the file ends inside a thread block; it is cut");
  if (!builder_) {
    throw InputError(file_name_ + ": the file has no instruction" +
                     (line_number_ == 0 ? "; it is empty" : "; it is cut or not a trace"));
  }
  finish_raw();
  KernelTrace trace = builder_->finish();
  builder_.reset();
  return trace;
}

}  // namespace warpstack
