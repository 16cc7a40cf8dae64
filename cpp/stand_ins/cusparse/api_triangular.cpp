// Triangular systems with sparse matrices.

#include <memory>
#include <utility>

#include "stand_ins/cusparse/descriptors.h"

using namespace warpstack::cusparse;
using warpstack::library::Handles;

namespace {

/// What cusparseSpSVDescr_t and cusparseSpSMDescr_t point to. A solve needs an analysis before.
struct VectorSolve {
  bool analysed = false;
};
struct MatrixSolve {
  bool analysed = false;
};

/// Solves a triangle op(A) x = b in place. The other triangle is not looked at.
class Triangle {
 public:
  Triangle(Operation& operation, int transpose, const SparseMatrix& matrix)
      : size_(matrix.rows), of_ones_(matrix.diagonal == diagonal_of_ones) {
    std::vector<Entry> entries = entries_of(operation, matrix);
    apply(transpose, entries);
    lower_ = (matrix.fill == fill_lower) == (transpose == operation_none);
    rows_.resize(static_cast<std::size_t>(size_));
    diagonal_.resize(static_cast<std::size_t>(size_), of_ones_ ? 1.0 : 0.0);
    for (const Entry& entry : entries) {
      const auto row = static_cast<std::size_t>(entry.row);
      if (entry.row == entry.column) {
        if (!of_ones_) diagonal_[row] += entry.value;
      } else if ((entry.column < entry.row) == lower_) {
        rows_[row].push_back(entry);
      }
    }
  }

  /// Of one right-hand side: each stored element, of which a diagonal one divides.
  [[nodiscard]] double multiply_adds() const {
    double count = of_ones_ ? 0 : static_cast<double>(size_);
    for (const auto& row : rows_) count += static_cast<double>(row.size());
    return count;
  }

  void solve(std::vector<Complex>& x) const {
    for (std::int64_t i = 0; i < size_; ++i) {
      const auto row = static_cast<std::size_t>(lower_ ? i : size_ - 1 - i);
      Complex value = x[row];
      for (const Entry& entry : rows_[row]) {
        value -= product(entry.value, x[static_cast<std::size_t>(entry.column)]);
      }
      x[row] = of_ones_ ? value : quotient(value, diagonal_[row]);
    }
  }

 private:
  std::int64_t size_;
  bool of_ones_;
  bool lower_ = true;
  std::vector<std::vector<Entry>> rows_;
  std::vector<Complex> diagonal_;
};

void check_square(int transpose, const SparseMatrix& a) {
  check_choice("opA", transpose, operation_none, operation_adjoint);
  require(a.rows == a.columns, with_number("the rows of matA", a.rows) + " are not " +
                                   with_number("its columns", a.columns));
}

void check_system(int transpose, const SparseMatrix& a, const DenseVector& x, const DenseVector& y,
                  int compute) {
  check_square(transpose, a);
  require(x.size == a.rows && y.size == a.rows, "vecX or vecY has not the size of matA");
  check_types(compute, {a.type, x.type, y.type});
}

void check_system(int transpose_a, int transpose_b, const SparseMatrix& a, const DenseMatrix& b,
                  const DenseMatrix& c, int compute) {
  check_square(transpose_a, a);
  check_choice("opB", transpose_b, operation_none, operation_adjoint);
  const bool turned = transpose_b != operation_none;
  require(c.rows == a.rows && (turned ? b.columns : b.rows) == c.rows &&
              (turned ? b.rows : b.columns) == c.columns,
          "the sizes of matA, op(B) and matC do not fit");
  check_types(compute, {a.type, b.type, c.type});
}

/// An analysis reads the matrix; that is an operation.
void analyse(Context& context, const SparseMatrix& a) {
  Operation operation(context);
  entries_of(operation, a, 0, a.values != nullptr);
  operation.finish();
}

}  // namespace

CUSPARSE_EXPORT Status cusparseSpSV_createDescr(VectorSolve** solve) {
  return call(__func__, [&] { create(solve, "descr"); });
}

CUSPARSE_EXPORT Status cusparseSpSV_destroyDescr(VectorSolve* solve) {
  return call(__func__, [&] { Handles<VectorSolve>::remove(&described(solve, "descr")); });
}

CUSPARSE_EXPORT Status cusparseSpSV_bufferSize(Context* handle, int transpose, const void*,
                                               const SparseMatrix* a, const DenseVector* x,
                                               DenseVector* y, int compute, int, VectorSolve* solve,
                                               std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    described(solve, "spsvDescr");
    check_system(transpose, described(a, "matA"), described(x, "vecX"), described(y, "vecY"),
                 compute);
    give(size, work_bytes, "bufferSize");
  });
}

CUSPARSE_EXPORT Status cusparseSpSV_analysis(Context* handle, int transpose, const void*,
                                             const SparseMatrix* a, const DenseVector* x,
                                             DenseVector* y, int compute, int, VectorSolve* solve,
                                             void*) {
  return call(__func__, handle, [&](Context& context) {
    VectorSolve& found = described(solve, "spsvDescr");
    const SparseMatrix& matrix = described(a, "matA");
    check_system(transpose, matrix, described(x, "vecX"), described(y, "vecY"), compute);
    analyse(context, matrix);
    found.analysed = true;
  });
}

CUSPARSE_EXPORT Status cusparseSpSV_solve(Context* handle, int transpose, const void* alpha,
                                          const SparseMatrix* matrix, const DenseVector* vector,
                                          DenseVector* result, int compute, int,
                                          VectorSolve* solve) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    require(described(solve, "spsvDescr").analysed, "cusparseSpSV_analysis was not called before");
    const SparseMatrix& a = described(matrix, "matA");
    const DenseVector& x = described(vector, "vecX");
    const DenseVector& y = described(result, "vecY");
    check_system(transpose, a, x, y, compute);
    Operation operation(context);
    const Complex by = operation.scalar(alpha, compute, "alpha");
    const Triangle triangle(operation, transpose, a);
    const Bytes right = bytes_of(operation, x, "the values of vecX");
    std::vector<Complex> numbers(static_cast<std::size_t>(x.size));
    for (std::int64_t i = 0; i < x.size; ++i) {
      numbers[static_cast<std::size_t>(i)] = product(by, load_value(x.type, right.data(), i));
    }
    triangle.solve(numbers);
    operation.multiply_add(compute, triangle.multiply_adds());
    Bytes bytes(numbers.size() * bytes_of_type(y.type, "the type of vecY"));
    for (std::int64_t i = 0; i < y.size; ++i) {
      store_value(y.type, bytes.data(), i, numbers[static_cast<std::size_t>(i)]);
    }
    operation.write(y.values, std::move(bytes), "the values of vecY");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseSpSM_createDescr(MatrixSolve** solve) {
  return call(__func__, [&] { create(solve, "descr"); });
}

CUSPARSE_EXPORT Status cusparseSpSM_destroyDescr(MatrixSolve* solve) {
  return call(__func__, [&] { Handles<MatrixSolve>::remove(&described(solve, "descr")); });
}

CUSPARSE_EXPORT Status cusparseSpSM_bufferSize(Context* handle, int transpose_a, int transpose_b,
                                               const void*, const SparseMatrix* a,
                                               const DenseMatrix* b, DenseMatrix* c, int compute,
                                               int, MatrixSolve* solve, std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    described(solve, "spsmDescr");
    check_system(transpose_a, transpose_b, described(a, "matA"), described(b, "matB"),
                 described(c, "matC"), compute);
    give(size, work_bytes, "bufferSize");
  });
}

CUSPARSE_EXPORT Status cusparseSpSM_analysis(Context* handle, int transpose_a, int transpose_b,
                                             const void*, const SparseMatrix* a,
                                             const DenseMatrix* b, DenseMatrix* c, int compute, int,
                                             MatrixSolve* solve, void*) {
  return call(__func__, handle, [&](Context& context) {
    MatrixSolve& found = described(solve, "spsmDescr");
    const SparseMatrix& matrix = described(a, "matA");
    check_system(transpose_a, transpose_b, matrix, described(b, "matB"), described(c, "matC"),
                 compute);
    analyse(context, matrix);
    found.analysed = true;
  });
}

CUSPARSE_EXPORT Status cusparseSpSM_solve(Context* handle, int transpose_a, int transpose_b,
                                          const void* alpha, const SparseMatrix* matrix,
                                          const DenseMatrix* right, DenseMatrix* result,
                                          int compute, int, MatrixSolve* solve) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    require(described(solve, "spsmDescr").analysed, "cusparseSpSM_analysis was not called before");
    const SparseMatrix& a = described(matrix, "matA");
    const DenseMatrix& b = described(right, "matB");
    const DenseMatrix& c = described(result, "matC");
    check_system(transpose_a, transpose_b, a, b, c, compute);
    Operation operation(context);
    const Complex by = operation.scalar(alpha, compute, "alpha");
    const Triangle triangle(operation, transpose_a, a);
    const Bytes given = bytes_of(operation, b, "the values of matB");
    Bytes bytes = bytes_of(operation, c, "the values of matC", false);
    std::vector<Complex> numbers(static_cast<std::size_t>(c.rows));
    operation.multiply_add(compute, triangle.multiply_adds() * static_cast<double>(c.columns));
    for (std::int64_t j = 0; j < c.columns; ++j) {
      for (std::int64_t i = 0; i < c.rows; ++i) {
        const std::int64_t at = transpose_b == operation_none ? b.at(i, j) : b.at(j, i);
        const Complex value = load_value(b.type, given.data(), at);
        numbers[static_cast<std::size_t>(i)] =
            product(by, transpose_b == operation_adjoint ? std::conj(value) : value);
      }
      triangle.solve(numbers);
      for (std::int64_t i = 0; i < c.rows; ++i) {
        store_value(c.type, bytes.data(), c.at(i, j), numbers[static_cast<std::size_t>(i)]);
      }
    }
    operation.write(c.values, std::move(bytes), "the values of matC");
    operation.finish();
  });
}
