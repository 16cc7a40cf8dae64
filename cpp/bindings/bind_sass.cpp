#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/loaded_module.h"
#include "sass/loaded_module.h"
#include "stand_ins/state/fat_binary.h"

namespace warpstack::bindings {
namespace {

const sass::Kernel& kernel_of(const sass::Module& module, const std::string& name) {
  const sass::Kernel* const kernel = module.kernel(name);
  if (kernel == nullptr) throw InputError(module.file + ": there is no kernel " + name);
  return *kernel;
}

py::list machine_parameters(const sass::Module& module, const std::string& kernel) {
  py::list result;
  for (const sass::Parameter& parameter : kernel_of(module, kernel).parameters) {
    py::dict entry;
    entry["name"] = "";
    entry["type"] = parameter.type;
    entry["is_array"] = parameter.type == "struct";
    entry["offset"] = parameter.offset;
    entry["bytes"] = parameter.bytes;
    result.append(entry);
  }
  return result;
}

/// A kernel's instructions with their control fields, for tables.
py::list machine_body(const sass::Module& module, const std::string& name) {
  py::list result;
  for (const sass::Instruction& instruction : kernel_of(module, name).code) {
    py::dict entry;
    entry["address"] = instruction.address;
    entry["line"] = instruction.line;
    entry["opcode"] = instruction.opcode;
    entry["guard"] = instruction.is_guarded ? instruction.guard.text : "";
    py::list operands;
    for (const sass::Operand& operand : instruction.operands) operands.append(operand.text);
    entry["operands"] = operands;
    entry["stall"] = instruction.control.stall;
    entry["yield"] = instruction.control.yield;
    entry["write_barrier"] = instruction.control.write_barrier;
    entry["read_barrier"] = instruction.control.read_barrier;
    entry["wait_mask"] = instruction.control.wait_mask;
    entry["reuse"] = instruction.control.reuse;
    result.append(entry);
  }
  return result;
}

/// What is wrong with an instruction of a form; empty: it is executed.
std::string problem_of_form(const std::string& opcode, const std::string& operands,
                            std::uint32_t arch) {
  const std::string text = ".sass 1\n.target sm_" + std::to_string(arch) +
                           "\n.kernel form\n.needs 255 0 0 1\n0 0:0 " + opcode +
                           (operands.empty() ? "" : " " + operands) + "\n0 0:0 EXIT\n.end\n";
  try {
    const sass::Module module = sass::parse(text, "<form>");
    return sass::problem_of(module.kernels[0].code[0], arch);
  } catch (const InputError& error) {
    return error.what();
  }
}

std::span<const std::byte> file_view(const py::bytes& data) {
  return std::as_bytes(std::span(std::string_view(data)));
}

/// Machine code in a fat binary, or in a file with some in it, which it points into.
std::vector<cudart::FatBinaryEntry> machine_code_in(const py::bytes& file) {
  std::vector<cudart::FatBinaryEntry> found;
  for (const auto container : cudart::fat_binaries_in(file_view(file))) {
    for (const cudart::FatBinaryEntry& entry : cudart::fat_binary_entries(container)) {
      if (entry.kind == cudart::FatBinaryEntry::Kind::machine_code) found.push_back(entry);
    }
  }
  return found;
}

/// Its architectures: 80 for sm_80.
std::vector<std::uint32_t> fat_binary_targets(const py::bytes& file) {
  std::set<std::uint32_t> targets;
  for (const cudart::FatBinaryEntry& entry : machine_code_in(file)) targets.insert(entry.target);
  return {targets.begin(), targets.end()};
}

/// The cubins for one of them.
std::vector<py::bytes> fat_binary_cubins(const py::bytes& file, std::uint32_t target) {
  std::vector<py::bytes> cubins;
  for (const cudart::FatBinaryEntry& entry : machine_code_in(file)) {
    if (entry.target == target) cubins.emplace_back(cudart::unpack(entry));
  }
  return cubins;
}

}  // namespace

void bind_sass(py::module_& module) {
  py::class_<sass::Module, std::shared_ptr<sass::Module>>(module, "SassModule")
      .def(py::init([](const std::string& text, const std::string& file, bool of_cubin) {
             const py::gil_scoped_release unlocked;
             return std::make_shared<sass::Module>(
                 sass::parse(text, file, of_cubin ? sass::TextOf::cubin : sass::TextOf::listing));
           }),
           py::arg("text"), py::arg("file"), py::arg("of_cubin") = false)
      .def_property_readonly("kernels", &sass::Module::kernel_names)
      .def_readonly("target", &sass::Module::target)
      .def("parameters", &machine_parameters, py::arg("kernel"))
      .def("body", &machine_body, py::arg("kernel"));

  bind_loaded_module<sass::LoadedModule>(module, "SassLoadedModule");

  module.def("fat_binary_targets", &fat_binary_targets, py::arg("file"));
  module.def("fat_binary_cubins", &fat_binary_cubins, py::arg("file"), py::arg("target"));
  module.def("sass_problem", &problem_of_form, py::arg("opcode"), py::arg("operands"),
             py::arg("arch"));
}

}  // namespace warpstack::bindings
