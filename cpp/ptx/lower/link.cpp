#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/error.h"
#include "ptx/lower/emitter.h"
#include "ptx/lower/layout.h"
#include "ptx/lower/lower.h"
#include "simt/program/flow_analysis.h"

// Links functions into kernels: what a kernel reaches, and what it needs as a whole.

namespace warpstack::ptx {
namespace {

/// Addresses of functions, which only indirect calls read.
constexpr std::uint64_t function_address_base = 0x1000;

std::uint64_t parameter_bytes(const Module& module, const Function& kernel) {
  const std::vector<std::uint64_t> offsets = parameter_offsets(module, kernel);
  return offsets.empty() ? 0 : offsets.back() + kernel.parameters.back().size;
}

}  // namespace

std::vector<std::uint64_t> parameter_offsets(const Module& module, const Function& kernel) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  for (const Variable& parameter : kernel.parameters) {
    end = (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    offsets.push_back(end);
    end += parameter.size;
    if (end > max_parameter_bytes) {
      throw InputError(module.file_of(kernel) + ":" + std::to_string(parameter.line) + ": kernel " +
                       kernel.name + ": its parameters up to " + parameter.name + " take " +
                       std::to_string(end) + " bytes, at most " +
                       std::to_string(max_parameter_bytes) +
                       " are possible; pass a pointer to them");
    }
  }
  return offsets;
}

std::uint64_t function_address(const Module& module, const Function& function) {
  const auto number = static_cast<std::uint64_t>(&function - module.functions.data());
  return function_address_base + 16 * number;
}

KernelProgram lower(const Module& module, std::string_view kernel, const SymbolTable& symbols) {
  const Function* entry = module.function(kernel);
  if (entry == nullptr || !entry->is_entry) {
    throw InputError(module.file + ": there is no kernel " + std::string(kernel));
  }
  KernelProgram program;
  program.name = entry->name;
  program.source = "ptx";
  program.binary_version = module.architecture();
  program.parameter_bytes = parameter_bytes(module, *entry);
  KernelLayout layout;
  find_functions(module, *entry, layout);
  program.has_pairs = std::ranges::any_of(layout.functions, [](const Function* function) {
    return std::ranges::any_of(function->body,
                               [](const Instruction& one) { return one.has("cta_group::2"); });
  });
  reserve_stack(layout);
  place_shared(module, layout, program);
  for (std::uint32_t i = 0; i < layout.functions.size(); ++i) {
    program.function_addresses[function_address(module, *layout.functions[i])] = i;
  }
  std::uint32_t registers = 0;
  for (const Function* function : layout.functions) {
    Emitter emitter(module, symbols, layout, program, *function, function == entry);
    program.functions.push_back(emitter.run(registers));
    simt::find_stretches(program.functions.back());
  }
  program.sources = trace::take_used(module.sources, program.rows);
  const ThreadNeeds needs = needs_of_calls(program);
  // A recursive kernel gets room for some levels; running out of it is an error at run time.
  if (needs.local_bytes > max_local_bytes) {
    fail_local(module, *entry, entry->line,
               "it and the functions that it calls need " + std::to_string(needs.local_bytes));
  }
  program.local_bytes = program.recursive
                            ? std::min(needs.local_bytes + (64 << 10), max_local_bytes)
                            : needs.local_bytes;
  std::ranges::copy(entry->required_cluster, program.required_cluster.begin());
  // ptxas never gives a kernel of compute capability 7.0 and later fewer than 16.
  program.registers_per_thread = std::clamp(needs.registers, 16u, 255u);
  const auto& limit =
      entry->required_threads[0] != 0 ? entry->required_threads : entry->max_threads;
  if (limit[0] != 0) {
    std::uint64_t product = 1;
    for (const std::uint32_t size : limit) {
      product = std::min<std::uint64_t>(product * std::max(size, 1u), program.max_threads);
    }
    program.max_threads = static_cast<std::uint32_t>(product);
  }
  return program;
}

}  // namespace warpstack::ptx
