#pragma once

#include "bindings/bindings.h"
#include "memory/memory_system.h"

namespace warpstack::bindings {

/// The memory system that a dictionary of the Python side describes.
MemoryConfig memory_config(const py::dict& fields);
py::dict totals_to_dict(const MemoryTotals& totals);
py::dict occupancy_to_dict(const Occupancy& occupancy);

}  // namespace warpstack::bindings
