#include <cstring>
#include <vector>

#include "ptx/lower/draft.h"
#include "simt/program/flow_analysis.h"
#include "trace/instructions/coalescing.h"

// The frame of a function: the places of its values.

namespace warpstack::ptx {
namespace {

/// Bytes of one unit of a frame: a 32-bit value of 32 lanes.
constexpr std::uint32_t unit_bytes = 128;

/// Replaces the values that steps and their entries in tables name by places in the frame.
void patch(FunctionDraft& draft, KernelProgram& program,
           const std::vector<std::uint32_t>& offsets) {
  const auto place = [&offsets](std::uint32_t& value) {
    if (value != none) value = offsets[value];
  };
  for (std::size_t i = 0; i < draft.result.steps.size(); ++i) {
    Step& step = draft.result.steps[i];
    place(step.guard);
    place(step.operands.target);
    place(step.operands.target2);
    for (std::uint32_t& source : step.operands.source) place(source);
    switch (step.action) {
      case Action::load:
      case Action::store:
      case Action::atomic:
      case Action::async_copy: {
        MemoryAccess& access = program.memory[step.detail];
        for (std::uint32_t e = 0; e < access.elements; ++e) place(access.values[e]);
        for (std::uint32_t* value :
             {&access.address, &access.result, &access.operand_b, &access.operand_c,
              &access.second_address, &access.source_bytes}) {
          place(*value);
        }
        for (std::uint32_t& value : access.more_results) place(value);
        for (std::uint32_t& value : access.more_operands) place(value);
        break;
      }
      case Action::kernel_parameter:
      case Action::parameter_load:
      case Action::parameter_store: {
        ParameterAccess& access = program.parameter_accesses[step.detail];
        for (std::uint32_t e = 0; e < access.elements; ++e) place(access.values[e]);
        place(access.address);
        break;
      }
      case Action::texture:
      case Action::surface_load:
      case Action::surface_store:
      case Action::texture_query: {
        TextureAccess& access = program.textures[step.detail];
        place(access.object);
        for (std::uint32_t& value : access.coordinates) place(value);
        for (std::uint32_t& value : access.offsets) place(value);
        for (std::uint32_t& value : access.values) place(value);
        break;
      }
      case Action::shuffle:
      case Action::vote:
      case Action::match:
      case Action::reduce:
      case Action::active_mask:
      case Action::elect:
      case Action::warp_sync: {
        Collective& collective = program.collectives[step.detail];
        for (std::uint32_t* value : {&collective.result, &collective.predicate, &collective.a,
                                     &collective.b, &collective.c, &collective.members}) {
          place(*value);
        }
        break;
      }
      case Action::matrix_multiply: {
        MatrixMultiply& multiply = program.multiplications[step.detail];
        for (auto* values :
             {&multiply.a_values, &multiply.b_values, &multiply.c_values, &multiply.d_values}) {
          for (std::uint32_t& value : *values) place(value);
        }
        break;
      }
      case Action::matrix_load:
      case Action::matrix_store: {
        MatrixAccess& access = program.matrix_accesses[step.detail];
        place(access.address);
        for (std::uint32_t& value : access.values) place(value);
        break;
      }
      case Action::fragment_load:
      case Action::fragment_store: {
        FragmentAccess& access = program.fragment_accesses[step.detail];
        place(access.address);
        place(access.stride);
        for (std::uint32_t& value : access.values) place(value);
        break;
      }
      case Action::barrier: {
        Barrier& barrier = program.barriers[step.detail];
        for (std::uint32_t* value :
             {&barrier.number, &barrier.threads, &barrier.predicate, &barrier.result}) {
          place(*value);
        }
        break;
      }
      case Action::indexed_branch:
        place(program.indexed_branches[step.detail].index);
        break;
      case Action::indirect_call:
        place(program.calls[step.detail].address);
        break;
      default:
        place_async_operands(step, program, offsets);
        break;
    }
  }
}

}  // namespace

void place_values(FunctionDraft& draft, KernelProgram& program) {
  std::vector<std::uint8_t> units, counts;
  for (const Value& value : draft.values) {
    units.push_back(value.units);
    counts.push_back(value.is_predicate ? 0 : 1);
  }
  for (DefinitionsAndUses& effect : draft.effects) {
    std::erase_if(effect.uses, [&draft](std::uint32_t v) { return draft.values[v].is_constant; });
  }
  const Allocation32 places = allocate_registers(draft.successors, draft.effects, units, counts);
  draft.result.pressure = places.pressure;
  std::vector<std::uint32_t> offsets(draft.values.size() + 1,
                                     0);  // one more, because missing operands name value 0
  std::uint32_t end = 0;
  for (const std::uint8_t width : {2, 1}) {
    for (std::size_t v = 0; v < draft.values.size(); ++v) {
      if (!draft.values[v].is_constant || draft.values[v].units != width) continue;
      offsets[v] = end;
      end += width * unit_bytes;
    }
  }
  end = align(end, 2 * unit_bytes);
  draft.result.constants.resize(end);
  for (std::size_t v = 0; v < draft.values.size(); ++v) {
    if (draft.values[v].is_constant) {
      for (std::uint32_t lane = 0; lane < trace::warp_size; ++lane) {
        const std::uint32_t bytes = draft.values[v].units * 4u;
        std::memcpy(draft.result.constants.data() + offsets[v] + lane * bytes,
                    &draft.values[v].bits, bytes);
      }
      if (draft.values[v].is_shared_address) {
        draft.result.shared_addresses.push_back({offsets[v], draft.values[v].units * 4u});
      }
    } else if (places.unit[v] != ~0u) {
      offsets[v] = end + places.unit[v] * unit_bytes;
    }
  }
  draft.result.register_bytes = align(end + places.num_units * unit_bytes, 2 * unit_bytes);
  patch(draft, program, offsets);
}

}  // namespace warpstack::ptx
