#include "stand_ins/cusparse/descriptors.h"

#include <algorithm>
#include <utility>

namespace warpstack::cusparse {
namespace {

/// A place `elements` further.
void* moved(void* place, std::int64_t elements, std::size_t bytes) {
  return place == nullptr
             ? nullptr
             : static_cast<std::byte*>(place) + elements * static_cast<std::int64_t>(bytes);
}

std::size_t bytes_of_index(int type) { return type == index_i64 ? 8 : type == index_u16 ? 2 : 4; }

std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// The entries of rows, or columns, whose offsets are stored.
std::vector<Entry> compressed(Operation& operation, const SparseMatrix& matrix, int number) {
  const bool by_row = matrix.format != format_csc;
  const std::int64_t lines = (by_row ? matrix.rows : matrix.columns) / matrix.block_rows;
  const std::int64_t others = (by_row ? matrix.columns : matrix.rows) / matrix.block_columns;
  const Indices offsets = operation.read_offsets(
      moved(matrix.offsets, number * matrix.offset_stride, bytes_of_index(matrix.offset_type)),
      lines, matrix.offset_type, matrix.base, matrix.count, "the offsets");
  const Indices indices = operation.read_indices(
      moved(matrix.indices, number * matrix.index_stride, bytes_of_index(matrix.index_type)),
      offsets.back(), matrix.index_type, matrix.base, others, "the indices");
  std::vector<Entry> entries;
  const std::int64_t in_block = matrix.block_rows * matrix.block_columns;
  entries.reserve(indices.size() * static_cast<std::size_t>(in_block));
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t i = offsets[static_cast<std::size_t>(line)];
         i < offsets[static_cast<std::size_t>(line) + 1]; ++i) {
      const std::int64_t other = indices[static_cast<std::size_t>(i)];
      if (matrix.format != format_bsr) {
        entries.push_back({by_row ? line : other, by_row ? other : line, i, {}});
        continue;
      }
      for (std::int64_t r = 0; r < matrix.block_rows; ++r) {
        for (std::int64_t c = 0; c < matrix.block_columns; ++c) {
          const std::int64_t inside =
              matrix.order == order_row ? r * matrix.block_columns + c : c * matrix.block_rows + r;
          entries.push_back({line * matrix.block_rows + r,
                             other * matrix.block_columns + c,
                             i * in_block + inside,
                             {}});
        }
      }
    }
  }
  return entries;
}

std::vector<Entry> coordinates(Operation& operation, const SparseMatrix& matrix, int number) {
  const std::size_t size = bytes_of_index(matrix.index_type);
  const auto read = [&](void* place, std::int64_t limit, const char* name) {
    return operation.read_indices(moved(place, number * matrix.index_stride, size), matrix.count,
                                  matrix.index_type, matrix.base, limit, name);
  };
  const Indices rows = read(matrix.offsets, matrix.rows, "the row indices");
  const Indices columns = read(matrix.indices, matrix.columns, "the column indices");
  std::vector<Entry> entries(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    entries[i] = {rows[i], columns[i], static_cast<std::int64_t>(i), {}};
  }
  return entries;
}

/// Blocks of the columns' indices, row of blocks by row of blocks; -1 is no block. The values of
/// all blocks of a row of the matrix are beside each other.
std::vector<Entry> blocked_ell(Operation& operation, const SparseMatrix& matrix) {
  const std::int64_t block = matrix.block_rows;
  const std::int64_t lines = divided_up(matrix.rows, block), width = matrix.ell_columns / block;
  const Indices indices = operation.read_indices(matrix.indices, lines * width, matrix.index_type,
                                                 matrix.base, divided_up(matrix.columns, block),
                                                 "the column indices", -1 - matrix.base);
  std::vector<Entry> entries;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t b = 0; b < width; ++b) {
      const std::int64_t index = indices[static_cast<std::size_t>(row / block * width + b)];
      for (std::int64_t c = 0; index >= 0 && c < block; ++c) {
        if (index * block + c >= matrix.columns) continue;
        entries.push_back({row, index * block + c, row * matrix.ell_columns + b * block + c, {}});
      }
    }
  }
  return entries;
}

/// Slices of rows, each column by column; -1 is padding.
std::vector<Entry> sliced_ell(Operation& operation, const SparseMatrix& matrix) {
  const std::int64_t slices = divided_up(matrix.rows, matrix.slice);
  const Indices offsets = operation.read_offsets(matrix.offsets, slices, matrix.offset_type,
                                                 matrix.base, matrix.padded, "the slices' offsets");
  const Indices indices =
      operation.read_indices(matrix.indices, offsets.back(), matrix.index_type, matrix.base,
                             matrix.columns, "the column indices", -1 - matrix.base);
  std::vector<Entry> entries;
  for (std::size_t slice = 0; slice + 1 < offsets.size(); ++slice) {
    for (std::int64_t i = offsets[slice]; i < offsets[slice + 1]; ++i) {
      const std::int64_t row =
          static_cast<std::int64_t>(slice) * matrix.slice + (i - offsets[slice]) % matrix.slice;
      const std::int64_t column = indices[static_cast<std::size_t>(i)];
      if (column >= 0 && row < matrix.rows) entries.push_back({row, column, i, {}});
    }
  }
  return entries;
}

}  // namespace

std::int64_t DenseMatrix::span() const {
  if (rows == 0 || columns == 0) return 0;
  return at(rows - 1, columns - 1, batch - 1) + 1;
}

std::int64_t SparseMatrix::num_values() const {
  switch (format) {
    case format_bsr:
      return count * block_rows * block_columns;
    case format_blocked_ell:
      return rows * ell_columns;
    case format_sliced_ell:
      return padded;
    default:
      return count;
  }
}

std::vector<Entry> entries_of(Operation& operation, const SparseMatrix& matrix, int number,
                              bool with_values) {
  std::vector<Entry> entries =
      matrix.format == format_coo           ? coordinates(operation, matrix, number)
      : matrix.format == format_blocked_ell ? blocked_ell(operation, matrix)
      : matrix.format == format_sliced_ell  ? sliced_ell(operation, matrix)
                                            : compressed(operation, matrix, number);
  if (!with_values) return entries;
  const std::size_t size = bytes_of_type(matrix.type, "the type of the values");
  const Bytes values =
      operation.read(moved(matrix.values, number * matrix.value_stride, size),
                     static_cast<std::size_t>(matrix.num_values()) * size, "the values");
  for (Entry& entry : entries) entry.value = load_value(matrix.type, values.data(), entry.place);
  return entries;
}

void apply(int operation, std::vector<Entry>& entries) {
  if (operation == operation_none) return;
  for (Entry& entry : entries) {
    std::swap(entry.row, entry.column);
    if (operation == operation_adjoint) entry.value = std::conj(entry.value);
  }
}

Bytes bytes_of(Operation& operation, const DenseVector& vector, const char* name, bool counts) {
  return operation.read(
      vector.values,
      static_cast<std::size_t>(vector.size) * bytes_of_type(vector.type, "the type of the values"),
      name, counts);
}

Bytes bytes_of(Operation& operation, const DenseMatrix& matrix, const char* name, bool counts) {
  return operation.read(matrix.values,
                        static_cast<std::size_t>(matrix.span()) *
                            bytes_of_type(matrix.type, "the type of the values"),
                        name, counts);
}

void check_types(int compute, std::initializer_list<int> types) {
  require(compute == data_f32 || compute == data_f64 || compute == data_i32 ||
              compute == data_c32 || compute == data_c64,
          Status::not_supported,
          with_number("computeType", compute) +
              " is not CUDA_R_32F, CUDA_R_64F, CUDA_R_32I, CUDA_C_32F or CUDA_C_64F");
  for (const int type : types) {
    const bool fits = is_complex(type) == is_complex(compute) &&
                      (compute != data_i32 || is_integer(type)) &&
                      (compute != data_f32 || bytes_of_type(type, "the type") <= 4) &&
                      (compute != data_c32 || bytes_of_type(type, "the type") <= 8);
    require(fits, Status::not_supported,
            with_number("the type of a matrix or vector", type) + " does not go with " +
                with_number("computeType", compute));
  }
}

}  // namespace warpstack::cusparse
