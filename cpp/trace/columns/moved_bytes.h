#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warpstack::trace {

/// Neighbouring bytes that an instruction moves.
struct MovedBytes {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// Appends each 32-byte sector that the ranges touch once, in the order of addresses, and returns
/// their number. With `store_bytes` also appends the touched bytes of each, as coalesce() does.
/// Keeps at most 65535 sectors, more than a block's shared memory has.
std::uint32_t coalesce(std::span<const MovedBytes> moved, std::vector<std::uint64_t>& sectors,
                       std::vector<std::uint32_t>* store_bytes);

}  // namespace warpstack::trace
