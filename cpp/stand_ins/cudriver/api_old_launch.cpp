// Launches as before CUDA 4: shape and arguments are set one by one and remain for later launches.

#include <cstring>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/runtime_calls.h"

using namespace warpstack::cudriver;

extern "C" Error cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, StreamHandle stream,
                                void** arguments, void** extra);

namespace {

/// A kernel has no more than 32,764 bytes of arguments.
constexpr std::size_t most_bytes = 32764;

Error set_parameter(const char* name, Function function, int offset, const void* value,
                    std::size_t bytes) {
  return drive(name, [&](Runtime& runtime) {
    LaunchSettings& settings = Driver::get().settings_of(function);
    require(offset >= 0 && bytes <= most_bytes &&
                static_cast<std::size_t>(offset) <= most_bytes - bytes,
            "no kernel has so many bytes of arguments");
    runtime.check_host(address_of(value), bytes, false);
    const std::size_t end = static_cast<std::size_t>(offset) + bytes;
    if (settings.parameters.size() < end) settings.parameters.resize(end);
    std::memcpy(settings.parameters.data() + offset, value, bytes);
  });
}

Error launch(const char* name, Function function, int width, int height, StreamHandle stream) {
  LaunchSettings settings;
  const Error error = drive(name, [&](Runtime&) {
    require(width > 0 && height > 0, "a grid has at least one block");
    settings = Driver::get().settings_of(function);
  });
  if (error != Error::success) return error;
  std::size_t bytes = settings.parameters.size();
  void* extra[] = {pointer_to(1), settings.parameters.data(), pointer_to(2), &bytes, nullptr};
  return forward(name, [&] {
    return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                          settings.block[0], settings.block[1], settings.block[2],
                          settings.shared_bytes, stream, nullptr, extra);
  });
}

}  // namespace

CUDART_EXPORT Error cuFuncSetBlockShape(Function function, int x, int y, int z) {
  return drive(__func__, [&](Runtime&) {
    require(x > 0 && y > 0 && z > 0, "a block has at least one thread");
    unsigned (&block)[3] = Driver::get().settings_of(function).block;
    block[0] = static_cast<unsigned>(x);
    block[1] = static_cast<unsigned>(y);
    block[2] = static_cast<unsigned>(z);
  });
}

CUDART_EXPORT Error cuFuncSetSharedSize(Function function, unsigned bytes) {
  return drive(__func__,
               [&](Runtime&) { Driver::get().settings_of(function).shared_bytes = bytes; });
}

CUDART_EXPORT Error cuParamSetSize(Function function, unsigned bytes) {
  return drive(__func__, [&](Runtime&) {
    require(bytes <= most_bytes, "no kernel has so many bytes of arguments");
    Driver::get().settings_of(function).parameters.resize(bytes);
  });
}

CUDART_EXPORT Error cuParamSetv(Function function, int offset, const void* value, unsigned bytes) {
  return set_parameter(__func__, function, offset, value, bytes);
}

CUDART_EXPORT Error cuParamSeti(Function function, int offset, unsigned value) {
  return set_parameter(__func__, function, offset, &value, sizeof value);
}

CUDART_EXPORT Error cuParamSetf(Function function, int offset, float value) {
  return set_parameter(__func__, function, offset, &value, sizeof value);
}

CUDART_EXPORT Error cuLaunchGridAsync(Function function, int width, int height,
                                      StreamHandle stream) {
  return launch(__func__, function, width, height, stream);
}

CUDART_EXPORT Error cuLaunchGrid(Function function, int width, int height) {
  return launch(__func__, function, width, height, 0);
}

CUDART_EXPORT Error cuLaunch(Function function) { return launch(__func__, function, 1, 1, 0); }
