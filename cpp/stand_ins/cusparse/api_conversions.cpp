// Sparse matrices from dense ones, and the other way; transposed compressed rows.

#include <algorithm>
#include <utility>

#include "stand_ins/cusparse/descriptors.h"
#include "stand_ins/cusparse/legacy.h"

using namespace warpstack::cusparse;

namespace {

void check_same(const DenseMatrix& dense, const SparseMatrix& sparse) {
  require(dense.rows == sparse.rows && dense.columns == sparse.columns,
          "the sparse and the dense matrix have different sizes");
  require(dense.type == sparse.type, Status::not_supported,
          "the sparse and the dense matrix have different types of values");
}

/// Whether a sparse matrix gets its elements from a dense one. In other formats they are chosen,
/// and only the values are missing.
bool finds_elements(const SparseMatrix& matrix) {
  return matrix.format == format_csr || matrix.format == format_csc || matrix.format == format_coo;
}

/// The numbers of a dense matrix that are not zero, in the order of a sparse format.
std::vector<Entry> elements_of(Operation& operation, const DenseMatrix& dense, int format) {
  const Bytes bytes = bytes_of(operation, dense, "the values of the dense matrix");
  std::vector<Entry> entries;
  const bool by_column = format == format_csc;
  const std::int64_t lines = by_column ? dense.columns : dense.rows;
  const std::int64_t others = by_column ? dense.rows : dense.columns;
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t other = 0; other < others; ++other) {
      const std::int64_t row = by_column ? other : line, column = by_column ? line : other;
      const Complex value = load_value(dense.type, bytes.data(), dense.at(row, column));
      if (value == 0.0) continue;
      entries.push_back({row, column, static_cast<std::int64_t>(entries.size()), value});
    }
  }
  return entries;
}

/// The offsets of sorted lines.
template <typename Line>
Indices offsets_of(const std::vector<Entry>& entries, std::int64_t lines, Line line) {
  Indices offsets(static_cast<std::size_t>(lines) + 1);
  for (const Entry& entry : entries) ++offsets[static_cast<std::size_t>(line(entry)) + 1];
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  return offsets;
}

/// Writes the offsets of a matrix that is compressed.
void write_offsets(Operation& operation, const SparseMatrix& matrix,
                   const std::vector<Entry>& entries) {
  if (matrix.format == format_coo) return;
  const bool by_column = matrix.format == format_csc;
  const Indices offsets =
      offsets_of(entries, by_column ? matrix.columns : matrix.rows,
                 [&](const Entry& entry) { return by_column ? entry.column : entry.row; });
  operation.write_indices(matrix.offsets, offsets, matrix.offset_type, matrix.base, "the offsets");
}

Bytes values_of(const std::vector<Entry>& entries, int type) {
  Bytes bytes(entries.size() * bytes_of_type(type, "the type of the values"));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    store_value(type, bytes.data(), static_cast<std::int64_t>(i), entries[i].value);
  }
  return bytes;
}

/// Writes what a dense matrix has where a sparse one of a given pattern has elements.
void fill_pattern(Operation& operation, const DenseMatrix& dense, const SparseMatrix& sparse) {
  const Bytes from = bytes_of(operation, dense, "the values of the dense matrix");
  const std::size_t size = bytes_of_type(sparse.type, "the type of the values");
  Bytes values(static_cast<std::size_t>(sparse.num_values()) * size);
  for (const Entry& entry : entries_of(operation, sparse, 0, false)) {
    store_value(sparse.type, values.data(), entry.place,
                load_value(dense.type, from.data(), dense.at(entry.row, entry.column)));
  }
  operation.write(sparse.values, std::move(values), "the values of the sparse matrix");
}

Status count_elements(const char* function, Context* handle, int direction, int rows, int columns,
                      const LegacyMatrix* legacy, const void* values, int ld, int* counts,
                      int* total, int type) {
  return call(function, handle, [&](Context& context) {
    described(legacy, "descrA");
    check_choice("dirA", direction, 0, 1);
    require(rows >= 0 && columns >= 0 && ld >= std::max(1, rows),
            "m or n is negative, or lda is less than m");
    Operation operation(context);
    const DenseMatrix dense{rows, columns, ld, const_cast<void*>(values), type, order_column, 1, 0};
    Indices found(static_cast<std::size_t>(direction == 0 ? rows : columns));
    const std::vector<Entry> entries = elements_of(operation, dense, format_csr);
    for (const Entry& entry : entries) {
      ++found[static_cast<std::size_t>(direction == 0 ? entry.row : entry.column)];
    }
    operation.write_indices(counts, found, index_i32, 0, "nnzPerRowCol");
    operation.give_scalar(total, data_i32, static_cast<double>(entries.size()),
                          "nnzTotalDevHostPtr");
    operation.finish();
  });
}

}  // namespace

CUSPARSE_EXPORT Status cusparseSparseToDense_bufferSize(Context* handle, const SparseMatrix* sparse,
                                                        DenseMatrix* dense, int,
                                                        std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    check_same(described(dense, "matB"), described(sparse, "matA"));
    give(size, work_bytes, "bufferSize");
  });
}

CUSPARSE_EXPORT Status cusparseSparseToDense(Context* handle, const SparseMatrix* sparse,
                                             DenseMatrix* dense, int, void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    const SparseMatrix& from = described(sparse, "matA");
    const DenseMatrix& to = described(dense, "matB");
    check_same(to, from);
    Operation operation(context);
    Bytes bytes = bytes_of(operation, to, "the values of matB", false);
    for (std::int64_t i = 0; i < to.rows; ++i) {
      for (std::int64_t j = 0; j < to.columns; ++j) {
        store_value(to.type, bytes.data(), to.at(i, j), 0.0);
      }
    }
    for (const Entry& entry : entries_of(operation, from)) {
      store_value(to.type, bytes.data(), to.at(entry.row, entry.column), entry.value);
    }
    operation.write(to.values, std::move(bytes), "the values of matB");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseDenseToSparse_bufferSize(Context* handle, const DenseMatrix* dense,
                                                        SparseMatrix* sparse, int,
                                                        std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    check_same(described(dense, "matA"), described(sparse, "matB"));
    give(size, work_bytes, "bufferSize");
  });
}

/// Counts the elements: the program then makes room for them.
CUSPARSE_EXPORT Status cusparseDenseToSparse_analysis(Context* handle, const DenseMatrix* dense,
                                                      SparseMatrix* sparse, int, void*) {
  return call(__func__, handle, [&](Context& context) {
    const DenseMatrix& from = described(dense, "matA");
    SparseMatrix& to = described(sparse, "matB");
    check_same(from, to);
    if (!finds_elements(to)) return;
    Operation operation(context);
    const std::vector<Entry> entries = elements_of(operation, from, to.format);
    write_offsets(operation, to, entries);
    operation.finish();
    to.count = static_cast<std::int64_t>(entries.size());
  });
}

CUSPARSE_EXPORT Status cusparseDenseToSparse_convert(Context* handle, const DenseMatrix* dense,
                                                     SparseMatrix* sparse, int, void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    const DenseMatrix& from = described(dense, "matA");
    SparseMatrix& to = described(sparse, "matB");
    check_same(from, to);
    Operation operation(context);
    if (!finds_elements(to)) {
      fill_pattern(operation, from, to);
      operation.finish();
      return;
    }
    const std::vector<Entry> entries = elements_of(operation, from, to.format);
    require(to.count == static_cast<std::int64_t>(entries.size()),
            with_number("matB has room for elements, nnz", to.count) + "; matA has " +
                std::to_string(entries.size()) + " (cusparseDenseToSparse_analysis counts them)");
    Indices rows, columns;
    for (const Entry& entry : entries) {
      rows.push_back(entry.row);
      columns.push_back(entry.column);
    }
    write_offsets(operation, to, entries);
    if (to.format == format_coo) {
      operation.write_indices(to.offsets, rows, to.index_type, to.base, "the row indices");
    }
    operation.write_indices(to.indices, to.format == format_csc ? rows : columns, to.index_type,
                            to.base, "the indices");
    operation.write(to.values, values_of(entries, to.type), "the values");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseCsr2cscEx2_bufferSize(Context* handle, int, int, int, const void*,
                                                     const int*, const int*, void*, int*, int*,
                                                     int type, int, int, int, std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    bytes_of_type(type, "valType");
    give(size, work_bytes, "bufferSize");
  });
}

CUSPARSE_EXPORT Status cusparseCsr2cscEx2(Context* handle, int rows, int columns, int count,
                                          const void* values, const int* row_offsets,
                                          const int* column_indices, void* new_values,
                                          int* column_offsets, int* row_indices, int type,
                                          int action, int base, int, void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    require(rows >= 0 && columns >= 0 && count >= 0, "m, n or nnz is negative");
    check_choice("copyValues", action, 0, 1);
    check_choice("idxBase", base, 0, 1);
    SparseMatrix matrix;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.count = count;
    matrix.offsets = const_cast<int*>(row_offsets);
    matrix.indices = const_cast<int*>(column_indices);
    matrix.values = const_cast<void*>(values);
    matrix.base = base;
    matrix.type = type;
    Operation operation(context);
    std::vector<Entry> entries = entries_of(operation, matrix, 0, action == 1);
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.column < b.column; });
    Indices found;
    for (const Entry& entry : entries) found.push_back(entry.row);
    operation.write_indices(
        column_offsets,
        offsets_of(entries, columns, [](const Entry& entry) { return entry.column; }), index_i32,
        base, "cscColPtr");
    operation.write_indices(row_indices, found, index_i32, base, "cscRowInd");
    if (action == 1) operation.write(new_values, values_of(entries, type), "cscVal");
    operation.finish();
  });
}

#define COUNT_ELEMENTS(letter, type)                                                              \
  CUSPARSE_EXPORT Status cusparse##letter##nnz(                                                   \
      Context* handle, int direction, int rows, int columns, const LegacyMatrix* legacy,          \
      const void* values, int ld, int* counts, int* total) {                                      \
    return count_elements(__func__, handle, direction, rows, columns, legacy, values, ld, counts, \
                          total, type);                                                           \
  }
COUNT_ELEMENTS(S, data_f32)
COUNT_ELEMENTS(D, data_f64)
COUNT_ELEMENTS(C, data_c32)
COUNT_ELEMENTS(Z, data_c64)
#undef COUNT_ELEMENTS
