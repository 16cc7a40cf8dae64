#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simt/device/device.h"
#include "simt/state/launch.h"
#include "stand_ins/state/fat_binary.h"

namespace warpstack::cudart {

/// A module of a program, in PTX or machine code, loaded onto the device.
class ProgramModule {
 public:
  /// A device variable.
  struct Variable {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  /// The place of an argument in a kernel's parameter buffer.
  struct Argument {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  virtual ~ProgramModule() = default;
  [[nodiscard]] virtual bool is_machine_code() const = 0;
  /// A kernel ready to run. Throws InputError when there is no such kernel, or an instruction is
  /// not executed.
  virtual const simt::KernelProgram& program(std::string_view kernel) = 0;
  /// The arguments of a kernel, in order. Throws InputError when there is no such kernel.
  [[nodiscard]] virtual std::vector<Argument> arguments(std::string_view kernel) const = 0;
  /// The kernel at this address of device code; empty: none.
  [[nodiscard]] virtual std::string kernel_at(std::uint64_t address) const = 0;
  /// Throws InputError when there is no such variable.
  [[nodiscard]] virtual Variable variable(std::string_view name) const = 0;
  /// Binds a texture reference. Throws InputError for other variables, and for machine code.
  virtual void bind_texture(std::string_view name, std::uint64_t texture_object) = 0;
  /// Runs a kernel, see simt::launch().
  virtual simt::LaunchResult launch(std::string_view kernel, std::span<const std::byte> parameters,
                                    const simt::LaunchOptions& options) = 0;
};

/// Reads PTX, links it and loads it. Throws InputError as ptx::parse, ptx::link and
/// ptx::LoadedModule do.
std::unique_ptr<ProgramModule> load_ptx(const std::vector<PtxImage>& images,
                                        const std::string& name, simt::Device& device);
/// Reads a listing of machine code and loads it. Throws InputError as sass::parse and
/// sass::LoadedModule do.
std::unique_ptr<ProgramModule> load_machine_code(std::string_view listing, const std::string& name,
                                                 simt::Device& device);

}  // namespace warpstack::cudart
