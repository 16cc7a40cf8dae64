#pragma once

#include <cstdint>
#include <vector>

#include "stand_ins/cusparse/context.h"
#include "stand_ins/cusparse/operation.h"

namespace warpstack::cusparse {

/// What the descriptors of cuSPARSE point to: pointers of the program's, and what lies there.
struct SparseVector {
  std::int64_t size = 0, count = 0;
  void *indices = nullptr, *values = nullptr;
  int index_type = index_i32, base = 0, type = data_f32;
};

struct DenseVector {
  std::int64_t size = 0;
  void* values = nullptr;
  int type = data_f32;
};

struct DenseMatrix {
  std::int64_t rows = 0, columns = 0, ld = 0;
  void* values = nullptr;
  int type = data_f32, order = order_column;
  int batch = 1;
  std::int64_t stride = 0;  ///< elements between matrices of a batch

  /// The place of an element of matrix `number`.
  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t column, int number = 0) const {
    return number * stride + (order == order_row ? row * ld + column : column * ld + row);
  }
  /// Elements from the first to the last, gaps included.
  [[nodiscard]] std::int64_t span() const;
};

struct SparseMatrix {
  int format = format_csr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t count = 0;  ///< stored elements; of BSR blocks; of sliced ELL without padding
  /// Offsets of rows (CSR, BSR), columns (CSC) or slices, or the rows (COO); then the others.
  void *offsets = nullptr, *indices = nullptr, *values = nullptr;
  int offset_type = index_i32, index_type = index_i32, base = 0, type = data_f32;
  // Of blocks: their sizes, the order in them, the columns of ELL; of slices: their rows, the
  // values with padding.
  std::int64_t block_rows = 1, block_columns = 1, ell_columns = 0, slice = 1, padded = 0;
  int order = order_row;
  int batch = 1;
  std::int64_t offset_stride = 0, index_stride = 0, value_stride = 0;
  int fill = fill_lower, diagonal = diagonal_stored;

  /// Values in memory, without those of other matrices of a batch.
  [[nodiscard]] std::int64_t num_values() const;
};

/// A stored element of a sparse matrix.
struct Entry {
  std::int64_t row, column;
  std::int64_t place;  ///< in the array of values
  Complex value;
};

/// What a sparse matrix stores, in the order of the format. Without values they are zeros.
/// Throws Failure(invalid_value) if indices are damaged.
std::vector<Entry> entries_of(Operation& operation, const SparseMatrix& matrix, int number = 0,
                              bool with_values = true);
/// The same matrix after an operation: transposed, and with conjugate numbers.
void apply(int operation, std::vector<Entry>& entries);

/// The numbers of a vector or of a whole batch of matrices, as the program has them.
Bytes bytes_of(Operation& operation, const DenseVector& vector, const char* name,
               bool counts = true);
Bytes bytes_of(Operation& operation, const DenseMatrix& matrix, const char* name,
               bool counts = true);

/// Throws Failure unless numbers of these types can be multiplied as `compute` says.
void check_types(int compute, std::initializer_list<int> types);

}  // namespace warpstack::cusparse
