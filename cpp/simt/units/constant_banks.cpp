#include "simt/units/constant_banks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "common/error.h"
#include "common/text.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

std::uint32_t word_of(const Execution& execution, const LaunchWord& word) {
  const LaunchOptions& options = execution.options;
  switch (word.special) {
    case Special::ntid:
      return static_cast<std::uint32_t>(options.block[word.component]);
    case Special::nctaid:
      return static_cast<std::uint32_t>(options.grid[word.component]);
    case Special::dynamic_smem_size:
      return static_cast<std::uint32_t>(options.dynamic_shared_bytes);
    case Special::envreg: {
      const std::uint64_t address = execution.workspace_address;
      return static_cast<std::uint32_t>(word.component == 1 ? address >> 32 : address);
    }
    case Special::cluster_nctaid:
      return static_cast<std::uint32_t>(execution.cluster[word.component]);
    case Special::nclusterid:
      return static_cast<std::uint32_t>(options.grid[word.component] /
                                        execution.cluster[word.component]);
    case Special::cluster_nctarank:
      return static_cast<std::uint32_t>(cluster_blocks(execution.cluster));
    case Special::is_explicit_cluster:
      return cluster_blocks(execution.cluster) > 1 ? 1 : 0;
    case Special::cluster_inverse: {
      // Rounded up, so that an index divided by it is never too low.
      const auto size = static_cast<float>(execution.cluster[word.component]);
      float inverse = 1.0F / size;
      if (inverse * static_cast<double>(size) < 1.0) inverse = std::nextafter(inverse, 2.0F);
      return std::bit_cast<std::uint32_t>(inverse);
    }
    case Special::nsmid:
      return 1;
    case Special::gridid:
      return static_cast<std::uint32_t>(options.launch_id);
    default:
      return 0;
  }
}

}  // namespace

std::vector<std::vector<std::byte>> constant_banks(const Execution& execution) {
  const KernelProgram& program = execution.program;
  std::vector<std::vector<std::byte>> banks;
  for (const ConstantBank& bank : program.constant_banks) {
    banks.push_back(bank.bytes);
    if (bank.address == 0) continue;
    banks.back().resize(bank.size);
    execution.device.memory.read(bank.address, banks.back().data(), bank.size);
  }
  if (banks.empty()) return banks;
  std::vector<std::byte>& first = banks[0];
  const auto put_word = [&first](std::size_t offset, std::uint64_t word) {
    const auto value = static_cast<std::uint32_t>(word);
    first.resize(std::max(first.size(), offset + sizeof value));
    std::memcpy(first.data() + offset, &value, sizeof value);
  };
  for (const LaunchWord& word : program.launch_words) {
    put_word(word.offset, word_of(execution, word));
  }
  if (program.stack_top != none) put_word(program.stack_top, execution.local_bytes);
  if (program.parameter_offset != none) {
    // Words are read whole, also the last.
    const std::size_t end = (program.parameter_offset + execution.parameters.size() + 7) / 8 * 8;
    first.resize(std::max(first.size(), end));
    std::ranges::copy(execution.parameters, first.begin() + program.parameter_offset);
  }
  return banks;
}

std::vector<std::byte> first_frame(const Execution& execution) {
  const KernelProgram& program = execution.program;
  const ProgramFunction& kernel = program.functions[0];
  std::vector<std::byte> frame(Frame::bytes_of(kernel));
  std::ranges::copy(kernel.constants, frame.begin());
  for (const FrameConstant& constant : program.frame_constants) {
    std::uint32_t value = 0;
    const std::vector<std::byte>* const bank = constant.bank < execution.constant_banks.size()
                                                   ? &execution.constant_banks[constant.bank]
                                                   : nullptr;
    if (bank == nullptr || constant.offset + sizeof value > bank->size()) {
      throw InputError("kernel " + program.name + ": it reads c[" + std::to_string(constant.bank) +
                       "][" + hexadecimal(constant.offset) + "], and constant bank " +
                       std::to_string(constant.bank) + " has " +
                       std::to_string(bank == nullptr ? 0 : bank->size()) + " bytes");
    }
    std::memcpy(&value, bank->data() + constant.offset, sizeof value);
    broadcast(frame.data(), constant.slot, 4, all_lanes, value);
  }
  return frame;
}

void load_from_bank(const Execution& execution, const Faults& faults, Warp& warp, const Step& step,
                    std::byte* registers, std::uint32_t mask) {
  const ParameterAccess& access = execution.program.parameter_accesses[step.detail];
  static const std::vector<std::byte> absent;
  const auto& bank = access.bank < execution.constant_banks.size()
                         ? execution.constant_banks[access.bank]
                         : absent;
  const std::uint64_t bytes = std::uint64_t{access.bytes} * access.elements;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t offset = access.offset;
    if (access.address != none) offset += lane_u32(registers, access.address, lane);
    offset &= 0xffffffffu;
    if (offset > bank.size() || bytes > bank.size() - offset) {
      faults.stop(warp, step, static_cast<std::uint32_t>(lane),
                  "load of " + std::to_string(bytes) + " bytes at " + hexadecimal(offset) +
                      " of constant bank " + std::to_string(access.bank) + ", which has " +
                      std::to_string(bank.size()) + " bytes");
    }
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      std::uint64_t value = 0;
      std::memcpy(&value, bank.data() + offset + e * access.bytes, access.bytes);
      write_lane(registers, access.values[e], access.value_bytes[e], lane,
                 extended(value, access.bytes, access.sign_extend));
    }
  }
}

}  // namespace warpstack::simt
