#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/columns/kernel_trace.h"
#include "trace/columns/lane_placement.h"

namespace warpstack::trace {

/// Writes one kernel as an Accel-Sim trace (tracer version 4, grouped by thread block), a piece at
/// a time. Read back by AccelSimReader, it gives the stages the same inputs.
///
/// Opcodes that are not SASS become SASS names (sass_opcode()). Each instruction names at most one
/// destination, as Accel-Sim demands. If the tuples that these names stand for are not the
/// registers of the instruction, a header line that only AccelSimReader reads lists them.
class AccelSimWriter {
 public:
  /// `binary_version` is written to the header and determines the names of PTX operations; 0: that
  /// of the trace, or 80 if it has none. `stream` is written, too; none: that of the trace. `trace`
  /// must outlive the writer. Throws InputError for instructions that cannot be written.
  AccelSimWriter(const KernelTrace& trace, std::uint64_t binary_version,
                 const std::optional<std::uint64_t>& stream = {},
                 const InterruptCheck& interrupt = {});

  /// Everything before the first thread block.
  [[nodiscard]] std::string header() const;
  /// The thread blocks `first` to `last` - 1. Throws InputError for an access without lane
  /// addresses.
  [[nodiscard]] std::string blocks(std::size_t first, std::size_t last);
  /// Warps written so far whose last instruction is not an EXIT: Accel-Sim never sees them end.
  [[nodiscard]] std::uint64_t warps_without_exit() const { return warps_without_exit_; }

 private:
  /// The text of a static instruction before and after the mask.
  struct Form {
    std::string before;
    std::string after;
    bool is_exit = false;
    bool opcode_is_generic = false;
  };
  struct Names {
    std::vector<std::uint16_t> destinations;
    std::vector<std::uint16_t> sources;
    bool exact = false;
  };
  struct Access {
    std::uint64_t block = 0;
    std::uint32_t warp_number = 0;
    std::uint64_t warp_id = 0;
    std::uint32_t row = 0;
    std::uint32_t mask = 0;
    std::uint32_t count = 0;
    std::span<const std::uint64_t> sectors;
    std::span<const std::uint32_t> store_bytes;
    std::span<const AtomicLanes> atomics;
    std::uint32_t passes = 0;  ///< over the banks of L1
  };

  void find_returns(const InterruptCheck& interrupt);
  void make_forms();
  void choose_windows();
  [[nodiscard]] Names name_registers(const std::string& opcode,
                                     const StaticInstruction& instruction) const;
  void append_block(std::size_t block, std::string& text);
  void append_access(const Access& access, std::string& text) const;
  void place(const Access& access, LaneAddresses& lanes) const;
  [[nodiscard]] bool resolves(const Access& access, const LaneAddresses& lanes) const;

  const KernelTrace& trace_;
  KernelHeader header_;
  bool has_line_info_ = false;
  std::vector<bool> returns_from_function_;  ///< by row
  std::vector<Form> forms_;                  ///< by row
  std::vector<std::string> register_lines_;
  std::vector<std::byte> scratch_;
  std::uint64_t warps_without_exit_ = 0;
};

}  // namespace warpstack::trace
