#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "model/interval_demand.h"
#include "model/model.h"
#include "model/stall_lengths.h"

namespace warpstack::model {

/// Evaluates one model over one interval profile, for one configuration after the other. What the
/// configurations share is kept: the intervals with requests, the sums over all of them, and the
/// cycles without contention.
class Evaluator {
 public:
  /// Both must outlive the evaluator. Throws InputError when the profile has no instructions.
  Evaluator(const Model& model, const ModelInput& kernel);

  /// Throws InputError when a parameter is not positive.
  ModelResult evaluate(const ModelParameters& parameters);

 private:
  [[nodiscard]] ModelResult evaluate_launch(const ModelParameters& parameters) const;
  void prepare(const ModelParameters& parameters);
  double pass(std::size_t wave, const ModelParameters& parameters);
  CpiStack<double> evaluate_wave(std::size_t wave, const ModelParameters& parameters,
                                 double miss_latency);

  const Model& model_;
  const ModelInput& kernel_;
  const interval::IntervalColumns& intervals_;
  std::span<const interval::Wave> waves_;
  // What the profile says:
  double instructions_;
  double dram_share_ = 0;                ///< of the read misses
  StallShares stalls_{};                 ///< of the models of waves
  std::optional<StallLengths> lengths_;  ///< of the models of launches
  // For the issue rate and request sizes of the last configuration:
  double issue_rate_ = 0;
  double l1_request_bytes_ = 0;
  double l2_request_bytes_ = 0;
  std::vector<IntervalDemand> demands_;  ///< of intervals with requests
  /// Cycles of a pass without contention by wave and scheduler, once known.
  std::vector<std::array<std::optional<double>, num_values<gpu::Scheduler>>> passes_;
};

}  // namespace warpstack::model
