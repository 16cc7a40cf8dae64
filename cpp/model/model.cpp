#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/error.h"
#include "common/sum.h"
#include "gpu/latencies.h"
#include "model/closed_network.h"
#include "model/evaluator.h"
#include "model/gpumech.h"
#include "model/interval_demand.h"
#include "model/mdm.h"
#include "model/multithreading.h"
#include "model/mwp_cwp.h"

namespace warpstack::model {

/// Delays of all intervals together.
struct Delays {
  double mshr = 0;
  double noc = 0;
  double queue = 0;
};

/// A model is a choice of four parts, or one for itself: of waves, or of the whole launch.
struct Model {
  std::string_view name;
  /// Cycles of one pass without contention.
  double (*pass)(const interval::IntervalColumns&, double warps, const ModelParameters&);
  /// Queueing delays of an interval.
  QueueDelays (*queues)(const IntervalDemand&, const WaveMachine&);
  /// MSHR delay of an interval.
  double (*mshr)(const IntervalDemand&, const WaveMachine&, double miss_latency);
  /// Both over the intervals with requests; the MSHR part sees a miss latency of the model's own.
  Delays (*delays)(std::span<const IntervalDemand>, const WaveMachine&);
  /// Cycles of a wave; takes the place of the four parts.
  CpiStack<double> (*of_wave)(const interval::IntervalColumns&, const interval::Wave&,
                              const ModelParameters&, double miss_latency) = nullptr;
  /// Takes the place of everything.
  ModelResult (*of_launch)(const interval::PhaseList&, const interval::ResourceDemands&,
                           const StallLengths& stalls, const ModelParameters&) = nullptr;
};

namespace {

QueueDelays no_queues(const IntervalDemand&, const WaveMachine&) { return {}; }

double no_mshr_delay(const IntervalDemand&, const WaveMachine&, double) { return 0; }

double average_miss_latency(const IntervalDemand&, const WaveMachine& machine, const QueueDelays&) {
  return machine.average_miss_latency;
}

double average_miss_latency_with_queues(const IntervalDemand&, const WaveMachine& machine,
                                        const QueueDelays& queues) {
  return machine.average_miss_latency + queues.noc + queues.dram;
}

/// The parts are template arguments, so that the loop has no calls through pointers.
template <auto queues, auto miss_latency, auto mshr>
Delays delays_of(std::span<const IntervalDemand> demands, const WaveMachine& machine) {
  Delays delays;
  for (const IntervalDemand& x : demands) {
    const QueueDelays waits = queues(x, machine);
    delays.noc += waits.noc;
    delays.queue += waits.dram;
    delays.mshr += mshr(x, machine, miss_latency(x, machine, waits));
  }
  return delays;
}

template <auto queues, auto miss_latency, auto mshr>
constexpr Model model(std::string_view name, double (*pass)(const interval::IntervalColumns&,
                                                            double, const ModelParameters&)) {
  return {name, pass, queues, mshr, delays_of<queues, miss_latency, mshr>};
}

constexpr Model models[] = {
    model<no_queues, average_miss_latency, no_mshr_delay>("naive_interval", single_warp_cycles),
    model<no_queues, average_miss_latency, no_mshr_delay>("markov_chain", markov_cycles),
    model<no_queues, average_miss_latency, no_mshr_delay>("mt", multithreaded_cycles),
    model<no_queues, average_miss_latency, gpumech_mshr_delay>("mt_mshr", multithreaded_cycles),
    model<gpumech_queues, average_miss_latency, gpumech_mshr_delay>("gpumech",
                                                                    multithreaded_cycles),
    model<gpumech_plus_queues, average_miss_latency_with_queues, gpumech_mshr_delay>(
        "gpumech_plus", multithreaded_cycles),
    model<mdm_queues, mdm_miss_latency, gpumech_mshr_delay>("mdm_queue", multithreaded_cycles),
    model<gpumech_plus_queues, mdm_miss_latency, mdm_mshr_delay>("mdm_mshr", multithreaded_cycles),
    model<mdm_queues, mdm_miss_latency, mdm_mshr_delay>("mdm", multithreaded_cycles),
    model<mdm_cal2019_queues, mdm_miss_latency, mdm_mshr_delay>("mdm_cal2019",
                                                                multithreaded_cycles),
    {"mwp_cwp", nullptr, nullptr, nullptr, nullptr, mwp_cwp_wave},
    {"closed_network", nullptr, nullptr, nullptr, nullptr, nullptr, evaluate_closed_network},
};

}  // namespace

ModelParameters ModelParameters::of(const gpu::Gpu& gpu) {
  // Ports and slices work at the clock of L2.
  const double l2_clock = gpu.clock_of_l2_ghz();
  const auto per_sm_cycle = [&](double per_l2_cycle) {
    return per_l2_cycle * l2_clock / gpu.clock_ghz;
  };
  ModelParameters parameters;
  parameters.issue_rate = gpu.issue_width;
  parameters.schedulers = gpu.num_schedulers();
  parameters.scheduler = gpu.scheduler;
  parameters.clock_ghz = gpu.clock_ghz;
  parameters.l1_mshrs = gpu.has_streaming_l1() ? gpu.noc_queue_entries : gpu.l1_mshrs;
  parameters.l1_request_bytes = gpu.l1_sector_bytes;
  parameters.l2_request_bytes = gpu.l2_sector_bytes;
  parameters.l2_latency = gpu.l2_latency;
  parameters.dram_latency = gpu.dram_latency;
  parameters.noc_bandwidth_gbs = gpu.noc_bandwidth_gbs;
  parameters.dram_bandwidth_gbs = gpu.sustained_dram_bandwidth_gbs();
  parameters.dram_efficiency = gpu.dram_efficiency;
  parameters.noc_sm_bytes_per_cycle = per_sm_cycle(gpu.noc_sm_bytes_per_cycle);
  parameters.noc_control_bytes = gpu.noc_control_bytes;
  parameters.l2_requests_per_cycle = per_sm_cycle(gpu.l2_slices / gpu.l2_slice_request_cycles);
  parameters.l2_bytes_per_cycle = per_sm_cycle(gpu.l2_slices * gpu.l2_slice_bytes_per_cycle);
  if (gpu.dram_row_bytes != 0) {
    // CL + 2 - WL from reads to writes, WL + tWTR from writes to reads; for each bank.
    const double cycles = gpu.dram_cl + 2 + gpu.dram_twtr;
    parameters.dram_turnaround_cycles =
        cycles * gpu.clock_ghz / gpu.clock_of_dram_ghz() / gpu.num_dram_channels() / gpu.dram_banks;
  }
  std::ranges::copy(gpu::class_intervals(gpu), parameters.unit_intervals.begin());
  parameters.unit_intervals[static_cast<std::size_t>(trace::OpClass::tensor)] = 0;
  parameters.block_replacement_cycles = gpu.block_replacement_cycles();
  return parameters;
}

void check(const ModelParameters& parameters) {
  const std::pair<const char*, double> positive[] = {
      {"issue_width", parameters.issue_rate},
      {"schedulers_per_sm", parameters.schedulers},
      {"clock_ghz", parameters.clock_ghz},
      {"l1_mshrs", parameters.l1_mshrs},
      {"noc_bandwidth_gbs", parameters.noc_bandwidth_gbs},
      {"dram_bandwidth_gbs", parameters.dram_bandwidth_gbs},
      {"l2_slices", parameters.l2_requests_per_cycle},
      {"l2_sector_bytes", parameters.l2_request_bytes},
  };
  for (const auto& [field, value] : positive) {
    if (!(value > 0)) {
      throw InputError(std::string(field) + " = " + std::to_string(value) + " is not positive");
    }
  }
  const std::pair<const char*, double> given[] = {
      {"l2_latency", parameters.l2_latency},
      {"dram_latency", parameters.dram_latency},
      {"noc_control_bytes", parameters.noc_control_bytes},
      {"noc_sm_bytes_per_cycle", parameters.noc_sm_bytes_per_cycle},
      {"l2_slice_bytes_per_cycle", parameters.l2_bytes_per_cycle},
      {"dram_turnaround_cycles", parameters.dram_turnaround_cycles},
      {"block_replacement_ns", parameters.block_replacement_cycles},
  };
  for (const auto& [field, value] : given) {
    if (!(value >= 0) || !std::isfinite(value)) {
      throw InputError(std::string(field) + " = " + std::to_string(value) +
                       " is not a number from 0 up");
    }
  }
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const Model& model : models) names.push_back(model.name);
  return names;
}

const Model& find_model(std::string_view name) {
  const auto* found = std::ranges::find(models, name, &Model::name);
  if (found != std::end(models)) return *found;
  std::string message = "unknown model \"" + std::string(name) + "\"; the models are";
  for (const Model& model : models) message += " " + std::string(model.name);
  throw InputError(message);
}

bool reads_phases(const Model& model) { return model.of_launch != nullptr; }

std::vector<gpu::FieldName> fields_of(const Model& model) {
  using enum gpu::FieldName;
  if (model.of_launch) {
    return {scheduler,
            schedulers_per_sm,
            l1_mshrs,
            noc_queue_entries,
            clock_ghz,
            noc_bandwidth_gbs,
            noc_sm_bytes_per_cycle,
            noc_control_bytes,
            l2_clock_ghz,
            l2_slices,
            l2_slice_request_cycles,
            l2_slice_bytes_per_cycle,
            dram_bandwidth_gbs,
            dram_channels,
            dram_clock_ghz,
            dram_row_bytes,
            dram_cl,
            dram_twtr,
            dram_banks,
            integer_interval,
            fp32_interval,
            fp16_interval,
            fp64_interval,
            sfu_interval,
            block_replacement_ns};
  }
  if (model.of_wave) return {clock_ghz, dram_bandwidth_gbs, noc_bandwidth_gbs};
  std::vector<gpu::FieldName> fields;
  if (model.pass == multithreaded_cycles) fields.push_back(scheduler);
  if (model.mshr != no_mshr_delay) {
    for (const gpu::FieldName field : {l1_mshrs, noc_queue_entries}) fields.push_back(field);
  }
  if (model.queues != no_queues) {
    for (const gpu::FieldName field : {clock_ghz, dram_bandwidth_gbs}) fields.push_back(field);
    // GPUMech alone has no NoC.
    if (model.queues != gpumech_queues) fields.push_back(noc_bandwidth_gbs);
  }
  return fields;
}

interval::PhaseList phases_of(const ModelInput& kernel, const ModelParameters& parameters) {
  if (!kernel.phases.phases.empty()) return kernel.phases;
  const double of_warp = parameters.issue_rate / parameters.schedulers;
  return interval::phases_of(*kernel.intervals, kernel.waves, of_warp);
}

interval::ResourceDemands demands_of(const ModelInput& kernel, const ModelParameters& parameters) {
  if (kernel.demands) return *kernel.demands;
  return interval::demands_of(*kernel.intervals, parameters.l1_request_bytes,
                              parameters.l2_request_bytes);
}

Evaluator::Evaluator(const Model& model, const ModelInput& kernel)
    : model_(model),
      kernel_(kernel),
      intervals_(*kernel.intervals),
      waves_(kernel.waves),
      instructions_(sum(intervals_.instructions)),
      passes_(waves_.size()) {
  if (intervals_.size() == 0 || !(instructions_ > 0)) {
    throw InputError("the interval profile has no instructions; nothing to predict");
  }
  if (waves_.empty()) throw InputError("the interval profile has no wave of thread blocks");
  const double misses = sum(intervals_.read_misses);
  if (misses > 0) dram_share_ = sum(intervals_.dram_read_requests) / misses;
  if (model.of_launch) {
    lengths_.emplace(intervals_, kernel_.demands ? kernel_.demands->row_waits.get() : nullptr);
    return;
  }
  const double stall = sum(intervals_.stall_cycles);
  for (std::size_t c = 0; c < interval::num_stall_causes && stall > 0; ++c) {
    stalls_[c] = sum(intervals_.stall_by_cause[c]) / stall;
  }
}

void Evaluator::prepare(const ModelParameters& parameters) {
  if (parameters.issue_rate == issue_rate_ && parameters.l1_request_bytes == l1_request_bytes_ &&
      parameters.l2_request_bytes == l2_request_bytes_) {
    return;
  }
  issue_rate_ = parameters.issue_rate;
  l1_request_bytes_ = parameters.l1_request_bytes;
  l2_request_bytes_ = parameters.l2_request_bytes;
  demands_.clear();
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    const IntervalDemand x(intervals_, i, parameters);
    if (x.requests() != 0) demands_.push_back(x);
  }
  for (auto& of_wave : passes_) of_wave = {};
}

double Evaluator::pass(std::size_t wave, const ModelParameters& parameters) {
  std::optional<double>& known = passes_[wave][static_cast<std::size_t>(parameters.scheduler)];
  if (!known) known = model_.pass(intervals_, waves_[wave].warps, parameters);
  return *known;
}

/// Cycles of one wave by component; their sum is the cycles of the wave.
CpiStack<double> Evaluator::evaluate_wave(std::size_t index, const ModelParameters& parameters,
                                          double miss_latency) {
  const interval::Wave& wave = waves_[index];
  if (model_.of_wave) return model_.of_wave(intervals_, wave, parameters, miss_latency);
  WaveMachine machine;
  machine.warps = wave.warps;
  machine.active_sms = wave.active_sms;
  machine.mshrs = parameters.l1_mshrs;
  machine.noc_cycles_per_byte = parameters.clock_ghz / parameters.noc_bandwidth_gbs;
  machine.dram_cycles_per_byte = parameters.clock_ghz / parameters.dram_bandwidth_gbs;
  machine.l2_latency = parameters.l2_latency;
  machine.dram_latency = parameters.dram_latency;
  machine.average_miss_latency = miss_latency;

  const auto [mshr, noc, queue] = model_.delays(demands_, machine);
  const double contention_free = pass(index, parameters);
  // No SM issues more than r instructions per cycle.
  const double issue = wave.warps * instructions_ / parameters.issue_rate;
  const double delays = mshr + noc + queue;
  const double cycles = std::max(contention_free + delays, issue);

  CpiStack<double> stack;
  stack[StackComponent::base] = issue;
  // What multithreading leaves of the stalls, in the proportions of the representative warp
  // (GPUMech, Section VII).
  const double exposed = std::max(contention_free - issue, 0.0);
  double split = 0;
  for (std::size_t c = 1; c < interval::num_stall_causes; ++c) {
    split += stack[interval::stall_causes[c]] = exposed * stalls_[c];
  }
  stack[StackComponent::dep] = std::max(exposed - split, 0.0);
  // Delays below the issue limit cost nothing; the rest of them shows.
  const double shown = cycles - issue - exposed;
  const double scale = delays > 0 ? shown / delays : 0;
  stack[StackComponent::mshr] = mshr * scale;
  stack[StackComponent::noc] = noc * scale;
  stack[StackComponent::queue] = queue * scale;
  return stack;
}

ModelResult Evaluator::evaluate_launch(const ModelParameters& parameters) const {
  const interval::ResourceDemands demands = demands_of(kernel_, parameters);
  if (!kernel_.phases.phases.empty()) {
    return model_.of_launch(kernel_.phases, demands, *lengths_, parameters);
  }
  return model_.of_launch(phases_of(kernel_, parameters), demands, *lengths_, parameters);
}

ModelResult Evaluator::evaluate(const ModelParameters& parameters) {
  check(parameters);
  if (model_.of_launch) return evaluate_launch(parameters);
  prepare(parameters);
  // Mean over the kernel's read misses, weighted by their number (GPUMech, Section IV-B1).
  const double miss_latency = parameters.l2_latency + dram_share_ * parameters.dram_latency;
  ModelResult result;
  for (std::size_t w = 0; w < waves_.size(); ++w) {
    const interval::Wave& wave = waves_[w];
    const CpiStack<double> cycles = evaluate_wave(w, parameters, miss_latency);
    for (const StackComponent c : values_of<StackComponent>) {
      result.stack[c] += wave.count * cycles[c];
      result.cycles += wave.count * cycles[c];
    }
    result.warp_instructions += wave.count * wave.total_warps * instructions_;
    result.sm_instructions += wave.count * wave.warps * instructions_;
  }
  for (double& component : result.stack) component /= result.sm_instructions;
  result.cpi = result.cycles / result.sm_instructions;
  return result;
}

ModelResult evaluate(const Model& model, const interval::IntervalColumns& intervals,
                     std::span<const interval::Wave> waves, const ModelParameters& parameters) {
  return evaluate(model, {&intervals, {waves.begin(), waves.end()}, {}, {}}, parameters);
}

ModelResult evaluate(const Model& model, const ModelInput& kernel,
                     const ModelParameters& parameters) {
  return Evaluator(model, kernel).evaluate(parameters);
}

}  // namespace warpstack::model
