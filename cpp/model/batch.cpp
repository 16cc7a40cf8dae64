#include "model/batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "model/evaluator.h"

namespace warpstack::model {
namespace {

/// Configurations of one kernel that a thread takes at a time.
constexpr std::size_t configurations_per_turn = 1024;

}  // namespace

ModelColumns evaluate_all(const Model& model, std::span<const ModelInput> kernels,
                          std::span<const ModelParameters> configurations, unsigned num_threads,
                          const InterruptCheck& interrupt) {
  // The first wrong one is the one that is named, whatever the threads.
  for (const ModelParameters& configuration : configurations) check(configuration);
  const std::size_t size = kernels.size() * configurations.size();
  ModelColumns columns;
  columns.cycles.resize(size);
  columns.warp_instructions.resize(size);
  columns.cpi.resize(size);
  for (std::vector<double>& component : columns.stack) component.resize(size);

  const std::size_t parts =
      (configurations.size() + configurations_per_turn - 1) / configurations_per_turn;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  // The helpers may leave nothing to the caller, who alone asks later.
  if (interrupt) interrupt();
  const auto work = [&](bool may_interrupt) {
    try {
      for (std::size_t turn = next++; turn < kernels.size() * parts; turn = next++) {
        if (may_interrupt && interrupt) interrupt();
        const std::size_t k = turn / parts;
        const std::size_t first = turn % parts * configurations_per_turn;
        const std::size_t last = std::min(first + configurations_per_turn, configurations.size());
        Evaluator evaluator(model, kernels[k]);
        for (std::size_t c = first; c < last; ++c) {
          const ModelResult result = evaluator.evaluate(configurations[c]);
          const std::size_t entry = c * kernels.size() + k;
          columns.cycles[entry] = result.cycles;
          columns.warp_instructions[entry] = result.warp_instructions;
          columns.cpi[entry] = result.cpi;
          for (const StackComponent s : values_of<StackComponent>) {
            columns.stack[s][entry] = result.stack[s];
          }
        }
      }
    } catch (...) {
      next = kernels.size() * parts;
      const std::scoped_lock lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const std::size_t most_threads = std::max<std::size_t>(kernels.size() * parts, 1);
  {
    std::vector<std::jthread> helpers;
    for (unsigned t = 1; t < std::min<std::size_t>(num_threads, most_threads); ++t) {
      helpers.emplace_back(work, false);
    }
    work(true);
  }
  if (failure) std::rethrow_exception(failure);
  return columns;
}

}  // namespace warpstack::model
