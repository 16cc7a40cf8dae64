#pragma once

#include <cstdint>

namespace warpstack::cudart {

/// Whether this process may read, or write, all of these bytes at once. Nonexistent addresses are
/// not accessible. Untouched pages are made present, as a copy would; nothing else changes. Costs
/// about a microsecond, or 1 to 10 % of the copy of a long range.
bool host_readable(std::uint64_t address, std::uint64_t bytes);
bool host_writable(std::uint64_t address, std::uint64_t bytes);

}  // namespace warpstack::cudart
