#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/system/memory_system.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// What an instruction did with one line of L1, in a recorded order.
struct RecordedLine {
  enum class Kind : std::uint8_t { load, store, atomic };

  std::uint64_t line;  ///< of L1
  std::uint32_t time;  ///< on the reference machine, modulo 2^32; only in the timed order
  std::uint32_t access;
  std::uint32_t bytes;  ///< position of the byte masks of a write; 0: a load
  SectorMask mask;
  Kind kind;
  std::uint16_t sm;  ///< counted among the SMs that have blocks
};

/// A warp instruction of a recorded order.
struct RecordedAccess {
  std::uint32_t row;
  std::uint32_t warp;  ///< its number in the launch
  std::uint32_t sent;  ///< when its last line was sent; see RecordedLine::time
  bool is_awaited;     ///< its warp waits for its data
  bool ends_wait;      ///< after it, its warp waits for all data that it has asked for
  bool is_repeat;      ///< its warp went back to it; see InstructionCounters::repeats
};

/// The order in which all SMs accessed their L1 caches in a launch on one GPU, and the profile
/// there. The order itself does not depend on hits, so it can be replayed on other caches
/// (family_replay.h).
struct OrderRecording {
  bool is_timed = false;
  std::size_t num_sms = 0;               ///< SMs that have blocks
  std::vector<RecordedLine> lines;       ///< of all SMs, in the order in which L2 gets them
  std::vector<RecordedAccess> accesses;  ///< SM by SM, in order
  std::vector<ByteMasks> bytes;          ///< the first entry is empty
  std::vector<double> atomic_turns;      ///< of L2's slices; see MemoryProfile::slice_turns
  MemoryProfile reference;               ///< on the GPU of the recording
};

/// Notes the accesses of one SM.
class SmRecorder {
 public:
  SmRecorder(const std::vector<std::uint32_t>& first_warp_of_block, std::size_t l2_slices)
      : first_warp_(&first_warp_of_block), plain_turns_(l2_slices) {}

  /// Notes that the running access touches a line in a turn of the SM; turns come in order.
  void line(std::uint64_t turn, std::uint64_t line, SectorMask mask, RecordedLine::Kind kind,
            std::uint64_t time, const ByteMasks* bytes) {
    std::uint32_t position = 0;
    if (bytes != nullptr) {
      position = static_cast<std::uint32_t>(bytes_.size());
      bytes_.push_back(*bytes);
    }
    lines_.push_back({line, static_cast<std::uint32_t>(time),
                      static_cast<std::uint32_t>(accesses_.size()), position, mask, kind, 0});
    turns_.push_back(turn);
  }
  void end_access(std::uint32_t row, trace::WarpPosition warp, std::uint64_t sent, bool is_awaited,
                  bool ends_wait, bool is_repeat) {
    accesses_.push_back({row, (*first_warp_)[warp.block] + warp.warp,
                         static_cast<std::uint32_t>(sent), is_awaited, ends_wait, is_repeat});
  }
  /// Counts a request, other than an atomic, to a slice of L2.
  void ask(std::uint32_t slice, double turns) { plain_turns_[slice] += turns; }

 private:
  friend class OrderRecorder;

  const std::vector<std::uint32_t>* first_warp_;
  std::vector<RecordedLine> lines_;
  std::vector<std::uint64_t> turns_;  ///< of the lines
  std::vector<RecordedAccess> accesses_;
  std::vector<ByteMasks> bytes_ = std::vector<ByteMasks>(1);
  std::vector<double> plain_turns_;
};

/// Notes the accesses of a launch.
class OrderRecorder {
 public:
  OrderRecorder(const trace::KernelTrace& trace, std::size_t l2_slices);

  /// The recorder of an SM; valid until take().
  SmRecorder& of_sm(std::size_t sm);
  /// All that was noted, in one order: turn by turn, and SM by SM in a turn.
  OrderRecording take(bool is_timed, MemoryProfile reference);

 private:
  std::vector<std::uint32_t> first_warp_of_block_;
  std::size_t l2_slices_;
  std::vector<std::unique_ptr<SmRecorder>> sms_;
};

}  // namespace warpstack::memory
