#pragma once

#include "model/interval_demand.h"

namespace warpstack::model {

/// NoC and DRAM queueing of an interval (MDM, Eq. 7 to 10): an SM waits for all requests in flight
/// when the interval is memory-divergent and the NoC saturated, otherwise for half of them.
QueueDelays mdm_queues(const IntervalDemand& x, const WaveMachine& machine);

/// The same as first published (CAL 2019, Eq. 2 to 5): every memory-divergent interval waits for
/// all requests.
QueueDelays mdm_cal2019_queues(const IntervalDemand& x, const WaveMachine& machine);

/// S_Mem (MDM, Eq. 4, 5): round trip of an L1 miss with queueing.
double mdm_miss_latency(const IntervalDemand& x, const WaveMachine& machine,
                        const QueueDelays& queues);

/// S_MSHR (MDM, Eq. 6): batches of as many requests as there are MSHRs; the last one is covered by
/// the queueing delays.
double mdm_mshr_delay(const IntervalDemand& x, const WaveMachine& machine, double miss_latency);

}  // namespace warpstack::model
