#include "model/multithreading.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/error.h"
#include "common/sum.h"

namespace warpstack::model {
double single_warp_cycles(const interval::IntervalColumns& intervals, double /*warps*/,
                          const ModelParameters& parameters) {
  return sum(intervals.instructions) / parameters.issue_rate + sum(intervals.stall_cycles);
}

double multithreaded_cycles(const interval::IntervalColumns& intervals, double warps,
                            const ModelParameters& parameters) {
  const double rate = parameters.issue_rate;
  const double alone = single_warp_cycles(intervals, warps, parameters);
  const double instructions = sum(intervals.instructions);
  const double issue_probability = instructions / alone;  // Eq. 9
  const double mean_instructions = instructions / static_cast<double>(intervals.size());
  double nonoverlapped = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (parameters.scheduler == gpu::Scheduler::lrr) {
      // Eq. 10, 11. With several issue slots per cycle, Eq. 9 is a rate that may exceed one; a warp
      // still issues at most one instruction per turn.
      nonoverlapped +=
          std::min(issue_probability, 1.0) * (warps - 1) * (intervals.instructions[i] - 1);
    } else {
      // Eq. 12 to 16, with the minimum and maximum that Eq. 15 and 16 print the other way round.
      const double stall = intervals.stall_cycles[i];
      const double issued =
          mean_instructions * std::min(issue_probability * stall, 1.0) * (warps - 1);
      nonoverlapped += std::max(issued - stall * rate, 0.0);
    }
  }
  return alone + nonoverlapped / rate;
}

double markov_all_suspended(unsigned warps, double suspend, double wake) {
  const std::size_t states = std::size_t{warps} + 1;
  // Transition matrix over the number of suspended warps.
  std::vector<double> transition(states * states, 0.0);
  for (std::size_t suspended = 0; suspended < states; ++suspended) {
    const double joins = suspended < warps ? suspend : 0.0;
    // Binomial distribution of the number that stays asleep, built up warp by warp.
    std::vector<double> asleep(suspended + 1, 0.0);
    asleep[0] = 1;
    for (std::size_t warp = 0; warp < suspended; ++warp) {
      for (std::size_t k = warp + 1; k-- > 0;) {
        asleep[k + 1] += asleep[k] * (1 - wake);
        asleep[k] *= wake;
      }
    }
    for (std::size_t k = 0; k <= suspended; ++k) {
      transition[suspended * states + k] += asleep[k] * (1 - joins);
      if (joins > 0) transition[suspended * states + k + 1] += asleep[k] * joins;
    }
  }
  // Stationary distribution by state reduction (Grassmann, Taksar and Heyman), which subtracts
  // nothing and so loses no accuracy. The states leave one by one, the fullest last.
  const auto p = [&](std::size_t from, std::size_t to) -> double& {
    return transition[from * states + to];
  };
  for (std::size_t out = 0; out + 1 < states; ++out) {
    double leaving = 0;
    for (std::size_t to = out + 1; to < states; ++to) leaving += p(out, to);
    if (leaving == 0) return 0;  // the fullest state is never reached
    for (std::size_t from = out + 1; from < states; ++from) {
      const double share = p(from, out) / leaving;
      if (share == 0) continue;
      p(from, out) = share;
      for (std::size_t to = out + 1; to < states; ++to) p(from, to) += share * p(out, to);
    }
  }
  // Back substitution relative to the fullest state.
  std::vector<double> weight(states, 0.0);
  weight[states - 1] = 1;
  double total = 1;
  for (std::size_t state = states - 1; state-- > 0;) {
    for (std::size_t from = state + 1; from < states; ++from) {
      weight[state] += weight[from] * p(from, state);
    }
    total += weight[state];
  }
  return 1 / total;
}

double markov_cycles(const interval::IntervalColumns& intervals, double warps,
                     const ModelParameters& parameters) {
  // The chain has a state for each number of suspended warps and its solution is cubic in it.
  constexpr double most_warps = 2048;
  if (warps > most_warps) {
    throw InputError("markov_chain: " + std::to_string(warps) + " warps on an SM are more than " +
                     std::to_string(most_warps));
  }
  const double instructions = sum(intervals.instructions);
  const double stall = sum(intervals.stall_cycles);
  const double pass = warps * instructions / parameters.issue_rate;
  if (stall == 0) return pass;
  const auto count = static_cast<double>(intervals.size());
  const double stall_slots = stall / count * parameters.issue_rate;
  const double idle =
      markov_all_suspended(static_cast<unsigned>(std::max(std::lround(warps), 1L)),
                           std::min(count / instructions, 1.0), std::min(1 / stall_slots, 1.0));
  return pass / (1 - idle);
}

}  // namespace warpstack::model
