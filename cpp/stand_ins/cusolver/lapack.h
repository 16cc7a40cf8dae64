#pragma once

#include <cstddef>

#include "stand_ins/cusolver/context.h"

namespace warpstack::cusolver {

/// A letter of LAPACK's names: s, d, c or z.
using Letter = char;

inline bool is_complex(Letter letter) { return letter == 'c' || letter == 'z'; }
/// Bytes of a real number, and of a number.
inline std::size_t real_bytes(Letter letter) { return letter == 's' || letter == 'c' ? 4 : 8; }
inline std::size_t number_bytes(Letter letter) {
  return real_bytes(letter) * (is_complex(letter) ? 2 : 1);
}

/// The address of a routine of LAPACK. `warpstack trace` names the library in the variable
/// WARPSTACK_LAPACK: that of the package scipy-openblas32, whose integers have 32 bits. Throws
/// Failure(internal_error) without it.
void* lapack_routine(Letter letter, const char* routine);

/// Calls a routine with pointers, as Fortran does. Lengths of characters come last; where a routine
/// has none it does not look at them.
template <typename... T>
void lapack(Letter letter, const char* routine, T*... arguments) {
  using Routine = void (*)(T*..., std::size_t, std::size_t, std::size_t);
  reinterpret_cast<Routine>(lapack_routine(letter, routine))(arguments..., 1, 1, 1);
}

/// The size of a work array, which a routine puts at its start when it is asked.
int work_size(Letter letter, const std::byte* first);

/// Calls `run(work, size)` twice: to ask for the size of the work array, and with it.
template <typename Run>
void with_work(Letter letter, Run run) {
  Bytes work(16);
  int size = -1;
  run(work.data(), &size);
  size = work_size(letter, work.data());
  work.assign(static_cast<std::size_t>(size) * number_bytes(letter), std::byte{});
  run(work.data(), &size);
}

/// A matrix of the program's memory, column by column.
struct Matrix {
  Bytes bytes;
  void* place;
  int rows, columns, ld;
  std::size_t size;  ///< of a number

  void* data() { return bytes.data(); }
  [[nodiscard]] std::size_t counted() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * size;
  }
};

/// Throws Failure(invalid_value) if a size is negative or too large, or `ld` too small.
Matrix read_matrix(Operation& operation, Letter letter, const void* place, std::int64_t rows,
                   std::int64_t columns, std::int64_t ld, const char* name, bool counts = true);
void write_matrix(Operation& operation, Matrix matrix, const char* name);

/// Numbers one after another, and a result that is one integer.
Bytes read_numbers(Operation& operation, std::size_t size, const void* place, std::int64_t count,
                   const char* name);
void write_info(Operation& operation, int* place, int info);

/// Throws Failure(invalid_value) unless 0 <= value < 2^31.
int size_of(const char* name, std::int64_t value);

}  // namespace warpstack::cusolver
