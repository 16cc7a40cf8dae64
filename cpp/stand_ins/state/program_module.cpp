#include "stand_ins/state/program_module.h"

#include <utility>

#include "common/error.h"
#include "ptx/loaded_module.h"
#include "ptx/text/linker.h"
#include "sass/loaded_module.h"

namespace warpstack::cudart {
namespace {

class PtxModule final : public ProgramModule {
 public:
  PtxModule(std::shared_ptr<const ptx::Module> module, simt::Device& device)
      : loaded_(std::move(module), device) {}

  [[nodiscard]] bool is_machine_code() const override { return false; }
  const simt::KernelProgram& program(std::string_view kernel) override {
    return loaded_.program(kernel);
  }
  [[nodiscard]] std::vector<Argument> arguments(std::string_view kernel) const override {
    std::vector<Argument> result;
    for (const ptx::ParameterSlot& slot : ptx::parameters_of(loaded_.module(), kernel)) {
      result.push_back({slot.offset, slot.bytes});
    }
    return result;
  }
  [[nodiscard]] std::string kernel_at(std::uint64_t address) const override {
    const ptx::Function* const kernel = loaded_.kernel_at(address);
    return kernel == nullptr ? std::string() : kernel->name;
  }
  [[nodiscard]] Variable variable(std::string_view name) const override {
    const ptx::LoadedModule::Symbol symbol = loaded_.symbol(name);
    return {symbol.address, symbol.bytes};
  }
  void bind_texture(std::string_view name, std::uint64_t texture_object) override {
    loaded_.bind_texture(name, texture_object);
  }
  simt::LaunchResult launch(std::string_view kernel, std::span<const std::byte> parameters,
                            const simt::LaunchOptions& options) override {
    return ptx::launch(loaded_, kernel, parameters, options);
  }

 private:
  ptx::LoadedModule loaded_;
};

class MachineModule final : public ProgramModule {
 public:
  MachineModule(std::shared_ptr<const sass::Module> module, simt::Device& device)
      : loaded_(std::move(module), device) {}

  [[nodiscard]] bool is_machine_code() const override { return true; }
  const simt::KernelProgram& program(std::string_view kernel) override {
    return loaded_.program(kernel);
  }
  [[nodiscard]] std::vector<Argument> arguments(std::string_view kernel) const override {
    const sass::Kernel* const found = loaded_.module().kernel(kernel);
    if (found == nullptr) {
      throw InputError(loaded_.module().file + ": there is no kernel " + std::string(kernel));
    }
    std::vector<Argument> result;
    for (const sass::Parameter& parameter : found->parameters) {
      result.push_back({parameter.offset, parameter.bytes});
    }
    return result;
  }
  [[nodiscard]] std::string kernel_at(std::uint64_t) const override { return {}; }
  [[nodiscard]] Variable variable(std::string_view name) const override {
    const sass::LoadedModule::Location location = loaded_.symbol(name);
    return {location.address, location.bytes};
  }
  void bind_texture(std::string_view name, std::uint64_t) override {
    throw InputError(loaded_.module().file + ": texture reference " + std::string(name) +
                     ": texture references of machine code are not executed; run the program's PTX "
                     "(without --machine-code)");
  }
  simt::LaunchResult launch(std::string_view kernel, std::span<const std::byte> parameters,
                            const simt::LaunchOptions& options) override {
    return sass::launch(loaded_, kernel, parameters, options);
  }

 private:
  sass::LoadedModule loaded_;
};

}  // namespace

std::unique_ptr<ProgramModule> load_ptx(const std::vector<PtxImage>& images,
                                        const std::string& name, simt::Device& device) {
  std::vector<ptx::Module> modules;
  for (const PtxImage& image : images) modules.push_back(ptx::parse(image.text, image.name));
  return std::make_unique<PtxModule>(
      std::make_shared<const ptx::Module>(ptx::link(std::move(modules), name)), device);
}

std::unique_ptr<ProgramModule> load_machine_code(std::string_view listing, const std::string& name,
                                                 simt::Device& device) {
  return std::make_unique<MachineModule>(
      std::make_shared<const sass::Module>(sass::parse(listing, name, sass::TextOf::cubin)),
      device);
}

}  // namespace warpstack::cudart
