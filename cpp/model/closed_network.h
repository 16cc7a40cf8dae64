#pragma once

#include "model/model.h"
#include "model/network.h"
#include "model/stall_lengths.h"

namespace warpstack::model {

/// The closed network model (docs/explanation/closed-network-model.md): the warps of each phase as
/// customers of a closed network of issue slots, tensor cores, load-store unit, NoC, L2 and DRAM,
/// whose misses an inner network with a customer per MSHR bounds; before them the burst in which
/// all warps make their first access.
ModelResult evaluate_closed_network(const interval::PhaseList& launch,
                                    const interval::ResourceDemands& demands,
                                    const StallLengths& stalls, const ModelParameters& parameters);

}  // namespace warpstack::model
