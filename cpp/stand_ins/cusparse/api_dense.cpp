// Descriptors of dense vectors and matrices, and of sparse vectors.

#include "stand_ins/cusparse/descriptors.h"

using namespace warpstack::cusparse;
using warpstack::library::Handles;

namespace {

void check_size(const char* name, std::int64_t value) {
  require(value >= 0, with_number(name, value) + " is negative");
}

Status create_sparse_vector(const char* function, SparseVector** vector, std::int64_t size,
                            std::int64_t count, void* indices, void* values, int index_type,
                            int base, int type) {
  return call(function, [&] {
    check_size("size", size);
    check_size("nnz", count);
    require(count <= size,
            with_number("nnz", count) + " is more than " + with_number("size", size));
    check_choice("idxType", index_type, index_i32, index_i64);
    check_choice("idxBase", base, 0, 1);
    bytes_of_type(type, "valueType");
    require(vector != nullptr, "spVecDescr is null: nowhere to put the descriptor");
    *vector = Handles<SparseVector>::add();
    **vector = {size, count, indices, values, index_type, base, type};
  });
}

Status get_sparse_vector(const char* function, const SparseVector* vector, std::int64_t* size,
                         std::int64_t* count, void** indices, void** values, int* index_type,
                         int* base, int* type) {
  return call(function, [&] {
    const SparseVector& found = described(vector, "spVecDescr");
    give(size, found.size, "size");
    give(count, found.count, "nnz");
    give(indices, found.indices, "indices");
    give(values, found.values, "values");
    give(index_type, found.index_type, "idxType");
    give(base, found.base, "idxBase");
    give(type, found.type, "valueType");
  });
}

Status create_dense_vector(const char* function, DenseVector** vector, std::int64_t size,
                           void* values, int type) {
  return call(function, [&] {
    check_size("size", size);
    bytes_of_type(type, "valueType");
    require(vector != nullptr, "dnVecDescr is null: nowhere to put the descriptor");
    *vector = Handles<DenseVector>::add();
    **vector = {size, values, type};
  });
}

Status get_dense_vector(const char* function, const DenseVector* vector, std::int64_t* size,
                        void** values, int* type) {
  return call(function, [&] {
    const DenseVector& found = described(vector, "dnVecDescr");
    give(size, found.size, "size");
    give(values, found.values, "values");
    give(type, found.type, "valueType");
  });
}

Status create_dense_matrix(const char* function, DenseMatrix** matrix, std::int64_t rows,
                           std::int64_t columns, std::int64_t ld, void* values, int type,
                           int order) {
  return call(function, [&] {
    check_size("rows", rows);
    check_size("cols", columns);
    check_choice("order", order, order_column, order_row);
    const std::int64_t least = order == order_column ? rows : columns;
    require(ld >= least, with_number("ld", ld) + " is less than " + std::to_string(least));
    bytes_of_type(type, "valueType");
    require(matrix != nullptr, "dnMatDescr is null: nowhere to put the descriptor");
    *matrix = Handles<DenseMatrix>::add();
    **matrix = {rows, columns, ld, values, type, order, 1, 0};
  });
}

Status get_dense_matrix(const char* function, const DenseMatrix* matrix, std::int64_t* rows,
                        std::int64_t* columns, std::int64_t* ld, void** values, int* type,
                        int* order) {
  return call(function, [&] {
    const DenseMatrix& found = described(matrix, "dnMatDescr");
    give(rows, found.rows, "rows");
    give(columns, found.columns, "cols");
    give(ld, found.ld, "ld");
    give(values, found.values, "values");
    give(type, found.type, "type");
    give(order, found.order, "order");
  });
}

/// Where the values of a descriptor lie.
template <typename T>
Status get_values(const char* function, const T* descriptor, void** values) {
  return call(function,
              [&] { give(values, described(descriptor, "the descriptor").values, "values"); });
}

template <typename T>
Status set_values(const char* function, T* descriptor, void* values) {
  return call(function, [&] { described(descriptor, "the descriptor").values = values; });
}

template <typename T>
Status destroy(const char* function, const T* descriptor) {
  return call(function, [&] { Handles<T>::remove(&described(descriptor, "the descriptor")); });
}

}  // namespace

CUSPARSE_EXPORT Status cusparseCreateSpVec(SparseVector** vector, std::int64_t size,
                                           std::int64_t count, void* indices, void* values,
                                           int index_type, int base, int type) {
  return create_sparse_vector(__func__, vector, size, count, indices, values, index_type, base,
                              type);
}

CUSPARSE_EXPORT Status cusparseSpVecGet(const SparseVector* vector, std::int64_t* size,
                                        std::int64_t* count, void** indices, void** values,
                                        int* index_type, int* base, int* type) {
  return get_sparse_vector(__func__, vector, size, count, indices, values, index_type, base, type);
}

CUSPARSE_EXPORT Status cusparseSpVecGetValues(const SparseVector* vector, void** values) {
  return get_values(__func__, vector, values);
}

CUSPARSE_EXPORT Status cusparseCreateConstSpVec(SparseVector** vector, std::int64_t size,
                                                std::int64_t count, void* indices, void* values,
                                                int index_type, int base, int type) {
  return create_sparse_vector(__func__, vector, size, count, indices, values, index_type, base,
                              type);
}

CUSPARSE_EXPORT Status cusparseConstSpVecGet(const SparseVector* vector, std::int64_t* size,
                                             std::int64_t* count, void** indices, void** values,
                                             int* index_type, int* base, int* type) {
  return get_sparse_vector(__func__, vector, size, count, indices, values, index_type, base, type);
}

CUSPARSE_EXPORT Status cusparseConstSpVecGetValues(const SparseVector* vector, void** values) {
  return get_values(__func__, vector, values);
}

CUSPARSE_EXPORT Status cusparseSpVecSetValues(SparseVector* vector, void* values) {
  return set_values(__func__, vector, values);
}

CUSPARSE_EXPORT Status cusparseSpVecGetIndexBase(const SparseVector* vector, int* base) {
  return call(__func__, [&] { give(base, described(vector, "spVecDescr").base, "idxBase"); });
}

CUSPARSE_EXPORT Status cusparseDestroySpVec(const SparseVector* vector) {
  return destroy(__func__, vector);
}

CUSPARSE_EXPORT Status cusparseCreateDnVec(DenseVector** vector, std::int64_t size, void* values,
                                           int type) {
  return create_dense_vector(__func__, vector, size, values, type);
}

CUSPARSE_EXPORT Status cusparseDnVecGet(const DenseVector* vector, std::int64_t* size,
                                        void** values, int* type) {
  return get_dense_vector(__func__, vector, size, values, type);
}

CUSPARSE_EXPORT Status cusparseDnVecGetValues(const DenseVector* vector, void** values) {
  return get_values(__func__, vector, values);
}

CUSPARSE_EXPORT Status cusparseCreateConstDnVec(DenseVector** vector, std::int64_t size,
                                                void* values, int type) {
  return create_dense_vector(__func__, vector, size, values, type);
}

CUSPARSE_EXPORT Status cusparseConstDnVecGet(const DenseVector* vector, std::int64_t* size,
                                             void** values, int* type) {
  return get_dense_vector(__func__, vector, size, values, type);
}

CUSPARSE_EXPORT Status cusparseConstDnVecGetValues(const DenseVector* vector, void** values) {
  return get_values(__func__, vector, values);
}

CUSPARSE_EXPORT Status cusparseDnVecSetValues(DenseVector* vector, void* values) {
  return set_values(__func__, vector, values);
}

CUSPARSE_EXPORT Status cusparseDestroyDnVec(const DenseVector* vector) {
  return destroy(__func__, vector);
}

CUSPARSE_EXPORT Status cusparseCreateDnMat(DenseMatrix** matrix, std::int64_t rows,
                                           std::int64_t columns, std::int64_t ld, void* values,
                                           int type, int order) {
  return create_dense_matrix(__func__, matrix, rows, columns, ld, values, type, order);
}

CUSPARSE_EXPORT Status cusparseDnMatGet(const DenseMatrix* matrix, std::int64_t* rows,
                                        std::int64_t* columns, std::int64_t* ld, void** values,
                                        int* type, int* order) {
  return get_dense_matrix(__func__, matrix, rows, columns, ld, values, type, order);
}

CUSPARSE_EXPORT Status cusparseDnMatGetValues(const DenseMatrix* matrix, void** values) {
  return get_values(__func__, matrix, values);
}

CUSPARSE_EXPORT Status cusparseCreateConstDnMat(DenseMatrix** matrix, std::int64_t rows,
                                                std::int64_t columns, std::int64_t ld, void* values,
                                                int type, int order) {
  return create_dense_matrix(__func__, matrix, rows, columns, ld, values, type, order);
}

CUSPARSE_EXPORT Status cusparseConstDnMatGet(const DenseMatrix* matrix, std::int64_t* rows,
                                             std::int64_t* columns, std::int64_t* ld, void** values,
                                             int* type, int* order) {
  return get_dense_matrix(__func__, matrix, rows, columns, ld, values, type, order);
}

CUSPARSE_EXPORT Status cusparseConstDnMatGetValues(const DenseMatrix* matrix, void** values) {
  return get_values(__func__, matrix, values);
}

CUSPARSE_EXPORT Status cusparseDnMatSetValues(DenseMatrix* matrix, void* values) {
  return set_values(__func__, matrix, values);
}

CUSPARSE_EXPORT Status cusparseDestroyDnMat(const DenseMatrix* matrix) {
  return destroy(__func__, matrix);
}

CUSPARSE_EXPORT Status cusparseDnMatSetStridedBatch(DenseMatrix* matrix, int count,
                                                    std::int64_t stride) {
  return call(__func__, [&] {
    DenseMatrix& found = described(matrix, "dnMatDescr");
    require(count >= 1, with_number("batchCount", count) + " is less than 1");
    const std::int64_t lines = found.order == order_column ? found.columns : found.rows;
    require(count == 1 || stride == 0 || stride >= found.ld * lines,
            with_number("batchStride", stride) + ": the matrices overlap");
    found.batch = count;
    found.stride = stride;
  });
}

CUSPARSE_EXPORT Status cusparseDnMatGetStridedBatch(const DenseMatrix* matrix, int* count,
                                                    std::int64_t* stride) {
  return call(__func__, [&] {
    const DenseMatrix& found = described(matrix, "dnMatDescr");
    give(count, found.batch, "batchCount");
    give(stride, found.stride, "batchStride");
  });
}
