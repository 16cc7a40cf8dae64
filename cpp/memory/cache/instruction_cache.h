#pragma once

#include <cstdint>
#include <vector>

#include "gpu/gpu.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// What an SM has for instructions, in lines of code.
struct CodeStorage {
  std::uint32_t lines = 0;           ///< that its instruction cache holds; 0: all of a kernel's
  std::uint32_t lines_at_start = 0;  ///< that are there when the kernel starts, the first ones
  std::int64_t fetch_cycles = 0;     ///< of a line that is not there

  static CodeStorage of(const gpu::Gpu& gpu);
};

/// The code of a kernel in lines: those of which the trace has an instruction, by address. An
/// instruction of PTX counts as one of machine code, 16 bytes.
class CodeLines {
 public:
  static constexpr std::uint32_t line_bytes = 128;

  CodeLines(const trace::KernelTrace& trace, const CodeStorage& storage);

  /// Whether nobody ever waits for code, so that nothing else here needs to be asked.
  [[nodiscard]] bool is_all_there() const { return line_of_row_.empty(); }
  /// The line of a row of the instruction table that somebody executes.
  [[nodiscard]] std::uint32_t of_row(std::uint32_t row) const { return line_of_row_[row]; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] const CodeStorage& storage() const { return storage_; }

 private:
  CodeStorage storage_;
  std::vector<std::uint32_t> line_of_row_;  ///< empty where all of the code is there
  std::uint32_t size_ = 0;
};

/// The instruction cache of an SM: least recently used lines make room. It fetches lines one after
/// the other: the line that a warp comes to, and the next one, so that code without branches is
/// fetched while it is executed.
class InstructionCache {
 public:
  explicit InstructionCache(const CodeLines& code);

  /// A warp comes to a line. Returns the cycle from which on its instructions are there.
  std::int64_t come_to(std::uint32_t line, std::int64_t now);
  /// Lines fetched so far.
  [[nodiscard]] std::uint64_t fetches() const { return fetches_; }

 private:
  [[nodiscard]] bool holds(std::uint32_t line) const { return next_[line] != nobody; }
  void insert(std::uint32_t line);
  void remove(std::uint32_t line);
  void fetch(std::uint32_t line, std::int64_t now);

  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  std::uint32_t capacity_;
  std::int64_t fetch_cycles_;
  // A ring of the lines that are there, by age; the last entry stands between newest and oldest.
  std::vector<std::uint32_t> next_;  ///< the one used before; nobody: not there
  std::vector<std::uint32_t> previous_;
  std::vector<std::int64_t> there_;  ///< since when
  std::uint32_t count_ = 0;
  std::int64_t free_ = 0;  ///< no fetch is under way
  std::uint64_t fetches_ = 0;
};

/// How a warp alone goes through code that is not all there.
struct CodeWalk {
  double share = 0;         ///< of the lines that it comes to, fetched when the kernel starts
  double share_after = 0;   ///< the same of a warp that comes after it
  double fetch_cycles = 0;  ///< of an instruction in such lines, at least
};

/// The walk of the longest warp of a kernel, the first of several.
CodeWalk longest_walk(const trace::KernelTrace& trace, const CodeStorage& storage);

}  // namespace warpstack::memory
