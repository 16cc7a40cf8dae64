// Sparse matrices with dense vectors and matrices.

#include <algorithm>
#include <utility>

#include "stand_ins/cusparse/descriptors.h"

using namespace warpstack::cusparse;

namespace {

/// The sizes of a matrix after an operation.
template <typename Matrix>
std::pair<std::int64_t, std::int64_t> sizes_after(int operation, const Matrix& matrix) {
  if (operation == operation_none) return {matrix.rows, matrix.columns};
  return {matrix.columns, matrix.rows};
}

void check_operation(const char* name, int operation) {
  check_choice(name, operation, operation_none, operation_adjoint);
}

void check_equal(const char* first, std::int64_t a, const char* second, std::int64_t b) {
  require(a == b, with_number(first, a) + " is not " + with_number(second, b));
}

/// An element of a dense matrix after an operation.
Complex element_after(int operation, const DenseMatrix& matrix, const Bytes& bytes,
                      std::int64_t row, std::int64_t column, int number) {
  if (operation == operation_none) {
    return load_value(matrix.type, bytes.data(), matrix.at(row, column, number));
  }
  const Complex value = load_value(matrix.type, bytes.data(), matrix.at(column, row, number));
  return operation == operation_adjoint ? std::conj(value) : value;
}

/// The arguments of a product with a vector.
void check_product(int transpose, const SparseMatrix& a, const DenseVector& x, const DenseVector& y,
                   int compute) {
  check_operation("opA", transpose);
  const auto [rows, columns] = sizes_after(transpose, a);
  check_equal("the size of vecX", x.size, "the columns of op(A)", columns);
  check_equal("the size of vecY", y.size, "the rows of op(A)", rows);
  check_types(compute, {a.type, x.type, y.type});
}

/// What is common to a matrix of a batch and those beside it.
int batch_of(int a, int b, int c) {
  const auto fits = [&](int count) { return count == 1 || count == c; };
  require(fits(a) && fits(b), "the batches of the matrices have different sizes");
  return c;
}

void check_product(int transpose_a, int transpose_b, const SparseMatrix& a, const DenseMatrix& b,
                   const DenseMatrix& c, int compute) {
  check_operation("opA", transpose_a);
  check_operation("opB", transpose_b);
  const auto [rows, inner] = sizes_after(transpose_a, a);
  const auto [depth, columns] = sizes_after(transpose_b, b);
  check_equal("the columns of op(A)", inner, "the rows of op(B)", depth);
  check_equal("the rows of matC", c.rows, "the rows of op(A)", rows);
  check_equal("the columns of matC", c.columns, "the columns of op(B)", columns);
  check_types(compute, {a.type, b.type, c.type});
  batch_of(a.batch, b.batch, c.batch);
}

void check_sampled(int transpose_a, int transpose_b, const DenseMatrix& a, const DenseMatrix& b,
                   const SparseMatrix& c, int compute) {
  check_operation("opA", transpose_a);
  check_operation("opB", transpose_b);
  const auto [rows, inner] = sizes_after(transpose_a, a);
  const auto [depth, columns] = sizes_after(transpose_b, b);
  check_equal("the columns of op(A)", inner, "the rows of op(B)", depth);
  check_equal("the rows of matC", c.rows, "the rows of op(A)", rows);
  check_equal("the columns of matC", c.columns, "the columns of op(B)", columns);
  check_types(compute, {a.type, b.type, c.type});
  batch_of(a.batch, b.batch, c.batch);
}

/// Blocks of narrow numbers go to tensor cores (cuSPARSE's guide, Blocked-ELL).
warpstack::cudart::Arithmetic tensor_arithmetic(const SparseMatrix& a) {
  using warpstack::cudart::Arithmetic;
  if (a.format != format_blocked_ell) return Arithmetic::none;
  return a.type == data_f16    ? Arithmetic::fp16
         : a.type == data_bf16 ? Arithmetic::bf16
         : a.type == data_i8   ? Arithmetic::int8
                               : Arithmetic::none;
}

/// C = alpha op(A) op(B) + beta C for the matrices of a batch.
void multiply(Context& context, int transpose_a, int transpose_b, const void* alpha,
              const SparseMatrix& a, const DenseMatrix& b, const void* beta, const DenseMatrix& c,
              int compute) {
  check_product(transpose_a, transpose_b, a, b, c, compute);
  Operation operation(context);
  const Complex by = operation.scalar(alpha, compute, "alpha");
  const Complex keep = operation.scalar(beta, compute, "beta");
  const Bytes right = bytes_of(operation, b, "the values of matB");
  Bytes result = bytes_of(operation, c, "the values of matC", keep != 0.0);
  std::vector<Complex> sums(static_cast<std::size_t>(c.rows * c.columns));
  std::vector<Entry> entries;
  const auto tensor_cores = tensor_arithmetic(a);
  for (int number = 0; number < c.batch; ++number) {
    if (number == 0 || a.batch > 1) {
      entries = entries_of(operation, a, number);
      apply(transpose_a, entries);
    }
    operation.multiply_add(compute, static_cast<double>(entries.size()) * c.columns, tensor_cores);
    const int of_b = b.batch > 1 ? number : 0;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (const Entry& entry : entries) {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        sums[static_cast<std::size_t>(entry.row * c.columns + j)] +=
            product(entry.value, element_after(transpose_b, b, right, entry.column, j, of_b));
      }
    }
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        Complex value = product(by, sums[static_cast<std::size_t>(i * c.columns + j)]);
        const std::int64_t at = c.at(i, j, number);
        if (keep != 0.0) value += product(keep, load_value(c.type, result.data(), at));
        store_value(c.type, result.data(), at, value);
      }
    }
  }
  operation.write(c.values, std::move(result), "the values of matC");
  operation.finish();
}

/// C = alpha (op(A) op(B)) where C has elements, + beta C.
void sample(Context& context, int transpose_a, int transpose_b, const void* alpha,
            const DenseMatrix& a, const DenseMatrix& b, const void* beta, const SparseMatrix& c,
            int compute) {
  check_sampled(transpose_a, transpose_b, a, b, c, compute);
  Operation operation(context);
  const Complex by = operation.scalar(alpha, compute, "alpha");
  const Complex keep = operation.scalar(beta, compute, "beta");
  const Bytes left = bytes_of(operation, a, "the values of matA");
  const Bytes right = bytes_of(operation, b, "the values of matB");
  const std::size_t size = bytes_of_type(c.type, "the type of matC");
  const std::int64_t inner = sizes_after(transpose_a, a).second;
  for (int number = 0; number < c.batch; ++number) {
    const std::vector<Entry> entries = entries_of(operation, c, number);
    operation.multiply_add(compute, static_cast<double>(entries.size()) * inner);
    auto* const place = static_cast<std::byte*>(c.values) +
                        number * c.value_stride * static_cast<std::int64_t>(size);
    Bytes values = operation.read(place, static_cast<std::size_t>(c.num_values()) * size,
                                  "the values of matC", false);
    for (const Entry& entry : entries) {
      Complex sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        sum += product(
            element_after(transpose_a, a, left, entry.row, k, a.batch > 1 ? number : 0),
            element_after(transpose_b, b, right, k, entry.column, b.batch > 1 ? number : 0));
      }
      Complex value = product(by, sum);
      if (keep != 0.0) value += product(keep, entry.value);
      store_value(c.type, values.data(), entry.place, value);
    }
    operation.write(place, std::move(values), "the values of matC");
  }
  operation.finish();
}

}  // namespace

CUSPARSE_EXPORT Status cusparseSpMV_bufferSize(Context* handle, int transpose, const void*,
                                               const SparseMatrix* matrix, const DenseVector* x,
                                               const void*, DenseVector* y, int compute, int,
                                               std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    check_product(transpose, described(matrix, "matA"), described(x, "vecX"), described(y, "vecY"),
                  compute);
    give(size, work_bytes, "bufferSize");
  });
}

/// Nothing is prepared: the call itself computes everything.
CUSPARSE_EXPORT Status cusparseSpMV_preprocess(Context* handle, int transpose, const void*,
                                               const SparseMatrix* matrix, const DenseVector* x,
                                               const void*, DenseVector* y, int compute, int,
                                               void*) {
  return call(__func__, handle, [&](Context&) {
    check_product(transpose, described(matrix, "matA"), described(x, "vecX"), described(y, "vecY"),
                  compute);
  });
}

CUSPARSE_EXPORT Status cusparseSpMV(Context* handle, int transpose, const void* alpha,
                                    const SparseMatrix* matrix, const DenseVector* vector,
                                    const void* beta, DenseVector* result, int compute, int,
                                    void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    const SparseMatrix& a = described(matrix, "matA");
    const DenseVector& x = described(vector, "vecX");
    const DenseVector& y = described(result, "vecY");
    check_product(transpose, a, x, y, compute);
    Operation operation(context);
    const Complex by = operation.scalar(alpha, compute, "alpha");
    const Complex keep = operation.scalar(beta, compute, "beta");
    std::vector<Entry> entries = entries_of(operation, a);
    apply(transpose, entries);
    operation.multiply_add(compute, static_cast<double>(entries.size()));
    const Bytes numbers = bytes_of(operation, x, "the values of vecX");
    std::vector<Complex> sums(static_cast<std::size_t>(y.size));
    for (const Entry& entry : entries) {
      sums[static_cast<std::size_t>(entry.row)] +=
          product(entry.value, load_value(x.type, numbers.data(), entry.column));
    }
    Bytes bytes(sums.size() * bytes_of_type(y.type, "the type of vecY"));
    if (keep != 0.0) bytes = bytes_of(operation, y, "the values of vecY");
    for (std::int64_t i = 0; i < y.size; ++i) {
      Complex value = product(by, sums[static_cast<std::size_t>(i)]);
      if (keep != 0.0) value += product(keep, load_value(y.type, bytes.data(), i));
      store_value(y.type, bytes.data(), i, value);
    }
    operation.write(y.values, std::move(bytes), "the values of vecY");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseSpMM_bufferSize(Context* handle, int transpose_a, int transpose_b,
                                               const void*, const SparseMatrix* a,
                                               const DenseMatrix* b, const void*, DenseMatrix* c,
                                               int compute, int, std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    check_product(transpose_a, transpose_b, described(a, "matA"), described(b, "matB"),
                  described(c, "matC"), compute);
    give(size, work_bytes, "bufferSize");
  });
}

/// Nothing is prepared: the call itself computes everything.
CUSPARSE_EXPORT Status cusparseSpMM_preprocess(Context* handle, int transpose_a, int transpose_b,
                                               const void*, const SparseMatrix* a,
                                               const DenseMatrix* b, const void*, DenseMatrix* c,
                                               int compute, int, void*) {
  return call(__func__, handle, [&](Context&) {
    check_product(transpose_a, transpose_b, described(a, "matA"), described(b, "matB"),
                  described(c, "matC"), compute);
  });
}

CUSPARSE_EXPORT Status cusparseSpMM(Context* handle, int transpose_a, int transpose_b,
                                    const void* alpha, const SparseMatrix* a, const DenseMatrix* b,
                                    const void* beta, DenseMatrix* c, int compute, int, void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    multiply(context, transpose_a, transpose_b, alpha, described(a, "matA"), described(b, "matB"),
             beta, described(c, "matC"), compute);
  });
}

CUSPARSE_EXPORT Status cusparseSDDMM_bufferSize(Context* handle, int transpose_a, int transpose_b,
                                                const void*, const DenseMatrix* a,
                                                const DenseMatrix* b, const void*, SparseMatrix* c,
                                                int compute, int, std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    check_sampled(transpose_a, transpose_b, described(a, "matA"), described(b, "matB"),
                  described(c, "matC"), compute);
    give(size, work_bytes, "bufferSize");
  });
}

/// Nothing is prepared: the call itself computes everything.
CUSPARSE_EXPORT Status cusparseSDDMM_preprocess(Context* handle, int transpose_a, int transpose_b,
                                                const void*, const DenseMatrix* a,
                                                const DenseMatrix* b, const void*, SparseMatrix* c,
                                                int compute, int, void*) {
  return call(__func__, handle, [&](Context&) {
    check_sampled(transpose_a, transpose_b, described(a, "matA"), described(b, "matB"),
                  described(c, "matC"), compute);
  });
}

CUSPARSE_EXPORT Status cusparseSDDMM(Context* handle, int transpose_a, int transpose_b,
                                     const void* alpha, const DenseMatrix* a, const DenseMatrix* b,
                                     const void* beta, SparseMatrix* c, int compute, int, void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    sample(context, transpose_a, transpose_b, alpha, described(a, "matA"), described(b, "matB"),
           beta, described(c, "matC"), compute);
  });
}
