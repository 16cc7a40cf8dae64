// Eigenvalues of symmetric matrices, and singular values.

#include <algorithm>
#include <cstring>
#include <utility>

#include "stand_ins/cusolver/dense.h"
#include "stand_ins/cusolver/flops.h"

namespace warpstack::cusolver {
namespace {

char job_letter(int mode) {
  check_choice("jobz", mode, without_vectors, with_vectors);
  return mode == with_vectors ? 'V' : 'N';
}

char part_letter(int fill) {
  check_choice("uplo", fill, fill_lower, fill_upper);
  return fill == fill_lower ? 'L' : 'U';
}

/// Work arrays of divide and conquer: of numbers, of real ones (if numbers are complex), and of
/// integers.
struct EigenWork {
  Bytes numbers = Bytes(16), reals = Bytes(16);
  std::vector<int> integers = std::vector<int>(1);
  int num_numbers = -1, num_reals = -1, num_integers = -1;

  /// After a call that has asked: the sizes lie at the start of each.
  void allocate(Letter letter) {
    num_numbers = work_size(letter, numbers.data());
    num_integers = std::max(1, integers[0]);
    integers.resize(static_cast<std::size_t>(num_integers));
    numbers.resize(static_cast<std::size_t>(num_numbers) * number_bytes(letter));
    if (!is_complex(letter)) return;
    num_reals = work_size(letter, reals.data());
    reals.resize(static_cast<std::size_t>(num_reals) * real_bytes(letter));
  }
};

/// Calls syevd or sygvd with the arguments before the work arrays.
template <typename... T>
void run_eigen(Letter letter, const char* real, const char* complex, int* info, T*... first) {
  EigenWork work;
  for (int i = 0; i < 2; ++i) {
    if (is_complex(letter)) {
      lapack(letter, complex, first..., work.numbers.data(), &work.num_numbers, work.reals.data(),
             &work.num_reals, work.integers.data(), &work.num_integers, info);
    } else {
      lapack(letter, real, first..., work.numbers.data(), &work.num_numbers, work.integers.data(),
             &work.num_integers, info);
    }
    if (i == 0) work.allocate(letter);
  }
}

/// Calls gesvd.
int run_singular(Letter letter, char job_u, char job_v, Matrix& a, Bytes& s, Matrix& u, Matrix& v) {
  int info = 0;
  Bytes reals(5 * static_cast<std::size_t>(std::max(1, std::min(a.rows, a.columns))) *
              real_bytes(letter));
  with_work(letter, [&](void* work, int* size) {
    if (is_complex(letter)) {
      lapack(letter, "gesvd", &job_u, &job_v, &a.rows, &a.columns, a.data(), &a.ld, s.data(),
             u.data(), &u.ld, v.data(), &v.ld, work, size, reals.data(), &info);
    } else {
      lapack(letter, "gesvd", &job_u, &job_v, &a.rows, &a.columns, a.data(), &a.ld, s.data(),
             u.data(), &u.ld, v.data(), &v.ld, work, size, &info);
    }
  });
  return info;
}

/// A matrix of singular vectors that is not wanted, for LAPACK's sake.
Matrix no_matrix(Letter letter) { return {{}, nullptr, 0, 0, 1, number_bytes(letter)}; }

Matrix new_matrix(Letter letter, int rows, int columns) {
  Matrix matrix{{}, nullptr, rows, columns, std::max(1, rows), number_bytes(letter)};
  matrix.bytes.resize(matrix.counted());
  return matrix;
}

void check_job(const char* name, signed char job) {
  require(job == 'A' || job == 'S' || job == 'O' || job == 'N',
          with_number(name, job) + " is not the character A, S, O or N");
}

}  // namespace

void decompose_symmetric(Context& context, Letter letter, int mode, int fill, std::int64_t size,
                         void* a, std::int64_t lda, void* w, int* info) {
  const char job = job_letter(mode), part = part_letter(fill);
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, size, size, lda, "A");
  operation.compute(computation(letter, flops_of_eigenvalues(matrix.rows, job == 'V')));
  Bytes values(static_cast<std::size_t>(size) * real_bytes(letter));
  int found = 0;
  run_eigen(letter, "syevd", "heevd", &found, &job, &part, &matrix.rows,
            static_cast<void*>(matrix.data()), &matrix.ld, values.data());
  write_matrix(operation, std::move(matrix), "A");
  operation.write(w, std::move(values), "W");
  write_info(operation, info, found);
  operation.finish();
}

void decompose_pair(Context& context, Letter letter, int type, int mode, int fill, int size,
                    void* a, int lda, void* b, int ldb, void* w, int* info) {
  check_choice("itype", type, first_eigen_type, last_eigen_type);
  const char job = job_letter(mode), part = part_letter(fill);
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, size, size, lda, "A");
  Matrix other = read_matrix(operation, letter, b, size, size, ldb, "B");
  operation.compute(computation(letter, flops_of_pair(matrix.rows, job == 'V')));
  Bytes values(static_cast<std::size_t>(size) * real_bytes(letter));
  int found = 0;
  run_eigen(letter, "sygvd", "hegvd", &found, &type, &job, &part, &matrix.rows,
            static_cast<void*>(matrix.data()), &matrix.ld, static_cast<void*>(other.data()),
            &other.ld, values.data());
  write_matrix(operation, std::move(matrix), "A");
  write_matrix(operation, std::move(other), "B");
  operation.write(w, std::move(values), "W");
  write_info(operation, info, found);
  operation.finish();
}

void decompose_singular(Context& context, Letter letter, const SingularVectors& wanted,
                        std::int64_t rows, std::int64_t columns, void* a, std::int64_t lda, void* s,
                        int* info) {
  check_job("jobu", wanted.job_u);
  check_job("jobvt", wanted.job_v);
  require(wanted.job_u != 'O' || wanted.job_v != 'O', "jobu and jobvt are both O");
  require(rows >= columns, Status::invalid_value,
          with_number("m", rows) + " is less than " + with_number("n", columns) +
              ", which cuSOLVER does not have (decompose the transposed matrix)");
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, rows, columns, lda, "A");
  const std::int64_t least = std::min(rows, columns);
  Bytes values(static_cast<std::size_t>(least) * real_bytes(letter));
  Matrix u = no_matrix(letter), v = no_matrix(letter);
  const bool has_u = wanted.job_u == 'A' || wanted.job_u == 'S';
  const bool has_v = wanted.job_v == 'A' || wanted.job_v == 'S';
  const LeftVectors left = wanted.job_u == 'A'   ? LeftVectors::all
                           : wanted.job_u == 'N' ? LeftVectors::none
                                                 : LeftVectors::some;
  operation.compute(computation(
      letter, flops_of_singular(matrix.rows, matrix.columns, left, wanted.job_v != 'N')));
  if (has_u) {
    u = read_matrix(operation, letter, wanted.u, rows, wanted.job_u == 'A' ? rows : least,
                    wanted.ldu, "U", false);
  }
  if (has_v) {
    v = read_matrix(operation, letter, wanted.v, wanted.job_v == 'A' ? columns : least, columns,
                    wanted.ldv, "VT", false);
  }
  const int found = run_singular(letter, static_cast<char>(wanted.job_u),
                                 static_cast<char>(wanted.job_v), matrix, values, u, v);
  write_matrix(operation, std::move(matrix), "A");
  operation.write(s, std::move(values), "S");
  if (has_u) write_matrix(operation, std::move(u), "U");
  if (has_v) write_matrix(operation, std::move(v), "VT");
  write_info(operation, info, found);
  operation.finish();
}

void decompose_singular_v(Context& context, Letter letter, int mode, int econ, int rows,
                          int columns, void* a, int lda, void* s, void* u, int ldu, void* v,
                          int ldv, int* info) {
  const bool vectors = job_letter(mode) == 'V';
  check_choice("econ", econ, 0, 1);
  const char job = !vectors ? 'N' : econ == 1 ? 'S' : 'A';
  Operation operation(context.stream);
  Matrix matrix = read_matrix(operation, letter, a, rows, columns, lda, "A");
  const int least = std::min(rows, columns);
  Bytes values(static_cast<std::size_t>(least) * real_bytes(letter));
  const LeftVectors wanted = job == 'N'   ? LeftVectors::none
                             : job == 'S' ? LeftVectors::some
                                          : LeftVectors::all;
  operation.compute(
      computation(letter, flops_of_singular(matrix.rows, matrix.columns, wanted, vectors)));
  Matrix left = no_matrix(letter), right = no_matrix(letter), turned = no_matrix(letter);
  if (vectors) {
    left = read_matrix(operation, letter, u, rows, econ == 1 ? least : rows, ldu, "U", false);
    right =
        read_matrix(operation, letter, v, columns, econ == 1 ? least : columns, ldv, "V", false);
    turned = new_matrix(letter, right.columns, right.rows);
  }
  const int found = run_singular(letter, job, job, matrix, values, left, turned);
  // V is the conjugate transpose of what LAPACK has.
  const std::size_t real = real_bytes(letter);
  for (int i = 0; i < right.rows; ++i) {
    for (int j = 0; j < right.columns; ++j) {
      std::byte* const to =
          &right.bytes[(static_cast<std::size_t>(j) * static_cast<std::size_t>(right.ld) +
                        static_cast<std::size_t>(i)) *
                       right.size];
      const std::byte* const from =
          &turned.bytes[(static_cast<std::size_t>(i) * static_cast<std::size_t>(turned.ld) +
                         static_cast<std::size_t>(j)) *
                        right.size];
      std::memcpy(to, from, right.size);
      if (is_complex(letter)) to[2 * real - 1] ^= std::byte{0x80};  // the sign, little-endian
    }
  }
  write_matrix(operation, std::move(matrix), "A");
  operation.write(s, std::move(values), "S");
  if (vectors) {
    write_matrix(operation, std::move(left), "U");
    write_matrix(operation, std::move(right), "V");
  }
  write_info(operation, info, found);
  operation.finish();
}

}  // namespace warpstack::cusolver
