#pragma once

#include <algorithm>

#include "stand_ins/cusolver/lapack.h"

/// Operations of the algorithms, leading terms: LAPACK Working Note 41 (installation guide),
/// Appendix C. Those of eigenvalues and singular values depend on the matrix: Golub and Van Loan,
/// Matrix Computations, 8.3 and 5.4.5.
namespace warpstack::cusolver {

/// Operations on numbers of a type, of which so many are needed on real ones: a multiplication and
/// an addition of complex numbers are eight, of real ones two. Products of f64 go to tensor cores
/// that have them.
inline cudart::Computation computation(Letter letter, double operations) {
  const bool is_wide = real_bytes(letter) == 8;
  return {(is_complex(letter) ? 4 : 1) * operations,
          is_wide ? cudart::Arithmetic::fp64 : cudart::Arithmetic::fp32, is_wide};
}

inline double flops_of_lu(double m, double n) {
  const double k = std::min(m, n);
  return 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3;
}

inline double flops_of_cholesky(double n) { return n * n * n / 3; }
inline double flops_of_inverse(double n) { return 2 * n * n * n / 3; }
/// Two triangular solves.
inline double flops_of_solution(double n, double sides) { return 2 * n * n * sides; }

inline double flops_of_qr(double m, double n) {
  const double k = std::min(m, n);
  return 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3;
}
/// The first n columns of Q, of k reflectors.
inline double flops_of_q(double m, double n, double k) {
  return 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3;
}
/// Q times a matrix of `order` rows and `others` columns, or the same transposed.
inline double flops_of_product_with_q(double order, double others, double k) {
  return 4 * order * others * k - 2 * others * k * k;
}

inline double flops_of_eigenvalues(double n, bool vectors) {
  return (vectors ? 9.0 : 4.0 / 3) * n * n * n;
}
/// A pair becomes a matrix (a factor and n^3), and the vectors are solved for.
inline double flops_of_pair(double n, bool vectors) {
  return flops_of_cholesky(n) + n * n * n + flops_of_eigenvalues(n, vectors) +
         (vectors ? n * n * n : 0);
}

/// The cheaper of the two ways, with a factorisation QR before or without. `u`: 0 columns of U, as
/// many as columns of the matrix, or all.
enum class LeftVectors { none, some, all };
inline double flops_of_singular(double rows, double columns, LeftVectors u, bool v) {
  const double m = std::max(rows, columns), n = std::min(rows, columns);
  const double mmn = m * m * n, mnn = m * n * n, nnn = n * n * n;
  switch (u) {
    case LeftVectors::none:
      return v ? std::min(4 * mnn + 8 * nnn, 2 * mnn + 11 * nnn)
               : std::min(4 * mnn - 4 * nnn / 3, 2 * mnn + 2 * nnn);
    case LeftVectors::some:
      return v ? std::min(14 * mnn + 8 * nnn, 6 * mnn + 20 * nnn)
               : std::min(14 * mnn - 2 * nnn, 6 * mnn + 11 * nnn);
    default:
      return v ? std::min(4 * mmn + 8 * mnn + 9 * nnn, 4 * mmn + 22 * nnn)
               : std::min(4 * mmn + 8 * mnn, 4 * mmn + 13 * nnn);
  }
}

}  // namespace warpstack::cusolver
