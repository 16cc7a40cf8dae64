#pragma once

#include "bindings/bindings.h"
#include "memory/system/memory_system.h"

namespace warpstack::bindings {

py::dict totals_to_dict(const memory::MemoryTotals& totals);
py::dict occupancy_to_dict(const memory::Occupancy& occupancy);

}  // namespace warpstack::bindings
