// Factorisations of sparse matrices step by step: analysis, sizes, factors, zero pivots, solutions.

#include <cstring>
#include <memory>
#include <variant>

#include "stand_ins/cusolver/sparse_memory.h"

using namespace warpstack::cusolver;
using warpstack::library::Complex;
using warpstack::library::Handles;

namespace {

/// The factors of a matrix, once it is factored. Of one letter, so that a program cannot take those
/// of another type.
template <template <typename> class Factors>
struct Factored {
  Letter letter = '\0';
  std::variant<std::monostate, std::shared_ptr<Factors<double>>, std::shared_ptr<Factors<Complex>>>
      factors;

  template <typename T>
  void put(Letter of, Factors<T> found) {
    letter = of;
    factors = std::make_shared<Factors<T>>(std::move(found));
  }
  template <typename T>
  const Factors<T>& get(Letter of) const {
    require(letter == of,
            "info has no factors of this type: the function that makes them was not called");
    return *std::get<std::shared_ptr<Factors<T>>>(factors);
  }
};

/// What csrluInfoHost_t, csrqrInfo_t, csrqrInfoHost_t, csrcholInfo_t and csrcholInfoHost_t point
/// to.
struct LuInfo {
  Factored<sparse::Lu> factored;
  bool analysed = false;
};
template <bool on_device>
struct QrInfo {
  Factored<sparse::Qr> factored;
  Factored<sparse::Rows> matrix;  ///< A - mu I
  bool analysed = false;
};
template <bool on_device>
struct CholeskyInfo {
  Factored<sparse::Cholesky> factored;
  bool analysed = false;
};

template <typename Info>
Status create_info(const char* function, Info** info) {
  return call(function, [&] { create(info, "info"); });
}
template <typename Info>
Status destroy_info(const char* function, Info* info) {
  return call(function, [&] { Handles<Info>::remove(&described(info, "info")); });
}

template <typename Info>
Info& analysed(Info* info) {
  Info& found = described(info, "info");
  require(found.analysed, "info was not analysed before");
  return found;
}

/// An analysis reads the structure; that is an operation on the device.
template <typename Info>
Status analyse(const char* function, SparseContext* handle, bool on_device,
               const SparseArguments& given, Info* info) {
  return call(function, handle, [&](SparseContext& context) {
    Info& found = described(info, "info");
    run_where(on_device, context.stream, [&](Where where) { read_pattern(where, given); });
    found.analysed = true;
  });
}

/// The sizes of the factors are known once there are any.
template <typename Info>
Status give_sizes(const char* function, SparseContext* handle, const SparseArguments& given,
                  Info* info, std::size_t* internal, std::size_t* work) {
  return call(function, handle, [&](SparseContext&) {
    analysed(info);
    size_of("nnz", given.count);
    give(internal, sparse_work_bytes + sizeof(double) * static_cast<std::size_t>(given.count),
         "internalDataInBytes");
    give(work, sparse_work_bytes, "workspaceInBytes");
  });
}

/// The first pivot that is not larger than a tolerance.
template <typename Info>
Status give_zero_pivot(const char* function, SparseContext* handle, Letter letter, Info* info,
                       double tolerance, int* position) {
  return call(function, handle, [&](SparseContext&) {
    const Info& found = described(info, "info");
    require(tolerance >= 0, "tol is negative or no number");
    with_numbers(letter, [&](auto zero) {
      using T = decltype(zero);
      give(position, found.factored.template get<T>(letter).zero_pivot(tolerance), "position");
    });
  });
}

template <typename T>
std::vector<T> solution(const sparse::Qr<T>& factors, const std::vector<T>& b) {
  return factors.solve(b);
}
template <typename T, template <typename> class Factors>
std::vector<T> solution(const Factors<T>& factors, std::vector<T> b) {
  factors.solve(b);
  return b;
}

template <typename T>
double elements_of(const sparse::Qr<T>& factors) {
  return factors.elements();
}
template <typename T>
double elements_of(const sparse::Cholesky<T>& factors) {
  return factors.elements();
}
template <typename T>
double elements_of(const sparse::Lu<T>& factors) {
  double count = 0;
  for (const auto& row : factors.lower().of) count += static_cast<double>(row.size());
  for (const auto& row : factors.upper().of) count += static_cast<double>(row.size());
  return count;
}

/// A solution has twice as many multiplications as the factors have elements.
template <typename Info>
void solve_with(Where where, Letter letter, const Info& info, int rows, const void* b, void* x) {
  with_numbers(letter, [&](auto zero) {
    using T = decltype(zero);
    const auto& factors = info.factored.template get<T>(letter);
    require(factors.zero_pivot(0) < 0, Status::execution_failed,
            "the matrix is singular: its factors have a pivot of zero");
    const double elements = elements_of(factors);
    if (where != nullptr) {
      where->count(static_cast<std::size_t>(elements) * number_bytes(letter));
      where->compute(sparse_computation(letter, 2 * elements));
    }
    write_vector(where, letter, x, solution(factors, read_vector<T>(where, letter, b, rows, "b")),
                 "x");
  });
}

template <typename Info>
Status solve_with_info(const char* function, SparseContext* handle, bool on_device, Letter letter,
                       Info* info, int rows, const void* b, void* x) {
  return call(function, handle, [&](SparseContext& context) {
    const Info& found = described(info, "info");
    run_where(on_device, context.stream,
              [&](Where where) { solve_with(where, letter, found, rows, b, x); });
  });
}

template <typename Info>
Status factor_cholesky(const char* function, SparseContext* handle, bool on_device, Letter letter,
                       const SparseArguments& given, Info* info) {
  return call(function, handle, [&](SparseContext& context) {
    Info& found = analysed(info);
    run_where(on_device, context.stream, [&](Where where) {
      const Pattern pattern = read_pattern(where, given);
      with_numbers(letter, [&](auto zero) {
        using T = decltype(zero);
        sparse::Cholesky<T> factors(read_rows<T>(where, letter, given, pattern));
        if (where != nullptr) {
          where->count(static_cast<std::size_t>(factors.elements()) * number_bytes(letter));
          where->compute(sparse_computation(letter, factors.multiply_adds()));
        }
        found.factored.put(letter, std::move(factors));
      });
    });
  });
}

Status factor_lu(const char* function, SparseContext* handle, Letter letter,
                 const SparseArguments& given, LuInfo* info, double threshold) {
  return call(function, handle, [&](SparseContext&) {
    LuInfo& found = analysed(info);
    require(threshold >= 0 && threshold <= 1, "pivot_threshold is not between 0 and 1");
    const Pattern pattern = read_pattern(nullptr, given);
    with_numbers(letter, [&](auto zero) {
      using T = decltype(zero);
      found.factored.put(letter,
                         sparse::Lu<T>(read_rows<T>(nullptr, letter, given, pattern), threshold));
    });
  });
}

/// The matrix to be factored, A - mu I.
template <typename Info>
Status set_up_qr(const char* function, SparseContext* handle, bool on_device, Letter letter,
                 const SparseArguments& given, Complex shift, Info* info) {
  return call(function, handle, [&](SparseContext& context) {
    Info& found = analysed(info);
    require(given.rows >= given.columns,
            with_number("m", given.rows) + " is less than " + with_number("n", given.columns));
    run_where(on_device, context.stream, [&](Where where) {
      const Pattern pattern = read_pattern(where, given);
      with_numbers(letter, [&](auto zero) {
        using T = decltype(zero);
        sparse::Rows<T> rows = read_rows<T>(where, letter, given, pattern);
        for (int i = 0; i < given.columns && shift != 0.0; ++i) {
          if constexpr (std::is_same_v<T, double>) {
            rows.of[sparse::place(i)].push_back({i, -shift.real()});
          } else {
            rows.of[sparse::place(i)].push_back({i, -shift});
          }
        }
        found.matrix.put(letter, std::move(rows));
      });
    });
  });
}

/// The system is solved, too, where b and x are given.
template <typename Info>
Status factor_qr(const char* function, SparseContext* handle, bool on_device, Letter letter,
                 int rows, const void* b, void* x, Info* info) {
  return call(function, handle, [&](SparseContext& context) {
    Info& found = described(info, "info");
    run_where(on_device, context.stream, [&](Where where) {
      with_numbers(letter, [&](auto zero) {
        using T = decltype(zero);
        const sparse::Rows<T>& matrix = found.matrix.template get<T>(letter);
        require(rows == matrix.rows(),
                with_number("m", rows) + " is not that of the matrix that was set up");
        sparse::Qr<T> factors(matrix);
        if (where != nullptr) {
          where->count(static_cast<std::size_t>(factors.elements()) * number_bytes(letter));
          where->compute(sparse_computation(letter, factors.multiply_adds()));
        }
        found.factored.put(letter, std::move(factors));
      });
      if (b != nullptr && x != nullptr) solve_with(where, letter, found, rows, b, x);
    });
  });
}

/// Systems whose matrices have the same structure, one after another in memory.
Status solve_batch(const char* function, SparseContext* handle, Letter letter,
                   const SparseArguments& given, const void* b, void* x, int count,
                   QrInfo<true>* info) {
  return call(function, handle, [&](SparseContext& context) {
    analysed(info);
    require(count > 0, with_number("batchSize", count) + " is not positive");
    require(given.rows >= given.columns,
            with_number("m", given.rows) + " is less than " + with_number("n", given.columns));
    run_where(true, context.stream, [&](Where where) {
      const Pattern pattern = read_pattern(where, given);
      const auto part = [&](const void* array, int number, int size) {
        return static_cast<const std::byte*>(array) + static_cast<std::size_t>(number) *
                                                          static_cast<std::size_t>(size) *
                                                          number_bytes(letter);
      };
      with_numbers(letter, [&](auto zero) {
        using T = decltype(zero);
        for (int i = 0; i < count; ++i) {
          SparseArguments one = given;
          one.values = part(given.values, i, given.count);
          const sparse::Qr<T> factors(read_rows<T>(where, letter, one, pattern));
          where->compute(sparse_computation(letter, factors.multiply_adds()));
          const auto right = read_vector<T>(where, letter, part(b, i, given.rows), given.rows, "b");
          write_vector(where, letter, const_cast<std::byte*>(part(x, i, given.columns)),
                       factors.solve(right), "x");
        }
      });
    });
  });
}

template <typename T>
int elements_in(const sparse::Rows<T>& rows) {
  std::size_t count = 0;
  for (const auto& row : rows.of) count += row.size();
  return static_cast<int>(count);
}

template <typename T>
void give_rows(Letter letter, const void* descriptor, const sparse::Rows<T>& rows, void* values,
               int* offsets, int* columns, const char* name) {
  require(values != nullptr && offsets != nullptr && columns != nullptr,
          std::string("an array of ") + name + " is null");
  const int base = index_base_of(descriptor);
  int at = 0;
  for (std::size_t i = 0; i < rows.of.size(); ++i) {
    offsets[i] = at + base;
    for (const auto& [column, value] : rows.of[i]) {
      columns[at] = column + base;
      store_number(letter, static_cast<std::byte*>(values), at++, value);
    }
  }
  offsets[rows.of.size()] = at + base;
}

}  // namespace

CUSOLVER_EXPORT Status cusolverSpCreateCsrluInfoHost(LuInfo** info) {
  return create_info(__func__, info);
}
CUSOLVER_EXPORT Status cusolverSpDestroyCsrluInfoHost(LuInfo* info) {
  return destroy_info(__func__, info);
}
CUSOLVER_EXPORT Status cusolverSpXcsrluAnalysisHost(SparseContext* handle, int n, int nnz,
                                                    const void* descriptor, const int* offsets,
                                                    const int* columns, LuInfo* info) {
  return analyse(__func__, handle, false, {n, n, nnz, descriptor, nullptr, offsets, columns}, info);
}
CUSOLVER_EXPORT Status cusolverSpXcsrluNnzHost(SparseContext* handle, int* of_l, int* of_u,
                                               LuInfo* info) {
  return call(__func__, handle, [&](SparseContext&) {
    const LuInfo& found = described(info, "info");
    require(found.factored.letter != '\0', "info has no factors");
    with_numbers(found.factored.letter, [&](auto zero) {
      using T = decltype(zero);
      const auto& factors = found.factored.get<T>(found.factored.letter);
      give(of_l, elements_in(factors.lower()), "nnzLRef");
      give(of_u, elements_in(factors.upper()), "nnzURef");
    });
  });
}

#define LU(T, Real, letter)                                                                       \
  CUSOLVER_EXPORT Status cusolverSp##T##csrluBufferInfoHost(                                      \
      SparseContext* handle, int n, int nnz, const void* descriptor, const void* values,          \
      const int* offsets, const int* columns, LuInfo* info, std::size_t* internal,                \
      std::size_t* work) {                                                                        \
    return give_sizes(__func__, handle, {n, n, nnz, descriptor, values, offsets, columns}, info,  \
                      internal, work);                                                            \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrluFactorHost(                                          \
      SparseContext* handle, int n, int nnz, const void* descriptor, const void* values,          \
      const int* offsets, const int* columns, LuInfo* info, Real threshold, void*) {              \
    return factor_lu(__func__, handle, letter, {n, n, nnz, descriptor, values, offsets, columns}, \
                     info, static_cast<double>(threshold));                                       \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrluZeroPivotHost(SparseContext* handle, LuInfo* info,   \
                                                           Real tolerance, int* position) {       \
    return give_zero_pivot(__func__, handle, letter, info, static_cast<double>(tolerance),        \
                           position);                                                             \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrluSolveHost(                                           \
      SparseContext* handle, int n, const void* b, void* x, LuInfo* info, void*) {                \
    return solve_with_info(__func__, handle, false, letter, info, n, b, x);                       \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrluExtractHost(                                         \
      SparseContext* handle, int* p, int* q, const void* of_l, void* l, int* l_offsets,           \
      int* l_columns, const void* of_u, void* u, int* u_offsets, int* u_columns, LuInfo* info,    \
      void*) {                                                                                    \
    return call(__func__, handle, [&](SparseContext&) {                                           \
      with_numbers(letter, [&](auto zero) {                                                       \
        using Number = decltype(zero);                                                            \
        const auto& factors = described(info, "info").factored.get<Number>(letter);               \
        give_rows(letter, of_l, factors.lower(), l, l_offsets, l_columns, "L");                   \
        give_rows(letter, of_u, factors.upper(), u, u_offsets, u_columns, "U");                   \
        require(p != nullptr && q != nullptr, "P or Q is null");                                  \
        const std::vector<int>& order = factors.order();                                          \
        for (std::size_t i = 0; i < order.size(); ++i) {                                          \
          p[i] = static_cast<int>(i);                                                             \
          q[i] = order[i];                                                                        \
        }                                                                                         \
      });                                                                                         \
    });                                                                                           \
  }
LU(S, float, 's')
LU(D, double, 'd')
LU(C, float, 'c')
LU(Z, double, 'z')
#undef LU

// Of the host (`Host`) and of the device (nothing).
#define CHOLESKY(T, Real, letter, Where, on_device)                                              \
  CUSOLVER_EXPORT Status cusolverSp##T##csrcholBufferInfo##Where(                                \
      SparseContext* handle, int n, int nnz, const void* descriptor, const void* values,         \
      const int* offsets, const int* columns, CholeskyInfo<on_device>* info,                     \
      std::size_t* internal, std::size_t* work) {                                                \
    return give_sizes(__func__, handle, {n, n, nnz, descriptor, values, offsets, columns}, info, \
                      internal, work);                                                           \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverSp##T##csrcholFactor##Where(                                    \
      SparseContext* handle, int n, int nnz, const void* descriptor, const void* values,         \
      const int* offsets, const int* columns, CholeskyInfo<on_device>* info, void*) {            \
    return factor_cholesky(__func__, handle, on_device, letter,                                  \
                           {n, n, nnz, descriptor, values, offsets, columns}, info);             \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverSp##T##csrcholZeroPivot##Where(                                 \
      SparseContext* handle, CholeskyInfo<on_device>* info, Real tolerance, int* position) {     \
    return give_zero_pivot(__func__, handle, letter, info, static_cast<double>(tolerance),       \
                           position);                                                            \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverSp##T##csrcholSolve##Where(                                     \
      SparseContext* handle, int n, const void* b, void* x, CholeskyInfo<on_device>* info,       \
      void*) {                                                                                   \
    return solve_with_info(__func__, handle, on_device, letter, info, n, b, x);                  \
  }
#define QR(T, Real, Number, letter, Where, on_device)                                             \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrBufferInfo##Where(                                   \
      SparseContext* handle, int m, int n, int nnz, const void* descriptor, const void* values,   \
      const int* offsets, const int* columns, QrInfo<on_device>* info, std::size_t* internal,     \
      std::size_t* work) {                                                                        \
    return give_sizes(__func__, handle, {m, n, nnz, descriptor, values, offsets, columns}, info,  \
                      internal, work);                                                            \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrSetup##Where(                                        \
      SparseContext* handle, int m, int n, int nnz, const void* descriptor, const void* values,   \
      const int* offsets, const int* columns, Number shift, QrInfo<on_device>* info) {            \
    return set_up_qr(__func__, handle, on_device, letter,                                         \
                     {m, n, nnz, descriptor, values, offsets, columns}, number_of(shift), info);  \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrFactor##Where(                                       \
      SparseContext* handle, int m, int, int, void* b, void* x, QrInfo<on_device>* info, void*) { \
    return factor_qr(__func__, handle, on_device, letter, m, b, x, info);                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrZeroPivot##Where(                                    \
      SparseContext* handle, QrInfo<on_device>* info, Real tolerance, int* position) {            \
    return give_zero_pivot(__func__, handle, letter, info, static_cast<double>(tolerance),        \
                           position);                                                             \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrSolve##Where(                                        \
      SparseContext* handle, int m, int, void* b, void* x, QrInfo<on_device>* info, void*) {      \
    return solve_with_info(__func__, handle, on_device, letter, info, m, b, x);                   \
  }
#define FACTORS(Where, on_device)                                                               \
  CUSOLVER_EXPORT Status cusolverSpCreateCsrqrInfo##Where(QrInfo<on_device>** info) {           \
    return create_info(__func__, info);                                                         \
  }                                                                                             \
  CUSOLVER_EXPORT Status cusolverSpDestroyCsrqrInfo##Where(QrInfo<on_device>* info) {           \
    return destroy_info(__func__, info);                                                        \
  }                                                                                             \
  CUSOLVER_EXPORT Status cusolverSpXcsrqrAnalysis##Where(                                       \
      SparseContext* handle, int m, int n, int nnz, const void* descriptor, const int* offsets, \
      const int* columns, QrInfo<on_device>* info) {                                            \
    return analyse(__func__, handle, on_device,                                                 \
                   {m, n, nnz, descriptor, nullptr, offsets, columns}, info);                   \
  }                                                                                             \
  CUSOLVER_EXPORT Status cusolverSpCreateCsrcholInfo##Where(CholeskyInfo<on_device>** info) {   \
    return create_info(__func__, info);                                                         \
  }                                                                                             \
  CUSOLVER_EXPORT Status cusolverSpDestroyCsrcholInfo##Where(CholeskyInfo<on_device>* info) {   \
    return destroy_info(__func__, info);                                                        \
  }                                                                                             \
  CUSOLVER_EXPORT Status cusolverSpXcsrcholAnalysis##Where(                                     \
      SparseContext* handle, int n, int nnz, const void* descriptor, const int* offsets,        \
      const int* columns, CholeskyInfo<on_device>* info) {                                      \
    return analyse(__func__, handle, on_device,                                                 \
                   {n, n, nnz, descriptor, nullptr, offsets, columns}, info);                   \
  }                                                                                             \
  CHOLESKY(S, float, 's', Where, on_device)                                                     \
  CHOLESKY(D, double, 'd', Where, on_device)                                                    \
  CHOLESKY(C, float, 'c', Where, on_device)                                                     \
  CHOLESKY(Z, double, 'z', Where, on_device)                                                    \
  QR(S, float, float, 's', Where, on_device)                                                    \
  QR(D, double, double, 'd', Where, on_device)                                                  \
  QR(C, float, Complex32, 'c', Where, on_device)                                                \
  QR(Z, double, Complex64, 'z', Where, on_device)
FACTORS(Host, false)
FACTORS(, true)
#undef FACTORS

CUSOLVER_EXPORT Status cusolverSpXcsrqrAnalysisBatched(SparseContext* handle, int m, int n, int nnz,
                                                       const void* descriptor, const int* offsets,
                                                       const int* columns, QrInfo<true>* info) {
  return analyse(__func__, handle, true, {m, n, nnz, descriptor, nullptr, offsets, columns}, info);
}
#define BATCHES(T, letter)                                                                       \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrBufferInfoBatched(                                  \
      SparseContext* handle, int m, int n, int nnz, const void* descriptor, const void* values,  \
      const int* offsets, const int* columns, int, QrInfo<true>* info, std::size_t* internal,    \
      std::size_t* work) {                                                                       \
    return give_sizes(__func__, handle, {m, n, nnz, descriptor, values, offsets, columns}, info, \
                      internal, work);                                                           \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverSp##T##csrqrsvBatched(                                          \
      SparseContext* handle, int m, int n, int nnz, const void* descriptor, const void* values,  \
      const int* offsets, const int* columns, const void* b, void* x, int count,                 \
      QrInfo<true>* info, void*) {                                                               \
    return solve_batch(__func__, handle, letter,                                                 \
                       {m, n, nnz, descriptor, values, offsets, columns}, b, x, count, info);    \
  }
BATCHES(S, 's')
BATCHES(D, 'd')
BATCHES(C, 'c')
BATCHES(Z, 'z')
#undef BATCHES
#undef QR
#undef CHOLESKY
