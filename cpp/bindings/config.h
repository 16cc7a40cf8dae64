#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/config_fields.h"
#include "common/enum_names.h"
#include "trace/instructions/opcode.h"

namespace warpstack::bindings {

template <typename T>
concept Configuration = requires { Fields<T>::all; };

template <Configuration T>
T config_of(const py::dict& values);

/// Reads one value of a dictionary into a member. Throws InputError that names the field.
template <typename T>
void read_value(const char* name, const py::handle& value, T& member) {
  try {
    if constexpr (NamedEnum<T>) {
      member = enum_of<T>(value.cast<std::string>());
    } else if constexpr (Configuration<T>) {
      member = config_of<T>(value.cast<py::dict>());
    } else {
      member = value.cast<T>();
    }
  } catch (const py::cast_error&) {
    throw InputError(std::string(name) + " = " + std::string(py::repr(value)) +
                     " does not fit this field");
  }
}

/// A number of each operation class, by name; those that are left out stay 0.
template <typename T>
void read_value(const char* name, const py::handle& value,
                std::array<T, trace::num_op_classes>& member) {
  for (const auto& [key, number] : value.cast<py::dict>()) {
    const auto op_class = enum_of<trace::OpClass>(key.template cast<std::string>());
    read_value(name, number, member[static_cast<std::size_t>(op_class)]);
  }
}

/// The rate of each type of matrices, by name, and the interval of those without one.
inline void read_value(const char* name, const py::handle& value, gpu::TensorUnit& member) {
  for (const auto& [key, number] : value.cast<py::dict>()) {
    const auto text = key.cast<std::string>();
    if (text == "interval") {
      read_value(name, number, member.interval);
    } else {
      read_value(name, number,
                 member.rates[static_cast<std::size_t>(enum_of<trace::TensorType>(text))]);
    }
  }
}

/// The same with the latency of shared memory and the tensor cores beside them.
inline void read_value(const char* name, const py::handle& value, gpu::ClassLatencies& member) {
  for (const auto& [key, number] : value.cast<py::dict>()) {
    const auto text = key.cast<std::string>();
    if (text == "shared_memory") {
      read_value(name, number, member.shared_memory);
    } else if (text == "tensor_unit") {
      read_value(name, number, member.tensor);
    } else {
      read_value(name, number,
                 member.of_class[static_cast<std::size_t>(enum_of<trace::OpClass>(text))]);
    }
  }
}

/// A filter of a stream of lines: sets, ways, and whether stores allocate; or None.
inline void read_value(const char*, const py::handle& value,
                       std::optional<memory::LineFilter>& member) {
  if (value.is_none()) return;
  const auto [sets, ways, allocate] = value.cast<std::tuple<std::uint64_t, std::uint32_t, bool>>();
  member = memory::LineFilter{sets, ways, allocate};
}

/// Calls `visit(field)` for each field of a configuration.
template <Configuration T, typename Visit>
void for_each_field(Visit visit) {
  std::apply([&visit](const auto&... field) { (visit(field), ...); }, Fields<T>::all);
}

/// Throws InputError unless a dictionary has every field of a configuration and no other.
template <Configuration T>
void require_fields(const py::dict& values) {
  std::string names;
  std::size_t count = 0;
  for_each_field<T>([&](const auto& field) {
    if (!values.contains(field.name)) {
      throw InputError(std::string(Fields<T>::what) + " lacks the field " + field.name);
    }
    names.append(names.empty() ? "" : ", ").append(field.name);
    ++count;
  });
  if (values.size() == count) return;
  for (const auto& item : values) {
    const std::string key = py::str(item.first);
    bool known = false;
    for_each_field<T>([&](const auto& field) { known = known || key == field.name; });
    if (!known) {
      throw InputError(std::string(Fields<T>::what) + " does not have a field " + key +
                       "; its fields are " + names);
    }
  }
}

/// The configuration that a dictionary describes.
template <Configuration T>
T config_of(const py::dict& values) {
  require_fields<T>(values);
  T config;
  for_each_field<T>(
      [&](const auto& field) { read_value(field.name, values[field.name], field.in(config)); });
  return config;
}

/// Configurations from a column of each field: numbers, and names of enumerations.
template <Configuration T>
std::vector<T> configs_of(const py::dict& columns) {
  require_fields<T>(columns);
  std::vector<T> configs;
  const char* first = nullptr;
  for_each_field<T>([&](const auto& field) {
    const auto read_column = [&](const auto& column, auto value_of) {
      if (first == nullptr) {
        first = field.name;
        configs.resize(column.size());
      }
      if (column.size() != configs.size()) {
        throw InputError(std::string(field.name) + " has " + std::to_string(column.size()) +
                         " entries where " + first + " has " + std::to_string(configs.size()));
      }
      for (std::size_t c = 0; c < configs.size(); ++c) {
        field.in(configs[c]) = value_of(column[c]);
      }
    };
    using Member = std::remove_reference_t<decltype(field.in(configs[0]))>;
    if constexpr (NamedEnum<Member>) {
      read_column(columns[field.name].template cast<std::vector<std::string>>(),
                  [](const std::string& name) { return enum_of<Member>(name); });
    } else {
      const auto column = columns[field.name].template cast<Contiguous<Member>>();
      read_column(span_of(column), [](Member value) { return value; });
    }
  });
  return configs;
}

}  // namespace warpstack::bindings
