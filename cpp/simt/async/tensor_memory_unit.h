#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simt/arithmetic/tensor_product.h"
#include "simt/async/async_barriers.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"

namespace warpstack::simt {

/// tcgen05: the memory of the tensor cores and their products (tensor_memory.h). Each is done when
/// it is issued.
class TensorMemoryUnit {
 public:
  TensorMemoryUnit(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
                   RaceMonitor& races, AsyncBarriers& barriers)
      : execution_(execution),
        program_(execution.program),
        faults_(faults),
        recorder_(recorder),
        spaces_(spaces),
        races_(races),
        barriers_(barriers) {}

  /// Returns false, and does nothing, for an allocation for which there is no room.
  [[nodiscard]] bool allocate(Warp& warp, const Step& step, std::byte* registers,
                              std::uint32_t mask);
  /// What such an allocation waits for, for messages.
  [[nodiscard]] std::string text(const Warp& warp, const Step& step) const;
  void multiply(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  void transfer(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  void fill(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  void shift(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  void commit(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// At the end of the block: finds columns that nobody has released.
  void check_end();

 private:
  /// A lane's instruction, for messages.
  struct Issue {
    Warp& warp;
    const Step& step;
    std::uint32_t lane = 0;
  };

  [[noreturn]] void stop(const Issue& issue, const std::string& what) const {
    faults_.stop(issue.warp, issue.step, issue.lane, what);
  }
  /// Stops unless all 32 lanes execute it with the same of these values.
  void require_warp(const Issue& issue, std::uint32_t mask) const;
  [[nodiscard]] std::uint32_t same_address(const Issue& issue, const std::byte* registers,
                                           const AddressOperand& operand,
                                           const char* what = "addresses") const;
  /// The other block of the pair of the running one.
  [[nodiscard]] Block& other_block(const Issue& issue);
  /// Sets sides_ to the running block, or to the even and the odd block of its pair.
  void take_sides(const Issue& issue, bool is_of_pair);
  void require_columns(const Issue& issue, std::uint32_t columns) const;
  /// Notes which instruction has made the allocation at a column.
  void sign(const Issue& issue, TensorMemory& memory, std::uint32_t first) const;
  void release(const Issue& issue, std::uint32_t first, std::uint32_t columns);
  /// An allocation of machine code; false if there is no room.
  [[nodiscard]] bool find_groups(const Issue& issue, std::byte* registers, std::uint32_t mask);
  /// The first of so many columns in both blocks of a pair, when both have come for them.
  [[nodiscard]] std::optional<std::uint32_t> allocate_in_both(const Issue& issue,
                                                              std::uint32_t columns);
  /// The lane and the first column of an address of columns that are allocated in all sides.
  [[nodiscard]] TensorPlace place(const Issue& issue, std::uint64_t address, std::uint32_t columns,
                                  const char* what) const;
  [[nodiscard]] TensorMemory& memory() const { return *sides_[0].memory; }
  [[nodiscard]] MatrixDescriptor descriptor(const Issue& issue, std::uint64_t bits,
                                            const char* what) const;
  [[nodiscard]] const std::byte* shared_piece(const Issue& issue, std::uint64_t address);
  /// Reads the rows of a factor, of which each side has as many in its shared memory.
  void read_factor(const Issue& issue, const MatrixDescriptor& from, bool by_columns,
                   std::uint32_t element_bytes);
  void read_rows(const Issue& issue, const MatrixDescriptor& from, std::uint64_t window,
                 bool by_columns, std::uint32_t element_bytes, std::span<FactorRow> rows);
  void read_from_tensor(const Issue& issue, TensorPlace first, const TensorProduct& product,
                        const trace::ProductStep& shape);
  void multiply_lane(const Issue& issue, const std::byte* registers,
                     const ProductDescriptor& descriptor);
  /// The memory that has a row of D.
  [[nodiscard]] TensorMemory& memory_of(std::uint32_t row, const trace::ProductStep& shape) const {
    return *sides_[row / (shape.m / num_sides_)].memory;
  }
  void load_sums(TensorPlace d, const TensorProduct& product, const ProductDescriptor& descriptor);
  void store_sums(TensorPlace d, const TensorProduct& product, const ProductDescriptor& descriptor,
                  std::span<const std::uint32_t> disabled, bool accumulates);
  void add_scaled(const Issue& issue, const std::byte* registers,
                  const ProductDescriptor& descriptor);

  Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
  AsyncBarriers& barriers_;
  /// A block whose memory an operation uses.
  struct Side {
    TensorMemory* memory = nullptr;
    std::uint64_t window = 0;  ///< the address of its shared memory
  };
  std::array<Side, 2> sides_;
  std::uint32_t num_sides_ = 1;
  std::vector<FactorRow> rows_;
  FactorValues a_;
  FactorValues b_;
  std::vector<float> sums_;
  std::vector<float> block_sums_;
};

}  // namespace warpstack::simt
