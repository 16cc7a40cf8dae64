// Any bytes are a module of machine code or an InputError. Its kernels are made ready to run or
// refused.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "common/error.h"
#include "sass/loaded_module.h"
#include "simt/device/device.h"

namespace {

using namespace warpstack;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Steps lead to steps, and rows are there.
void check(const simt::KernelProgram& program) {
  const simt::ProgramFunction& function = program.functions[0];
  for (const simt::Step& step : function.steps) {
    require(step.instruction < function.instructions.size());
    require(step.first_row == simt::none || step.first_row < program.rows.size());
    require(step.action != simt::Action::branch || step.jump < function.steps.size());
    require(step.operands.target + 128 <= function.register_bytes);
  }
  require(function.constants.size() == function.register_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto module = std::make_shared<sass::Module>(sass::parse(text, "fuzz.sass"));
    simt::Device device(std::uint64_t{1} << 24);
    sass::LoadedModule loaded(module, device);
    for (const std::string& name : module->kernel_names()) {
      try {
        check(loaded.program(name));
      } catch (const InputError&) {
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
