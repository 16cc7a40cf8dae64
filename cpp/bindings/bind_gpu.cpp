#include <pybind11/operators.h>

#include <utility>

#include "bindings/bindings.h"
#include "gpu/field.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::bindings {
namespace {

using gpu::Field;
using gpu::FieldKind;
using gpu::Gpu;
using gpu::Stage;

constexpr std::pair<const char*, Stage> stage_names[] = {
    {"memory", Stage::memory}, {"requests", Stage::requests}, {"greedy", Stage::greedy},
    {"timed", Stage::timed},   {"interval", Stage::interval}, {"model", Stage::model},
    {"timing", Stage::timing}, {"launch", Stage::launch},     {"timeline", Stage::timeline},
};

py::tuple stages_of(const Field& field) {
  py::list names;
  for (const auto& [name, stage] : stage_names) {
    if (has(field.stages, stage)) names.append(name);
  }
  return py::tuple(names);
}

py::object to_python(const gpu::Value& value) {
  return std::visit(
      [](const auto& one) -> py::object {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, std::vector<double>>) {
          return py::tuple(py::cast(one));
        } else {
          return py::cast(one);
        }
      },
      value);
}

/// The default of a field; None if it has none.
py::object default_of(const Field& field) {
  if (field.is_required) return py::none();
  return to_python(value_of(Gpu{}, field.id));
}

/// A bound of a field in the type of its values.
py::object in_type(const Field& field, double bound) {
  if (field.kind == FieldKind::whole) return py::cast(static_cast<std::uint32_t>(bound));
  return py::cast(bound);
}

const Field& field_of(const py::handle& name) {
  static const py::dict& places = *[] {
    auto* found = new py::dict;
    for (const Field& field : gpu::fields()) {
      (*found)[py::str(std::string(field.name))] = static_cast<std::size_t>(field.id);
    }
    return found;
  }();
  PyObject* place = PyDict_GetItemWithError(places.ptr(), name.ptr());
  if (place == nullptr) throw InputError("a GPU has no field " + std::string(py::str(name)));
  return gpu::fields()[py::handle(place).cast<std::size_t>()];
}

void set_all(Gpu& gpu, const py::dict& values) {
  for (const auto& [name, value] : values) {
    const Field& field = field_of(name);
    try {
      switch (field.kind) {
        case FieldKind::whole:
          set(gpu, field.id, value.cast<std::uint32_t>());
          break;
        case FieldKind::number:
          set(gpu, field.id, value.cast<double>());
          break;
        case FieldKind::word:
          set(gpu, field.id, value.cast<std::string_view>());
          break;
        case FieldKind::numbers:
          set(gpu, field.id, value.cast<std::vector<double>>());
          break;
      }
    } catch (const py::cast_error&) {
      throw InputError(std::string(field.name) + " = " + std::string(py::repr(value)) +
                       " does not fit this field");
    }
  }
}

Gpu changed(Gpu gpu, const py::dict& values, bool checked) {
  set_all(gpu, values);
  if (checked) {
    if (const auto fault = contradiction_in(gpu)) throw InputError(*fault);
  }
  return gpu;
}

py::dict values_in(const Gpu& gpu) {
  py::dict values;
  for (const Field& field : gpu::fields()) {
    values[py::str(std::string(field.name))] = to_python(value_of(gpu, field.id));
  }
  return values;
}

/// Checks that a description gives what it must.
Gpu described(const py::dict& values) {
  for (const Field& field : gpu::fields()) {
    if (field.is_required && !values.contains(py::str(std::string(field.name)))) {
      throw InputError("a GPU lacks the field " + std::string(field.name));
    }
  }
  return changed(Gpu{}, values, true);
}

}  // namespace

void bind_gpu(py::module_& module) {
  module.attr("SECTOR_BYTES") = trace::sector_bytes;
  py::class_<Field>(module, "GpuField")
      .def_readonly("name", &Field::name)
      .def_readonly("unit", &Field::unit)
      .def_readonly("meaning", &Field::meaning)
      .def_property_readonly("stages", &stages_of)
      .def_property_readonly("kind", [](const Field& field) { return name_of(field.kind); })
      .def_property_readonly("default", &default_of)
      .def_property_readonly("least",
                             [](const Field& field) { return in_type(field, field.least); })
      .def_property_readonly("most", [](const Field& field) { return in_type(field, field.most); })
      .def_readonly("or_zero", &Field::or_zero)
      .def_property_readonly("choices",
                             [](const Field& field) {
                               py::list words;
                               for (const auto word : field.choices) words.append(word);
                               return py::tuple(words);
                             })
      .def_property_readonly("range_text", &gpu::range_text)
      .def(
          "fault_of",
          [](const Field& field, double number) { return gpu::fault_of(field, number); },
          py::arg("number"));
  py::list fields;
  for (const Field& field : gpu::fields()) {
    fields.append(py::cast(field, py::return_value_policy::reference));
  }
  module.attr("GPU_FIELDS") = py::tuple(fields);
  py::class_<Gpu>(module, "Gpu")
      .def(py::init([](const py::dict& values, bool checked) {
             return checked ? described(values) : changed(Gpu{}, values, false);
           }),
           py::arg("values"), py::arg("checked") = true)
      .def(
          "changed",
          [](const Gpu& gpu, const py::dict& values, bool checked) {
            return changed(gpu, values, checked);
          },
          py::arg("values"), py::arg("checked") = true)
      .def_property_readonly("values", &values_in)
      .def_property_readonly("num_schedulers", &Gpu::num_schedulers)
      .def_property_readonly("sustained_dram_bandwidth_gbs", &Gpu::sustained_dram_bandwidth_gbs)
      .def_property_readonly("block_replacement_cycles", &Gpu::block_replacement_cycles)
      .def(py::self == py::self)
      .def(py::pickle(&values_in,
                      [](const py::dict& values) { return changed(Gpu{}, values, false); }));
}

}  // namespace warpstack::bindings
