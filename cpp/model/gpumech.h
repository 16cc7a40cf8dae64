#pragma once

#include "model/interval_demand.h"

namespace warpstack::model {

/// MSHR delay of an interval (GPUMech, Eq. 18 to 20): request j of the SM's R = m_i W requests
/// waits for ceil(j / N) - 1 round trips of `miss_latency`; the mean wait counts once per memory
/// instruction. Zero unless R > N.
double gpumech_mshr_delay(const IntervalDemand& x, const WaveMachine& machine, double miss_latency);

/// DRAM as an M/D/1 queue (GPUMech, Eq. 21 to 23), bounded by half the requests that can be in
/// flight.
QueueDelays gpumech_queues(const IntervalDemand& x, const WaveMachine& machine);

/// The same for DRAM and for the NoC (GPUMech+).
QueueDelays gpumech_plus_queues(const IntervalDemand& x, const WaveMachine& machine);

}  // namespace warpstack::model
