// Memory in the order of streams: cudaMallocAsync, memory pools, and the memory of graphs.

#include <algorithm>
#include <cstring>

#include "stand_ins/state/graph.h"
#include "stand_ins/state/memory_pool.h"
#include "stand_ins/state/recording.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

constexpr MemoryLocation device_memory{MemoryLocation::Kind::device, 0};

/// Allocates now, or makes the allocation a node of the graph that the stream captures.
void allocate_in_order(Runtime& runtime, void** pointer, std::size_t bytes, MemoryPool* pool,
                       StreamHandle stream) {
  require(pointer != nullptr, "nowhere to put the address");
  MemoryPool& from = pool == nullptr ? runtime.pools().current(device_memory, pinned_memory)
                                     : runtime.pools().checked(pool);
  if (Capture* const captured = capture_of(runtime, stream)) {
    require(bytes > 0, "an allocation node needs a size");
    AllocateWork work;
    work.parameters.pool = from.properties;
    work.parameters.bytes = bytes;
    work.allocation = runtime.graphs().memory.create(runtime, bytes);
    work.allocation->home = captured->graph->number;
    *pointer = work.parameters.pointer = pointer_to(work.allocation->address);
    capture(runtime, stream, std::move(work));
    return;
  }
  *pointer = bytes == 0 ? nullptr : pointer_to(runtime.pools().allocate(runtime, from, bytes));
  if (bytes > 0) {
    const auto kind = runtime.kind_of(address_of(*pointer));
    record_allocation(runtime, bytes, kind == PointerAttributes::Kind::host);
  }
}

/// The 64-bit number of an attribute of a pool, or null for those that are an int.
std::uint64_t* number_of(MemoryPool& pool, int attribute) {
  switch (attribute) {
    case 4:
      return &pool.release_threshold;
    case 5:
      return &pool.reserved;
    case 6:
      return &pool.reserved_high;
    case 7:
      return &pool.used;
    case 8:
      return &pool.used_high;
    default:
      require(attribute >= 1 && attribute <= 3, "a memory pool has no such attribute");
      return nullptr;
  }
}

/// Attributes of the memory of graphs, by number.
std::uint64_t& graph_number(GraphMemory& memory, int attribute) {
  std::uint64_t* const numbers[] = {&memory.used, &memory.used_high, &memory.reserved,
                                    &memory.reserved_high};
  require(attribute >= 0 && attribute <= 3, "the memory of graphs has no such attribute");
  return *numbers[attribute];
}

}  // namespace

// --- allocation ---------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMallocAsync(void** pointer, std::size_t bytes, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    allocate_in_order(runtime, pointer, bytes, nullptr, stream);
  });
}
CUDART_PER_THREAD(cudaMallocAsync_ptsz, cudaMallocAsync);

CUDART_EXPORT Error cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, MemoryPool* pool,
                                            StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    require(pool != nullptr, "there is no such memory pool");
    allocate_in_order(runtime, pointer, bytes, pool, stream);
  });
}
CUDART_PER_THREAD(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);

CUDART_EXPORT Error cudaFreeAsync(void* pointer, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (Capture* const captured = capture_of(runtime, stream)) {
      note_free_node(runtime, *captured->graph, address_of(pointer));
      capture(runtime, stream, FreeWork{address_of(pointer)});
    } else if (pointer != nullptr) {
      record_free(runtime, address_of(pointer));
      runtime.free(address_of(pointer));
    }
  });
}
CUDART_PER_THREAD(cudaFreeAsync_ptsz, cudaFreeAsync);

// --- pools --------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMemPoolCreate(MemoryPool** pool, const MemoryPoolProperties* properties) {
  return call(__func__, [&](Runtime& runtime) {
    require(pool != nullptr && properties != nullptr, "a pool needs properties and a pointer");
    *pool = runtime.pools().create(*properties);
  });
}

CUDART_EXPORT Error cudaMemPoolDestroy(MemoryPool* pool) {
  return call(__func__, [&](Runtime& runtime) { runtime.pools().destroy(pool); });
}

CUDART_EXPORT Error cudaMemPoolTrimTo(MemoryPool* pool, std::size_t bytes) {
  return call(__func__,
              [&](Runtime& runtime) { MemoryPools::trim(runtime.pools().checked(pool), bytes); });
}

CUDART_EXPORT Error cudaMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  return call(__func__, [&](Runtime& runtime) {
    require(value != nullptr, "nowhere to put the value");
    MemoryPool& found = runtime.pools().checked(pool);
    if (const std::uint64_t* const number = number_of(found, attribute)) {
      std::memcpy(value, number, sizeof *number);
    } else {
      std::memcpy(value, &found.reuse[attribute - 1], sizeof(int));
    }
  });
}

CUDART_EXPORT Error cudaMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  return call(__func__, [&](Runtime& runtime) {
    require(value != nullptr, "there is no value");
    MemoryPool& found = runtime.pools().checked(pool);
    std::uint64_t* const number = number_of(found, attribute);
    if (number == nullptr) {
      std::memcpy(&found.reuse[attribute - 1], value, sizeof(int));
      return;
    }
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    require(attribute != 5 && attribute != 7, "this attribute of a pool can only be read");
    if (attribute == 4) {
      *number = wanted;
    } else {
      require(wanted == 0, "the most that was in use can only be set to 0");
      *number = attribute == 6 ? found.reserved : found.used;
    }
  });
}

/// The one device can reach its own memory and the host's.
CUDART_EXPORT Error cudaMemPoolSetAccess(MemoryPool* pool, const AccessDescription* descriptions,
                                         std::size_t count) {
  return call(__func__, [&](Runtime& runtime) {
    MemoryPool& found = runtime.pools().checked(pool);
    require(count == 0 || descriptions != nullptr, "there are no descriptions");
    for (std::size_t i = 0; i < count; ++i) {
      const AccessDescription& one = descriptions[i];
      require(one.flags == 0 || one.flags == 1 || one.flags == 3, "unknown access");
      require(one.location.kind == MemoryLocation::Kind::device && one.location.id == 0,
              "access is given to device 0");
      require(found.properties.location.kind != MemoryLocation::Kind::device || one.flags == 3,
              "a device keeps the access to its own memory");
      found.access[0] = one.flags;
    }
  });
}

CUDART_EXPORT Error cudaMemPoolGetAccess(int* flags, MemoryPool* pool, MemoryLocation* location) {
  return call(__func__, [&](Runtime& runtime) {
    require(flags != nullptr && location != nullptr, "a pointer is null");
    const MemoryPool& found = runtime.pools().checked(pool);
    require(location->kind == MemoryLocation::Kind::device && location->id == 0,
            "access is known of device 0");
    const auto given = found.access.find(0);
    const bool own = found.properties.location.kind == MemoryLocation::Kind::device;
    *flags = given != found.access.end() ? given->second : own ? 3 : 0;
  });
}

CUDART_EXPORT Error cudaDeviceGetDefaultMemPool(MemoryPool** pool, int device) {
  return call(__func__, [&](Runtime& runtime) {
    require(device == 0, "there is one device, number 0", Error::invalid_device);
    require(pool != nullptr, "nowhere to put the pool");
    *pool = &runtime.pools().standard(device_memory, pinned_memory);
  });
}

CUDART_EXPORT Error cudaDeviceGetMemPool(MemoryPool** pool, int device) {
  return call(__func__, [&](Runtime& runtime) {
    require(device == 0, "there is one device, number 0", Error::invalid_device);
    require(pool != nullptr, "nowhere to put the pool");
    *pool = &runtime.pools().current(device_memory, pinned_memory);
  });
}

CUDART_EXPORT Error cudaDeviceSetMemPool(int device, MemoryPool* pool) {
  return call(__func__, [&](Runtime& runtime) {
    require(device == 0, "there is one device, number 0", Error::invalid_device);
    runtime.pools().set_current(device_memory, pinned_memory, pool);
  });
}

CUDART_EXPORT Error cudaMemGetDefaultMemPool(MemoryPool** pool, const MemoryLocation* location,
                                             int allocation_kind) {
  return call(__func__, [&](Runtime& runtime) {
    require(pool != nullptr && location != nullptr, "a pointer is null");
    *pool = &runtime.pools().standard(*location, allocation_kind);
  });
}

CUDART_EXPORT Error cudaMemGetMemPool(MemoryPool** pool, const MemoryLocation* location,
                                      int allocation_kind) {
  return call(__func__, [&](Runtime& runtime) {
    require(pool != nullptr && location != nullptr, "a pointer is null");
    *pool = &runtime.pools().current(*location, allocation_kind);
  });
}

CUDART_EXPORT Error cudaMemSetMemPool(const MemoryLocation* location, int allocation_kind,
                                      MemoryPool* pool) {
  return call(__func__, [&](Runtime& runtime) {
    require(location != nullptr, "a pointer is null");
    runtime.pools().set_current(*location, allocation_kind, pool);
  });
}

// --- memory of graphs ---------------------------------------------------------------------------

CUDART_EXPORT Error cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return call(__func__, [&](Runtime& runtime) {
    require(device == 0, "there is one device, number 0", Error::invalid_device);
    require(value != nullptr, "nowhere to put the value");
    std::memcpy(value, &graph_number(runtime.graphs().memory, attribute), sizeof(std::uint64_t));
  });
}

CUDART_EXPORT Error cudaDeviceSetGraphMemAttribute(int device, int attribute, void* value) {
  return call(__func__, [&](Runtime& runtime) {
    require(device == 0, "there is one device, number 0", Error::invalid_device);
    require(value != nullptr, "there is no value");
    GraphMemory& memory = runtime.graphs().memory;
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    std::uint64_t& number = graph_number(memory, attribute);
    require(attribute % 2 == 1 && wanted == 0, "only the most that was in use can be set, to 0");
    number = attribute == 1 ? memory.used : memory.reserved;
  });
}

CUDART_EXPORT Error cudaDeviceGraphMemTrim(int device) {
  return call(__func__, [&](Runtime& runtime) {
    require(device == 0, "there is one device, number 0", Error::invalid_device);
    runtime.graphs().memory.reserved = runtime.graphs().memory.used;
  });
}
