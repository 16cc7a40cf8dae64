#include "cudart/error_names.h"

namespace warpstack::cudart {
namespace {

constexpr char unknown[] = "unrecognized error code";

}  // namespace

const char* name_of(Error error) {
  switch (static_cast<int>(error)) {
#define CUDA_ERROR(number, name) \
  case number:                   \
    return #name;
#include "cudart/error_names.inc"
#undef CUDA_ERROR
    default:
      return unknown;
  }
}

const char* description_of(Error error) {
  switch (error) {
    case Error::success:
      return "no error";
    case Error::invalid_value:
      return "invalid argument";
    case Error::memory_allocation:
      return "out of memory";
    case Error::invalid_configuration:
      return "invalid configuration argument";
    case Error::invalid_symbol:
      return "invalid device symbol";
    case Error::invalid_texture:
      return "invalid texture reference";
    case Error::invalid_channel_descriptor:
      return "invalid channel descriptor";
    case Error::missing_configuration:
      return "a kernel was called without a configuration";
    case Error::invalid_device_function:
      return "invalid device function";
    case Error::invalid_device:
      return "invalid device ordinal";
    case Error::no_kernel_image_for_device:
      return "the program has no PTX that warpstack can run";
    case Error::invalid_ptx:
      return "the PTX cannot be read";
    case Error::invalid_resource_handle:
      return "invalid resource handle";
    case Error::symbol_not_found:
      return "named symbol not found";
    case Error::not_ready:
      return "not ready";
    case Error::illegal_address:
      return "an access out of bounds by a kernel";
    case Error::misaligned_address:
      return "a misaligned access by a kernel";
    case Error::assertion:
      return "a failed assertion in a kernel";
    case Error::launch_timeout:
      return "a kernel did not end";
    case Error::launch_failure:
      return "unspecified launch failure";
    case Error::not_supported:
      return "operation not supported";
    default:
      return name_of(error);
  }
}

}  // namespace warpstack::cudart
