// The memory that a program allocates, registers and copies.

#include <algorithm>
#include <cstring>

#include "common/text.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/host_memory.h"
#include "stand_ins/state/memory_pool.h"
#include "stand_ins/state/runtime.h"

namespace warpstack::cudart {

using Kind = PointerAttributes::Kind;

std::uint64_t Runtime::allocate(std::uint64_t bytes) {
  try {
    return memory().allocate(bytes);
  } catch (const InputError& error) {
    throw Failure(Error::memory_allocation, error.what());
  }
}

std::uint64_t Runtime::allocate_shared(std::uint64_t bytes, Kind kind, unsigned flags) {
  if (!unified()) {
    throw Failure(Error::not_supported,
                  "managed and pinned memory need device memory at its own address in this "
                  "process, which is taken",
                  true);
  }
  const std::uint64_t address = allocate(bytes);
  memory().find(address)->written.reset();  // the host may write it at any time
  shared_allocations_[address] = {kind, flags};
  return address;
}

void Runtime::free(std::uint64_t address) {
  const simt::Allocation* allocation = on_device(address) ? memory().find(address) : nullptr;
  if (allocation != nullptr && allocation->address == address) {
    const bool is_array = std::ranges::any_of(
        arrays_, [address](const auto& entry) { return entry.second->address == address; });
    require(allocation->name.empty() && !is_array,
            "this memory is a device variable's or an array's, which cudaFree does not free");
    require(kind_of(address) != Kind::host || pools_->holds(address),
            "this memory is pinned memory of the host, which cudaFreeHost frees");
  }
  if (graphs_->memory.free(address)) return;
  memory().free(address);
  shared_allocations_.erase(address);
  pools_->freed(address);
}

void Runtime::free_host(std::uint64_t address) {
  const auto known = memory_at(address);
  require(
      known && known->address == address && known->kind == Kind::host && !known->registered &&
          !pools_->holds(address),
      known && known->registered
          ? "this memory is registered: cudaHostUnregister ends that, and the program frees it"
          : "this is not what cudaMallocHost or cudaHostAlloc returned; it may have been freed");
  memory().free(address);
  shared_allocations_.erase(address);
}

bool Runtime::on_device(std::uint64_t address) { return memory().contains(address); }

bool Runtime::unified() {
  return address_of(memory().data(simt::device_base)) == simt::device_base;
}

std::optional<Runtime::KnownMemory> Runtime::memory_at(std::uint64_t address) {
  if (const auto* range = registered_.find(address)) {
    return KnownMemory{range->address, range->bytes, Kind::host, range->flags, true};
  }
  const simt::Allocation* allocation = on_device(address) ? memory().find(address) : nullptr;
  if (allocation == nullptr) return std::nullopt;
  KnownMemory known{.address = allocation->address, .bytes = allocation->bytes};
  if (const auto shared = shared_allocations_.find(known.address);
      shared != shared_allocations_.end()) {
    known.kind = shared->second.kind;
    known.flags = shared->second.flags;
    return known;
  }
  if (allocation->name.empty()) return known;
  for (const auto& module : modules_) {
    if (module->loaded == nullptr) continue;
    for (const auto& [pointer, name] : module->managed) {
      const ProgramModule::Variable variable = module->loaded->variable(name);
      if (address - variable.address >= variable.bytes) continue;
      return KnownMemory{variable.address, variable.bytes, Kind::managed};
    }
  }
  return known;
}

Kind Runtime::kind_of(std::uint64_t address) {
  const auto known = memory_at(address);
  return known ? known->kind : Kind::unregistered;
}

void Runtime::register_host(std::uint64_t address, std::uint64_t bytes, unsigned flags) {
  constexpr unsigned of_a_device = 4;  // cudaHostRegisterIoMemory
  constexpr unsigned all_flags = 15;
  require(address != 0 && bytes > 0, "there is no memory to register");
  require((flags & ~all_flags) == 0, "there are no such flags");
  require((flags & of_a_device) == 0, "there is no memory of devices to register",
          Error::not_supported);
  const Kind kind = on_device(address) ? kind_of(address) : Kind::unregistered;
  if (kind == Kind::host || registered_.meets(address, std::min(bytes, ~address))) {
    throw Failure(Error::host_memory_already_registered,
                  "host memory at " + hexadecimal(address) + " is registered or pinned already");
  }
  check_host(address, bytes, false);
  registered_.add({address, bytes, flags});
}

void Runtime::unregister_host(std::uint64_t address) {
  require(address != 0, "the pointer is null");
  if (registered_.remove(address)) return;
  throw Failure(Error::host_memory_not_registered,
                "no registered host memory begins at " + hexadecimal(address));
}

void Runtime::check_managed(std::uint64_t address, std::uint64_t bytes) {
  const auto known = memory_at(address);
  require(known && known->kind == Kind::managed && bytes <= known->address + known->bytes - address,
          "these bytes are not those of managed memory");
}

bool Runtime::meets_device(std::uint64_t address, std::uint64_t bytes) {
  return address < simt::device_base ? bytes > simt::device_base - address : on_device(address);
}

void Runtime::check_host(std::uint64_t address, std::uint64_t bytes, bool writes) {
  if (meets_device(address, bytes) ||
      !(writes ? host_writable(address, bytes) : host_readable(address, bytes))) {
    throw Failure(Error::invalid_value,
                  "the program cannot " + std::string(writes ? "write " : "read ") +
                      std::to_string(bytes) + " bytes at " + hexadecimal(address) +
                      " of host memory" + (address == 0 ? ": it is a null pointer" : ""));
  }
}

void Runtime::copy(std::uint64_t target, std::uint64_t source, std::uint64_t bytes) {
  if (bytes == 0) return;
  if (!on_device(source)) check_host(source, bytes, false);
  if (!on_device(target)) check_host(target, bytes, true);
  copy_unchecked(target, source, bytes);
}

void Runtime::copy_unchecked(std::uint64_t target, std::uint64_t source, std::uint64_t bytes) {
  const bool to_device = on_device(target);
  const bool from_device = on_device(source);
  if (to_device && from_device) {
    memory().copy(target, source, bytes);
  } else if (to_device) {
    memory().write(target, pointer_to(source), bytes);
  } else if (from_device) {
    memory().read(source, pointer_to(target), bytes);
  } else {
    std::memmove(pointer_to(target), pointer_to(source), bytes);
  }
}

}  // namespace warpstack::cudart
