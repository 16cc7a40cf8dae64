#pragma once

#include "model/model.h"

namespace warpstack::model {

/// Cycles of one wave by component, their sum the cycles of the wave (Hong and Kim, ISCA 2009, Eq.
/// 5 to 24, 29, 30). The model has no caches: its memory instructions are here the loads that miss
/// in L1, its transactions the requests that leave the SM, its memory latency `miss_latency`, the
/// mean of the misses. docs/explanation/mwp-cwp.md says what becomes of each parameter.
CpiStack<double> mwp_cwp_wave(const interval::IntervalColumns& intervals,
                              const interval::Wave& wave, const ModelParameters& parameters,
                              double miss_latency);

}  // namespace warpstack::model
