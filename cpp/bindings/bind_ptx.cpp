#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/loaded_module.h"
#include "ptx/loaded_module.h"
#include "ptx/text/special_register.h"
#include "simt/program/tensor_map.h"

namespace warpstack::bindings {
namespace {

using ptx::LoadedModule;
using ptx::Module;
using simt::Device;

py::list parameters(const Module& module, const std::string& kernel) {
  py::list result;
  for (const ptx::ParameterSlot& slot : ptx::parameters_of(module, kernel)) {
    py::dict entry;
    entry["name"] = slot.name;
    entry["type"] = std::string(ptx::name_of(slot.type));
    entry["is_array"] = slot.is_array;
    entry["offset"] = slot.offset;
    entry["bytes"] = slot.bytes;
    result.append(entry);
  }
  return result;
}

py::dict operand_to_dict(const ptx::Function& function, const ptx::Operand& operand) {
  using Kind = ptx::Operand::Kind;
  py::dict result;
  const auto elements = [&] {
    py::list list;
    for (const ptx::Operand& element : operand.elements) {
      list.append(operand_to_dict(function, element));
    }
    return list;
  };
  switch (operand.kind) {
    case Kind::reg:
      result["reg"] = function.registers[operand.index].name;
      break;
    case Kind::special:
      result["special"] = std::string(ptx::name_of(operand.special));
      result["component"] = operand.component;
      break;
    case Kind::integer:
      result["integer"] = operand.integer;
      break;
    case Kind::variable:
      result["variable"] = operand.name;
      result["integer"] = operand.integer;
      break;
    case Kind::label:
      result["label"] = operand.name;
      result["index"] = operand.index;
      break;
    case Kind::address:
      result["address"] = elements();
      result["integer"] = operand.integer;
      break;
    case Kind::targets:
      result["labels"] = function.target_lists[operand.index].labels;
      break;
    default:
      result["elements"] = elements();
  }
  return result;
}

/// A kernel's instructions as parsed, for analyses that do not run it.
py::list body(const Module& module, const std::string& kernel) {
  const ptx::Function* const function = module.function(kernel);
  if (!function) throw InputError(module.file + ": there is no kernel " + kernel);
  py::list result;
  for (const ptx::Instruction& instruction : function->body) {
    py::dict entry;
    entry["opcode"] = instruction.opcode;
    entry["modifiers"] = instruction.modifiers;
    entry["line"] = instruction.line;
    py::list operands;
    for (const ptx::Operand& operand : instruction.operands) {
      operands.append(operand_to_dict(*function, operand));
    }
    entry["operands"] = operands;
    entry["guard"] = py::none();
    if (instruction.guard) entry["guard"] = function->registers[*instruction.guard].name;
    result.append(entry);
  }
  return result;
}

/// Reads a texture description; the Python side has checked it.
std::uint64_t add_texture(Device& device, const py::dict& fields) {
  simt::Texture texture;
  texture.address = fields["address"].cast<std::uint64_t>();
  texture.dimensions = fields["dimensions"].cast<std::uint32_t>();
  texture.size = fields["size"].cast<std::array<std::uint64_t, 3>>();
  texture.row_bytes = fields["row_bytes"].cast<std::uint64_t>();
  texture.slice_bytes = fields["slice_bytes"].cast<std::uint64_t>();
  texture.layers = fields["layers"].cast<std::uint64_t>();
  texture.cube = fields["cube"].cast<bool>();
  texture.format = static_cast<simt::Texture::Format>(fields["format"].cast<int>());
  texture.channels = fields["channels"].cast<std::uint32_t>();
  texture.channel_bytes = fields["channel_bytes"].cast<std::uint32_t>();
  const auto modes = fields["address_mode"].cast<std::array<int, 3>>();
  for (std::size_t d = 0; d < 3; ++d) {
    texture.address_mode[d] = static_cast<simt::AddressMode>(modes[d]);
  }
  texture.linear_filter = fields["linear_filter"].cast<bool>();
  texture.normalized_coordinates = fields["normalized_coordinates"].cast<bool>();
  texture.normalized_read = fields["normalized_read"].cast<bool>();
  return device.textures.add(texture);
}

/// A CUtensorMap of a tile of a tensor, dimension 0 the innermost; `strides` are those of the
/// dimensions from 1 on. Throws InputError that names a wrong value.
py::bytes tensor_map(std::uint64_t address, const std::vector<std::uint64_t>& sizes,
                     const std::vector<std::uint64_t>& strides,
                     const std::vector<std::uint32_t>& box, const std::vector<std::uint32_t>& steps,
                     std::uint8_t element, std::uint8_t swizzle, bool fills_nan) {
  simt::TensorMap map;
  map.address = address;
  map.rank = static_cast<std::uint8_t>(sizes.size());
  for (std::size_t d = 0; d < std::min<std::size_t>(sizes.size(), simt::TensorMap::max_rank); ++d) {
    map.sizes[d] = static_cast<std::uint32_t>(sizes[d]);
    map.box[d] = box.at(d);
    map.steps[d] = steps.at(d);
    if (d > 0) map.strides[d - 1] = strides.at(d - 1);
  }
  map.element = static_cast<simt::TensorElement>(element);
  map.swizzle = static_cast<simt::Swizzle>(swizzle);
  map.fills_nan = fills_nan;
  map.check();
  const auto packed = map.pack();
  return {reinterpret_cast<const char*>(packed.data()), packed.size()};
}

}  // namespace

void bind_ptx(py::module_& module) {
  py::class_<Module, std::shared_ptr<Module>>(module, "PtxModule")
      .def(py::init([](const std::string& text, const std::string& file) {
             const py::gil_scoped_release unlocked;
             return std::make_shared<Module>(ptx::parse(text, file));
           }),
           py::arg("text"), py::arg("file"))
      .def_property_readonly("kernels", &Module::kernels)
      .def_readonly("target", &Module::target)
      .def("parameters", &parameters, py::arg("kernel"))
      .def("body", &body, py::arg("kernel"));

  py::class_<Device>(module, "PtxDevice")
      .def(py::init<std::uint64_t>(), py::arg("memory_bytes"))
      .def_readwrite("records_gaps", &Device::records_gaps)
      .def_property_readonly("used", [](const Device& device) { return device.memory.used(); })
      .def_property_readonly("capacity",
                             [](const Device& device) { return device.memory.capacity(); })
      .def(
          "allocate",
          [](Device& device, std::uint64_t bytes) { return device.memory.allocate(bytes); },
          py::arg("bytes"))
      .def(
          "free", [](Device& device, std::uint64_t address) { device.memory.free(address); },
          py::arg("address"))
      .def(
          "write",
          [](Device& device, std::uint64_t address, const py::buffer& source) {
            const py::buffer_info info = source.request();
            device.memory.write(address, info.ptr,
                                static_cast<std::uint64_t>(info.size * info.itemsize));
          },
          py::arg("address"), py::arg("source"))
      .def(
          "read",
          [](const Device& device, std::uint64_t address, const py::buffer& target) {
            const py::buffer_info info = target.request(true);
            device.memory.read(address, info.ptr,
                               static_cast<std::uint64_t>(info.size * info.itemsize));
          },
          py::arg("address"), py::arg("target"))
      .def(
          "fill",
          [](Device& device, std::uint64_t address, std::uint8_t value, std::uint64_t bytes) {
            device.memory.fill(address, value, bytes);
          },
          py::arg("address"), py::arg("value"), py::arg("bytes"))
      .def(
          "copy",
          [](Device& device, std::uint64_t target, std::uint64_t source, std::uint64_t bytes) {
            device.memory.copy(target, source, bytes);
          },
          py::arg("target"), py::arg("source"), py::arg("bytes"))
      .def("add_texture", &add_texture, py::arg("fields"))
      .def(
          "remove_texture",
          [](Device& device, std::uint64_t handle) { device.textures.remove(handle); },
          py::arg("handle"))
      .def(
          "set_print",
          [](Device& device, const py::object& function) {
            if (function.is_none()) {
              device.print = nullptr;
              return;
            }
            // Both the call and the end of the reference need the interpreter's lock.
            const auto held = std::shared_ptr<py::object>(new py::object(function), [](auto* p) {
              const py::gil_scoped_acquire gil;
              delete p;
            });
            device.print = [held](std::string_view text) {
              const py::gil_scoped_acquire gil;
              (*held)(py::bytes(text.data(), text.size()));
            };
          },
          py::arg("function"));

  module.def("tensor_map", &tensor_map, py::arg("address"), py::arg("sizes"), py::arg("strides"),
             py::arg("box"), py::arg("steps"), py::arg("element"), py::arg("swizzle"),
             py::arg("fills_nan"));

  bind_loaded_module<LoadedModule>(module, "PtxLoadedModule")
      .def("bind_texture", &LoadedModule::bind_texture, py::arg("name"), py::arg("texture"));
}

}  // namespace warpstack::bindings
