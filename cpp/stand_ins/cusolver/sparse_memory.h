#pragma once

#include <type_traits>
#include <vector>

#include "stand_ins/cusolver/lapack.h"
#include "stand_ins/cusolver/sparse.h"

/// Sparse matrices and vectors in the program's memory: on the host, or on the device.
namespace warpstack::cusolver {

/// Bytes of a work area. Nothing is written to it; NVIDIA's sizes are not published.
inline constexpr std::size_t sparse_work_bytes = 256;

/// cuComplex and cuDoubleComplex as arguments.
struct Complex32 {
  float real, imaginary;
};
struct Complex64 {
  double real, imaginary;
};
inline library::Complex number_of(double value) { return value; }
inline library::Complex number_of(Complex32 value) { return {value.real, value.imaginary}; }
inline library::Complex number_of(Complex64 value) { return {value.real, value.imaginary}; }

/// The arguments of a matrix of compressed rows. `values` may be left out.
struct SparseArguments {
  int rows, columns, count;
  const void* descriptor;  ///< a cusparseMatDescr_t
  const void* values;
  const int *offsets, *indices;
};

/// Where arrays lie: in memory of the host without an operation, else of the device.
using Where = Operation*;

/// The arrays of a matrix as they are, with indices from 0, and the base that the program's have.
struct Pattern {
  int columns = 0, base = 0;
  std::vector<int> offsets, indices;
};
/// Throws Failure(invalid_value) if indices are damaged or the descriptor is null.
Pattern read_pattern(Where where, const SparseArguments& given);
/// 0 or 1, as the descriptor says. Throws Failure(invalid_value) if it is null.
int index_base_of(const void* descriptor);
Bytes read_array(Where where, const void* place, std::size_t bytes, const char* name);
void write_array(Where where, void* place, Bytes bytes, const char* name);

/// The graph of A + A^T. Throws Failure(invalid_value) if the matrix is not square.
sparse::Neighbours neighbours_of(const Pattern& pattern);
/// What `reorder` asks for: 0 none, 1 reverse Cuthill-McKee, 2 and 3 minimum degree.
std::vector<int> order_of(int reorder, const sparse::Neighbours& graph);

/// Calls run(T{}) with the type in which numbers of a letter are computed.
template <typename Run>
void with_numbers(Letter letter, Run run) {
  if (is_complex(letter)) {
    run(library::Complex{});
  } else {
    run(double{});
  }
}

template <typename T>
T load_number(Letter letter, const std::byte* numbers, std::int64_t index) {
  const auto precision =
      real_bytes(letter) == 4 ? library::Precision::f32 : library::Precision::f64;
  if constexpr (std::is_same_v<T, double>) {
    return load(precision, numbers, index);
  } else {
    return {load(precision, numbers, 2 * index), load(precision, numbers, 2 * index + 1)};
  }
}

template <typename T>
void store_number(Letter letter, std::byte* numbers, std::int64_t index, const T& value) {
  const auto precision =
      real_bytes(letter) == 4 ? library::Precision::f32 : library::Precision::f64;
  if constexpr (std::is_same_v<T, double>) {
    store(precision, numbers, index, value);
  } else {
    store(precision, numbers, 2 * index, value.real());
    store(precision, numbers, 2 * index + 1, value.imag());
  }
}

template <typename T>
std::vector<T> read_vector(Where where, Letter letter, const void* place, int count,
                           const char* name) {
  const auto size = static_cast<std::size_t>(count);
  const Bytes bytes = read_array(where, place, size * number_bytes(letter), name);
  std::vector<T> found(size);
  for (int i = 0; i < count; ++i) found[sparse::place(i)] = load_number<T>(letter, bytes.data(), i);
  return found;
}

template <typename T>
void write_vector(Where where, Letter letter, void* place, const std::vector<T>& numbers,
                  const char* name) {
  Bytes bytes(numbers.size() * number_bytes(letter));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store_number(letter, bytes.data(), static_cast<std::int64_t>(i), numbers[i]);
  }
  write_array(where, place, std::move(bytes), name);
}

template <typename T>
sparse::Rows<T> read_rows(Where where, Letter letter, const SparseArguments& given,
                          const Pattern& pattern) {
  const auto values = read_vector<T>(where, letter, given.values, given.count, "csrVal");
  sparse::Rows<T> found{given.columns,
                        std::vector<std::vector<sparse::Element<T>>>(sparse::place(given.rows))};
  for (std::size_t row = 0; row < found.of.size(); ++row) {
    for (int i = pattern.offsets[row]; i < pattern.offsets[row + 1]; ++i) {
      found.of[row].push_back({pattern.indices[sparse::place(i)], values[sparse::place(i)]});
    }
  }
  return found;
}

/// What a function does, in whose memory its arrays are: on the device it is an operation.
template <typename Run>
void run_where(bool on_device, cudart::StreamHandle stream, Run run) {
  if (!on_device) return run(nullptr);
  Operation operation(stream);
  run(&operation);
  operation.finish();
}

/// Arithmetic of sparse factorisations, by their multiplications, which are irregular: tensor cores
/// do none.
inline cudart::Computation sparse_computation(Letter letter, double multiply_adds) {
  return {(is_complex(letter) ? 8 : 2) * multiply_adds,
          real_bytes(letter) == 8 ? cudart::Arithmetic::fp64 : cudart::Arithmetic::fp32, false};
}

}  // namespace warpstack::cusolver
