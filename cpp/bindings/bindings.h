#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/enum_names.h"
#include "common/error.h"
#include "common/interrupt.h"

namespace warpstack::bindings {

namespace py = pybind11;

void bind_enums(py::module_& module);
void bind_gpu(py::module_& module);
void bind_trace(py::module_& module);
void bind_family(py::module_& module);
void bind_memory(py::module_& module);
void bind_policies(py::module_& module);
void bind_interval(py::module_& module);
void bind_interval_simulation(py::module_& module);
void bind_model(py::module_& module);
void bind_reuse(py::module_& module);
void bind_timing(py::module_& module);
void bind_timelines(py::module_& module);
void bind_blocks(py::module_& module);
void bind_ptx(py::module_& module);
void bind_sass(py::module_& module);

/// Read-only NumPy view of memory that `owner` keeps alive.
template <typename T>
py::array view_of(std::span<const T> data, const py::handle& owner) {
  py::array_t<T> array(static_cast<py::ssize_t>(data.size()), data.data(), owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

/// NumPy array that takes the vector over.
template <typename T>
py::array array_of(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  const py::capsule owner(owned, [](void* p) { delete static_cast<std::vector<T>*>(p); });
  return py::array_t<T>(static_cast<py::ssize_t>(owned->size()), owned->data(), owner);
}

/// Column `field` of a vector of structures, as a new array.
template <typename T, typename Struct, typename Get>
py::array column_of(const std::vector<Struct>& rows, Get get) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const Struct& row : rows) values.push_back(static_cast<T>(get(row)));
  return array_of(std::move(values));
}

template <typename T>
using Contiguous = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <typename T>
std::span<const T> span_of(const Contiguous<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

template <typename T>
std::vector<T> vector_of(const Contiguous<T>& array) {
  return {array.data(), array.data() + array.size()};
}

/// Lets Ctrl-C end a long call that runs without the GIL.
inline InterruptCheck python_interrupt() {
  return [] {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
}

}  // namespace warpstack::bindings
