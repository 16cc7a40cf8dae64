// Any bytes are a module or an InputError, and every index in a module points to something, also
// when it is linked with itself. Its kernels are made ready to run or refused.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "common/error.h"
#include "ptx/loaded_module.h"
#include "ptx/text/linker.h"
#include "ptx/text/module.h"
#include "simt/device/device.h"

namespace {

using namespace warpstack::ptx;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::reg:
      require(operand.index < function.registers.size());
      require(operand.component < function.registers[operand.index].vector);
      break;
    case Operand::Kind::label:
      require(operand.index <= function.body.size());
      break;
    case Operand::Kind::targets:
      require(operand.index < function.target_lists.size());
      break;
    case Operand::Kind::prototype:
      require(operand.index < function.prototypes.size());
      break;
    case Operand::Kind::variable:
      require(!operand.name.empty());
      break;
    case Operand::Kind::address:
      require(operand.elements.size() == 1);
      break;
    case Operand::Kind::texture:
      require(operand.elements.size() >= 2);
      break;
    default:
      break;
  }
  for (const Operand& element : operand.elements) check(function, element);
}

void check(const Variable& variable) {
  require(variable.alignment != 0 && (variable.alignment & (variable.alignment - 1)) == 0);
  require(variable.initial.size() <= variable.size);
  for (const AddressInitializer& address : variable.addresses) {
    require(address.offset + address.bytes <= variable.initial.size());
    require(address.byte_shift < 64);
  }
}

void check(const Function& function) {
  require(function.is_declaration == function.body.empty() || !function.is_declaration);
  for (const Instruction& instruction : function.body) {
    require(!instruction.full_opcode().empty());
    if (instruction.guard) {
      require(function.registers.at(*instruction.guard).type == Type::pred);
    }
    for (const Operand& operand : instruction.operands) check(function, operand);
  }
  for (const TargetList& list : function.target_lists) {
    for (const std::uint32_t label : list.labels) require(label <= function.body.size());
  }
  for (const Variable& variable : function.variables) check(variable);
  for (const Variable& variable : function.parameters) {
    if (variable.space == Space::param) check(variable);
  }
}

/// Makes every kernel ready to run. One that is refused does not keep others from it.
void lower_all(const Module& module) {
  warpstack::simt::Device device(std::uint64_t{1} << 20);
  LoadedModule loaded(std::make_shared<const Module>(module), device);
  for (const std::string& kernel : module.kernels()) {
    try {
      loaded.program(kernel);
    } catch (const warpstack::InputError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Module module = parse(text, "fuzz");
    for (const Variable& variable : module.variables) check(variable);
    for (const Function& function : module.functions) check(function);
    for (const std::string& kernel : module.kernels()) require(module.function(kernel) != nullptr);
    lower_all(module);
    const Module linked = link({module, module}, "fuzz");
    for (const Variable& variable : linked.variables) check(variable);
    for (const Function& function : linked.functions) check(function);
    lower_all(linked);
  } catch (const warpstack::InputError&) {
  }
  return 0;
}
