#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simt/program/tensor_memory.h"

namespace warpstack::simt {

struct SourceInstruction;

/// The tensor memory of a block: all that its SM has, as blocks that run beside each other here do
/// not share one.
class TensorMemory {
 public:
  static constexpr std::uint32_t least_columns = 32;

  struct Allocation {
    std::uint32_t first = 0;
    std::uint32_t columns = 0;
    const SourceInstruction* made_by = nullptr;
    std::string place;  ///< for messages
  };

  /// The first columns that are free, at a multiple of their number; nothing if there are none.
  /// With the memory of the `other` block of a pair, the same columns of both.
  std::optional<std::uint32_t> allocate(std::uint32_t columns, TensorMemory* other = nullptr);
  /// The allocation that begins at a column, for notes on it.
  [[nodiscard]] Allocation& allocation_at(std::uint32_t first);
  /// Returns false if there is no such allocation.
  bool release(std::uint32_t first, std::uint32_t columns);
  [[nodiscard]] const std::vector<Allocation>& allocations() const { return allocations_; }
  /// Whether these columns are allocated.
  [[nodiscard]] bool holds(std::uint32_t first, std::uint32_t columns) const;
  /// "columns 0-63 and 128-159", for messages.
  [[nodiscard]] std::string text() const;

  /// A word of allocated columns.
  [[nodiscard]] std::uint32_t& word(std::uint32_t lane, std::uint32_t column) {
    return words_[lane * tensor_columns + column];
  }

  bool may_allocate = true;  ///< until its block relinquishes that
  /// Columns that its block waits for with the other block of its pair; 0: it does not wait.
  std::uint32_t awaited = 0;
  /// The first of these columns, which the other block has allocated for both.
  std::optional<std::uint32_t> granted;

 private:
  [[nodiscard]] bool is_free(std::uint32_t first, std::uint32_t columns) const;
  void add(std::uint32_t first, std::uint32_t columns);

  std::vector<std::uint32_t> words_;  ///< by lane; empty before the first allocation
  std::vector<Allocation> allocations_;
};

}  // namespace warpstack::simt
