#include "model/model.h"

#include <algorithm>
#include <string>

#include "common/error.h"
#include "model/demand.h"
#include "model/gpumech.h"
#include "model/mdm.h"
#include "model/multithreading.h"
#include "model/mwp_cwp.h"
#include "model/sum.h"

namespace warpstack {

/// A model is a choice of four parts, or one for itself.
struct Model {
  std::string_view name;
  /// Cycles of one pass without contention.
  double (*pass)(const IntervalColumns&, double warps, const ModelParameters&);
  /// Queueing delays of an interval.
  QueueDelays (*queues)(const Demand&, const Machine&);
  /// Round trip of a miss, as the MSHR part sees it.
  double (*miss_latency)(const Demand&, const Machine&, const QueueDelays&);
  /// MSHR delay of an interval.
  double (*mshr)(const Demand&, const Machine&, double miss_latency);
  /// Takes the place of the four parts.
  Stack (*whole)(const IntervalColumns&, const Wave&, const ModelParameters&,
                 double miss_latency) = nullptr;
};

namespace {

QueueDelays no_queues(const Demand&, const Machine&) { return {}; }

double no_mshr_delay(const Demand&, const Machine&, double) { return 0; }

double average_miss_latency(const Demand&, const Machine& machine, const QueueDelays&) {
  return machine.average_miss_latency;
}

double average_miss_latency_with_queues(const Demand&, const Machine& machine,
                                        const QueueDelays& queues) {
  return machine.average_miss_latency + queues.noc + queues.dram;
}

constexpr Model models[] = {
    {"naive_interval", single_warp_cycles, no_queues, average_miss_latency, no_mshr_delay},
    {"markov_chain", markov_cycles, no_queues, average_miss_latency, no_mshr_delay},
    {"mt", multithreaded_cycles, no_queues, average_miss_latency, no_mshr_delay},
    {"mt_mshr", multithreaded_cycles, no_queues, average_miss_latency, gpumech_mshr_delay},
    {"gpumech", multithreaded_cycles, gpumech_queues, average_miss_latency, gpumech_mshr_delay},
    {"gpumech_plus", multithreaded_cycles, gpumech_plus_queues, average_miss_latency_with_queues,
     gpumech_mshr_delay},
    {"mdm_queue", multithreaded_cycles, mdm_queues, mdm_miss_latency, gpumech_mshr_delay},
    {"mdm_mshr", multithreaded_cycles, gpumech_plus_queues, mdm_miss_latency, mdm_mshr_delay},
    {"mdm", multithreaded_cycles, mdm_queues, mdm_miss_latency, mdm_mshr_delay},
    {"mdm_cal2019", multithreaded_cycles, mdm_cal2019_queues, mdm_miss_latency, mdm_mshr_delay},
    {"mwp_cwp", nullptr, nullptr, nullptr, nullptr, mwp_cwp_wave},
};

double& part(Stack& stack, StackComponent component) {
  return stack[static_cast<std::size_t>(component)];
}

/// Mean over the kernel's read misses, weighted by their number (GPUMech, Section IV-B1).
double mean_miss_latency(const IntervalColumns& intervals, const ModelParameters& parameters) {
  double misses = 0;
  double dram = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    misses += intervals.read_misses[i];
    dram += intervals.dram_read_requests[i];
  }
  return parameters.l2_latency + (misses > 0 ? dram / misses * parameters.dram_latency : 0);
}

/// Cycles of one wave by component; their sum is the cycles of the wave.
Stack evaluate_wave(const Model& model, const IntervalColumns& intervals, const Wave& wave,
                    const ModelParameters& parameters, double miss_latency) {
  if (model.whole) return model.whole(intervals, wave, parameters, miss_latency);
  Machine machine;
  machine.warps = wave.warps;
  machine.active_sms = wave.active_sms;
  machine.mshrs = parameters.l1_mshrs;
  machine.noc_cycles_per_byte = parameters.clock_ghz / parameters.noc_bandwidth_gbs;
  machine.dram_cycles_per_byte = parameters.clock_ghz / parameters.dram_bandwidth_gbs;
  machine.l2_latency = parameters.l2_latency;
  machine.dram_latency = parameters.dram_latency;
  machine.average_miss_latency = miss_latency;

  double mshr = 0;
  double noc = 0;
  double queue = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Demand x(intervals, i, parameters);
    if (x.requests() == 0) continue;
    const QueueDelays queues = model.queues(x, machine);
    noc += queues.noc;
    queue += queues.dram;
    mshr += model.mshr(x, machine, model.miss_latency(x, machine, queues));
  }
  const double pass = model.pass(intervals, wave.warps, parameters);
  // No SM issues more than r instructions per cycle.
  const double issue = wave.warps * sum(intervals.instructions) / parameters.issue_rate;
  const double delays = mshr + noc + queue;
  const double cycles = std::max(pass + delays, issue);

  Stack stack{};
  part(stack, StackComponent::base) = issue;
  // What multithreading leaves of the stalls, in the proportions of the representative warp
  // (GPUMech, Section VII).
  const double exposed = std::max(pass - issue, 0.0);
  const double stall = sum(intervals.stall_cycles);
  constexpr StackComponent components[] = {StackComponent::dep, StackComponent::l1,
                                           StackComponent::l2, StackComponent::dram};
  double split = 0;
  for (std::size_t c = 1; c < num_stall_causes; ++c) {
    const double share = stall > 0 ? sum(intervals.stall_by_cause[c]) / stall : 0;
    split += part(stack, components[c]) = exposed * share;
  }
  part(stack, StackComponent::dep) = std::max(exposed - split, 0.0);
  // Delays below the issue limit cost nothing; the rest of them shows.
  const double shown = cycles - issue - exposed;
  const double scale = delays > 0 ? shown / delays : 0;
  part(stack, StackComponent::mshr) = mshr * scale;
  part(stack, StackComponent::noc) = noc * scale;
  part(stack, StackComponent::queue) = queue * scale;
  return stack;
}

void check(const IntervalColumns& intervals, std::span<const Wave> waves,
           const ModelParameters& parameters) {
  if (intervals.size() == 0 || !(sum(intervals.instructions) > 0)) {
    throw InputError("the interval profile has no instructions; nothing to predict");
  }
  if (waves.empty()) throw InputError("the interval profile has no wave of thread blocks");
  const std::pair<const char*, double> positive[] = {
      {"issue_width", parameters.issue_rate},
      {"clock_ghz", parameters.clock_ghz},
      {"l1_mshrs", parameters.l1_mshrs},
      {"noc_bandwidth_gbs", parameters.noc_bandwidth_gbs},
      {"dram_bandwidth_gbs", parameters.dram_bandwidth_gbs},
  };
  for (const auto& [field, value] : positive) {
    if (!(value > 0)) {
      throw InputError(std::string(field) + " = " + std::to_string(value) + " is not positive");
    }
  }
}

}  // namespace

std::string_view name_of(Scheduler scheduler) {
  static constexpr std::string_view names[num_schedulers] = {"gto", "lrr"};
  return names[static_cast<std::size_t>(scheduler)];
}

std::string_view name_of(StackComponent component) {
  static constexpr std::string_view names[num_stack_components] = {"base", "dep",  "l1",  "l2",
                                                                   "dram", "mshr", "noc", "queue"};
  return names[static_cast<std::size_t>(component)];
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

std::vector<std::string_view> fields_of(const Model& model) {
  if (model.whole) return {"clock_ghz", "dram_bandwidth_gbs", "noc_bandwidth_gbs"};
  std::vector<std::string_view> fields;
  if (model.pass == multithreaded_cycles) fields.emplace_back("scheduler");
  if (model.mshr != no_mshr_delay) {
    fields.insert(fields.end(), {"l1_mshrs", "noc_queue_entries"});
  }
  if (model.queues != no_queues) {
    fields.insert(fields.end(), {"clock_ghz", "dram_bandwidth_gbs"});
    // GPUMech alone has no NoC.
    if (model.queues != gpumech_queues) fields.emplace_back("noc_bandwidth_gbs");
  }
  return fields;
}

ModelResult evaluate(const Model& model, const IntervalColumns& intervals,
                     std::span<const Wave> waves, const ModelParameters& parameters) {
  check(intervals, waves, parameters);
  const double instructions = sum(intervals.instructions);
  const double miss_latency = mean_miss_latency(intervals, parameters);
  ModelResult result;
  for (const Wave& wave : waves) {
    const Stack cycles = evaluate_wave(model, intervals, wave, parameters, miss_latency);
    for (std::size_t c = 0; c < num_stack_components; ++c) {
      result.stack[c] += wave.count * cycles[c];
      result.cycles += wave.count * cycles[c];
    }
    result.warp_instructions += wave.count * wave.total_warps * instructions;
    result.sm_instructions += wave.count * wave.warps * instructions;
  }
  for (double& component : result.stack) component /= result.sm_instructions;
  result.cpi = result.cycles / result.sm_instructions;
  return result;
}

}  // namespace warpstack
