#include "trace/accelsim/reader.h"

#include <algorithm>
#include <utility>

#include "trace/accelsim/block_team.h"
#include "trace/accelsim/text.h"

namespace warpstack::trace {
namespace {

/// No line of a trace is nearly as long; a longer one means that the file is something else.
constexpr std::size_t max_line_bytes = 1 << 16;
/// Traces have few blank lines and comments in a row; reading a file of nothing else stops here.
constexpr std::uint64_t max_idle_lines = 1 << 20;
/// How often a growing thread block is compared with its limit, in lines.
constexpr std::uint64_t lines_per_check = 4096;

}  // namespace

AccelSimReader::AccelSimReader(std::string file_name, std::shared_ptr<StorageBudget> budget,
                               unsigned num_threads)
    : file_name_(std::move(file_name)), budget_(std::move(budget)), num_threads_(num_threads) {
  header_.source = "accelsim";
}

AccelSimReader::~AccelSimReader() = default;

void AccelSimReader::fail(const std::string& what) const {
  throw InputError(file_name_ + ":" + std::to_string(line_number_) + ": " + what);
}

void AccelSimReader::feed_serially(std::string_view text) {
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

void AccelSimReader::count_idle_line() {
  if (++idle_lines_ <= max_idle_lines) return;
  fail(std::to_string(max_idle_lines) +
       " lines in a row without an instruction; this is not an Accel-Sim trace");
}

void AccelSimReader::check_memory() {
  const auto check = [this](std::uint64_t bytes, const char* what) {
    if (bytes <= budget_->block_limit()) return;
    fail(std::string(what) + " takes more than " + std::to_string(budget_->block_limit() >> 20) +
         " MiB of memory, the limit for columns that must be in memory as a whole; raise "
         "memory_limit_mib (--memory-limit)");
  };
  if (raw_bytes_ > 0) check(raw_bytes_, "a raw trace, which is grouped by thread block in memory,");
  if (in_block_) check(open_block_bytes(), "this thread block");
}

void AccelSimReader::parse_line(std::string_view line) {
  if (++line_number_ % lines_per_check == 0) check_memory();
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) {
    count_idle_line();
    return;
  }
  line.remove_prefix(start);
  switch (line.front()) {
    case '-':
      parse_header_line(line);
      break;
    case '#':
      count_idle_line();
      parse_hash_line(line);
      break;
    case 't':  // thread block = x,y,z
    case 'w':  // warp = n
    case 'i':  // insts = n
      parse_key_line(line);
      break;
    default:
      if (line.starts_with("cluster ")) {  // thread block clusters: not modelled
        count_idle_line();
        return;
      }
      idle_lines_ = 0;
      parse_instruction(line);
      break;
  }
}

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
    located([this] { close_block(); });
    in_block_ = false;
  }
}

void AccelSimReader::end_warp() {
  if (!in_warp_) return;
  in_warp_ = false;
  const std::uint64_t found = open_warp_instructions();
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
  idle_lines_ = 0;
  located([&] { open_block(linear_block_index()); });
}

void AccelSimReader::parse_key_line(std::string_view line) {
  const auto [key, value] = split_assignment(line);
  if (key != "thread block" && key != "warp" && key != "insts") {
    fail("the line " + quoted(line) + " is not a line of an Accel-Sim trace");
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
    located([this] { open_warp(warp_index_); });
    in_warp_ = true;
    announced_instructions_.reset();
  } else {
    if (!in_warp_) fail("insts = before warp =");
    if (announced_instructions_)
      fail("a second line insts = for warp " + std::to_string(warp_index_));
    announced_instructions_ = number;
  }
}

void AccelSimReader::finish_raw() {
  for (auto& [linear, warps] : raw_blocks_) {
    builder_->begin_block(linear);
    for (auto& [warp, raw] : warps) {
      // A raw trace has no end mark except the EXIT of each warp.
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
  raw_bytes_ = 0;
}

KernelTrace AccelSimReader::finish() {
  if (team_) team_->finish();
  if (!held_.empty()) feed_serially(std::exchange(held_, {}));
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

}  // namespace warpstack::trace
