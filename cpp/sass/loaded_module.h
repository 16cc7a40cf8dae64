#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sass/lower/lower.h"
#include "sass/text/module.h"
#include "simt/device/device.h"
#include "simt/state/launch.h"

namespace warpstack::sass {

/// A module loaded onto a device: its variables have addresses and their initial values.
class LoadedModule {
 public:
  /// Throws InputError when the device is full.
  LoadedModule(std::shared_ptr<const Module> module, simt::Device& device);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  [[nodiscard]] const Module& module() const { return *module_; }
  [[nodiscard]] simt::Device& device() const { return device_; }
  /// A kernel ready to run; it is lowered at the first call. Throws InputError when there is no
  /// such kernel or an instruction is not executed, and names the instruction, its place and the
  /// kernel.
  const simt::KernelProgram& program(std::string_view kernel);

  /// Address and bytes of a variable. Throws InputError for others.
  struct Location {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  [[nodiscard]] Location symbol(std::string_view name) const;

 private:
  void place_sections();
  void free_sections();

  std::shared_ptr<const Module> module_;
  simt::Device& device_;
  SectionAddresses addresses_;
  std::map<std::string, std::unique_ptr<const simt::KernelProgram>, std::less<>> programs_;
};

/// Runs a kernel of a module, see simt::launch(). Throws InputError also when there is no such
/// kernel.
simt::LaunchResult launch(LoadedModule& module, std::string_view kernel,
                          std::span<const std::byte> parameters,
                          const simt::LaunchOptions& options);

}  // namespace warpstack::sass
