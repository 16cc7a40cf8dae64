#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trace/columns/trace_builder.h"

namespace warpstack::testing {

inline std::shared_ptr<trace::StorageBudget> memory_budget(std::uint64_t bytes = std::uint64_t{1}
                                                                                 << 40) {
  return std::make_shared<trace::StorageBudget>(bytes, ::testing::TempDir());
}

inline trace::KernelHeader header(std::uint64_t blocks, std::uint64_t threads,
                                  const std::string& name = "kernel") {
  trace::KernelHeader result;
  result.name = name;
  result.grid = {blocks, 1, 1};
  result.block = {threads, 1, 1};
  result.registers_per_thread = 16;
  return result;
}

/// An instruction for `make_kernel`: opcode, registers, and addresses by thread of the launch.
struct Step {
  std::string opcode;
  std::vector<std::uint16_t> destinations;
  std::vector<std::uint16_t> sources;
  std::function<std::uint64_t(std::uint64_t)> address;
};

/// Every warp of the launch runs the same steps with all lanes.
inline trace::KernelTrace make_kernel(
    std::uint64_t blocks, std::uint64_t threads, const std::vector<Step>& steps,
    std::shared_ptr<trace::StorageBudget> budget = memory_budget(),
    const std::string& name = "kernel", std::uint64_t launch_id = 0) {
  trace::KernelHeader described = header(blocks, threads, name);
  described.launch_id = launch_id;
  trace::TraceBuilder builder(std::move(described), std::move(budget));
  std::vector<std::uint32_t> rows;
  for (const Step& step : steps) {
    rows.push_back(builder.intern(
        trace::make_static_instruction(static_cast<std::uint32_t>(16 * rows.size()), step.opcode,
                                       step.destinations, step.sources)));
  }
  for (std::uint64_t block = 0; block < blocks; ++block) {
    builder.begin_block(block);
    for (std::uint32_t warp = 0; warp < threads / trace::warp_size; ++warp) {
      builder.begin_warp(warp);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        trace::LaneAddresses lanes;
        lanes.mask = 0xffffffff;
        if (steps[i].address) {
          for (std::uint32_t lane = 0; lane < trace::warp_size; ++lane) {
            lanes.address[lane] =
                steps[i].address(block * threads + warp * trace::warp_size + lane);
          }
        }
        builder.append(rows[i], lanes.mask, steps[i].address ? &lanes : nullptr);
      }
    }
    builder.end_block();
  }
  return builder.finish();
}

}  // namespace warpstack::testing
