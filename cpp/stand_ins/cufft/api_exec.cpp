// Transforms.

#include "stand_ins/cufft/plan.h"

using namespace warpstack::cufft;

namespace {

void check_direction(int direction) {
  require(direction == forward || direction == inverse, Status::invalid_value,
          "direction = " + std::to_string(direction) + " is not CUFFT_FORWARD or CUFFT_INVERSE");
}

void run(const Context& context, const void* input, void* output, int direction) {
  const Transform& transform = transform_of(context);
  require(input != nullptr, Status::invalid_value, "idata is null");
  require(output != nullptr, Status::invalid_value, "odata is null");
  require(
      context.allocates || context.work_area != nullptr, Status::no_workspace,
      "cufftSetAutoAllocation has left the work area to cufftSetWorkArea, which was not called");
  execute(context, transform, input, output, direction == inverse);
}

Status run(const char* function, Handle plan, const void* input, void* output, int direction,
           int type) {
  return call_in_stream(function, plan, [=](Context& context) {
    const Transform& transform = transform_of(context);
    const auto [kind, precision] = type_of(type);
    require(transform.kind == kind && transform.precision == precision, Status::invalid_type,
            "the plan is of another type");
    check_direction(direction);
    run(context, input, output, direction);
  });
}

}  // namespace

CUFFT_EXPORT Status cufftExecC2C(Handle plan, void* input, void* output, int direction) {
  return run(__func__, plan, input, output, direction, type_c2c);
}

CUFFT_EXPORT Status cufftExecR2C(Handle plan, void* input, void* output) {
  return run(__func__, plan, input, output, forward, type_r2c);
}

CUFFT_EXPORT Status cufftExecC2R(Handle plan, void* input, void* output) {
  return run(__func__, plan, input, output, inverse, type_c2r);
}

CUFFT_EXPORT Status cufftExecZ2Z(Handle plan, void* input, void* output, int direction) {
  return run(__func__, plan, input, output, direction, type_z2z);
}

CUFFT_EXPORT Status cufftExecD2Z(Handle plan, void* input, void* output) {
  return run(__func__, plan, input, output, forward, type_d2z);
}

CUFFT_EXPORT Status cufftExecZ2D(Handle plan, void* input, void* output) {
  return run(__func__, plan, input, output, inverse, type_z2d);
}

/// Real transforms do not look at the direction.
CUFFT_EXPORT Status cufftXtExec(Handle plan, void* input, void* output, int direction) {
  return call_in_stream(__func__, plan, [=](Context& context) {
    if (transform_of(context).kind == Kind::complex) check_direction(direction);
    run(context, input, output, direction);
  });
}
