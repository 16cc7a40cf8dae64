#include "ptx/loaded_module.h"

#include <cstring>

#include "common/error.h"
#include "ptx/lower/lower.h"

namespace warpstack::ptx {

LoadedModule::LoadedModule(std::shared_ptr<const Module> module, Device& device)
    : module_(std::move(module)), device_(device), symbols_(std::make_unique<SymbolTable>()) {
  try {
    place_variables();
    set_addresses();
  } catch (...) {
    free_variables();
    throw;
  }
}

void LoadedModule::place_variables() {
  std::uint64_t constant_bytes = 0;
  for (const Variable& variable : module_->variables) {
    if (!variable.opaque.empty()) {
      symbols_->texture_references.emplace(variable.name, bound_textures_.size());
      bound_textures_.push_back(0);
      continue;
    }
    if (variable.space != Space::global && variable.space != Space::constant) continue;
    if (variable.is_extern()) continue;  // an error when an instruction names it
    const auto fail = [&](const std::string& what) {
      throw InputError(module_->file_of(variable) + ":" + std::to_string(variable.line) +
                       ": variable " + variable.name + ": " + what);
    };
    if (variable.space == Space::constant) {
      constant_bytes =
          (constant_bytes + variable.alignment - 1) / variable.alignment * variable.alignment;
      if (variable.size > max_constant_bytes ||
          constant_bytes + variable.size > max_constant_bytes) {
        fail("with it the .const variables take " + std::to_string(constant_bytes + variable.size) +
             " bytes, at most " + std::to_string(max_constant_bytes) +
             " are possible; keep large ones in .global");
      }
      constant_bytes += variable.size;
    }
    std::uint64_t address = 0;
    try {
      address = device_.memory.allocate(variable.size, variable.name);
    } catch (const InputError& error) {
      fail(error.what());
    }
    allocations_.push_back(address);
    symbols_->addresses.emplace(variable.name, address);
    // Variables without an initial value are zero.
    device_.memory.fill(address, 0, variable.size);
    device_.memory.write(address, variable.initial.data(), variable.initial.size());
  }
}

void LoadedModule::set_addresses() {
  for (const Variable& variable : module_->variables) {
    for (const AddressInitializer& initial : variable.addresses) {
      const auto target = symbols_->addresses.find(initial.symbol);
      std::uint64_t value = 0;
      if (target != symbols_->addresses.end()) {
        value = target->second;
      } else if (const Function* function = module_->function(initial.symbol);
                 function != nullptr) {
        value = function_address(*module_, *function);
      } else {
        throw InputError(module_->file_of(variable) + ":" + std::to_string(variable.line) +
                         ": variable " + variable.name + " holds the address of " + initial.symbol +
                         ", which is not a global variable, function or kernel of the module");
      }
      value = (value + static_cast<std::uint64_t>(initial.addend)) >> initial.byte_shift;
      device_.memory.write(symbols_->addresses.at(variable.name) + initial.offset, &value,
                           initial.bytes);
    }
  }
}

LoadedModule::~LoadedModule() { free_variables(); }

void LoadedModule::free_variables() {
  for (const std::uint64_t address : allocations_) device_.memory.free(address);
}

const KernelProgram& LoadedModule::program(std::string_view kernel) {
  auto found = programs_.find(kernel);
  if (found == programs_.end()) {
    auto program = std::make_unique<const KernelProgram>(lower(*module_, kernel, *symbols_));
    found = programs_.emplace(std::string(kernel), std::move(program)).first;
  }
  return *found->second;
}

LoadedModule::Symbol LoadedModule::symbol(std::string_view name) const {
  const auto found = symbols_->addresses.find(name);
  if (found == symbols_->addresses.end()) {
    throw InputError(module_->file + ": there is no global or constant variable " +
                     std::string(name));
  }
  return {found->second, module_->variable(name)->size};
}

void LoadedModule::bind_texture(std::string_view name, std::uint64_t texture_object) {
  const auto found = symbols_->texture_references.find(name);
  if (found == symbols_->texture_references.end()) {
    throw InputError(module_->file + ": there is no texture reference " + std::string(name));
  }
  bound_textures_[found->second] = texture_object;
}

const Function* LoadedModule::kernel_at(std::uint64_t address) const {
  for (const Function& function : module_->functions) {
    if (function.is_entry && function_address(*module_, function) == address) return &function;
  }
  return nullptr;
}

std::vector<ParameterSlot> parameters_of(const Module& module, std::string_view kernel) {
  const Function* function = module.function(kernel);
  if (function == nullptr || !function->is_entry) {
    throw InputError(module.file + ": there is no kernel " + std::string(kernel));
  }
  const std::vector<std::uint64_t> offsets = parameter_offsets(module, *function);
  std::vector<ParameterSlot> slots;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Variable& parameter = function->parameters[i];
    slots.push_back(
        {parameter.name, parameter.type, parameter.is_array, offsets[i], parameter.size});
  }
  return slots;
}

simt::LaunchResult launch(LoadedModule& module, std::string_view kernel,
                          std::span<const std::byte> parameters,
                          const simt::LaunchOptions& options) {
  return simt::launch(module.device(), module.program(kernel), parameters, options,
                      module.bound_textures());
}

}  // namespace warpstack::ptx
