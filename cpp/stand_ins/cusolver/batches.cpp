// Several small matrices in one call.

#include <cstring>
#include <utility>

#include "stand_ins/cusolver/dense.h"
#include "stand_ins/cusolver/flops.h"

namespace warpstack::cusolver {
namespace {

char triangle_letter(int fill) {
  check_choice("uplo", fill, fill_lower, fill_upper);
  return fill == fill_lower ? 'L' : 'U';
}

std::vector<void*> read_pointers(Operation& operation, void** places, int count, const char* name) {
  const Bytes bytes = operation.read(places, static_cast<std::size_t>(count) * sizeof(void*), name);
  std::vector<void*> found(static_cast<std::size_t>(count));
  std::memcpy(found.data(), bytes.data(), bytes.size());
  return found;
}

}  // namespace

void factor_cholesky_batch(Context& context, Letter letter, int fill, int size, void** a, int lda,
                           int* infos, int count) {
  const char kind = triangle_letter(fill);
  size_of("batchSize", count);
  Operation operation(context.stream);
  operation.compute(computation(letter, count * flops_of_cholesky(size)));
  Bytes results(static_cast<std::size_t>(count) * sizeof(int));
  std::size_t at = 0;
  for (void* const place : read_pointers(operation, a, count, "Aarray")) {
    Matrix matrix = read_matrix(operation, letter, place, size, size, lda, "Aarray's matrix");
    int found = 0;
    lapack(letter, "potrf", &kind, &matrix.rows, matrix.data(), &matrix.ld, &found);
    std::memcpy(&results[at], &found, sizeof found);
    at += sizeof found;
    write_matrix(operation, std::move(matrix), "Aarray's matrix");
  }
  operation.write(infos, std::move(results), "infoArray");
  operation.finish();
}

void solve_cholesky_batch(Context& context, Letter letter, int fill, int size, int columns,
                          void** a, int lda, void** b, int ldb, int* info, int count) {
  const char kind = triangle_letter(fill);
  size_of("batchSize", count);
  require(columns == 1, with_number("nrhs", columns) + " is not 1, the only number of right sides");
  Operation operation(context.stream);
  operation.compute(computation(letter, count * flops_of_solution(size, columns)));
  const std::vector<void*> factors = read_pointers(operation, a, count, "A");
  const std::vector<void*> sides = read_pointers(operation, b, count, "B");
  int result = 0;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    Matrix factor = read_matrix(operation, letter, factors[i], size, size, lda, "A's matrix");
    Matrix right = read_matrix(operation, letter, sides[i], size, columns, ldb, "B's matrix");
    lapack(letter, "potrs", &kind, &factor.rows, &right.columns, factor.data(), &factor.ld,
           right.data(), &right.ld, &result);
    write_matrix(operation, std::move(right), "B's matrix");
  }
  write_info(operation, info, result);
  operation.finish();
}

}  // namespace warpstack::cusolver
