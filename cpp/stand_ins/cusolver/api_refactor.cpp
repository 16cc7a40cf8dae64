// cusolverRf: LU of further matrices with the pattern and the pivots of one that is factored.

#include <algorithm>
#include <cstring>

#include "stand_ins/cusolver/sparse_memory.h"

using namespace warpstack::cusolver;
using warpstack::library::Handles;

namespace {

constexpr int of_rows = 0;
constexpr int assumed_l = 2, assumed_u = 3;

}  // namespace

namespace warpstack::cusolver {

/// What a cusolverRfHandle_t points to.
struct Refactorisation {
  int format = of_rows, unit_diagonal = 0;
  double zero = 0, boost = 0;
  bool boosted = false;
  int factor_algorithm = 0, solve_algorithm = 1, fast_mode = 0;
  /// L and U in one: columns ascend, each row has its diagonal element. Empty before the set-up.
  sparse::Rows<double> factors;
  bool analysed = false, factored = false;

  [[nodiscard]] int size() const { return factors.rows(); }
};

Refactorisation& Library::context_of(Refactorisation* handle) {
  require(library::Handles<Refactorisation>::has(handle), Status::not_initialized,
          handle == nullptr ? "the handle is null: cusolverRfCreate makes one"
                            : "cusolverRfCreate has made no such handle");
  return *handle;
}

}  // namespace warpstack::cusolver

namespace {

std::vector<int> read_integers(Where where, const int* place, int count, const char* name) {
  const Bytes bytes = read_array(where, place, sparse::place(count) * sizeof(int), name);
  std::vector<int> found(sparse::place(count));
  std::memcpy(found.data(), bytes.data(), bytes.size());
  return found;
}

/// Where each row or column of A comes in the factors. Throws Failure unless each comes once.
std::vector<int> places_of(const std::vector<int>& order, const char* name) {
  std::vector<int> found(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool fits = order[i] >= 0 && sparse::place(order[i]) < order.size();
    require(fits && found[sparse::place(order[i])] < 0,
            std::string(name) + ": element " + std::to_string(i) + " = " +
                std::to_string(order[i]) + " is no row of the matrix, or comes twice");
    found[sparse::place(order[i])] = static_cast<int>(i);
  }
  return found;
}

struct Arrays {
  int count;
  const int *offsets, *indices;
  const double* values;
};

/// A matrix, of compressed rows or columns, with indices from 0.
sparse::Rows<double> read_matrix_of(const Refactorisation& context, Where where, int n,
                                    const Arrays& given, const std::string& name) {
  const auto offsets = read_integers(where, given.offsets, n + 1, ("csrRowPtr" + name).c_str());
  require(offsets.front() == 0 && offsets.back() == given.count && std::ranges::is_sorted(offsets),
          "csrRowPtr" + name + ": the offsets do not ascend from 0 to nnz");
  const auto indices =
      read_integers(where, given.indices, given.count, ("csrColInd" + name).c_str());
  const auto values =
      read_vector<double>(where, 'd', given.values, given.count, ("csrVal" + name).c_str());
  sparse::Rows<double> found{n,
                             std::vector<std::vector<sparse::Element<double>>>(sparse::place(n))};
  for (int line = 0; line < n; ++line) {
    for (int i = offsets[sparse::place(line)]; i < offsets[sparse::place(line + 1)]; ++i) {
      const int index = indices[sparse::place(i)];
      require(index >= 0 && index < n, "csrColInd" + name + ": element " + std::to_string(i) +
                                           " = " + std::to_string(index) +
                                           " is outside of the matrix");
      const bool by_rows = context.format == of_rows;
      found.of[sparse::place(by_rows ? line : index)].push_back(
          {by_rows ? index : line, values[sparse::place(i)]});
    }
  }
  return found;
}

/// The values of the factors become those of P A Q^T, and zeros.
void reset(Refactorisation& context, const sparse::Rows<double>& a, const std::vector<int>& p,
           const std::vector<int>& q) {
  const std::vector<int> columns = places_of(q, "Q");
  places_of(p, "P");
  for (std::size_t i = 0; i < p.size(); ++i) {
    auto& row = context.factors.of[i];
    for (auto& element : row) element.value = 0;
    for (const auto& [column, value] : a.of[sparse::place(p[i])]) {
      const int at = columns[sparse::place(column)];
      const auto found = std::ranges::lower_bound(row, at, {}, &sparse::Element<double>::column);
      require(found != row.end() && found->column == at,
              "row " + std::to_string(p[i]) + " of A has an element where neither L nor U has one");
      found->value += value;
    }
  }
  context.factored = false;
}

Status set_up(const char* function, Refactorisation* handle, bool on_device, int n, const Arrays& a,
              const Arrays& l, const Arrays& u, const int* p, const int* q) {
  return call(function, handle, [&](Refactorisation& context) {
    size_of("n", n);
    run_where(on_device, 0, [&](Where where) {
      const auto matrix = read_matrix_of(context, where, n, a, "A");
      const auto lower = read_matrix_of(context, where, n, l, "L");
      const auto upper = read_matrix_of(context, where, n, u, "U");
      sparse::Rows<double> both{n, lower.of};
      for (int i = 0; i < n; ++i) {
        auto& row = both.of[sparse::place(i)];
        const auto& right = upper.of[sparse::place(i)];
        row.insert(row.end(), right.begin(), right.end());
        row.push_back({i, 0});
        std::ranges::sort(row, {}, &sparse::Element<double>::column);
        const auto again = std::ranges::unique(row, {}, &sparse::Element<double>::column);
        row.erase(again.begin(), again.end());
      }
      context.factors = std::move(both);
      reset(context, matrix, read_integers(where, p, n, "P"), read_integers(where, q, n, "Q"));
    });
    context.analysed = false;
  });
}

/// L and U of the values, whose pivots are the diagonal elements. Returns the multiplications.
double factor(Refactorisation& context) {
  double multiply_adds = 0;
  std::vector<double> row(sparse::place(context.size()));
  for (int i = 0; i < context.size(); ++i) {
    auto& elements = context.factors.of[sparse::place(i)];
    for (const auto& [column, value] : elements) row[sparse::place(column)] = value;
    for (auto& element : elements) {
      if (element.column >= i) break;
      const auto& above = context.factors.of[sparse::place(element.column)];
      const auto pivot =
          std::ranges::lower_bound(above, element.column, {}, &sparse::Element<double>::column);
      const double by = row[sparse::place(element.column)] / pivot->value;
      row[sparse::place(element.column)] = by;
      // Where this row has no element, it stays zero, or is of no row at all.
      for (auto right = pivot + 1; right != above.end(); ++right) {
        row[sparse::place(right->column)] -= by * right->value;
      }
      multiply_adds += static_cast<double>(above.end() - pivot);
    }
    for (auto& element : elements) element.value = row[sparse::place(element.column)];
    for (const auto& element : elements) row[sparse::place(element.column)] = 0;
    for (const auto& above : elements) {
      if (above.column >= i) break;
      for (const auto& right : context.factors.of[sparse::place(above.column)]) {
        row[sparse::place(right.column)] = 0;
      }
    }
    const auto own = std::ranges::lower_bound(elements, i, {}, &sparse::Element<double>::column);
    if (std::abs(own->value) < context.zero) {
      own->value = std::copysign(context.boost, own->value);
      context.boosted = true;
    }
    require(own->value != 0, Status::execution_failed,
            "row " + std::to_string(i) + " has a pivot of zero");
  }
  return multiply_adds;
}

double elements_of(const Refactorisation& context) {
  double count = 0;
  for (const auto& row : context.factors.of) count += static_cast<double>(row.size());
  return count;
}

}  // namespace

CUSOLVER_EXPORT Status cusolverRfCreate(Refactorisation** handle) {
  return call(__func__, [&] { create(handle, "handle"); });
}
CUSOLVER_EXPORT Status cusolverRfDestroy(Refactorisation* handle) {
  return call(__func__, handle,
              [&](Refactorisation& context) { Handles<Refactorisation>::remove(&context); });
}
CUSOLVER_EXPORT Status cusolverRfSetMatrixFormat(Refactorisation* handle, int format,
                                                 int unit_diagonal) {
  return call(__func__, handle, [&](Refactorisation& context) {
    check_choice("format", format, 0, 1);
    check_choice("diag", unit_diagonal, 0, assumed_u);
    // The refactorisation has the ones in L.
    require(unit_diagonal == 0 || unit_diagonal == assumed_l, Status::not_supported,
            with_number("diag", unit_diagonal) + ": the unit diagonal has to be that of L");
    context.format = format;
    context.unit_diagonal = unit_diagonal;
  });
}
CUSOLVER_EXPORT Status cusolverRfGetMatrixFormat(Refactorisation* handle, int* format,
                                                 int* unit_diagonal) {
  return call(__func__, handle, [&](Refactorisation& context) {
    give(format, context.format, "format");
    give(unit_diagonal, context.unit_diagonal, "diag");
  });
}
CUSOLVER_EXPORT Status cusolverRfSetNumericProperties(Refactorisation* handle, double zero,
                                                      double boost) {
  return call(__func__, handle, [&](Refactorisation& context) {
    context.zero = zero;
    context.boost = boost;
  });
}
CUSOLVER_EXPORT Status cusolverRfGetNumericProperties(Refactorisation* handle, double* zero,
                                                      double* boost) {
  return call(__func__, handle, [&](Refactorisation& context) {
    give(zero, context.zero, "zero");
    give(boost, context.boost, "boost");
  });
}
CUSOLVER_EXPORT Status cusolverRfGetNumericBoostReport(Refactorisation* handle, int* report) {
  return call(__func__, handle,
              [&](Refactorisation& context) { give(report, context.boosted ? 1 : 0, "report"); });
}
/// There is one algorithm of each.
CUSOLVER_EXPORT Status cusolverRfSetAlgs(Refactorisation* handle, int factor, int solve) {
  return call(__func__, handle, [&](Refactorisation& context) {
    check_choice("factAlg", factor, 0, 2);
    check_choice("solveAlg", solve, 1, 3);
    context.factor_algorithm = factor;
    context.solve_algorithm = solve;
  });
}
CUSOLVER_EXPORT Status cusolverRfGetAlgs(Refactorisation* handle, int* factor, int* solve) {
  return call(__func__, handle, [&](Refactorisation& context) {
    give(factor, context.factor_algorithm, "factAlg");
    give(solve, context.solve_algorithm, "solveAlg");
  });
}
CUSOLVER_EXPORT Status cusolverRfSetResetValuesFastMode(Refactorisation* handle, int mode) {
  return call(__func__, handle, [&](Refactorisation& context) {
    check_choice("fastMode", mode, 0, 1);
    context.fast_mode = mode;
  });
}
CUSOLVER_EXPORT Status cusolverRfGetResetValuesFastMode(Refactorisation* handle, int* mode) {
  return call(__func__, handle,
              [&](Refactorisation& context) { give(mode, context.fast_mode, "fastMode"); });
}

#define SET_UP(name, on_device)                                                                \
  CUSOLVER_EXPORT Status name(int n, int nnz_a, int* a_offsets, int* a_columns, double* a,     \
                              int nnz_l, int* l_offsets, int* l_columns, double* l, int nnz_u, \
                              int* u_offsets, int* u_columns, double* u, int* p, int* q,       \
                              Refactorisation* handle) {                                       \
    return set_up(__func__, handle, on_device, n, {nnz_a, a_offsets, a_columns, a},            \
                  {nnz_l, l_offsets, l_columns, l}, {nnz_u, u_offsets, u_columns, u}, p, q);   \
  }
SET_UP(cusolverRfSetupHost, false)
SET_UP(cusolverRfSetupDevice, true)
#undef SET_UP

CUSOLVER_EXPORT Status cusolverRfResetValues(int n, int nnz, int* offsets, int* columns,
                                             double* values, int* p, int* q,
                                             Refactorisation* handle) {
  return call(__func__, handle, [&](Refactorisation& context) {
    require(n == context.size(), with_number("n", n) + " is not that of the set-up");
    run_where(true, 0, [&](Where where) {
      const auto a = read_matrix_of(context, where, n, {nnz, offsets, columns, values}, "A");
      reset(context, a, read_integers(where, p, n, "P"), read_integers(where, q, n, "Q"));
    });
  });
}
/// Nothing is prepared: the factorisation itself computes everything.
CUSOLVER_EXPORT Status cusolverRfAnalyze(Refactorisation* handle) {
  return call(__func__, handle, [&](Refactorisation& context) {
    require(context.size() > 0, "cusolverRfSetupHost or SetupDevice was not called before");
    context.analysed = true;
  });
}
CUSOLVER_EXPORT Status cusolverRfRefactor(Refactorisation* handle) {
  return call(__func__, handle, [&](Refactorisation& context) {
    require(context.analysed, "cusolverRfAnalyze was not called before");
    require(!context.factored, "cusolverRfResetValues was not called since the last one");
    run_where(true, 0, [&](Where where) {
      context.boosted = false;
      where->compute(sparse_computation('d', factor(context)));
      where->count(2 * static_cast<std::size_t>(elements_of(context)) * sizeof(double));
      context.factored = true;
    });
  });
}
CUSOLVER_EXPORT Status cusolverRfSolve(Refactorisation* handle, int* p, int* q, int sides, double*,
                                       int, double* x, int ld) {
  return call(__func__, handle, [&](Refactorisation& context) {
    require(context.factored, "cusolverRfRefactor was not called before");
    const int n = context.size();
    require(sides == 1, with_number("nrhs", sides) + " is not 1, the only number of right sides");
    require(ld >= n, with_number("ldxf", ld) + " is less than " + with_number("n", n));
    run_where(true, 0, [&](Where where) {
      const auto rows = read_integers(where, p, n, "P"), columns = read_integers(where, q, n, "Q");
      places_of(rows, "P");
      places_of(columns, "Q");
      const auto b = read_vector<double>(where, 'd', x, n, "XF");
      std::vector<double> y(sparse::place(n)), found(sparse::place(n));
      for (int i = 0; i < n; ++i) {
        double& value = y[sparse::place(i)] = b[sparse::place(rows[sparse::place(i)])];
        for (const auto& [column, factor] : context.factors.of[sparse::place(i)]) {
          if (column >= i) break;
          value -= factor * y[sparse::place(column)];
        }
      }
      for (int i = n - 1; i >= 0; --i) {
        double pivot = 0;
        double& value = y[sparse::place(i)];
        for (const auto& [column, factor] : context.factors.of[sparse::place(i)]) {
          if (column == i) pivot = factor;
          if (column > i) value -= factor * y[sparse::place(column)];
        }
        value /= pivot;
        found[sparse::place(columns[sparse::place(i)])] = value;
      }
      where->count(static_cast<std::size_t>(elements_of(context)) * sizeof(double));
      where->compute(sparse_computation('d', elements_of(context)));
      write_vector(where, 'd', x, found, "XF");
    });
  });
}
