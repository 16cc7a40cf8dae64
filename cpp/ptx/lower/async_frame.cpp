#include "ptx/lower/draft.h"

// The frame of a function, continued: the places of operands of asynchronous operations.

namespace warpstack::ptx {

void place_async_operands(const Step& step, KernelProgram& program,
                          const std::vector<std::uint32_t>& offsets) {
  const auto place = [&offsets](std::uint32_t& value) {
    if (value != none) value = offsets[value];
  };
  switch (step.action) {
    case Action::async_barrier: {
      simt::AsyncBarrier& barrier = program.async_barriers[step.detail];
      for (std::uint32_t* value : {&barrier.address.slot, &barrier.count, &barrier.bytes,
                                   &barrier.state, &barrier.result}) {
        place(*value);
      }
      break;
    }
    case Action::bulk_copy: {
      simt::BulkCopy& copy = program.bulk_copies[step.detail];
      for (std::uint32_t* value : {&copy.to.slot, &copy.from.slot, &copy.bytes, &copy.barrier.slot,
                                   &copy.blocks, &copy.byte_mask}) {
        place(*value);
      }
      break;
    }
    case Action::tensor_copy: {
      simt::TensorCopy& copy = program.tensor_copies[step.detail];
      for (std::uint32_t* value :
           {&copy.tile.slot, &copy.map.slot, &copy.barrier.slot, &copy.blocks}) {
        place(*value);
      }
      for (std::uint32_t d = 0; d < copy.dimensions; ++d) place(copy.coordinates[d]);
      break;
    }
    case Action::tensor_map: {
      simt::TensorMapChange& change = program.tensor_map_changes[step.detail];
      place(change.map.slot);
      place(change.value);
      break;
    }
    case Action::tensor_map_copy: {
      simt::TensorMapCopy& copy = program.tensor_map_copies[step.detail];
      place(copy.to.slot);
      place(copy.from.slot);
      break;
    }
    case Action::warpgroup_multiply: {
      simt::WarpgroupMultiply& multiply = program.warpgroup_multiplications[step.detail];
      for (std::uint32_t* value :
           {&multiply.a_descriptor, &multiply.b_descriptor, &multiply.accumulates}) {
        place(*value);
      }
      if (multiply.a_descriptor == none) {
        for (std::uint32_t& value : multiply.a_values) place(value);
      }
      for (std::uint32_t& value : multiply.d_values) place(value);
      break;
    }
    case Action::tensor_allocate: {
      simt::TensorAllocation& request = program.tensor_allocations[step.detail];
      for (std::uint32_t* value : {&request.result.slot, &request.address, &request.columns}) {
        place(*value);
      }
      break;
    }
    case Action::tensor_product: {
      simt::TensorProduct& product = program.tensor_products[step.detail];
      for (std::uint32_t* value :
           {&product.d.slot, &product.a_descriptor, &product.a.slot, &product.b_descriptor,
            &product.instruction, &product.accumulates, &product.scale_a.slot,
            &product.scale_b.slot}) {
        place(*value);
      }
      for (std::uint32_t& value : product.disabled) place(value);
      break;
    }
    case Action::tensor_transfer: {
      simt::TensorTransfer& transfer = program.tensor_transfers[step.detail];
      place(transfer.address.slot);
      for (std::uint32_t& value : transfer.values) place(value);
      break;
    }
    case Action::tensor_fill:
      place(program.tensor_fills[step.detail].address.slot);
      place(program.tensor_fills[step.detail].descriptor);
      break;
    case Action::tensor_shift:
      place(program.tensor_shifts[step.detail].address.slot);
      break;
    case Action::tensor_commit:
      place(program.tensor_commits[step.detail].barrier.slot);
      place(program.tensor_commits[step.detail].blocks);
      break;
    default:
      break;
  }
}

}  // namespace warpstack::ptx
