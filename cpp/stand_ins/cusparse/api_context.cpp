// Handles and their settings, versions, names of statuses, and the older descriptors of matrices.

#include <array>

#include "stand_ins/cusparse/context.h"
#include "stand_ins/cusparse/legacy.h"

using namespace warpstack::cusparse;
using warpstack::cudart::StreamHandle;
using warpstack::library::Handles;

namespace {

struct StatusName {
  const char* name;
  const char* text;
};
constexpr std::array<StatusName, 12> status_names{{
    {"CUSPARSE_STATUS_SUCCESS", "success"},
    {"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
    {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
    {"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
    {"CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"},
    {"CUSPARSE_STATUS_MAPPING_ERROR", "texture memory mapping error"},
    {"CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"},
    {"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
    {"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
    {"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
    {"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
    {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"},
}};

const StatusName* name_of(int status) {
  const auto index = static_cast<std::size_t>(status);
  return index < status_names.size() ? &status_names[index] : nullptr;
}

/// Major, minor and patch of the last cuSPARSE of CUDA 11, and of the first of CUDA 13.
std::array<int, 3> library_version() {
  if (abi_version() == 11) return {11, 7, 5};
  return {12, 6, 3};
}

}  // namespace

CUSPARSE_EXPORT Status cusparseCreate(Context** handle) {
  return call(__func__, [&] { create(handle, "handle"); });
}

CUSPARSE_EXPORT Status cusparseDestroy(Context* handle) {
  return call(__func__, handle, [&](Context& context) { Handles<Context>::remove(&context); });
}

CUSPARSE_EXPORT Status cusparseGetVersion(Context* handle, int* version) {
  return call(__func__, handle, [&](Context&) {
    const auto [major, minor, patch] = library_version();
    give(version, major * 1000 + minor * 100 + patch, "version");
  });
}

CUSPARSE_EXPORT Status cusparseGetProperty(int property, int* value) {
  return call(__func__, [&] {
    check_choice("type", property, 0, 2);
    give(value, library_version()[static_cast<std::size_t>(property)], "value");
  });
}

CUSPARSE_EXPORT const char* cusparseGetErrorName(int status) {
  const StatusName* const found = name_of(status);
  return found == nullptr ? "unrecognized error code" : found->name;
}

CUSPARSE_EXPORT const char* cusparseGetErrorString(int status) {
  const StatusName* const found = name_of(status);
  return found == nullptr ? "unrecognized error code" : found->text;
}

CUSPARSE_EXPORT Status cusparseSetStream(Context* handle, StreamHandle stream) {
  return call(__func__, handle, [&](Context& context) { context.stream = stream; });
}

CUSPARSE_EXPORT Status cusparseGetStream(Context* handle, StreamHandle* stream) {
  return call(__func__, handle,
              [&](Context& context) { give(stream, context.stream, "streamId"); });
}

CUSPARSE_EXPORT Status cusparseSetPointerMode(Context* handle, int mode) {
  return call(__func__, handle, [&](Context& context) {
    check_choice("mode", mode, pointers_to_host, pointers_to_device);
    context.pointer_mode = mode;
  });
}

CUSPARSE_EXPORT Status cusparseGetPointerMode(Context* handle, int* mode) {
  return call(__func__, handle,
              [&](Context& context) { give(mode, context.pointer_mode, "mode"); });
}

CUSPARSE_EXPORT Status cusparseCreateMatDescr(LegacyMatrix** matrix) {
  return call(__func__, [&] { create(matrix, "descrA"); });
}

CUSPARSE_EXPORT Status cusparseDestroyMatDescr(LegacyMatrix* matrix) {
  return call(__func__, [&] { Handles<LegacyMatrix>::remove(&described(matrix, "descrA")); });
}

CUSPARSE_EXPORT Status cusparseSetMatType(LegacyMatrix* matrix, int type) {
  return call(__func__, [&] {
    check_choice("type", type, 0, 3);
    described(matrix, "descrA").type = type;
  });
}

CUSPARSE_EXPORT Status cusparseSetMatFillMode(LegacyMatrix* matrix, int fill) {
  return call(__func__, [&] {
    check_choice("fillMode", fill, fill_lower, fill_upper);
    described(matrix, "descrA").fill = fill;
  });
}

CUSPARSE_EXPORT Status cusparseSetMatDiagType(LegacyMatrix* matrix, int diagonal) {
  return call(__func__, [&] {
    check_choice("diagType", diagonal, diagonal_stored, diagonal_of_ones);
    described(matrix, "descrA").diagonal = diagonal;
  });
}

CUSPARSE_EXPORT Status cusparseSetMatIndexBase(LegacyMatrix* matrix, int base) {
  return call(__func__, [&] {
    check_choice("base", base, 0, 1);
    described(matrix, "descrA").base = base;
  });
}

/// The four answer with the value itself; of what is no descriptor, with the default.
CUSPARSE_EXPORT int cusparseGetMatType(const LegacyMatrix* matrix) {
  return legacy_or_default(matrix).type;
}
CUSPARSE_EXPORT int cusparseGetMatFillMode(const LegacyMatrix* matrix) {
  return legacy_or_default(matrix).fill;
}
CUSPARSE_EXPORT int cusparseGetMatDiagType(const LegacyMatrix* matrix) {
  return legacy_or_default(matrix).diagonal;
}
CUSPARSE_EXPORT int cusparseGetMatIndexBase(const LegacyMatrix* matrix) {
  return legacy_or_default(matrix).base;
}
