#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "stand_ins/library/calls.h"
#include "stand_ins/library/deferral.h"
#include "stand_ins/library/runtime_calls.h"

namespace warpstack::library {

using Bytes = std::vector<std::byte>;

/// What one call of a library does on the GPU: reads from its memory, then writes to it. It is one
/// operation of the stream, with the bytes of all arrays that NVIDIA's kernels have to read and
/// write. Library has, besides what calls.h says, `title` and the statuses `invalid_value` and
/// `execution_failed`.
template <typename Library>
class Operation {
 public:
  explicit Operation(cudart::StreamHandle stream) : stream_(stream), work_(Library::title) {}

  /// Throws Failure if the memory is not the device's. `name` is the argument's. What does not
  /// count is read for the stand-in's own sake.
  Bytes read(const void* place, std::size_t bytes, const char* name, bool counts = true) {
    Bytes found(bytes);
    if (bytes == 0) return found;
    reach_device();
    require(place != nullptr, Library::invalid_value, std::string(name) + " is null");
    check(warpstack_cudart_read(Library::title, found.data(), place, bytes, stream_));
    if (counts) moved_ += bytes;
    return found;
  }

  /// Arithmetic of the kernels, besides what was said before.
  void compute(const cudart::Computation& computation) {
    const double before = computation_.operations;
    computation_ = computation;
    computation_.operations += before;
  }

  /// Bytes that kernels read or write besides.
  void count(std::size_t bytes) { moved_ += bytes; }

  /// Writes when the operation finishes.
  void write(void* place, Bytes bytes, const char* name) {
    const std::size_t counted = bytes.size();
    write(place, std::move(bytes), name, counted);
  }

  /// `counted` are the bytes that kernels write, if not all.
  void write(void* place, Bytes bytes, const char* name, std::size_t counted) {
    if (bytes.empty()) return;
    reach_device();
    require(place != nullptr, Library::invalid_value, std::string(name) + " is null");
    writes_.push_back({place, std::move(bytes)});
    moved_ += counted;
  }

  void finish() {
    // The last one says what the operation has moved.
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      const auto& [place, bytes] = writes_[i];
      const std::size_t moved = i + 1 == writes_.size() ? moved_ : 0;
      check(warpstack_cudart_write(Library::title, place, bytes.data(), bytes.size(), moved,
                                   computation_, stream_));
    }
    if (!writes_.empty() || moved_ == 0) return;
    check(
        warpstack_cudart_write(Library::title, nullptr, nullptr, 0, moved_, computation_, stream_));
  }

 private:
  struct Write {
    void* place;
    Bytes bytes;
  };

  static void check(cudart::Error error) {
    require_success<Library>(error, Library::execution_failed);
  }

  cudart::StreamHandle stream_;
  WorkOfTheGpu work_;
  std::vector<Write> writes_;
  std::size_t moved_ = 0;
  cudart::Computation computation_;
};

}  // namespace warpstack::library
