#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "bindings/bindings.h"
#include "simt/state/launch.h"

namespace warpstack::bindings {

/// Runs a kernel of a loaded module of PTX or of machine code. Returns its trace or None, and the
/// executed warp and thread instructions.
template <class LoadedModule>
py::tuple launch_kernel(LoadedModule& module, const std::string& kernel,
                        const py::bytes& parameters, const trace::Dim3& grid,
                        const trace::Dim3& block, const trace::Dim3& cluster,
                        std::uint64_t dynamic_shared_bytes, std::uint64_t stack_bytes, bool trace,
                        std::uint64_t sample_blocks, bool run_others, std::uint64_t step_limit,
                        bool check_uninitialized, bool continue_on_fault, bool check_races,
                        bool cooperative, const std::string& order,
                        std::uint64_t registers_per_thread, unsigned num_threads,
                        std::uint64_t instructions_ahead, std::uint64_t launch_id,
                        std::shared_ptr<trace::StorageBudget> budget, const py::object& progress,
                        py::list notes) {
  simt::LaunchOptions options;
  options.grid = grid;
  options.block = block;
  options.cluster = cluster;
  options.dynamic_shared_bytes = dynamic_shared_bytes;
  options.stack_bytes = stack_bytes;
  options.trace = trace;
  options.sample_blocks = sample_blocks;
  options.run_others = run_others;
  options.step_limit = step_limit;
  options.check_uninitialized = check_uninitialized;
  options.on_fault = continue_on_fault ? simt::OnFault::proceed : simt::OnFault::stop;
  options.check_races = check_races;
  options.cooperative = cooperative;
  if (order == "blocks") options.order = simt::BlockOrder::blocks;
  if (order == "time") options.order = simt::BlockOrder::time;
  options.registers_per_thread = registers_per_thread;
  options.num_threads = num_threads;
  if (instructions_ahead != 0) options.instructions_ahead = instructions_ahead;
  options.launch_id = launch_id;
  options.storage = std::move(budget);
  options.interrupt = python_interrupt();
  if (!progress.is_none()) {
    options.progress = [&progress](std::uint64_t done, std::uint64_t all) {
      const py::gil_scoped_acquire gil;
      progress(done, all);
    };
  }
  options.note = [&notes](const simt::Note& note) {
    const py::gil_scoped_acquire gil;
    notes.append(note.text());
  };
  const std::string bytes = parameters;
  simt::LaunchResult result;
  {
    const py::gil_scoped_release unlocked;
    result = launch(module, kernel, std::as_bytes(std::span(bytes.data(), bytes.size())), options);
  }
  py::object traced = py::none();
  if (result.trace) traced = py::cast(std::move(*result.trace));
  return py::make_tuple(traced, result.warp_instructions, result.thread_instructions);
}

/// The class of loaded modules of PTX or of machine code, by its name in Python.
template <class LoadedModule>
py::class_<LoadedModule> bind_loaded_module(py::module_& module, const char* name) {
  using Module = std::remove_cvref_t<decltype(std::declval<LoadedModule&>().module())>;
  py::class_<LoadedModule> loaded_module(module, name);
  loaded_module
      .def(py::init([](std::shared_ptr<Module> text, simt::Device& device) {
             return std::make_unique<LoadedModule>(std::move(text), device);
           }),
           py::arg("module"), py::arg("device"), py::keep_alive<1, 3>())
      .def(
          "prepare",
          [](LoadedModule& loaded, const std::string& kernel) {
            const simt::KernelProgram& program = loaded.program(kernel);
            py::dict facts;
            facts["registers_per_thread"] = program.registers_per_thread;
            facts["shared_memory_bytes"] = program.shared_bytes;
            facts["local_memory_bytes"] = program.local_bytes;
            facts["max_threads"] = program.max_threads;
            return facts;
          },
          py::arg("kernel"))
      .def(
          "symbol",
          [](const LoadedModule& loaded, const std::string& variable) {
            const auto symbol = loaded.symbol(variable);
            return py::make_tuple(symbol.address, symbol.bytes);
          },
          py::arg("name"))
      .def("launch", &launch_kernel<LoadedModule>, py::arg("kernel"), py::arg("parameters"),
           py::arg("grid"), py::arg("block"), py::arg("cluster"), py::arg("dynamic_shared_bytes"),
           py::arg("stack_bytes"), py::arg("trace"), py::arg("sample_blocks"),
           py::arg("run_others"), py::arg("step_limit"), py::arg("check_uninitialized"),
           py::arg("continue_on_fault"), py::arg("check_races"), py::arg("cooperative"),
           py::arg("order"), py::arg("registers_per_thread"), py::arg("num_threads"),
           py::arg("instructions_ahead"), py::arg("launch_id"), py::arg("budget"),
           py::arg("progress"), py::arg("notes"));
  return loaded_module;
}

}  // namespace warpstack::bindings
