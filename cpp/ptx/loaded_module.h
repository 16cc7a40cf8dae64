#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/text/module.h"
#include "simt/device/device.h"
#include "simt/state/launch.h"

namespace warpstack::ptx {

struct SymbolTable;

/// A module loaded onto a device: its variables have addresses and their initial values.
class LoadedModule {
 public:
  /// Throws InputError when the device is full, a variable's initial value names nothing, or there
  /// are more constants than a GPU has room for.
  LoadedModule(std::shared_ptr<const Module> module, simt::Device& device);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  [[nodiscard]] const Module& module() const { return *module_; }
  [[nodiscard]] simt::Device& device() const { return device_; }
  /// A kernel made ready to run, at the first call. Throws InputError when there is no such kernel,
  /// and when an instruction is not supported: it names the instruction, its line and the kernel.
  const simt::KernelProgram& program(std::string_view kernel);

  /// Address and bytes of a `.global` or `.const` variable. Throws InputError for others.
  struct Symbol {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  [[nodiscard]] Symbol symbol(std::string_view name) const;
  /// The kernel whose address in the module's code is this; null: none.
  [[nodiscard]] const Function* kernel_at(std::uint64_t address) const;
  /// Binds a `.texref` or `.surfref` variable. Throws InputError for others.
  void bind_texture(std::string_view name, std::uint64_t texture_object);
  /// What the texture references are bound to, by number; 0: nothing.
  [[nodiscard]] std::span<const std::uint64_t> bound_textures() const { return bound_textures_; }

 private:
  void place_variables();
  /// Writes the addresses that initial values contain.
  void set_addresses();
  void free_variables();

  std::shared_ptr<const Module> module_;
  simt::Device& device_;
  std::unique_ptr<SymbolTable> symbols_;
  std::vector<std::uint64_t> allocations_;
  std::vector<std::uint64_t> bound_textures_;
  std::map<std::string, std::unique_ptr<const simt::KernelProgram>, std::less<>> programs_;
};

/// One parameter of a kernel: where it lies in the parameter buffer.
struct ParameterSlot {
  std::string name;
  Type type = Type::none;
  bool is_array = false;  ///< a structure passed by value
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Parameters of a kernel, in order. Throws InputError when the module has no kernel of that name.
std::vector<ParameterSlot> parameters_of(const Module& module, std::string_view kernel);

/// Runs a kernel of a module, see simt::launch(). `parameters` is laid out by parameters_of().
/// Throws InputError also when there is no such kernel.
simt::LaunchResult launch(LoadedModule& module, std::string_view kernel,
                          std::span<const std::byte> parameters,
                          const simt::LaunchOptions& options);

}  // namespace warpstack::ptx
