#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simt/device/device_memory.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

using trace::LaneAddresses;

/// Thrown when a block that runs ahead of its turn does something whose outcome depends on the
/// progress of the launch, or that others see at once: it reads a clock, prints or allocates.
struct NeedsItsTurn {};

/// Device memory as seen by blocks that run ahead of their turn. Their writes stay here until
/// commit(), and their reads are noted, so that the launch can tell whether earlier blocks have
/// changed what they read. The memory itself must not change in the meantime; several views of it
/// may be in use at once.
///
/// Lines are copied when they are first written. A device address a then lies at the host address
/// data(a) + delta of its line.
class MemoryView {
 public:
  /// Reserves address space, 9/32 of what is allocated now. Throws std::bad_alloc.
  explicit MemoryView(DeviceMemory& memory);
  ~MemoryView();
  MemoryView(const MemoryView&) = delete;
  MemoryView& operator=(const MemoryView&) = delete;

  /// Whether all that is allocated now lies within the view.
  [[nodiscard]] bool covers_all() const {
    return memory_.end() - device_base <= num_deltas_ * line_bytes;
  }

  /// Forgets all writes and reads. Reads are only noted with `notes_reads`, for conflicts_with().
  void begin(bool notes_reads);

  /// Host address of bytes that lie in one allocation. Throws NeedsItsTurn when they lie in two
  /// lines.
  std::byte* place(std::uint64_t address, std::uint32_t bytes, bool reads, bool writes);

  /// The same for the lanes of a load or store, whose addresses are multiples of `bytes`, a power
  /// of two up to 64. `moved` gets, for each lane, the device address that would correspond to the
  /// host address of its bytes if the memory reached so far; see HostRange.
  void place_lanes(const LaneAddresses& lanes, std::uint32_t bytes, bool writes,
                   LaneAddresses& moved);

  /// Whether a line between two addresses may have been copied.
  [[nodiscard]] bool may_have_copies(std::uint64_t begin, std::uint64_t end) const {
    return begin < copies_end_ && end > copies_begin_;
  }
  /// Notes what the lanes of a load read.
  void note_reads(const LaneAddresses& lanes, std::uint32_t bytes);

  /// Notes that bytes are read. Returns where they lie if that is one range, else null.
  std::byte* read_range(std::uint64_t address, std::uint64_t bytes);
  /// If bytes lie in one line, notes that all are written and returns where they lie; else returns
  /// null.
  std::byte* write_range(std::uint64_t address, std::uint64_t bytes);

  /// Whether all of these bytes have been written, here or according to the allocation's own map.
  [[nodiscard]] bool is_written(const Allocation& allocation, std::uint64_t address,
                                std::uint32_t bytes) const;

  /// Whether anything that was read here has been written in `earlier`.
  [[nodiscard]] bool conflicts_with(const MemoryView& earlier) const;
  /// Copies what was written into the memory.
  void commit();

 private:
  static constexpr std::uint64_t line_bytes = 256;  // allocations begin at multiples of it
  static constexpr std::uint64_t word_bytes = 4;    // reads are noted by words
  static constexpr std::size_t lines_per_chunk = 256;

  struct Line {
    std::array<std::byte, line_bytes> data;
    std::array<std::uint64_t, line_bytes / 64> written;  ///< a bit per byte
    std::uint64_t address;
  };

  [[nodiscard]] std::uint64_t& delta_of(std::uint64_t address) const {
    return deltas_[(address - device_base) / line_bytes];
  }
  Line& line(std::size_t number) {
    return chunks_[number / lines_per_chunk][number % lines_per_chunk];
  }
  [[nodiscard]] const Line& line(std::size_t number) const {
    return chunks_[number / lines_per_chunk][number % lines_per_chunk];
  }
  /// Copies the line of an address and returns its delta, which is not 0.
  std::uint64_t copy_line(std::uint64_t address);
  std::uint64_t writable_delta(std::uint64_t address) {
    const std::uint64_t delta = delta_of(address);
    return delta != 0 ? delta : copy_line(address);
  }
  /// The copy of a line at a delta.
  Line& line_at(std::uint64_t address, std::uint64_t delta) {
    return *reinterpret_cast<Line*>(memory_.data(address / line_bytes * line_bytes) +
                                    static_cast<std::ptrdiff_t>(delta));
  }
  [[nodiscard]] const Line& line_at(std::uint64_t address, std::uint64_t delta) const {
    return const_cast<MemoryView*>(this)->line_at(address, delta);
  }
  static void mark(Line& line, std::uint64_t address, std::uint64_t bytes);
  void note_read(std::uint64_t address, std::uint64_t bytes);

  DeviceMemory& memory_;
  const std::size_t num_deltas_;
  const std::size_t num_words_;
  /// The distance from each line's place in the memory to its copy; 0: there is none.
  std::uint64_t* deltas_ = nullptr;
  /// The round in which each word was last read.
  std::uint8_t* read_in_ = nullptr;
  std::uint8_t round_ = 0;
  bool notes_reads_ = false;
  std::vector<std::unique_ptr<Line[]>> chunks_;
  std::size_t num_lines_ = 0;
  std::uint64_t copies_begin_ = ~std::uint64_t{0};  ///< addresses of all copied lines
  std::uint64_t copies_end_ = 0;
};

}  // namespace warpstack::simt
