// Descriptors of sparse matrices.

#include <cstring>

#include "stand_ins/cusparse/descriptors.h"

using namespace warpstack::cusparse;
using warpstack::library::Handles;

namespace {

/// Makes a descriptor of what is in `given`.
Status create_matrix(const char* function, SparseMatrix** matrix, const SparseMatrix& given) {
  return call(function, [&] {
    require(matrix != nullptr, "spMatDescr is null: nowhere to put the descriptor");
    for (const auto& [name, value] :
         {std::pair{"rows", given.rows}, std::pair{"cols", given.columns},
          std::pair{"nnz", given.count}, std::pair{"ellCols", given.ell_columns},
          std::pair{"sellValuesSize", given.padded}}) {
      require(value >= 0, with_number(name, value) + " is negative");
    }
    for (const auto& [name, value] : {std::pair{"the rows of a block", given.block_rows},
                                      std::pair{"the columns of a block", given.block_columns},
                                      std::pair{"sliceSize", given.slice}}) {
      require(value >= 1, with_number(name, value) + " is less than 1");
    }
    require(given.format != format_blocked_ell || given.ell_columns % given.block_rows == 0,
            with_number("ellCols", given.ell_columns) + " is no multiple of " +
                with_number("ellBlockSize", given.block_rows));
    check_choice("the type of the offsets", given.offset_type, index_i32, index_i64);
    check_choice("the type of the indices", given.index_type, index_i32, index_i64);
    check_choice("idxBase", given.base, 0, 1);
    check_choice("order", given.order, order_column, order_row);
    bytes_of_type(given.type, "valueType");
    *matrix = Handles<SparseMatrix>::add();
    **matrix = given;
  });
}

/// A matrix whose rows or columns have offsets, or whose coordinates are stored.
SparseMatrix plain(int format, std::int64_t rows, std::int64_t columns, std::int64_t count,
                   void* offsets, void* indices, void* values, int offset_type, int index_type,
                   int base, int type) {
  SparseMatrix matrix;
  matrix.format = format;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.count = count;
  matrix.offsets = offsets;
  matrix.indices = indices;
  matrix.values = values;
  matrix.offset_type = offset_type;
  matrix.index_type = index_type;
  matrix.base = base;
  matrix.type = type;
  return matrix;
}

SparseMatrix blocks(std::int64_t rows, std::int64_t columns, std::int64_t count,
                    std::int64_t block_rows, std::int64_t block_columns, void* offsets,
                    void* indices, void* values, int offset_type, int index_type, int base,
                    int type, int order) {
  SparseMatrix matrix = plain(format_bsr, rows * block_rows, columns * block_columns, count,
                              offsets, indices, values, offset_type, index_type, base, type);
  matrix.block_rows = block_rows;
  matrix.block_columns = block_columns;
  matrix.order = order;
  return matrix;
}

SparseMatrix ell_blocks(std::int64_t rows, std::int64_t columns, std::int64_t block,
                        std::int64_t ell_columns, void* indices, void* values, int index_type,
                        int base, int type) {
  SparseMatrix matrix = plain(format_blocked_ell, rows, columns, rows * ell_columns, nullptr,
                              indices, values, index_type, index_type, base, type);
  matrix.block_rows = matrix.block_columns = block;
  matrix.ell_columns = ell_columns;
  return matrix;
}

SparseMatrix ell_slices(std::int64_t rows, std::int64_t columns, std::int64_t count,
                        std::int64_t padded, std::int64_t slice, void* offsets, void* indices,
                        void* values, int offset_type, int index_type, int base, int type) {
  SparseMatrix matrix = plain(format_sliced_ell, rows, columns, count, offsets, indices, values,
                              offset_type, index_type, base, type);
  matrix.padded = padded;
  matrix.slice = slice;
  return matrix;
}

/// A descriptor of one format. Throws Failure(invalid_value) if it has another.
SparseMatrix& of_format(const SparseMatrix* matrix, int format) {
  SparseMatrix& found = described(matrix, "spMatDescr");
  require(found.format == format,
          with_number("the matrix has another format: cusparseFormat_t", found.format));
  return found;
}

Status get_plain(const char* function, int format, const SparseMatrix* matrix, std::int64_t* rows,
                 std::int64_t* columns, std::int64_t* count, void** offsets, void** indices,
                 void** values, int* offset_type, int* index_type, int* base, int* type) {
  return call(function, [&] {
    const SparseMatrix& found = of_format(matrix, format);
    give(rows, found.rows, "rows");
    give(columns, found.columns, "cols");
    give(count, found.count, "nnz");
    give(offsets, found.offsets, "the offsets");
    give(indices, found.indices, "the indices");
    give(values, found.values, "the values");
    give(offset_type, found.offset_type, "the type of the offsets");
    give(index_type, found.index_type, "the type of the indices");
    give(base, found.base, "idxBase");
    give(type, found.type, "valueType");
  });
}

Status get_blocked_ell(const char* function, const SparseMatrix* matrix, std::int64_t* rows,
                       std::int64_t* columns, std::int64_t* block, std::int64_t* ell_columns,
                       void** indices, void** values, int* index_type, int* base, int* type) {
  return call(function, [&] {
    const SparseMatrix& found = of_format(matrix, format_blocked_ell);
    give(rows, found.rows, "rows");
    give(columns, found.columns, "cols");
    give(block, found.block_rows, "ellBlockSize");
    give(ell_columns, found.ell_columns, "ellCols");
    give(indices, found.indices, "ellColInd");
    give(values, found.values, "ellValue");
    give(index_type, found.index_type, "ellIdxType");
    give(base, found.base, "idxBase");
    give(type, found.type, "valueType");
  });
}

Status set_pointers(const char* function, int format, SparseMatrix* matrix, void* offsets,
                    void* indices, void* values) {
  return call(function, [&] {
    SparseMatrix& found = of_format(matrix, format);
    found.offsets = offsets;
    found.indices = indices;
    found.values = values;
  });
}

Status set_batch(const char* function, int format, SparseMatrix* matrix, int count,
                 std::int64_t offset_stride, std::int64_t index_stride, std::int64_t value_stride) {
  return call(function, [&] {
    SparseMatrix& found = of_format(matrix, format);
    require(count >= 1, with_number("batchCount", count) + " is less than 1");
    require(offset_stride >= 0 && index_stride >= 0 && value_stride >= 0, "a stride is negative");
    found.batch = count;
    found.offset_stride = offset_stride;
    found.index_stride = index_stride;
    found.value_stride = value_stride;
  });
}

/// The attribute's place in a descriptor.
int& attribute_of(const SparseMatrix* matrix, int attribute, const void* data, std::size_t size) {
  SparseMatrix& found = described(matrix, "spMatDescr");
  check_choice("attribute", attribute, attribute_fill, attribute_diagonal);
  require(data != nullptr && size == sizeof(int),
          "data is null, or dataSize is not that of an enumeration");
  return attribute == attribute_fill ? found.fill : found.diagonal;
}

}  // namespace

#define COMPRESSED(Name, format)                                                                   \
  CUSPARSE_EXPORT Status cusparseCreate##Name(                                                     \
      SparseMatrix** matrix, std::int64_t rows, std::int64_t columns, std::int64_t count,          \
      void* offsets, void* indices, void* values, int offset_type, int index_type, int base,       \
      int type) {                                                                                  \
    return create_matrix(__func__, matrix,                                                         \
                         plain(format, rows, columns, count, offsets, indices, values,             \
                               offset_type, index_type, base, type));                              \
  }                                                                                                \
  CUSPARSE_EXPORT Status cusparseCreateConst##Name(                                                \
      SparseMatrix** matrix, std::int64_t rows, std::int64_t columns, std::int64_t count,          \
      void* offsets, void* indices, void* values, int offset_type, int index_type, int base,       \
      int type) {                                                                                  \
    return create_matrix(__func__, matrix,                                                         \
                         plain(format, rows, columns, count, offsets, indices, values,             \
                               offset_type, index_type, base, type));                              \
  }                                                                                                \
  CUSPARSE_EXPORT Status cusparse##Name##Get(                                                      \
      const SparseMatrix* matrix, std::int64_t* rows, std::int64_t* columns, std::int64_t* count,  \
      void** offsets, void** indices, void** values, int* offset_type, int* index_type, int* base, \
      int* type) {                                                                                 \
    return get_plain(__func__, format, matrix, rows, columns, count, offsets, indices, values,     \
                     offset_type, index_type, base, type);                                         \
  }                                                                                                \
  CUSPARSE_EXPORT Status cusparseConst##Name##Get(                                                 \
      const SparseMatrix* matrix, std::int64_t* rows, std::int64_t* columns, std::int64_t* count,  \
      void** offsets, void** indices, void** values, int* offset_type, int* index_type, int* base, \
      int* type) {                                                                                 \
    return get_plain(__func__, format, matrix, rows, columns, count, offsets, indices, values,     \
                     offset_type, index_type, base, type);                                         \
  }                                                                                                \
  CUSPARSE_EXPORT Status cusparse##Name##SetPointers(SparseMatrix* matrix, void* offsets,          \
                                                     void* indices, void* values) {                \
    return set_pointers(__func__, format, matrix, offsets, indices, values);                       \
  }
COMPRESSED(Csr, format_csr)
COMPRESSED(Csc, format_csc)
#undef COMPRESSED

CUSPARSE_EXPORT Status cusparseCreateCoo(SparseMatrix** matrix, std::int64_t rows,
                                         std::int64_t columns, std::int64_t count,
                                         void* row_indices, void* indices, void* values,
                                         int index_type, int base, int type) {
  return create_matrix(__func__, matrix,
                       plain(format_coo, rows, columns, count, row_indices, indices, values,
                             index_type, index_type, base, type));
}

CUSPARSE_EXPORT Status cusparseCooGet(const SparseMatrix* matrix, std::int64_t* rows,
                                      std::int64_t* columns, std::int64_t* count,
                                      void** row_indices, void** indices, void** values,
                                      int* index_type, int* base, int* type) {
  return get_plain(__func__, format_coo, matrix, rows, columns, count, row_indices, indices, values,
                   index_type, index_type, base, type);
}

CUSPARSE_EXPORT Status cusparseCreateConstCoo(SparseMatrix** matrix, std::int64_t rows,
                                              std::int64_t columns, std::int64_t count,
                                              void* row_indices, void* indices, void* values,
                                              int index_type, int base, int type) {
  return create_matrix(__func__, matrix,
                       plain(format_coo, rows, columns, count, row_indices, indices, values,
                             index_type, index_type, base, type));
}

CUSPARSE_EXPORT Status cusparseConstCooGet(const SparseMatrix* matrix, std::int64_t* rows,
                                           std::int64_t* columns, std::int64_t* count,
                                           void** row_indices, void** indices, void** values,
                                           int* index_type, int* base, int* type) {
  return get_plain(__func__, format_coo, matrix, rows, columns, count, row_indices, indices, values,
                   index_type, index_type, base, type);
}

CUSPARSE_EXPORT Status cusparseCooSetPointers(SparseMatrix* matrix, void* row_indices,
                                              void* indices, void* values) {
  return set_pointers(__func__, format_coo, matrix, row_indices, indices, values);
}

CUSPARSE_EXPORT Status cusparseCreateBsr(SparseMatrix** matrix, std::int64_t rows,
                                         std::int64_t columns, std::int64_t count,
                                         std::int64_t block_rows, std::int64_t block_columns,
                                         void* offsets, void* indices, void* values,
                                         int offset_type, int index_type, int base, int type,
                                         int order) {
  return create_matrix(__func__, matrix,
                       blocks(rows, columns, count, block_rows, block_columns, offsets, indices,
                              values, offset_type, index_type, base, type, order));
}

CUSPARSE_EXPORT Status cusparseCreateConstBsr(SparseMatrix** matrix, std::int64_t rows,
                                              std::int64_t columns, std::int64_t count,
                                              std::int64_t block_rows, std::int64_t block_columns,
                                              void* offsets, void* indices, void* values,
                                              int offset_type, int index_type, int base, int type,
                                              int order) {
  return create_matrix(__func__, matrix,
                       blocks(rows, columns, count, block_rows, block_columns, offsets, indices,
                              values, offset_type, index_type, base, type, order));
}

CUSPARSE_EXPORT Status cusparseCreateBlockedEll(SparseMatrix** matrix, std::int64_t rows,
                                                std::int64_t columns, std::int64_t block,
                                                std::int64_t ell_columns, void* indices,
                                                void* values, int index_type, int base, int type) {
  return create_matrix(
      __func__, matrix,
      ell_blocks(rows, columns, block, ell_columns, indices, values, index_type, base, type));
}

CUSPARSE_EXPORT Status cusparseBlockedEllGet(const SparseMatrix* matrix, std::int64_t* rows,
                                             std::int64_t* columns, std::int64_t* block,
                                             std::int64_t* ell_columns, void** indices,
                                             void** values, int* index_type, int* base, int* type) {
  return get_blocked_ell(__func__, matrix, rows, columns, block, ell_columns, indices, values,
                         index_type, base, type);
}

CUSPARSE_EXPORT Status cusparseCreateConstBlockedEll(SparseMatrix** matrix, std::int64_t rows,
                                                     std::int64_t columns, std::int64_t block,
                                                     std::int64_t ell_columns, void* indices,
                                                     void* values, int index_type, int base,
                                                     int type) {
  return create_matrix(
      __func__, matrix,
      ell_blocks(rows, columns, block, ell_columns, indices, values, index_type, base, type));
}

CUSPARSE_EXPORT Status cusparseConstBlockedEllGet(const SparseMatrix* matrix, std::int64_t* rows,
                                                  std::int64_t* columns, std::int64_t* block,
                                                  std::int64_t* ell_columns, void** indices,
                                                  void** values, int* index_type, int* base,
                                                  int* type) {
  return get_blocked_ell(__func__, matrix, rows, columns, block, ell_columns, indices, values,
                         index_type, base, type);
}

CUSPARSE_EXPORT Status cusparseCreateSlicedEll(SparseMatrix** matrix, std::int64_t rows,
                                               std::int64_t columns, std::int64_t count,
                                               std::int64_t padded, std::int64_t slice,
                                               void* offsets, void* indices, void* values,
                                               int offset_type, int index_type, int base,
                                               int type) {
  return create_matrix(__func__, matrix,
                       ell_slices(rows, columns, count, padded, slice, offsets, indices, values,
                                  offset_type, index_type, base, type));
}

CUSPARSE_EXPORT Status cusparseCreateConstSlicedEll(SparseMatrix** matrix, std::int64_t rows,
                                                    std::int64_t columns, std::int64_t count,
                                                    std::int64_t padded, std::int64_t slice,
                                                    void* offsets, void* indices, void* values,
                                                    int offset_type, int index_type, int base,
                                                    int type) {
  return create_matrix(__func__, matrix,
                       ell_slices(rows, columns, count, padded, slice, offsets, indices, values,
                                  offset_type, index_type, base, type));
}

CUSPARSE_EXPORT Status cusparseDestroySpMat(const SparseMatrix* matrix) {
  return call(__func__, [&] { Handles<SparseMatrix>::remove(&described(matrix, "spMatDescr")); });
}

CUSPARSE_EXPORT Status cusparseSpMatGetFormat(const SparseMatrix* matrix, int* format) {
  return call(__func__, [&] { give(format, described(matrix, "spMatDescr").format, "format"); });
}

CUSPARSE_EXPORT Status cusparseSpMatGetIndexBase(const SparseMatrix* matrix, int* base) {
  return call(__func__, [&] { give(base, described(matrix, "spMatDescr").base, "idxBase"); });
}

CUSPARSE_EXPORT Status cusparseSpMatGetValues(const SparseMatrix* matrix, void** values) {
  return call(__func__, [&] { give(values, described(matrix, "spMatDescr").values, "values"); });
}

CUSPARSE_EXPORT Status cusparseConstSpMatGetValues(const SparseMatrix* matrix, void** values) {
  return call(__func__, [&] { give(values, described(matrix, "spMatDescr").values, "values"); });
}

CUSPARSE_EXPORT Status cusparseSpMatSetValues(SparseMatrix* matrix, void* values) {
  return call(__func__, [&] { described(matrix, "spMatDescr").values = values; });
}

CUSPARSE_EXPORT Status cusparseSpMatGetSize(const SparseMatrix* matrix, std::int64_t* rows,
                                            std::int64_t* columns, std::int64_t* count) {
  return call(__func__, [&] {
    const SparseMatrix& found = described(matrix, "spMatDescr");
    give(rows, found.rows, "rows");
    give(columns, found.columns, "cols");
    give(count, found.format == format_sliced_ell ? found.count : found.num_values(), "nnz");
  });
}

CUSPARSE_EXPORT Status cusparseSpMatGetStridedBatch(const SparseMatrix* matrix, int* count) {
  return call(__func__, [&] { give(count, described(matrix, "spMatDescr").batch, "batchCount"); });
}

CUSPARSE_EXPORT Status cusparseCooSetStridedBatch(SparseMatrix* matrix, int count,
                                                  std::int64_t stride) {
  return set_batch(__func__, format_coo, matrix, count, 0, stride, stride);
}

CUSPARSE_EXPORT Status cusparseCsrSetStridedBatch(SparseMatrix* matrix, int count,
                                                  std::int64_t offset_stride, std::int64_t stride) {
  return set_batch(__func__, format_csr, matrix, count, offset_stride, stride, stride);
}

CUSPARSE_EXPORT Status cusparseBsrSetStridedBatch(SparseMatrix* matrix, int count,
                                                  std::int64_t offset_stride,
                                                  std::int64_t index_stride,
                                                  std::int64_t value_stride) {
  return set_batch(__func__, format_bsr, matrix, count, offset_stride, index_stride, value_stride);
}

CUSPARSE_EXPORT Status cusparseSpMatSetAttribute(SparseMatrix* matrix, int attribute,
                                                 const void* data, std::size_t size) {
  return call(__func__, [&] {
    int& place = attribute_of(matrix, attribute, data, size);
    int value = 0;
    std::memcpy(&value, data, sizeof value);
    check_choice("the attribute's value", value, 0, 1);
    place = value;
  });
}

CUSPARSE_EXPORT Status cusparseSpMatGetAttribute(const SparseMatrix* matrix, int attribute,
                                                 void* data, std::size_t size) {
  return call(__func__, [&] {
    const int value = attribute_of(matrix, attribute, data, size);
    std::memcpy(data, &value, sizeof value);
  });
}
