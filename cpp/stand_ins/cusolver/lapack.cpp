#include "stand_ins/cusolver/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace warpstack::cusolver {
namespace {

constexpr const char* remedy =
    "; cuSOLVER's functions need a LAPACK: install it with: pip install \"warpstack[lapack]\"";

[[noreturn]] void fail(const std::string& what) {
  throw Failure(Status::internal_error, what + remedy, true);
}

void* library_handle() {
  static void* handle = nullptr;
  if (handle != nullptr) return handle;
  const char* const file = std::getenv("WARPSTACK_LAPACK");
  if (file == nullptr || *file == '\0') fail("scipy-openblas32 is not installed");
  handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    fail(std::string(file) + " cannot be loaded: " + (why == nullptr ? "" : why));
  }
  // Sums, and so the last bits of results, depend on the number of threads.
  using SetThreads = void (*)(int);
  if (void* const set = dlsym(handle, "scipy_openblas_set_num_threads")) {
    reinterpret_cast<SetThreads>(set)(1);
  }
  return handle;
}

}  // namespace

void* lapack_routine(Letter letter, const char* routine) {
  const std::string name = std::string("scipy_") + letter + routine + "_";
  void* const found = dlsym(library_handle(), name.c_str());
  if (found == nullptr) fail("the library of WARPSTACK_LAPACK has no " + name);
  return found;
}

int work_size(Letter letter, const std::byte* first) {
  double size = 0;
  if (real_bytes(letter) == 4) {
    float narrow = 0;
    std::memcpy(&narrow, first, sizeof narrow);
    // A float may have rounded the size down.
    size = static_cast<double>(narrow) * (1 + 1e-6) + 1;
  } else {
    std::memcpy(&size, first, sizeof size);
  }
  return std::max(1, static_cast<int>(std::min(size, static_cast<double>(INT_MAX))));
}

int size_of(const char* name, std::int64_t value) {
  require(value >= 0, with_number(name, value) + " is negative");
  require(value <= INT_MAX, Status::not_supported,
          with_number(name, value) + " is more than LAPACK's integers can be");
  return static_cast<int>(value);
}

Matrix read_matrix(Operation& operation, Letter letter, const void* place, std::int64_t rows,
                   std::int64_t columns, std::int64_t ld, const char* name, bool counts) {
  Matrix matrix{{},
                const_cast<void*>(place),
                size_of("the rows of a matrix", rows),
                size_of("the columns of a matrix", columns),
                size_of("ld", ld),
                number_bytes(letter)};
  const std::string ld_name = std::string("ld") + static_cast<char>(std::tolower(name[0]));
  require(ld >= std::max<std::int64_t>(1, rows),
          with_number(ld_name.c_str(), ld) + " is less than max(1, " + std::to_string(rows) + ")");
  const std::int64_t span = rows == 0 || columns == 0 ? 0 : (columns - 1) * ld + rows;
  matrix.bytes = operation.read(place, static_cast<std::size_t>(span) * matrix.size, name, false);
  if (counts) operation.count(matrix.counted());
  return matrix;
}

void write_matrix(Operation& operation, Matrix matrix, const char* name) {
  const std::size_t counted = matrix.counted();
  operation.write(matrix.place, std::move(matrix.bytes), name, counted);
}

Bytes read_numbers(Operation& operation, std::size_t size, const void* place, std::int64_t count,
                   const char* name) {
  return operation.read(place, static_cast<std::size_t>(count) * size, name);
}

void write_info(Operation& operation, int* place, int info) {
  Bytes bytes(sizeof info);
  std::memcpy(bytes.data(), &info, sizeof info);
  operation.write(place, std::move(bytes), "devInfo");
}

}  // namespace warpstack::cusolver
