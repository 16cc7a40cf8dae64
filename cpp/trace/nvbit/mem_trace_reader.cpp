#include "trace/nvbit/mem_trace_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/error.h"

namespace warpstack::trace {
namespace {

/// No line of a log is nearly as long; a longer one means that the file is something else.
constexpr std::size_t max_line_bytes = 1 << 16;
constexpr std::size_t max_launches = 1 << 20;
/// More opcodes than any kernel has; they are kept in memory.
constexpr std::size_t max_opcodes = 1 << 16;
constexpr std::string_view prefix = "MEMTRACE: CTX ";

/// Text as it may stand in a message: short and printable.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > 60 ? "...\"" : "\"");
}

/// What follows `key` in the line up to the next " - " or the end; nothing without the key.
std::optional<std::string_view> field_after(std::string_view line, std::string_view key) {
  const std::size_t begin = line.find(key);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(begin + key.size());
  return rest.substr(0, rest.find(" - "));
}

bool is_opcode(std::string_view text) {
  return !text.empty() && text.size() <= 200 && text.front() >= 'A' && text.front() <= 'Z' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_';
         });
}

}  // namespace

MemTraceReader::MemTraceReader(std::string file_name, std::shared_ptr<StorageBudget> budget)
    : file_name_(std::move(file_name)), budget_(std::move(budget)) {}

void MemTraceReader::fail(const std::string& what) const {
  throw InputError(file_name_ + ":" + std::to_string(line_number_) + ": " + what);
}

void MemTraceReader::feed(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    if (partial_line_.size() + std::min(newline, text.size()) > max_line_bytes) {
      ++line_number_;
      fail("a line is longer than 64 KiB; this is not a log of NVBit's mem_trace");
    }
    if (newline == std::string_view::npos) {
      partial_line_ += text;
      return;
    }
    partial_line_ += text.substr(0, newline);
    parse_line(std::exchange(partial_line_, {}));
    text.remove_prefix(newline + 1);
  }
}

std::uint64_t MemTraceReader::number(std::string_view text, const char* field) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(field) + " " + quoted(text) + " is not a number; the log is cut or edited");
  }
  return value;
}

Dim3 MemTraceReader::dimensions(std::string_view text, const char* field) const {
  Dim3 dims{};
  std::string_view rest = text;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t comma = rest.find(',');
    if ((comma == std::string_view::npos) != (i == 2)) {
      fail(std::string(field) + " " + quoted(text) +
           " is not of the form x,y,z; the log is cut or edited");
    }
    dims[i] = number(rest.substr(0, comma), field);
    if (i < 2) rest.remove_prefix(comma + 1);
  }
  return dims;
}

void MemTraceReader::parse_line(std::string_view line) {
  ++line_number_;
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  const std::size_t begin = line.find(prefix);
  if (begin == std::string_view::npos) {
    // Versions before 1.4 mark their lines by nothing.
    if (line.starts_with("Kernel ") && line.find(" - grid size ") != std::string_view::npos) {
      parse_launch(line);
    } else if (line.starts_with("CTA ") && line.find(" - warp ") != std::string_view::npos) {
      if (launches_.empty()) fail("an access before the line Kernel ... of its launch");
      parse_access(line, *launches_.back());
    }
    return;
  }
  line.remove_prefix(begin);
  if (line.find(" - LAUNCH ") != std::string_view::npos) {
    parse_launch(line);
  } else if (const auto id = field_after(line, " - grid_launch_id ")) {
    parse_access(line, launch_of(number(*id, "grid_launch_id")));
  } else if (line.find(", Inspecting CUfunction ") == std::string_view::npos) {
    fail("the line " + quoted(line) +
         " is neither a launch nor an access; the log is cut or edited");
  }
}

void MemTraceReader::parse_launch(std::string_view line) {
  const bool is_marked = line.starts_with(prefix);
  KernelHeader header;
  header.source = "mem_trace";
  const std::string_view name_key = is_marked ? " - Kernel name " : "Kernel ";
  const std::string_view name_end = is_marked ? " - grid launch id " : " - grid size ";
  const std::size_t begin = line.find(name_key);
  const std::size_t end = line.rfind(name_end);
  if (begin == std::string_view::npos || end == std::string_view::npos ||
      end < begin + name_key.size()) {
    fail("the launch has no " + std::string(is_marked ? "Kernel name and grid launch id" : "name") +
         "; the log is cut or edited");
  }
  const std::string_view name = line.substr(begin + name_key.size(), end - begin - name_key.size());
  if (!std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; })) {
    fail("Kernel name " + quoted(name) + " is not printable text");
  }
  header.name = name;
  const std::string_view rest = line.substr(end);
  const auto field = [&](std::string_view key, const char* what) {
    const auto text = field_after(rest, key);
    if (!text) {
      fail(std::string("the launch has no ") + what +
           "; the log is cut, or is of a version that does not print it");
    }
    return *text;
  };
  header.grid = dimensions(field(" - grid size ", "grid size"), "grid size");
  header.block = dimensions(field(" - block size ", "block size"), "block size");
  header.registers_per_thread = number(field(" - nregs ", "nregs"), "nregs");
  header.shared_memory_bytes = number(field(" - shmem ", "shmem"), "shmem");
  const std::string_view stream = field(" - cuda stream id ", "cuda stream id");
  // It is a pointer as a signed number.
  const bool is_negative = stream.starts_with('-');
  header.stream = number(stream.substr(is_negative ? 1 : 0), "cuda stream id");
  if (is_negative) header.stream = ~header.stream + 1;
  header.launch_id = launches_.size() + 1;
  if (launches_.size() == max_launches) {
    fail("more than " + std::to_string(max_launches) + " launches; trace fewer");
  }
  if (is_marked) {
    const std::uint64_t id = number(field(" - grid launch id ", "id"), "grid launch id");
    if (!launch_by_id_.emplace(id, launches_.size()).second) {
      fail("a second launch with grid launch id " + std::to_string(id) +
           "; give the log of one run");
    }
    if (!id_shift_) id_shift_ = id == 1 ? 1 : 0;
  }
  try {
    launches_.push_back(std::make_unique<Launch>(std::move(header), budget_));
  } catch (const InputError& error) {
    fail(error.what());
  }
}

MemTraceReader::Launch& MemTraceReader::launch_of(std::uint64_t id) {
  const auto found = launch_by_id_.find(id + id_shift_.value_or(0));
  if (found == launch_by_id_.end()) {
    fail("no line LAUNCH with grid launch id " + std::to_string(id + id_shift_.value_or(0)) +
         " before this access; keep all lines of the tool");
  }
  return *launches_[found->second];
}

std::uint32_t MemTraceReader::row_of(Launch& launch, std::string_view opcode) {
  const auto known = launch.rows.find(opcode);
  if (known != launch.rows.end()) return known->second;
  if (!is_opcode(opcode)) fail("opcode " + quoted(opcode) + " is not an opcode");
  if (launch.rows.size() == max_opcodes) {
    fail("more than " + std::to_string(max_opcodes) + " different opcodes; no kernel has so many");
  }
  const auto pc = static_cast<std::uint32_t>(16 * launch.rows.size());
  const std::uint32_t row =
      launch.builder.intern(make_static_instruction(pc, std::string(opcode), {}, {}, 0, 4));
  launch.rows.emplace(opcode, row);
  return row;
}

void MemTraceReader::parse_access(std::string_view line, Launch& launch) {
  const KernelHeader& header = launch.builder.header();
  const std::size_t begin = line.find("CTA ");
  if (begin == std::string_view::npos) fail("the access has no CTA; the log is cut or edited");
  line.remove_prefix(begin + 4);
  const auto next = [&](std::string_view end, const char* what) {
    const std::size_t place = line.find(end);
    if (place == std::string_view::npos) {
      fail(std::string("the line ends before its ") + what + "; the log is cut or edited");
    }
    const std::string_view text = line.substr(0, place);
    line.remove_prefix(place + end.size());
    return text;
  };
  const std::string_view cta = next(" - warp ", "warp");
  const Dim3 index = dimensions(cta, "CTA");
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] >= header.grid[i]) {
      fail("CTA " + std::string(cta) + " is outside the grid of (" +
           std::to_string(header.grid[0]) + "," + std::to_string(header.grid[1]) + "," +
           std::to_string(header.grid[2]) + ")");
    }
  }
  const std::uint64_t slot = number(next(" - ", "opcode"), "warp");
  const std::string_view opcode = next(" - ", "addresses");
  LaneAddresses lanes;
  for (std::size_t lane = 0; lane < warp_size; ++lane) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view text = line.substr(0, blank);
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    if (text.empty()) {
      fail("the access has " + std::to_string(lane) + " addresses, not " +
           std::to_string(warp_size) + "; the log is cut or edited");
    }
    // All versions print 16 digits; fewer are left of a cut line.
    if (text.size() != 18 || !text.starts_with("0x") ||
        std::from_chars(text.data() + 2, end, value, 16).ptr != end) {
      fail("address " + quoted(text) +
           " is not 0x and 16 hexadecimal digits; the log is cut or edited");
    }
    if (value > max_address) fail("address " + quoted(text) + " is beyond the address space");
    lanes.address[lane] = value;
    if (value != 0) lanes.mask |= std::uint32_t{1} << lane;
    line.remove_prefix(std::min(blank + 1, line.size()));
  }
  if (!line.empty()) {
    fail("the access has more than " + std::to_string(warp_size) + " addresses: " + quoted(line));
  }
  const std::uint32_t row = row_of(launch, opcode);
  const StaticInstruction& instruction = launch.builder.instruction(row);
  // Offset 0 of shared memory is an address like others.
  if (lanes.mask == 0 && instruction.space == MemorySpace::shared) lanes.mask = ~std::uint32_t{0};

  const std::uint64_t linear = index[0] + header.grid[0] * (index[1] + header.grid[1] * index[2]);
  auto& warps = launch.blocks[linear];
  const auto [entry, is_new] = warps.try_emplace(slot);
  Warp& warp = entry->second;
  if (is_new) {
    if (warps.size() > header.warps_per_block()) {
      fail("CTA " + std::string(cta) + " has lines of more than the " +
           std::to_string(header.warps_per_block()) + " warps of its block size");
    }
    warp.number = warps.size() - 1;
  }
  if (instruction.kind == MemoryKind::async_copy) {
    // LDGSTS is there twice: with its shared address, then with its global one.
    warp.expects_global_half = !warp.expects_global_half;
    if (warp.expects_global_half) return;
  }
  const std::uint64_t before = bytes_of(warp.columns.counts());
  launch.builder.append_to(warp.columns, linear * header.warps_per_block() + warp.number, row,
                           lanes.mask, instruction.is_memory() ? &lanes : nullptr);
  bytes_ += bytes_of(warp.columns.counts()) - before;
  if (bytes_ > budget_->block_limit()) {
    fail("this log, whose lines are grouped by thread block in memory, takes more than " +
         std::to_string(budget_->block_limit() >> 20) +
         " MiB of memory, the limit for columns that must be in memory as a whole; raise "
         "memory_limit_mib (--memory-limit)");
  }
}

std::vector<KernelTrace> MemTraceReader::finish() {
  if (!partial_line_.empty()) parse_line(std::exchange(partial_line_, {}));
  if (launches_.empty()) {
    throw InputError(file_name_ + ": the log has no launch" +
                     (line_number_ == 0 ? "; it is empty" : "; it is not of NVBit's mem_trace"));
  }
  std::vector<KernelTrace> traces;
  for (std::unique_ptr<Launch>& launch : launches_) {
    for (auto& [linear, warps] : launch->blocks) {
      launch->builder.begin_block(linear);
      std::uint32_t number = 0;
      for (auto& [slot, warp] : warps) {
        if (warp.expects_global_half) {
          throw InputError(file_name_ + ": the log ends between the two lines of an LDGSTS of " +
                           "thread block " + std::to_string(linear) + "; it is cut");
        }
        launch->builder.begin_warp(number++);
        launch->builder.append_columns(warp.columns.view());
        warp.columns = ColumnBuffers{};
      }
      launch->builder.end_block();
    }
    if (launch->blocks.empty()) {
      ++num_without_access_;
    } else {
      traces.push_back(launch->builder.finish());
    }
    launch.reset();
  }
  launches_.clear();
  if (traces.empty()) {
    throw InputError(file_name_ + ": none of the " + std::to_string(num_without_access_) +
                     " launches accesses memory; trace without INSTR_BEGIN and INSTR_END");
  }
  return traces;
}

}  // namespace warpstack::trace
