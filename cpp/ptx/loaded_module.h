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
  /// Throws InputError when the device is full, an initial value names an unknown symbol, or there
  /// are more constants than a GPU has room for.
  LoadedModule(std::shared_ptr<const Module> module, simt::Device& device);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  [[nodiscard]] const Module& module() const { return *module_; }
  [[nodiscard]] simt::Device& device() const { return device_; }
  /// A kernel ready to run; it is lowered at the first call. Throws InputError when there is no
  /// such kernel or an instruction is not supported, and names the instruction, its line and the
  /// kernel.
  const simt::KernelProgram& program(std::string_view kernel);

  /// Address and bytes of a `.global` or `.const` variable. Throws InputError for others.
  struct Symbol {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  [[nodiscard]] Symbol symbol(std::string_view name) const;
  /// The kernel at an address of the module's code, or null.
  [[nodiscard]] const Function* kernel_at(std::uint64_t address) const;
  /// Binds a `.texref` or `.surfref` variable. Throws InputError for others.
  void bind_texture(std::string_view name, std::uint64_t texture_object);
  /// The objects that texture references are bound to, by number; 0: none.
  [[nodiscard]] std::span<const std::uint64_t> bound_textures() const { return bound_textures_; }

 private:
  void place_variables();
  /// Writes the addresses in initial values.
  void set_addresses();
  void free_variables();

  std::shared_ptr<const Module> module_;
  simt::Device& device_;
  std::unique_ptr<SymbolTable> symbols_;
  std::vector<std::uint64_t> allocations_;
  std::vector<std::uint64_t> bound_textures_;
  std::map<std::string, std::unique_ptr<const simt::KernelProgram>, std::less<>> programs_;
};

/// The place of a kernel's parameter in the parameter buffer.
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
