#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ptx/lower/layout.h"

namespace warpstack::ptx {

/// The places of the variables that a function names.
class Variables {
 public:
  Variables(const Module& module, const SymbolTable& symbols, const KernelLayout& layout,
            const Function& function, bool is_kernel)
      : module_(module),
        symbols_(symbols),
        layout_(layout),
        function_(function),
        is_kernel_(is_kernel) {}

  using Offsets = std::map<std::string, std::uint64_t>;

  /// Places the function's own variables in its parameter area and local memory, and writes their
  /// sizes to `result`.
  void place(ProgramFunction& result);

  /// Offsets of parameters of this function and of its calls, in its parameter area.
  [[nodiscard]] const Offsets& parameters() const { return parameters_; }
  /// Offsets of the kernel's parameters, in their buffer; empty in other functions.
  [[nodiscard]] const Offsets& kernel_parameters() const { return kernel_parameters_; }
  /// Offsets of local variables.
  [[nodiscard]] const Offsets& local() const { return local_; }
  /// The piece of the parameter area of a call's `.param` variable. Throws Unsupported for other
  /// names.
  [[nodiscard]] Call::Piece argument(const std::string& name) const;
  /// Whether a name is a `.param` variable that can be an argument of calls.
  [[nodiscard]] bool is_argument(const std::string& name) const {
    return argument_bytes_.contains(name);
  }
  /// A piece of the parameter area for an argument of a call that is not a `.param` variable. `end`
  /// is the end of this call's pieces, 0 before the first, and is set behind the new one.
  Call::Piece temporary_argument(const Variable& parameter, std::uint64_t& end);
  /// The additional parameter of functions when threads allocate on their stacks: the bytes of the
  /// stack in use.
  static Variable stack_parameter();
  /// Bytes of the parameter area.
  [[nodiscard]] std::uint32_t parameter_bytes() const;
  /// Addresses that are known before a launch: of shared, global and constant variables, of kernel
  /// parameters (offsets) and functions.
  [[nodiscard]] std::uint64_t static_address(const std::string& name) const;
  /// Whether the name is that of a shared variable.
  [[nodiscard]] bool is_shared(const std::string& name) const;

 private:
  /// The start of a variable behind others that end at `end`; all of them fit local memory.
  [[nodiscard]] std::uint64_t placed(const Variable& variable, std::uint64_t end,
                                     const char* what) const;

  const Module& module_;
  const SymbolTable& symbols_;
  const KernelLayout& layout_;
  const Function& function_;
  bool is_kernel_;
  Offsets parameters_;
  Offsets kernel_parameters_;
  Offsets local_;
  std::uint64_t declared_end_ = 0;  ///< of the declared variables in the parameter area
  std::uint64_t parameter_end_ = 0;
  std::map<std::string, std::uint32_t> argument_bytes_;
};

}  // namespace warpstack::ptx
