#pragma once

#include <cstdint>
#include <string>

#include "stand_ins/state/runtime.h"

/// What the log of operations gets, by kind of operation. All are called when the operation has
/// been checked; the calling thread's CallContext says to which call they belong.
namespace warpstack::cudart {

/// Returns the number of the stream, as the trace's header has it.
std::uint64_t record_launch(Runtime& runtime, const std::string& kernel, const Runtime::Call& call,
                            std::uint64_t launch);
/// The two places decide the direction; managed memory counts as memory of the device.
void record_copy(Runtime& runtime, std::uint64_t target, std::uint64_t source, std::uint64_t bytes);
/// cudaMemPrefetchAsync.
void record_prefetch(Runtime& runtime, StreamHandle stream, std::uint64_t bytes, bool to_device);
void record_fill(Runtime& runtime, std::uint64_t target, std::uint64_t bytes);
/// What a library does in place of kernels that are not known.
void record_library(Runtime& runtime, const std::string& library, StreamHandle stream,
                    std::uint64_t bytes, const Computation& computation);
/// Operations of a stream without further properties.
void record_stream(Runtime& runtime, OperationKind kind, StreamHandle stream);
/// In a stream, or (event_synchronize) in none.
void record_event(Runtime& runtime, OperationKind kind, EventHandle event, StreamHandle stream = 0);
/// In the stream of the call where it is in order, else in none.
void record_allocation(Runtime& runtime, std::uint64_t bytes, bool pinned);
void record_free(Runtime& runtime, std::uint64_t address);
/// Waits for the whole device.
void record_synchronization(Runtime& runtime);

}  // namespace warpstack::cudart
