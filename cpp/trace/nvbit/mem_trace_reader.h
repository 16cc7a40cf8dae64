#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

/// Reads a log of NVBit's tool mem_trace from text that arrives in pieces: the launches, and the
/// memory instructions of their warps with 32 addresses each. The other instructions, registers and
/// PCs are not in it: each opcode counts as one instruction. Lanes with the address 0 count as
/// inactive. Every error names file and line. Lines of the traced program in between are passed
/// over.
///
/// Versions: with `grid_launch_id` in each line (since NVBit 1.4; those that number launches after
/// they have counted them begin with 1), and before, where lines belong to the last launch.
class MemTraceReader {
 public:
  MemTraceReader(std::string file_name, std::shared_ptr<StorageBudget> budget);

  /// Parses the next piece of the file. Pieces may end anywhere.
  void feed(std::string_view text);
  /// Declares the end of the file and returns the launches that access memory, numbered from 1 in
  /// the order of the log.
  std::vector<KernelTrace> finish();

  /// Launches without a memory access, which are not returned.
  [[nodiscard]] std::uint64_t num_without_access() const { return num_without_access_; }

 private:
  struct Warp {
    std::uint64_t number = 0;  ///< in the order of the first lines
    ColumnBuffers columns;
    bool expects_global_half = false;  ///< the shared-memory half of an LDGSTS has just been seen
  };

  struct Launch {
    Launch(KernelHeader header, const std::shared_ptr<StorageBudget>& budget)
        : builder(std::move(header), budget) {}
    TraceBuilder builder;
    std::map<std::string, std::uint32_t, std::less<>> rows;  ///< by opcode
    /// By linear index of the thread block, then by slot of the SM.
    std::map<std::uint64_t, std::map<std::uint64_t, Warp>> blocks;
  };

  void parse_line(std::string_view line);
  void parse_launch(std::string_view line);
  void parse_access(std::string_view line, Launch& launch);
  Launch& launch_of(std::uint64_t id);
  std::uint32_t row_of(Launch& launch, std::string_view opcode);
  std::uint64_t number(std::string_view text, const char* field) const;
  Dim3 dimensions(std::string_view text, const char* field) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string file_name_;
  std::shared_ptr<StorageBudget> budget_;
  std::string partial_line_;
  std::uint64_t line_number_ = 0;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::map<std::uint64_t, std::size_t> launch_by_id_;
  /// How much the ids of launches are above those of their accesses.
  std::optional<std::uint64_t> id_shift_;
  std::uint64_t bytes_ = 0;  ///< of all columns
  std::uint64_t num_without_access_ = 0;
};

}  // namespace warpstack::trace
