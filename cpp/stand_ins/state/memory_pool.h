#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "stand_ins/state/abi_graph.h"

namespace warpstack::cudart {

class Runtime;

/// cudaMemAllocationTypePinned and cudaMemAllocationTypeManaged
inline constexpr int pinned_memory = 1;
inline constexpr int managed_memory = 2;

/// cudaMemPool_t. Memory is the device's; a pool counts what a GPU's driver would hold.
struct MemoryPool {
  MemoryPoolProperties properties{};
  bool can_be_destroyed = true;
  int reuse[3] = {1, 1, 1};  ///< following events, opportunistic, with internal dependencies
  std::uint64_t release_threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
  std::map<int, int> access;  ///< of devices, by number
};

/// The memory pools of a process, and the pool of each allocation.
class MemoryPools {
 public:
  MemoryPools();

  /// Throws Failure on properties that are not supported.
  MemoryPool* create(const MemoryPoolProperties& properties);
  /// Allocations from the pool stay.
  void destroy(MemoryPool* pool);
  /// The pool of a handle. Throws Failure when there is none.
  MemoryPool& checked(MemoryPool* pool) const;
  /// The initial pool of a kind of memory, and the current one. These throw Failure when there is
  /// none.
  MemoryPool& standard(const MemoryLocation& location, int allocation_kind);
  MemoryPool& current(const MemoryLocation& location, int allocation_kind);
  void set_current(const MemoryLocation& location, int allocation_kind, MemoryPool* pool);

  std::uint64_t allocate(Runtime& runtime, MemoryPool& pool, std::uint64_t bytes);
  /// Whether a pool's memory begins at this address.
  [[nodiscard]] bool holds(std::uint64_t address) const;
  /// Notes that memory at this address is free; nothing happens if it is not a pool's.
  void freed(std::uint64_t address);
  /// Returns unused memory of pools beyond their thresholds, as synchronizing calls do.
  void synchronize();
  /// Returns unused memory of a pool beyond `keep` bytes.
  static void trim(MemoryPool& pool, std::uint64_t keep);

 private:
  using Key = std::pair<MemoryLocation::Kind, int>;
  struct Piece {
    std::shared_ptr<MemoryPool> pool;
    std::uint64_t bytes = 0;
  };

  std::map<const MemoryPool*, std::shared_ptr<MemoryPool>> pools_;
  std::map<Key, MemoryPool*> standard_;
  std::map<Key, MemoryPool*> current_;
  std::map<std::uint64_t, Piece> pieces_;  ///< by address
};

}  // namespace warpstack::cudart
