#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "trace/changes/issued.h"
#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

/// The table of the trace that is changed, and which of its rows are.
struct ChosenRows {
  const KernelTrace& trace;
  std::span<const std::uint8_t> is_chosen;  ///< empty: all

  [[nodiscard]] bool contains(std::uint32_t row) const {
    return is_chosen.empty() || is_chosen[row] != 0;
  }
  [[nodiscard]] const StaticInstruction& operator[](std::uint32_t row) const {
    return trace.instructions()[row];
  }
  [[nodiscard]] const Effects& effects(std::uint32_t row) const { return trace.effects()[row]; }
};

/// A transform of traces, block by block.
class BlockChange {
 public:
  explicit BlockChange(const ChosenRows& rows) : rows_(rows) {}
  virtual ~BlockChange() = default;
  BlockChange(const BlockChange&) = delete;
  BlockChange& operator=(const BlockChange&) = delete;

  /// Changes what is known of the launch.
  virtual void change_header(KernelHeader& /*header*/) const {}
  /// What becomes of a row of the table.
  [[nodiscard]] virtual StaticInstruction row(std::uint32_t number) const { return rows_[number]; }
  /// Adds rows behind those of the trace.
  virtual void add_rows(TraceBuilder& /*builder*/) {}
  /// Whether blocks with the same columns, but for shifts, still have the same, and rows with
  /// sectors in the same order. Then only one of them is changed.
  [[nodiscard]] virtual bool keeps_classes() const { return true; }
  /// Whether it looks at all blocks before it writes the first.
  [[nodiscard]] virtual bool looks() const { return false; }
  virtual void look(const Block& /*block*/) {}
  virtual void end_of_look() {}
  /// Writes the changed block. As it is by default.
  virtual void write(const Block& block, BlockWriter& writer);

 protected:
  /// Writes the block with its instructions as `change(one)` leaves them; it returns whether they
  /// stay at all.
  template <typename Change>
  void write_each(const Block& block, BlockWriter& writer, Change change) {
    std::size_t begun = 0;
    const auto begin_until = [&](std::size_t end) {
      for (; begun < end; ++begun) writer.begin_warp(block.warps[begun].number);
    };
    block.for_each(rows_.trace.instructions(), [&](Issued one) {
      begin_until(one.warp + 1);
      if (change(one)) writer.append(one);
    });
    begin_until(block.warps.size());
  }

  const ChosenRows& rows_;
};

/// Loads and stores touch the least sectors that hold the bytes of their lanes. An access that
/// touches more keeps whole lines of 128 bytes of those that it touches: the ones of which loads,
/// or stores, have kept the fewest sectors so far, and of these the first; so accesses that share
/// lines share them out. What no such access touches is left out: of lines that are touched in part
/// an access may keep the first ones only, so many as hold the touched sectors, as if the data were
/// packed. Stores write as many bytes as before.
std::unique_ptr<BlockChange> coalesced_change(const ChosenRows& rows);

/// Rows of arrays, where lanes or neighbouring warps are a multiple of 512 bytes apart, lie one
/// line of 128 bytes further apart: all accesses to such an array move with its rows, and arrays
/// behind it make room. Arrays are the ranges of addresses that rows of the table reach, put
/// together where they overlap.
std::unique_ptr<BlockChange> padded_change(const ChosenRows& rows);

/// The distance from row to row that padded_change() finds in the blocks that it has looked at, in
/// sectors by row of the table; 0: none.
std::vector<std::uint64_t> pitches_of(const BlockChange& padded);

/// Threads of a block that execute an instruction for the n-th time are gathered in as few warps as
/// they fill. Of warps that execute it with a part of their lanes those stay that have kept the
/// fewest such instructions so far, and of these the next after one that the block's number
/// scatters; they get the lanes and the accesses of the others, whose sectors are put together and
/// whose passes through shared memory are added up. Barriers, atomics, matrix products and
/// instructions without an active lane stay.
std::unique_ptr<BlockChange> divergence_change(const ChosenRows& rows);

/// A quotient or remainder of integers takes one instruction, as of a power of two: the last of its
/// sequence, which reads what the first did. Of PTX: machine code mixes sequences with others.
std::unique_ptr<BlockChange> cheap_division_change(const ChosenRows& rows);

inline constexpr std::uint32_t no_division = std::numeric_limits<std::uint32_t>::max();

/// By row, the first row of the integer division whose sequence it is part of; or no_division.
std::vector<std::uint32_t> divisions_of(std::span<const StaticInstruction> rows);

/// A warp's loads and stores that repeat those before them are left out: an instruction that comes
/// back to the same sectors with the same lanes, time after time, keeps the first of its loads and
/// the last of its stores. Loads must come back more often than a sector has words of their width:
/// an instruction that goes from word to word moves on before. Not of what others may change
/// meanwhile (volatile, with an order).
std::unique_ptr<BlockChange> kept_in_registers_change(const ChosenRows& rows);

/// Which instructions of a block kept_in_registers_change() leaves out if all rows are chosen.
class HeldAccesses {
 public:
  void find(const Block& block, const ChosenRows& rows);
  /// Of the place in the block, warp after warp.
  [[nodiscard]] bool is_held(std::size_t place) const { return is_held_[place] != 0; }

 private:
  /// Executions of a row by a warp that access the same.
  struct Run {
    std::vector<std::size_t> places;
    Issued last;
  };
  std::vector<std::uint8_t> is_plain_;  ///< by row
  std::vector<std::uint8_t> is_held_;
  std::vector<Run> runs_;  ///< by row
};

/// What a block loads more than once goes through a tile in shared memory. Accesses all of whose
/// sectors the block loads twice or more become loads of shared memory without bank conflicts. The
/// n-th of each warp are taken together; as many as touch no more than a tile of 8 KiB are a phase
/// (of 48 KiB where that loads less than three quarters). Before a phase the block's warps load its
/// sectors in turn, so many as a warp's lanes take at once, store them to shared memory and meet at
/// a barrier; before each phase but the first they meet once more, as the tile is written anew.
std::unique_ptr<BlockChange> kept_in_block_change(const ChosenRows& rows);

/// Whether its sectors may be kept in shared memory.
bool may_keep_in_block(const StaticInstruction& row);

/// Each block adds up in shared memory: its warps first clear the words in turn and meet at a
/// barrier, atomics go to shared memory, and at the end the warps meet again and add each word of
/// the block to that of the caches, in turn, a line at once.
std::unique_ptr<BlockChange> private_atomics_change(const ChosenRows& rows);

}  // namespace warpstack::trace
