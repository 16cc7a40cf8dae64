#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/units/built_ins.h"

namespace warpstack::simt {

/// Executes calls and returns; each call has a frame of registers.
class Calls {
 public:
  Calls(Execution& execution, Faults& faults, BuiltIns& built_ins)
      : execution_(execution),
        program_(execution.program),
        local_bytes_(execution.local_bytes),
        faults_(faults),
        built_ins_(built_ins) {}

  void call(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  void finish_call(Warp& warp);

 private:
  void enter(Warp& warp, const Step& step, const Call& call, std::uint32_t function,
             std::uint32_t mask);

  const Execution& execution_;
  const KernelProgram& program_;
  const std::uint64_t local_bytes_;
  Faults& faults_;
  BuiltIns& built_ins_;
};

}  // namespace warpstack::simt
