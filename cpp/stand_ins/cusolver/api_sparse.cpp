// Solutions with sparse matrices in one call, eigenvalues, and orders of rows.

#include <cmath>

#include "stand_ins/cusolver/sparse_memory.h"

using namespace warpstack::cusolver;
using warpstack::library::Complex;
using warpstack::library::Handles;

namespace {

enum class Method { lu, qr, cholesky };

template <typename T>
struct Solution {
  std::vector<T> x;
  int zero_pivot = -1;  ///< of the matrix in its new order
  double multiply_adds = 0;
};

/// The Hermitian matrix of a lower triangle: in another order its elements lie on both sides.
template <typename T>
sparse::Rows<T> whole(const sparse::Rows<T>& a) {
  sparse::Rows<T> found{a.columns, std::vector<std::vector<sparse::Element<T>>>(a.of.size())};
  for (std::size_t row = 0; row < a.of.size(); ++row) {
    const int i = static_cast<int>(row);
    for (const auto& [column, value] : a.of[row]) {
      if (column > i) continue;
      found.of[row].push_back({column, value});
      if (column < i) found.of[sparse::place(column)].push_back({i, sparse::conjugate(value)});
    }
  }
  return found;
}

template <typename T>
Solution<T> solve(Method method, const sparse::Rows<T>& a, const std::vector<T>& b,
                  double tolerance, const std::vector<int>& order) {
  const sparse::Rows<T> turned = sparse::permuted(method == Method::cholesky ? whole(a) : a, order);
  std::vector<T> right;
  for (const int row : order) right.push_back(b[sparse::place(row)]);
  Solution<T> found;
  const auto finish = [&](const auto& factors, auto run) {
    found.zero_pivot = factors.zero_pivot(tolerance);
    found.multiply_adds = factors.multiply_adds();
    if (found.zero_pivot < 0) run();
  };
  if (method == Method::cholesky) {
    const sparse::Cholesky<T> factors(turned);
    finish(factors, [&] { factors.solve(right); });
  } else if (method == Method::lu) {
    const sparse::Lu<T> factors(turned, 1.0);
    finish(factors, [&] { factors.solve(right); });
  } else {
    const sparse::Qr<T> factors(turned);
    finish(factors, [&] { right = factors.solve(right); });
  }
  found.x.resize(right.size());
  for (std::size_t i = 0; i < right.size(); ++i) found.x[sparse::place(order[i])] = right[i];
  return found;
}

/// On the host without `on_device`.
Status solve_system(const char* function, SparseContext* handle, bool on_device, Method method,
                    Letter letter, const SparseArguments& given, const void* b, double tolerance,
                    int reorder, void* x, int* singularity) {
  return call(function, handle, [&](SparseContext& context) {
    require(singularity != nullptr, "singularity is null");
    require(tolerance >= 0, "tol is negative or no number");
    run_where(on_device, context.stream, [&](Where where) {
      const Pattern pattern = read_pattern(where, given);
      const std::vector<int> order = order_of(reorder, neighbours_of(pattern));
      with_numbers(letter, [&](auto zero) {
        using T = decltype(zero);
        const auto found =
            solve<T>(method, read_rows<T>(where, letter, given, pattern),
                     read_vector<T>(where, letter, b, given.rows, "b"), tolerance, order);
        *singularity = found.zero_pivot;
        if (on_device) where->compute(sparse_computation(letter, found.multiply_adds));
        if (found.zero_pivot < 0) write_vector(where, letter, x, found.x, "x");
      });
    });
  });
}

/// The eigenvalue nearest to a number, and its vector, by inverse iteration.
template <typename T>
struct EigenPair {
  T value;
  std::vector<T> vector;
  double multiply_adds = 0;
};

template <typename T>
double norm_of(const std::vector<T>& x) {
  double sum = 0;
  for (const T& value : x) sum += std::norm(value);
  return std::sqrt(sum);
}

template <typename T>
EigenPair<T> iterate(sparse::Rows<T> a, T shift, std::vector<T> x, int most, double tolerance) {
  for (std::size_t i = 0; i < a.of.size(); ++i) a.of[i].push_back({static_cast<int>(i), -shift});
  const sparse::Lu<T> factors(a, 1.0);
  require(factors.zero_pivot(0) < 0, Status::execution_failed,
          "mu0 is an eigenvalue to the last digit: the matrix less mu0 is singular");
  const double first = norm_of(x);
  require(first > 0 && std::isfinite(first), "x0 is zero or not finite");
  for (T& value : x) value /= first;
  T found = shift;
  for (int i = 0; i < most; ++i) {
    std::vector<T> next = x;
    factors.solve(next);
    T growth{};
    for (std::size_t k = 0; k < x.size(); ++k) growth += sparse::conjugate(x[k]) * next[k];
    double difference = 0;
    for (std::size_t k = 0; k < x.size(); ++k) difference += std::norm(next[k] - growth * x[k]);
    const double size = norm_of(next);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = next[k] / size;
    found = shift + T(1) / growth;
    if (std::sqrt(difference) <= tolerance * std::abs(growth)) break;
  }
  return {found, x, (most + 1) * factors.multiply_adds()};
}

/// Whether kernels can use the memory of a pointer.
bool is_of_device(const void* pointer) {
  struct Attributes {
    warpstack::cudart::PointerAttributes read;
    std::byte rest[64];  // what cudaPointerGetAttributes of CUDA 13 also writes
  } attributes{};
  const auto error = cudaPointerGetAttributes(&attributes.read, pointer);
  return error == warpstack::cudart::Error::success &&
         attributes.read.kind != warpstack::cudart::PointerAttributes::Kind::unregistered;
}

Status find_eigenvalue(const char* function, SparseContext* handle, bool on_device, Letter letter,
                       const SparseArguments& given, Complex shift, const void* x0, int most,
                       double tolerance, void* value, void* x) {
  return call(function, handle, [&](SparseContext& context) {
    require(most > 0, with_number("maxite", most) + " is not positive");
    require(tolerance >= 0, "tol is negative or no number");
    require(value != nullptr, "mu is null");
    run_where(on_device, context.stream, [&](Where where) {
      const Pattern pattern = read_pattern(where, given);
      with_numbers(letter, [&](auto zero) {
        using T = decltype(zero);
        T from{};
        if constexpr (std::is_same_v<T, double>) {
          from = shift.real();
        } else {
          from = shift;
        }
        const auto found =
            iterate<T>(read_rows<T>(where, letter, given, pattern), from,
                       read_vector<T>(where, letter, x0, given.rows, "x0"), most, tolerance);
        if (on_device) where->compute(sparse_computation(letter, found.multiply_adds));
        write_vector<T>(is_of_device(value) ? where : nullptr, letter, value, {found.value}, "mu");
        write_vector(where, letter, x, found.vector, "x");
      });
    });
  });
}

template <typename Find>
Status find_order(const char* function, SparseContext* handle, const SparseArguments& given,
                  int* order, Find find) {
  return call(function, handle, [&](SparseContext&) {
    require(order != nullptr || given.rows == 0, "p is null");
    const std::vector<int> found = find(neighbours_of(read_pattern(nullptr, given)));
    std::copy(found.begin(), found.end(), order);
  });
}

/// Throws Failure unless an array has each of the numbers from 0 once.
std::vector<int> inverse_of(const int* order, int count, const char* name) {
  std::vector<int> found(sparse::place(count), -1);
  require(order != nullptr || count == 0, std::string(name) + " is null");
  for (int i = 0; i < count; ++i) {
    require(order[i] >= 0 && order[i] < count && found[sparse::place(order[i])] < 0,
            std::string(name) + ": element " + std::to_string(i) + " = " +
                std::to_string(order[i]) + " is no row, or comes twice");
    found[sparse::place(order[i])] = i;
  }
  return found;
}

}  // namespace

CUSOLVER_EXPORT Status cusolverSpCreate(SparseContext** handle) {
  return call(__func__, [&] { create(handle, "handle"); });
}
CUSOLVER_EXPORT Status cusolverSpDestroy(SparseContext* handle) {
  return call(__func__, handle,
              [&](SparseContext& context) { Handles<SparseContext>::remove(&context); });
}
CUSOLVER_EXPORT Status cusolverSpSetStream(SparseContext* handle,
                                           warpstack::cudart::StreamHandle stream) {
  return call(__func__, handle, [&](SparseContext& context) { context.stream = stream; });
}
CUSOLVER_EXPORT Status cusolverSpGetStream(SparseContext* handle,
                                           warpstack::cudart::StreamHandle* stream) {
  return call(__func__, handle,
              [&](SparseContext& context) { give(stream, context.stream, "streamId"); });
}

/// Whether the matrix has an element (j, i) wherever it has (i, j).
CUSOLVER_EXPORT Status cusolverSpXcsrissymHost(SparseContext* handle, int m, int nnz,
                                               const void* descriptor, const int* begins,
                                               const int* ends, const int* columns,
                                               int* is_symmetric) {
  return call(__func__, handle, [&](SparseContext&) {
    require(m >= 0 && begins != nullptr && (ends != nullptr || m == 0),
            "m is negative, or csrRowPtr or csrEndPtr is null");
    // Rows may end before the next one begins.
    std::vector<int> offsets(begins, begins + m);
    offsets.push_back(m == 0 ? begins[0] : ends[m - 1]);
    const Pattern pattern =
        read_pattern(nullptr, {m, m, nnz, descriptor, nullptr, offsets.data(), columns});
    std::vector<std::pair<int, int>> places;
    for (int row = 0; row < m; ++row) {
      for (int i = begins[row] - pattern.base; i < ends[row] - pattern.base; ++i) {
        require(i >= 0 && i < nnz,
                "csrEndPtr: row " + std::to_string(row) + " ends beyond the elements");
        places.emplace_back(row, pattern.indices[sparse::place(i)]);
      }
    }
    std::ranges::sort(places);
    const bool found = std::ranges::all_of(places, [&](const auto& at) {
      return std::ranges::binary_search(places, std::pair(at.second, at.first));
    });
    give(is_symmetric, found ? 1 : 0, "issym");
  });
}

CUSOLVER_EXPORT Status cusolverSpXcsrsymrcmHost(SparseContext* handle, int n, int nnz,
                                                const void* descriptor, const int* offsets,
                                                const int* columns, int* p) {
  return find_order(__func__, handle, {n, n, nnz, descriptor, nullptr, offsets, columns}, p,
                    sparse::reverse_cuthill_mckee);
}
CUSOLVER_EXPORT Status cusolverSpXcsrsymmdqHost(SparseContext* handle, int n, int nnz,
                                                const void* descriptor, const int* offsets,
                                                const int* columns, int* p) {
  return find_order(__func__, handle, {n, n, nnz, descriptor, nullptr, offsets, columns}, p,
                    sparse::minimum_degree);
}
CUSOLVER_EXPORT Status cusolverSpXcsrsymamdHost(SparseContext* handle, int n, int nnz,
                                                const void* descriptor, const int* offsets,
                                                const int* columns, int* p) {
  return find_order(__func__, handle, {n, n, nnz, descriptor, nullptr, offsets, columns}, p,
                    sparse::minimum_degree);
}
/// NVIDIA's dissects the graph; any order of few new elements serves.
CUSOLVER_EXPORT Status cusolverSpXcsrmetisndHost(SparseContext* handle, int n, int nnz,
                                                 const void* descriptor, const int* offsets,
                                                 const int* columns, const std::int64_t*, int* p) {
  return find_order(__func__, handle, {n, n, nnz, descriptor, nullptr, offsets, columns}, p,
                    sparse::minimum_degree);
}

CUSOLVER_EXPORT Status cusolverSpXcsrperm_bufferSizeHost(SparseContext* handle, int m, int n,
                                                         int nnz, const void* descriptor,
                                                         const int* offsets, const int* columns,
                                                         const int* p, const int* q,
                                                         std::size_t* size) {
  return call(__func__, handle, [&](SparseContext&) {
    read_pattern(nullptr, {m, n, nnz, descriptor, nullptr, offsets, columns});
    inverse_of(p, m, "p");
    inverse_of(q, n, "q");
    give(size, sparse_work_bytes, "bufferSizeInBytes");
  });
}
/// B(i, j) = A(p[i], q[j]); the columns of a row ascend, and `map` goes with them.
CUSOLVER_EXPORT Status cusolverSpXcsrpermHost(SparseContext* handle, int m, int n, int nnz,
                                              const void* descriptor, int* offsets, int* columns,
                                              const int* p, const int* q, int* map, void*) {
  return call(__func__, handle, [&](SparseContext&) {
    const Pattern pattern =
        read_pattern(nullptr, {m, n, nnz, descriptor, nullptr, offsets, columns});
    inverse_of(p, m, "p");
    const std::vector<int> new_column = inverse_of(q, n, "q");
    require(map != nullptr || nnz == 0, "map is null");
    const std::vector<int> old_map(map, map + nnz);
    int at = 0;
    for (int row = 0; row < m; ++row) {
      offsets[row] = at + pattern.base;
      std::vector<std::pair<int, int>> elements;
      const auto from = sparse::place(p[row]);
      for (int i = pattern.offsets[from]; i < pattern.offsets[from + 1]; ++i) {
        elements.emplace_back(new_column[sparse::place(pattern.indices[sparse::place(i)])], i);
      }
      std::ranges::sort(elements);
      for (const auto& [column, i] : elements) {
        columns[at] = column + pattern.base;
        map[at++] = old_map[sparse::place(i)];
      }
    }
    offsets[m] = at + pattern.base;
  });
}

#define SOLVE(name, Real, letter, method, on_device)                                         \
  CUSOLVER_EXPORT Status name(SparseContext* handle, int n, int nnz, const void* descriptor, \
                              const void* values, const int* offsets, const int* columns,    \
                              const void* b, Real tolerance, int reorder, void* x,           \
                              int* singularity) {                                            \
    return solve_system(__func__, handle, on_device, Method::method, letter,                 \
                        {n, n, nnz, descriptor, values, offsets, columns}, b,                \
                        static_cast<double>(tolerance), reorder, x, singularity);            \
  }
#define SOLVES(T, Real, letter)                                       \
  SOLVE(cusolverSp##T##csrlsvluHost, Real, letter, lu, false)         \
  SOLVE(cusolverSp##T##csrlsvqrHost, Real, letter, qr, false)         \
  SOLVE(cusolverSp##T##csrlsvcholHost, Real, letter, cholesky, false) \
  SOLVE(cusolverSp##T##csrlsvqr, Real, letter, qr, true)              \
  SOLVE(cusolverSp##T##csrlsvchol, Real, letter, cholesky, true)
SOLVES(S, float, 's')
SOLVES(D, double, 'd')
SOLVES(C, float, 'c')
SOLVES(Z, double, 'z')
#undef SOLVES
#undef SOLVE

#define EIGENVALUE(name, Real, Number, letter, on_device)                                       \
  CUSOLVER_EXPORT Status name(SparseContext* handle, int m, int nnz, const void* descriptor,    \
                              const void* values, const int* offsets, const int* columns,       \
                              Number shift, const void* x0, int most, Real tolerance, void* mu, \
                              void* x) {                                                        \
    return find_eigenvalue(__func__, handle, on_device, letter,                                 \
                           {m, m, nnz, descriptor, values, offsets, columns}, number_of(shift), \
                           x0, most, static_cast<double>(tolerance), mu, x);                    \
  }
#define EIGENVALUES(T, Real, Number, letter)                            \
  EIGENVALUE(cusolverSp##T##csreigvsiHost, Real, Number, letter, false) \
  EIGENVALUE(cusolverSp##T##csreigvsi, Real, Number, letter, true)
EIGENVALUES(S, float, float, 's')
EIGENVALUES(D, double, double, 'd')
EIGENVALUES(C, float, Complex32, 'c')
EIGENVALUES(Z, double, Complex64, 'z')
#undef EIGENVALUES
#undef EIGENVALUE
