#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/cpi_stack.h"
#include "gpu/field.h"
#include "gpu/gpu.h"
#include "interval/interval.h"
#include "interval/waves.h"
#include "interval/work.h"

namespace warpstack::model {

/// What the models read of a GPU. Cycles are SM cycles, bandwidths aggregates of the whole GPU.
struct ModelParameters {
  double issue_rate = 1;  ///< warp instructions per cycle per SM
  double schedulers = 1;  ///< of an SM; each has its part of issue_rate and of the warps
  gpu::Scheduler scheduler = gpu::Scheduler::gto;
  double clock_ghz = 1;
  double l1_mshrs = 1;  ///< per SM; with a streaming L1, the entries of the SM's NoC queue
  double l1_request_bytes = 128;  ///< fill unit of L1, for intervals that do not say
  double l2_request_bytes = 128;  ///< fill unit of L2
  double l2_latency = 0;
  double dram_latency = 0;  ///< beyond L2
  double noc_bandwidth_gbs = 1;
  double dram_bandwidth_gbs = 1;
  double dram_efficiency = 1;         ///< what rows and refreshes leave of the channels' bandwidth
  double noc_sm_bytes_per_cycle = 0;  ///< each way between an SM and the NoC; 0: no limit
  double noc_control_bytes = 0;       ///< of a read request on its way to L2
  double l2_requests_per_cycle = 1;   ///< of all slices
  /// What it costs all channels that one of them goes over from reads to writes and back.
  double dram_turnaround_cycles = 0;
  double l2_bytes_per_cycle = 0;  ///< read or written by all slices; 0: no limit
  /// Cycles from one instruction of a scheduler's unit to the next, by trace::OpClass; those of the
  /// tensor cores are in ResourceDemands::tensor_cycles.
  std::array<double, trace::num_op_classes> unit_intervals{};
  double block_replacement_cycles = 0;  ///< from the end of a block to the start of the next

  static ModelParameters of(const gpu::Gpu& gpu);
};

/// A kernel as the models see it.
struct ModelInput {
  const interval::IntervalColumns* intervals = nullptr;
  std::vector<interval::Wave> waves;
  /// For the closed network model; without phases they are those of the waves.
  interval::PhaseList phases;
  /// For the closed network model; without them they are those of the intervals.
  std::optional<interval::ResourceDemands> demands;
};

/// The phases of a kernel: its own, or those of its waves.
interval::PhaseList phases_of(const ModelInput& kernel, const ModelParameters& parameters);
/// Its demands, or those of its intervals.
interval::ResourceDemands demands_of(const ModelInput& kernel, const ModelParameters& parameters);

/// What a model says of one kernel.
struct ModelResult {
  /// The cycles of all waves, for warps like the representative one; those of all phases in the
  /// closed network model.
  double cycles = 0;
  double warp_instructions = 0;  ///< in these waves, over all SMs
  double sm_instructions = 0;    ///< in these waves, on the fullest SM
  /// Cycles that the launch has once, however many blocks follow one another: meanwhile not all of
  /// its places are taken. Only of the closed network model.
  double ends = 0;
  CpiStack<double> stack;  ///< cycles per instruction of the fullest SM
  /// The same by detail, which sum to the stack; only of the closed network model.
  std::optional<DetailedStack<double>> details;
  double cpi = 0;  ///< the stack's sum: cycles / sm_instructions
};

/// One row of the model family (MDM, Table V; GPUMech, Table II).
struct Model;

/// The models' names in table order.
std::vector<std::string_view> model_names();
/// Looks a model up. Throws InputError that lists the names.
const Model& find_model(std::string_view name);
/// Whether the model reads the phases and demands of a kernel.
bool reads_phases(const Model& model);
/// The GPU's fields that the model reads beyond those that make the intervals and waves.
std::vector<gpu::FieldName> fields_of(const Model& model);

/// Evaluates a model over the intervals of the representative warp. Throws InputError when the
/// profile has no instructions or a parameter is not positive.
ModelResult evaluate(const Model& model, const ModelInput& kernel,
                     const ModelParameters& parameters);
/// Throws InputError unless the parameters are numbers that a machine can have.
void check(const ModelParameters& parameters);
/// The same for a kernel of which no more is known.
ModelResult evaluate(const Model& model, const interval::IntervalColumns& intervals,
                     std::span<const interval::Wave> waves, const ModelParameters& parameters);

/// P(every warp is suspended) of the Markov chain of Chen and Aamodt (HPCA 2009) over the number of
/// suspended warps: in each issue slot a ready warp issues, if there is one, and becomes suspended
/// with probability `suspend`; each suspended warp wakes with probability `wake`.
double markov_all_suspended(unsigned warps, double suspend, double wake);

}  // namespace warpstack::model
