#pragma once

#include <memory>

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
/// fewest such instructions so far; they get the lanes and the accesses of the others, whose
/// sectors are put together and whose passes through shared memory are added up. Barriers,
/// atomics, matrix products and instructions without an active lane stay.
std::unique_ptr<BlockChange> divergence_change(const ChosenRows& rows);

/// Each block adds up in shared memory first: the first atomic of a block on a word stays, without
/// the lanes that meet there, and the others go to shared memory.
std::unique_ptr<BlockChange> private_atomics_change(const ChosenRows& rows);

}  // namespace warpstack::trace
