#pragma once

#include <cstdint>

namespace warpstack::cudart {

/// Whether this process may read, or write, all of these bytes at once; addresses that do not exist
/// are simply not accessible. Pages that a copy would touch first are made present, nothing else
/// changes. Costs about a microsecond, and 1 to 10 % of the copy of a long range.
bool host_readable(std::uint64_t address, std::uint64_t bytes);
bool host_writable(std::uint64_t address, std::uint64_t bytes);

}  // namespace warpstack::cudart
