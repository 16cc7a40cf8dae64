#include "sass/loaded_module.h"

#include <utility>

#include "common/error.h"

namespace warpstack::sass {
namespace {

/// Whether a section is memory or the bank of `__constant__` variables, which programs write.
bool is_in_memory(const Section& section) { return section.bank() < 0 || section.bank() == 3; }

}  // namespace

LoadedModule::LoadedModule(std::shared_ptr<const Module> module, simt::Device& device)
    : module_(std::move(module)), device_(device) {
  constexpr std::uint32_t last_known = 121;
  if (module_->arch == 0 || module_->arch > last_known) {
    throw InputError(
        module_->file + ": machine code for " +
        (module_->target.empty() ? "an architecture that is not named" : module_->target) +
        " is not executed; compile for sm_75 to sm_121");
  }
  try {
    place_sections();
  } catch (...) {
    free_sections();
    throw;
  }
}

void LoadedModule::place_sections() {
  for (const Section& section : module_->sections) {
    if (!is_in_memory(section) || section.size == 0) continue;
    try {
      addresses_[section.name] = device_.memory.allocate(section.size, section.name);
    } catch (const InputError& error) {
      throw InputError(module_->file + ": section " + section.name + ": " + error.what());
    }
  }
  for (const Section& section : module_->sections) {
    const auto place = addresses_.find(section.name);
    if (place == addresses_.end()) continue;
    device_.memory.fill(place->second, 0, section.size);
    if (section.bytes.empty() && section.addresses.empty()) continue;
    const std::vector<std::byte> bytes = contents_of(*module_, section, addresses_);
    device_.memory.write(place->second, bytes.data(), bytes.size());
  }
}

LoadedModule::~LoadedModule() { free_sections(); }

void LoadedModule::free_sections() {
  for (const auto& [name, address] : addresses_) device_.memory.free(address);
}

const simt::KernelProgram& LoadedModule::program(std::string_view kernel) {
  auto found = programs_.find(kernel);
  if (found == programs_.end()) {
    auto program = std::make_unique<const simt::KernelProgram>(lower(*module_, kernel, addresses_));
    found = programs_.emplace(std::string(kernel), std::move(program)).first;
  }
  return *found->second;
}

LoadedModule::Location LoadedModule::symbol(std::string_view name) const {
  const auto found = module_->symbols.find(name);
  const auto place =
      found == module_->symbols.end() ? addresses_.end() : addresses_.find(found->second.section);
  if (place == addresses_.end()) {
    throw InputError(module_->file + ": there is no global or constant variable " +
                     std::string(name));
  }
  return {place->second + found->second.offset, found->second.bytes};
}

simt::LaunchResult launch(LoadedModule& module, std::string_view kernel,
                          std::span<const std::byte> parameters,
                          const simt::LaunchOptions& options) {
  return simt::launch(module.device(), module.program(kernel), parameters, options);
}

}  // namespace warpstack::sass
