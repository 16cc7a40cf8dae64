#include "sass/lower/lower.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"
#include "sass/lower/driver_constants.h"
#include "sass/lower/lowerer.h"
#include "sass/text/built_ins.h"
#include "simt/program/address_space.h"

namespace warpstack::sass {
namespace {

/// The stack of each thread if functions call themselves to an unknown depth.
constexpr std::uint64_t recursive_stack_bytes = std::uint64_t{64} << 10;

/// From sm_90 on a kernel's shared memory begins with these bytes of the system's.
constexpr std::uint64_t reserved_shared_bytes = 1024;
constexpr std::uint32_t first_arch_with_clusters = 90;
constexpr std::uint32_t first_arch_with_reserved_bytes = 90;

/// Kernels with more functions than this are not analysed.
constexpr std::size_t max_functions = 512;

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  bytes.resize(std::max(bytes.size(), offset + sizeof value));
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// Whether a function that the kernel reaches may call itself, directly or through others. Then the
/// cubin's size of local memory is no bound. Calls by register reach any function.
bool is_recursive(const Kernel& kernel) {
  std::vector<std::uint32_t> starts{0};
  for (const auto& [name, address] : kernel.labels) starts.push_back(address);
  std::ranges::sort(starts);
  const auto function_at = [&](std::uint32_t address) {
    return static_cast<std::size_t>(std::ranges::upper_bound(starts, address) - starts.begin()) - 1;
  };
  const std::size_t count = starts.size();
  if (count > max_functions) return true;
  std::vector<std::vector<bool>> calls(count, std::vector<bool>(count));
  for (const Instruction& instruction : kernel.code) {
    if (!instruction.opcode.starts_with("CALL") || instruction.operands.empty()) continue;
    const std::size_t caller = function_at(instruction.address);
    const auto callee = kernel.labels.find(instruction.operands[0].text);
    if (find_built_in(instruction.operands[0].text) != nullptr) continue;
    for (std::size_t f = 1; f < count; ++f) {
      if (callee == kernel.labels.end() || function_at(callee->second) == f)
        calls[caller][f] = true;
    }
  }
  for (std::size_t through = 0; through < count; ++through) {
    for (std::size_t from = 0; from < count; ++from) {
      if (!calls[from][through]) continue;
      for (std::size_t to = 0; to < count; ++to) {
        if (calls[through][to]) calls[from][to] = true;
      }
    }
  }
  for (std::size_t f = 0; f < count; ++f) {
    if (calls[f][f] && (f == 0 || calls[0][f])) return true;
  }
  return false;
}

/// Adds the words that depend on the cluster, and the workspace of a grid that synchronizes.
void add_cluster_words(const DriverConstants& places, simt::KernelProgram& program) {
  using simt::Special;
  auto& words = program.launch_words;
  words.push_back({places.workspace, Special::envreg, 1});
  words.push_back({places.workspace + 4, Special::envreg, 2});
  if (places.cluster_size == DriverConstants::nowhere) return;
  for (std::uint8_t component = 0; component < 3; ++component) {
    words.push_back({places.cluster_size + 4u * component, Special::cluster_nctaid, component});
    words.push_back({places.num_clusters + 4u * component, Special::nclusterid, component});
    if (places.cluster_inverse == DriverConstants::nowhere) continue;
    words.push_back({places.cluster_inverse + 4u * component, Special::cluster_inverse, component});
  }
  words.push_back({places.cluster_blocks, Special::cluster_nctarank, 0});
  words.push_back({places.is_cluster, Special::is_explicit_cluster, 0});
  words.push_back({places.num_sms, Special::nsmid, 0});
}

/// Whether a kernel calls functions whose frames are not counted in its stack size.
bool calls_by_address(const Kernel& kernel) {
  return !kernel.labels.empty() && std::ranges::any_of(kernel.code, [](const Instruction& each) {
    return each.opcode.starts_with("CALL") && !each.operands.empty() &&
           each.operands[0].is_register();
  });
}

/// Whether a kernel moves its stack pointer, R1, by an amount known only at run time (alloca).
bool moves_stack(const Kernel& kernel, std::uint32_t stack_top) {
  constexpr std::uint32_t stack_pointer = 1;
  bool has_stack = false;
  bool is_moved = false;
  for (const Instruction& instruction : kernel.code) {
    const std::vector<Operand>& operands = instruction.operands;
    if (operands.empty() || operands[0].kind != Operand::Kind::reg ||
        operands[0].index != stack_pointer) {
      continue;
    }
    for (std::size_t i = 1; i < operands.size(); ++i) {
      const Operand& source = operands[i];
      has_stack = has_stack || (source.kind == Operand::Kind::constant && source.bank == 0 &&
                                source.integer == stack_top);
      is_moved = is_moved ||
                 (source.kind == Operand::Kind::uniform && source.index != zero_uniform) ||
                 (source.kind == Operand::Kind::reg && source.index != zero_register &&
                  source.index != stack_pointer);
    }
  }
  return has_stack && is_moved;
}

void add_banks(const Module& module, const Kernel& kernel, const SectionAddresses& addresses,
               simt::KernelProgram& program) {
  program.constant_banks.resize(8);
  std::vector<std::byte>& first = program.constant_banks[0].bytes;
  // Bytes before the parameters are the driver's: zero, unless filled in here.
  first.resize(kernel.parameter_base);
  const DriverConstants places = driver_constants(module.arch);
  if (places.reserved_shared_bytes != DriverConstants::nowhere) {
    put(first, places.reserved_shared_bytes,
        static_cast<std::uint32_t>(program.reserved_shared_bytes));
  }
  if (places.shared_window != DriverConstants::nowhere) {
    put(first, places.shared_window, simt::shared_window);
  }
  put(first, places.local_window, simt::local_window);
  for (std::uint8_t component = 0; component < 3; ++component) {
    program.launch_words.push_back(
        {places.block_size + 4u * component, simt::Special::ntid, component});
    program.launch_words.push_back(
        {places.grid_size + 4u * component, simt::Special::nctaid, component});
  }
  if (places.dynamic_shared_bytes != DriverConstants::nowhere) {
    program.launch_words.push_back(
        {places.dynamic_shared_bytes, simt::Special::dynamic_smem_size, 0});
  }
  program.launch_words.push_back({places.launch_number, simt::Special::gridid, 0});
  add_cluster_words(places, program);
  program.parameter_offset = kernel.parameter_base;
  for (const Section& section : module.sections) {
    const int number = section.bank();
    if (number <= 0 || number >= static_cast<int>(program.constant_banks.size())) continue;
    if (!section.kernel().empty() && section.kernel() != kernel.name) continue;
    simt::ConstantBank& bank = program.constant_banks[static_cast<std::size_t>(number)];
    const auto place = addresses.find(section.name);
    if (place != addresses.end()) {
      bank.address = place->second;
      bank.size = section.size;
      if (number == 3) put(program.constant_banks[0].bytes, places.constants, bank.address);
    } else {
      bank.bytes = contents_of(module, section, addresses);
    }
  }
}

}  // namespace

std::vector<std::byte> contents_of(const Module& module, const Section& section,
                                   const SectionAddresses& addresses) {
  std::vector<std::byte> bytes = section.bytes;
  bytes.resize(section.size);
  for (const AddressField& field : section.addresses) {
    std::uint64_t value = 0;
    const auto symbol = module.symbols.find(field.symbol);
    const auto place =
        addresses.find(symbol == module.symbols.end() ? field.symbol : symbol->second.section);
    if (const BuiltIn* const function = find_built_in(field.symbol)) {
      value = function->address;
    } else if (place != addresses.end()) {
      value = place->second + static_cast<std::uint64_t>(field.addend) +
              (symbol == module.symbols.end() ? 0 : symbol->second.offset);
    }
    value >>= 8 * field.first;
    std::memcpy(bytes.data() + field.offset, &value, field.bytes);
  }
  return bytes;
}

simt::KernelProgram lower(const Module& module, std::string_view kernel,
                          const SectionAddresses& addresses) {
  const Kernel* const found = module.kernel(kernel);
  if (found == nullptr) {
    throw InputError(module.file + ": there is no kernel " + std::string(kernel));
  }
  simt::KernelProgram program = Lowerer(module, *found, addresses).run();
  program.sources = trace::take_used(module.sources, program.rows);
  program.name = found->name;
  program.source = "sass";
  program.binary_version = module.arch;
  program.parameter_bytes = found->parameter_bytes;
  if (module.arch >= first_arch_with_reserved_bytes) {
    program.reserved_shared_bytes = std::min(found->shared_bytes, reserved_shared_bytes);
  }
  program.has_ranks_in_addresses = module.arch >= first_arch_with_clusters;
  program.shared_bytes = found->shared_bytes - program.reserved_shared_bytes;
  if (program.shared_bytes > 0) {
    program.shared_variables.push_back(
        {"(static)", program.reserved_shared_bytes, program.shared_bytes});
  }
  program.uses_dynamic_shared = true;
  // If there is dynamic shared memory, ptxas has rounded up the size before it.
  program.dynamic_shared_offset = found->shared_bytes;
  program.recursive = is_recursive(*found);
  program.local_bytes = found->local_bytes + (program.recursive ? recursive_stack_bytes : 0);
  program.stack_top = driver_constants(module.arch).stack_top;
  program.grows_stack =
      program.recursive || calls_by_address(*found) || moves_stack(*found, program.stack_top);
  program.registers_per_thread = found->registers;
  program.max_threads = found->max_threads;
  program.required_cluster = found->required_cluster;
  add_banks(module, *found, addresses, program);
  return program;
}

std::string problem_of(const Instruction& instruction, std::uint32_t arch) {
  Module module;
  module.arch = arch;
  Kernel kernel;
  kernel.name = "form";
  kernel.registers = 255;
  kernel.code.push_back(instruction);
  kernel.code.front().address = 0;
  // Jumps may have targets that do not exist.
  const bool jumps =
      instruction.opcode.starts_with("BRA") || instruction.opcode.starts_with("CALL");
  for (Operand& operand : kernel.code.front().operands) {
    if (operand.kind == Operand::Kind::name) kernel.labels.emplace(operand.text, 0);
    if (jumps && operand.kind == Operand::Kind::integer) operand.integer = 0;
  }
  try {
    Lowerer(module, kernel, {}).run();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace warpstack::sass
