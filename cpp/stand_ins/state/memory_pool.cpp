#include "stand_ins/state/memory_pool.h"

#include <algorithm>
#include <string>

#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/runtime.h"

namespace warpstack::cudart {
namespace {

using LocationKind = MemoryLocation::Kind;

/// Drivers take memory for a pool in pieces of this size.
constexpr std::uint64_t pool_piece_bytes = 32 << 20;

std::uint64_t whole_pieces(std::uint64_t bytes) {
  return bytes / pool_piece_bytes * pool_piece_bytes +
         (bytes % pool_piece_bytes == 0 ? 0 : pool_piece_bytes);
}

void check_place(const MemoryLocation& location, int allocation_kind) {
  require(allocation_kind == pinned_memory ||
              (allocation_kind == managed_memory && abi_version() >= 13),
          "the kind of a pool's memory is not cudaMemAllocationTypePinned");
  const bool on_device = location.kind == LocationKind::device && location.id == 0;
  const bool on_host = location.kind == LocationKind::host ||
                       (location.kind == LocationKind::host_numa && location.id == 0) ||
                       (location.kind == LocationKind::none && allocation_kind == managed_memory);
  require(on_device || on_host, "a pool's memory lies on device 0 or on the host");
}

}  // namespace

MemoryPools::MemoryPools() {
  using enum LocationKind;
  for (const auto& [location, kind] :
       {std::pair(device, pinned_memory), std::pair(host, pinned_memory),
        std::pair(host_numa, pinned_memory), std::pair(device, managed_memory),
        std::pair(host, managed_memory), std::pair(host_numa, managed_memory),
        std::pair(none, managed_memory)}) {
    auto pool = std::make_shared<MemoryPool>();
    pool->properties.allocation_kind = kind;
    pool->properties.location = {location, 0};
    pool->can_be_destroyed = false;
    standard_[{location, kind}] = pool.get();
    current_[{location, kind}] = pool.get();
    pools_[pool.get()] = std::move(pool);
  }
}

MemoryPool* MemoryPools::create(const MemoryPoolProperties& properties) {
  check_place(properties.location, properties.allocation_kind);
  if (properties.handle_kinds != 0) {
    throw Failure(Error::not_supported,
                  "pools whose memory goes to other processes are not supported", true);
  }
  auto pool = std::make_shared<MemoryPool>();
  pool->properties = properties;
  if (abi_version() < 12) pool->properties.max_bytes = 0;
  MemoryPool* const handle = pool.get();
  pools_[handle] = std::move(pool);
  return handle;
}

MemoryPool& MemoryPools::checked(MemoryPool* pool) const {
  require(pools_.contains(pool), "there is no such memory pool");
  return *pool;
}

void MemoryPools::destroy(MemoryPool* pool) {
  require(checked(pool).can_be_destroyed, "a default memory pool cannot be destroyed");
  for (auto& [key, now] : current_) {
    if (now == pool) now = standard_.at(key);
  }
  pools_.erase(pool);
}

MemoryPool& MemoryPools::standard(const MemoryLocation& location, int allocation_kind) {
  check_place(location, allocation_kind);
  return *standard_.at({location.kind, allocation_kind});
}

MemoryPool& MemoryPools::current(const MemoryLocation& location, int allocation_kind) {
  check_place(location, allocation_kind);
  return *current_.at({location.kind, allocation_kind});
}

void MemoryPools::set_current(const MemoryLocation& location, int allocation_kind,
                              MemoryPool* pool) {
  check_place(location, allocation_kind);
  const MemoryPoolProperties& properties = checked(pool).properties;
  require(
      properties.location.kind == location.kind && properties.allocation_kind == allocation_kind,
      "the pool's memory is elsewhere or of another kind");
  current_[{location.kind, allocation_kind}] = pool;
}

std::uint64_t MemoryPools::allocate(Runtime& runtime, MemoryPool& pool, std::uint64_t bytes) {
  const std::uint64_t most = pool.properties.max_bytes;
  if (most > 0 && bytes > most - std::min(most, pool.used)) {
    throw Failure(Error::memory_allocation, "the memory pool has a maximum size of " +
                                                std::to_string(most) + " bytes, of which " +
                                                std::to_string(pool.used) + " are in use");
  }
  std::uint64_t address = 0;
  if (pool.properties.allocation_kind == managed_memory) {
    address = runtime.allocate_shared(bytes, PointerAttributes::Kind::managed);
  } else if (pool.properties.location.kind == LocationKind::device) {
    address = runtime.allocate(bytes);
  } else {
    address = runtime.allocate_shared(bytes, PointerAttributes::Kind::host);
  }
  pieces_[address] = {pools_.at(&pool), bytes};
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved = std::max(pool.reserved, whole_pieces(pool.used));
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return address;
}

bool MemoryPools::holds(std::uint64_t address) const { return pieces_.contains(address); }

void MemoryPools::freed(std::uint64_t address) {
  const auto piece = pieces_.find(address);
  if (piece == pieces_.end()) return;
  piece->second.pool->used -= piece->second.bytes;
  pieces_.erase(piece);
}

void MemoryPools::trim(MemoryPool& pool, std::uint64_t keep) {
  const std::uint64_t wanted = keep > pool.reserved ? pool.reserved : whole_pieces(keep);
  pool.reserved = std::max(whole_pieces(pool.used), std::min(pool.reserved, wanted));
}

void MemoryPools::synchronize() {
  for (const auto& [handle, pool] : pools_) trim(*pool, pool->release_threshold);
}

}  // namespace warpstack::cudart
