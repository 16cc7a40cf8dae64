// Factorisations and solutions with them.

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>
#include <utility>

#include "stand_ins/cusolver/dense.h"
#include "stand_ins/cusolver/flops.h"
#include "stand_ins/library/numbers.h"

namespace warpstack::cusolver {
namespace {

char fill_letter(int fill) {
  check_choice("uplo", fill, fill_lower, fill_upper);
  return fill == fill_lower ? 'L' : 'U';
}

/// The letter of an operation; the adjoint of real numbers is the transpose.
char operation_letter(Letter letter, int operation) {
  check_choice("trans", operation, operation_none, operation_adjoint);
  if (operation == operation_none) return 'N';
  return operation == operation_adjoint && is_complex(letter) ? 'C' : 'T';
}

library::Complex element(Letter letter, const Bytes& bytes, std::int64_t at) {
  const auto precision =
      real_bytes(letter) == 4 ? library::Precision::f32 : library::Precision::f64;
  if (!is_complex(letter)) return load(precision, bytes.data(), at);
  return {load(precision, bytes.data(), 2 * at), load(precision, bytes.data(), 2 * at + 1)};
}

void put_element(Letter letter, Bytes& bytes, std::int64_t at, library::Complex value) {
  const auto precision =
      real_bytes(letter) == 4 ? library::Precision::f32 : library::Precision::f64;
  if (!is_complex(letter)) return store(precision, bytes.data(), at, value.real());
  store(precision, bytes.data(), 2 * at, value.real());
  store(precision, bytes.data(), 2 * at + 1, value.imag());
}

/// L and U without exchanges of rows, which LAPACK has not. Returns the first zero pivot, from 1,
/// or 0.
int factor_without_pivots(Letter letter, Matrix& a) {
  int info = 0;
  const auto at = [&](int row, int column) {
    return static_cast<std::int64_t>(column) * a.ld + row;
  };
  std::vector<library::Complex> numbers(a.bytes.size() / a.size);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = element(letter, a.bytes, static_cast<std::int64_t>(i));
  }
  const auto of = [&](int row, int column) -> library::Complex& {
    return numbers[static_cast<std::size_t>(at(row, column))];
  };
  for (int k = 0; k < std::min(a.rows, a.columns); ++k) {
    if (of(k, k) == 0.0) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int i = k + 1; i < a.rows; ++i) of(i, k) /= of(k, k);
    for (int j = k + 1; j < a.columns; ++j) {
      for (int i = k + 1; i < a.rows; ++i) of(i, j) -= of(i, k) * of(k, j);
    }
  }
  for (int j = 0; j < a.columns; ++j) {
    for (int i = 0; i < a.rows; ++i) put_element(letter, a.bytes, at(i, j), of(i, j));
  }
  return info;
}

void write_pivots(Operation& operation, Pivots pivots, const std::vector<int>& found) {
  if (!pivots.wide) {
    Bytes bytes(found.size() * sizeof(int));
    std::memcpy(bytes.data(), found.data(), bytes.size());
    operation.write(pivots.place, std::move(bytes), "devIpiv");
    return;
  }
  const std::vector<std::int64_t> wide(found.begin(), found.end());
  Bytes bytes(wide.size() * sizeof(std::int64_t));
  std::memcpy(bytes.data(), wide.data(), bytes.size());
  operation.write(pivots.place, std::move(bytes), "devIpiv");
}

/// Rows from 1; without exchanges each stays where it is.
std::vector<int> read_pivots(Operation& operation, Pivots pivots, int count) {
  std::vector<int> found(static_cast<std::size_t>(count));
  std::iota(found.begin(), found.end(), 1);
  if (pivots.place == nullptr) return found;
  const std::size_t size = pivots.wide ? 8 : 4;
  const Bytes bytes = read_numbers(operation, size, pivots.place, count, "devIpiv");
  for (int i = 0; i < count; ++i) {
    const std::int64_t row = pivots.wide ? library::element<std::int64_t>(bytes.data(), i)
                                         : library::element<std::int32_t>(bytes.data(), i);
    require(row >= 1 && row <= count, "devIpiv: element " + std::to_string(i) + " = " +
                                          std::to_string(row) + " is no row of the matrix");
    found[static_cast<std::size_t>(i)] = static_cast<int>(row);
  }
  return found;
}

const char* q_routine(Letter letter, const char* real, const char* complex) {
  return is_complex(letter) ? complex : real;
}

}  // namespace

void factor_lu(Context& context, Letter letter, std::int64_t rows, std::int64_t columns, void* a,
               std::int64_t lda, Pivots pivots, int* info) {
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, rows, columns, lda, "A");
  operation.compute(computation(letter, flops_of_lu(matrix.rows, matrix.columns)));
  int found = 0;
  if (pivots.place == nullptr) {
    found = factor_without_pivots(letter, matrix);
  } else {
    std::vector<int> exchanged(static_cast<std::size_t>(std::min(rows, columns)));
    lapack(letter, "getrf", &matrix.rows, &matrix.columns, matrix.data(), &matrix.ld,
           exchanged.data(), &found);
    write_pivots(operation, pivots, exchanged);
  }
  write_matrix(operation, std::move(matrix), "A");
  write_info(operation, info, found);
  operation.finish();
}

void solve_lu(Context& context, Letter letter, int transpose, std::int64_t size,
              std::int64_t columns, const void* a, std::int64_t lda, Pivots pivots, void* b,
              std::int64_t ldb, int* info) {
  const char kind = operation_letter(letter, transpose);
  Operation operation(context.stream);
  Matrix factors = read_matrix(operation, letter, a, size, size, lda, "A");
  Matrix right = read_matrix(operation, letter, b, size, columns, ldb, "B");
  operation.compute(computation(letter, flops_of_solution(factors.rows, right.columns)));
  std::vector<int> rows = read_pivots(operation, pivots, factors.rows);
  int found = 0;
  lapack(letter, "getrs", &kind, &factors.rows, &right.columns, factors.data(), &factors.ld,
         rows.data(), right.data(), &right.ld, &found);
  write_matrix(operation, std::move(right), "B");
  write_info(operation, info, found);
  operation.finish();
}

void factor_cholesky(Context& context, Letter letter, int fill, std::int64_t size, void* a,
                     std::int64_t lda, int* info) {
  const char kind = fill_letter(fill);
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, size, size, lda, "A");
  operation.compute(computation(letter, flops_of_cholesky(matrix.rows)));
  int found = 0;
  lapack(letter, "potrf", &kind, &matrix.rows, matrix.data(), &matrix.ld, &found);
  write_matrix(operation, std::move(matrix), "A");
  write_info(operation, info, found);
  operation.finish();
}

void solve_cholesky(Context& context, Letter letter, int fill, std::int64_t size,
                    std::int64_t columns, const void* a, std::int64_t lda, void* b,
                    std::int64_t ldb, int* info) {
  const char kind = fill_letter(fill);
  Operation operation(context.stream);
  Matrix factor = read_matrix(operation, letter, a, size, size, lda, "A");
  Matrix right = read_matrix(operation, letter, b, size, columns, ldb, "B");
  operation.compute(computation(letter, flops_of_solution(factor.rows, right.columns)));
  int found = 0;
  lapack(letter, "potrs", &kind, &factor.rows, &right.columns, factor.data(), &factor.ld,
         right.data(), &right.ld, &found);
  write_matrix(operation, std::move(right), "B");
  write_info(operation, info, found);
  operation.finish();
}

void invert_cholesky(Context& context, Letter letter, int fill, std::int64_t size, void* a,
                     std::int64_t lda, int* info) {
  const char kind = fill_letter(fill);
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, size, size, lda, "A");
  operation.compute(computation(letter, flops_of_inverse(matrix.rows)));
  int found = 0;
  lapack(letter, "potri", &kind, &matrix.rows, matrix.data(), &matrix.ld, &found);
  write_matrix(operation, std::move(matrix), "A");
  write_info(operation, info, found);
  operation.finish();
}

void factor_qr(Context& context, Letter letter, std::int64_t rows, std::int64_t columns, void* a,
               std::int64_t lda, void* tau, int* info) {
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, rows, columns, lda, "A");
  operation.compute(computation(letter, flops_of_qr(matrix.rows, matrix.columns)));
  Bytes factors(static_cast<std::size_t>(std::min(rows, columns)) * matrix.size);
  int found = 0;
  with_work(letter, [&](void* work, int* size) {
    lapack(letter, "geqrf", &matrix.rows, &matrix.columns, matrix.data(), &matrix.ld,
           factors.data(), work, size, &found);
  });
  write_matrix(operation, std::move(matrix), "A");
  operation.write(tau, std::move(factors), "TAU");
  write_info(operation, info, found);
  operation.finish();
}

void make_q(Context& context, Letter letter, int rows, int columns, int reflectors, void* a,
            int lda, const void* tau, int* info) {
  require(columns <= rows && reflectors >= 0 && reflectors <= columns,
          with_number("n", columns) + " or " + with_number("k", reflectors) +
              " is not in 0 <= k <= n <= m");
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, rows, columns, lda, "A");
  operation.compute(computation(letter, flops_of_q(rows, columns, reflectors)));
  Bytes factors = read_numbers(operation, matrix.size, tau, reflectors, "tau");
  int found = 0;
  with_work(letter, [&](void* work, int* size) {
    lapack(letter, q_routine(letter, "orgqr", "ungqr"), &matrix.rows, &matrix.columns, &reflectors,
           matrix.data(), &matrix.ld, factors.data(), work, size, &found);
  });
  write_matrix(operation, std::move(matrix), "A");
  write_info(operation, info, found);
  operation.finish();
}

void multiply_by_q(Context& context, Letter letter, int side, int transpose, int rows, int columns,
                   int reflectors, const void* a, int lda, const void* tau, void* c, int ldc,
                   int* info) {
  check_choice("side", side, side_left, side_right);
  const char kind = operation_letter(letter, transpose);
  require(!is_complex(letter) || kind != 'T',
          "trans is CUBLAS_OP_T, which complex numbers do not have here");
  const char where = side == side_left ? 'L' : 'R';
  const int order = side == side_left ? rows : columns;
  require(reflectors >= 0 && reflectors <= order,
          with_number("k", reflectors) + " is not between 0 and " + std::to_string(order));
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, order, reflectors, lda, "A");
  Matrix result = read_matrix(operation, letter, c, rows, columns, ldc, "C");
  const int others = side == side_left ? columns : rows;
  operation.compute(computation(letter, flops_of_product_with_q(order, others, reflectors)));
  Bytes factors = read_numbers(operation, matrix.size, tau, reflectors, "tau");
  int found = 0;
  with_work(letter, [&](void* work, int* size) {
    lapack(letter, q_routine(letter, "ormqr", "unmqr"), &where, &kind, &rows, &columns, &reflectors,
           matrix.data(), &matrix.ld, factors.data(), result.data(), &result.ld, work, size,
           &found);
  });
  write_matrix(operation, std::move(result), "C");
  write_info(operation, info, found);
  operation.finish();
}

}  // namespace warpstack::cusolver
