#include <array>
#include <string_view>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

/// The head of an integer division in PTX's traces, and the most that follows it, in this order.
struct Sequence {
  std::string_view estimate;
  std::string_view back;
  std::array<std::pair<std::string_view, std::uint32_t>, 4> parts;
};
constexpr std::string_view reciprocal = "rcp.approx.ftz.f32";
constexpr std::array sequences = {
    Sequence{"cvt.rp.f32.u32",
             "cvt.rzi.u32.f32",
             {{{"mad.lo.u32", 3}, {"mul.hi.u32", 2}, {"setp.ge.u32", 3}, {"add.u32", 5}}}},
    Sequence{"cvt.rp.f32.u32",
             "cvt.rzi.u32.f32",
             {{{"mad.lo.u32", 3}, {"mul.hi.u32", 2}, {"setp.ge.u32", 3}, {"sub.u32", 4}}}},
    Sequence{"cvt.rp.f32.u64",
             "cvt.rzi.u64.f32",
             {{{"mad.wide.u32", 24}, {"add.cc.u32", 24}, {"setp.ge.u32", 8}, {"selp.u32", 8}}}},
};

/// How many rows from `first` on are one sequence; 0: none.
std::uint32_t length_of(const Sequence& sequence, std::span<const StaticInstruction> rows,
                        std::uint32_t first) {
  std::uint32_t row = first;
  const auto take = [&](std::string_view opcode, std::uint32_t count) {
    for (; count > 0; --count, ++row) {
      if (row >= rows.size() || rows[row].opcode != opcode) return false;
    }
    return true;
  };
  bool is_there = take(sequence.estimate, 1) && take(reciprocal, 1) && take(sequence.back, 1);
  for (const auto& [opcode, count] : sequence.parts) is_there = is_there && take(opcode, count);
  return is_there ? row - first : 0;
}

class CheapDivision final : public BlockChange {
 public:
  explicit CheapDivision(const ChosenRows& rows)
      : BlockChange(rows), first_(divisions_of(rows.trace.instructions())) {}

  [[nodiscard]] StaticInstruction row(std::uint32_t number) const override {
    StaticInstruction result = rows_[number];
    if (is_last(number) && rows_.contains(number)) result.sources = rows_[first_[number]].sources;
    return result;
  }

  void write(const Block& block, BlockWriter& writer) override {
    write_each(block, writer, [this](const Issued& one) {
      return first_[one.row] == no_division || is_last(one.row) || !rows_.contains(one.row);
    });
  }

 private:
  [[nodiscard]] bool is_last(std::uint32_t row) const {
    return first_[row] != no_division &&
           (row + 1 == first_.size() || first_[row + 1] != first_[row]);
  }

  std::vector<std::uint32_t> first_;
};

}  // namespace

std::vector<std::uint32_t> divisions_of(std::span<const StaticInstruction> rows) {
  std::vector<std::uint32_t> first(rows.size(), no_division);
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    for (const Sequence& sequence : sequences) {
      const std::uint32_t length = length_of(sequence, rows, row);
      if (length == 0) continue;
      std::fill_n(first.begin() + row, length, row);
      row += length - 1;
      break;
    }
  }
  return first;
}

std::unique_ptr<BlockChange> cheap_division_change(const ChosenRows& rows) {
  return std::make_unique<CheapDivision>(rows);
}

}  // namespace warpstack::trace
