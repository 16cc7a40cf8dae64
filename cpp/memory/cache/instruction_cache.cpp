#include "memory/cache/instruction_cache.h"

#include <algorithm>
#include <cstddef>

namespace warpstack::memory {

CodeStorage CodeStorage::of(const gpu::Gpu& gpu) {
  if (gpu.instruction_cache_kib == 0) return {};
  static constexpr double most = 1 << 30;  // more than a kernel can have
  const auto lines_of = [](double kib) {
    return static_cast<std::uint32_t>(std::clamp(kib * 1024 / CodeLines::line_bytes, 1.0, most));
  };
  CodeStorage storage;
  storage.lines = lines_of(gpu.instruction_cache_kib);
  storage.lines_at_start = gpu.instruction_preload_kib == 0
                               ? storage.lines
                               : std::min(lines_of(gpu.instruction_preload_kib), storage.lines);
  storage.fetch_cycles = gpu.instruction_fetch_cycles;
  return storage;
}

CodeLines::CodeLines(const trace::KernelTrace& trace, const CodeStorage& storage)
    : storage_(storage) {
  if (storage.lines == 0 || storage.fetch_cycles == 0) return;
  std::vector<std::uint32_t> lines;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    if (trace.row_counts()[row].issued == 0) continue;
    lines.push_back(trace.instructions()[row].pc / line_bytes);
  }
  std::ranges::sort(lines);
  lines.erase(std::ranges::unique(lines).begin(), lines.end());
  size_ = static_cast<std::uint32_t>(lines.size());
  if (size_ <= storage.lines_at_start) return;
  for (const trace::StaticInstruction& instruction : trace.instructions()) {
    const auto line = std::ranges::lower_bound(lines, instruction.pc / line_bytes);
    line_of_row_.push_back(static_cast<std::uint32_t>(line - lines.begin()));
  }
}

InstructionCache::InstructionCache(const CodeLines& code)
    : capacity_(code.storage().lines),
      fetch_cycles_(code.storage().fetch_cycles),
      next_(std::size_t{code.size()} + 1, nobody),
      previous_(std::size_t{code.size()} + 1, nobody),
      there_(code.size()) {
  next_.back() = previous_.back() = code.size();
  const std::uint32_t at_start = std::min(code.storage().lines_at_start, code.size());
  for (std::uint32_t line = 0; line < at_start; ++line) insert(line);
}

void InstructionCache::insert(std::uint32_t line) {
  const auto ring = static_cast<std::uint32_t>(there_.size());
  next_[line] = next_[ring];
  previous_[line] = ring;
  previous_[next_[ring]] = line;
  next_[ring] = line;
  ++count_;
}

void InstructionCache::remove(std::uint32_t line) {
  next_[previous_[line]] = next_[line];
  previous_[next_[line]] = previous_[line];
  next_[line] = nobody;
  --count_;
}

void InstructionCache::fetch(std::uint32_t line, std::int64_t now) {
  if (count_ == capacity_) remove(previous_.back());
  insert(line);
  free_ = std::max(free_, now) + fetch_cycles_;
  there_[line] = free_;
  ++fetches_;
}

std::int64_t InstructionCache::come_to(std::uint32_t line, std::int64_t now) {
  if (holds(line)) {
    remove(line);
    insert(line);
  } else {
    fetch(line, now);
  }
  const std::uint32_t ahead = line + 1;
  if (ahead < there_.size() && !holds(ahead)) fetch(ahead, now);
  return there_[line];
}

CodeWalk longest_walk(const trace::KernelTrace& trace, const CodeStorage& storage) {
  const CodeLines code(trace, storage);
  if (code.is_all_there()) return {};
  trace::WarpPosition longest;
  std::uint64_t most = 0;
  for (std::uint32_t block = 0; block < trace.blocks().size(); ++block) {
    const auto warps = trace.blocks().warps(block);
    for (std::uint32_t warp = 0; warp < warps.size(); ++warp) {
      if (warps[warp].instructions <= most) continue;
      most = warps[warp].instructions;
      longest = {block, warp};
    }
  }
  if (most == 0) return {};
  std::vector<std::byte> scratch;
  const trace::ColumnView warp = trace.warp(longest, scratch);
  InstructionCache cache(code);
  std::uint64_t visits = 0;
  const auto walk = [&] {
    const std::uint64_t before = cache.fetches();
    visits = 0;
    std::uint32_t last = code.size();
    for (const std::uint32_t row : warp.instruction) {
      const std::uint32_t line = code.of_row(row);
      if (line == last) continue;
      cache.come_to(last = line, 0);
      ++visits;
    }
    const auto fetched = static_cast<double>(cache.fetches() - before);
    return std::min(fetched / static_cast<double>(visits), 1.0);
  };
  CodeWalk result;
  result.share = walk();
  result.share_after = walk();
  result.fetch_cycles = static_cast<double>(storage.fetch_cycles) * static_cast<double>(visits) /
                        static_cast<double>(most);
  return result;
}

}  // namespace warpstack::memory
