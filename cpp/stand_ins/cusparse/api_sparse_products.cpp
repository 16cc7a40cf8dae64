// Products of two sparse matrices of compressed rows.

#include <algorithm>
#include <map>
#include <utility>

#include "stand_ins/cusparse/descriptors.h"

using namespace warpstack::cusparse;
using warpstack::library::Handles;

namespace {

/// What a cusparseSpGEMMDescr_t points to: the result, until it is copied.
struct SparseProduct {
  bool computed = false;
  std::int64_t products = 0;
  std::vector<std::map<std::int64_t, Complex>> rows;
};

struct ProductArguments {
  int transpose_a, transpose_b;
  const SparseMatrix *a, *b;
  SparseMatrix* c;
};

void check_sparse_product(const ProductArguments& given) {
  require(given.transpose_a == operation_none && given.transpose_b == operation_none,
          Status::not_supported, "opA and opB have to be CUSPARSE_OPERATION_NON_TRANSPOSE");
  const SparseMatrix& a = described(given.a, "matA");
  const SparseMatrix& b = described(given.b, "matB");
  const SparseMatrix& c = described(given.c, "matC");
  require(a.format == format_csr && b.format == format_csr && c.format == format_csr,
          Status::not_supported, "the matrices have to be of compressed rows (CSR)");
  require(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns,
          "the sizes of matA, matB and matC do not fit");
}

/// alpha A B, of which every element that has a product is stored, zeros included.
void multiply_sparse(Operation& operation, const ProductArguments& given, Complex by,
                     bool with_values, SparseProduct& result) {
  const std::vector<Entry> left = entries_of(operation, *given.a, 0, with_values);
  const std::vector<Entry> right = entries_of(operation, *given.b, 0, with_values);
  std::vector<std::vector<Entry>> rows_of_b(static_cast<std::size_t>(given.b->rows));
  for (const Entry& entry : right) rows_of_b[static_cast<std::size_t>(entry.row)].push_back(entry);
  result.rows.assign(static_cast<std::size_t>(given.a->rows), {});
  result.products = 0;
  for (const Entry& entry : left) {
    auto& row = result.rows[static_cast<std::size_t>(entry.row)];
    for (const Entry& other : rows_of_b[static_cast<std::size_t>(entry.column)]) {
      row[other.column] += product(entry.value, other.value);
      ++result.products;
    }
  }
  for (auto& row : result.rows) {
    for (auto& [column, value] : row) value = product(by, value);
  }
  result.computed = true;
}

std::int64_t elements_in(const SparseProduct& result) {
  std::int64_t count = 0;
  for (const auto& row : result.rows) count += static_cast<std::int64_t>(row.size());
  return count;
}

void write_structure(Operation& operation, const SparseMatrix& c, const SparseProduct& result) {
  Indices offsets{0}, columns;
  for (const auto& row : result.rows) {
    for (const auto& [column, value] : row) columns.push_back(column);
    offsets.push_back(static_cast<std::int64_t>(columns.size()));
  }
  operation.write_indices(c.offsets, offsets, c.offset_type, c.base, "the offsets of matC");
  operation.write_indices(c.indices, columns, c.index_type, c.base, "the indices of matC");
}

/// The values, to which beta C is added where C has an element.
void write_values(Operation& operation, const SparseMatrix& c, const SparseProduct& result,
                  Complex keep) {
  const std::size_t size = bytes_of_type(c.type, "the type of matC");
  Bytes bytes(static_cast<std::size_t>(c.count) * size);
  if (keep != 0.0) bytes = operation.read(c.values, bytes.size(), "the values of matC");
  std::int64_t at = 0;
  for (const auto& row : result.rows) {
    for (const auto& [column, value] : row) {
      Complex sum = value;
      if (keep != 0.0) sum += product(keep, load_value(c.type, bytes.data(), at));
      store_value(c.type, bytes.data(), at++, sum);
    }
  }
  operation.write(c.values, std::move(bytes), "the values of matC");
}

void check_room(const SparseMatrix& c, const SparseProduct& result) {
  require(result.computed, "the product was not computed before");
  require(c.count == elements_in(result),
          with_number("matC has other elements than the product: nnz", c.count) + ", not " +
              std::to_string(elements_in(result)));
}

/// A first call without a buffer asks for its size, a second one brings it.
bool asks_for_size(std::size_t* size, const void* buffer) {
  if (buffer != nullptr) return false;
  give(size, work_bytes, "bufferSize");
  return true;
}

}  // namespace

CUSPARSE_EXPORT Status cusparseSpGEMM_createDescr(SparseProduct** result) {
  return call(__func__, [&] { create(result, "descr"); });
}

CUSPARSE_EXPORT Status cusparseSpGEMM_destroyDescr(SparseProduct* result) {
  return call(__func__, [&] { Handles<SparseProduct>::remove(&described(result, "descr")); });
}

CUSPARSE_EXPORT Status cusparseSpGEMM_workEstimation(Context* handle, int transpose_a,
                                                     int transpose_b, const void*,
                                                     const SparseMatrix* a, const SparseMatrix* b,
                                                     const void*, SparseMatrix* c, int compute, int,
                                                     SparseProduct* result, std::size_t* size,
                                                     void* buffer) {
  return call(__func__, handle, [&](Context& context) {
    SparseProduct& found = described(result, "spgemmDescr");
    const ProductArguments given{transpose_a, transpose_b, a, b, c};
    check_sparse_product(given);
    check_types(compute, {a->type, b->type, c->type});
    if (asks_for_size(size, buffer)) return;
    // What it looks at is the structure.
    Operation operation(context);
    multiply_sparse(operation, given, 1.0, false, found);
    found.computed = false;
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMM_getNumProducts(SparseProduct* result, std::int64_t* count) {
  return call(__func__,
              [&] { give(count, described(result, "spgemmDescr").products, "num_prods"); });
}

CUSPARSE_EXPORT Status cusparseSpGEMM_estimateMemory(
    Context* handle, int transpose_a, int transpose_b, const void*, const SparseMatrix* a,
    const SparseMatrix* b, const void*, SparseMatrix* c, int compute, int, SparseProduct* result,
    float, std::size_t* size3, void* buffer3, std::size_t* size2) {
  return call(__func__, handle, [&](Context&) {
    described(result, "spgemmDescr");
    check_sparse_product({transpose_a, transpose_b, a, b, c});
    check_types(compute, {a->type, b->type, c->type});
    if (asks_for_size(size3, buffer3)) return;
    give(size2, work_bytes, "bufferSize2");
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMM_compute(Context* handle, int transpose_a, int transpose_b,
                                              const void* alpha, const SparseMatrix* a,
                                              const SparseMatrix* b, const void*, SparseMatrix* c,
                                              int compute, int, SparseProduct* result,
                                              std::size_t* size, void* buffer) {
  return call(__func__, handle, [&](Context& context) {
    SparseProduct& found = described(result, "spgemmDescr");
    const ProductArguments given{transpose_a, transpose_b, a, b, c};
    check_sparse_product(given);
    check_types(compute, {a->type, b->type, c->type});
    if (asks_for_size(size, buffer)) return;
    Operation operation(context);
    const Complex by = operation.scalar(alpha, compute, "alpha");
    multiply_sparse(operation, given, by, true, found);
    operation.multiply_add(compute, static_cast<double>(found.products));
    operation.finish();
    c->count = elements_in(found);
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMM_copy(Context* handle, int transpose_a, int transpose_b,
                                           const void*, const SparseMatrix* a,
                                           const SparseMatrix* b, const void* beta, SparseMatrix* c,
                                           int compute, int, SparseProduct* result) {
  return call(__func__, handle, [&](Context& context) {
    const SparseProduct& found = described(result, "spgemmDescr");
    check_sparse_product({transpose_a, transpose_b, a, b, c});
    check_room(*c, found);
    Operation operation(context);
    const Complex keep = operation.scalar(beta, compute, "beta");
    write_structure(operation, *c, found);
    write_values(operation, *c, found, keep);
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMMreuse_workEstimation(Context* handle, int transpose_a,
                                                          int transpose_b, const SparseMatrix* a,
                                                          const SparseMatrix* b, SparseMatrix* c,
                                                          int, SparseProduct* result,
                                                          std::size_t* size, void* buffer) {
  return call(__func__, handle, [&](Context&) {
    described(result, "spgemmDescr");
    check_sparse_product({transpose_a, transpose_b, a, b, c});
    asks_for_size(size, buffer);
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMMreuse_nnz(Context* handle, int transpose_a, int transpose_b,
                                               const SparseMatrix* a, const SparseMatrix* b,
                                               SparseMatrix* c, int, SparseProduct* result,
                                               std::size_t* size2, void* buffer2,
                                               std::size_t* size3, void* buffer3,
                                               std::size_t* size4, void* buffer4) {
  return call(__func__, handle, [&](Context& context) {
    SparseProduct& found = described(result, "spgemmDescr");
    const ProductArguments given{transpose_a, transpose_b, a, b, c};
    check_sparse_product(given);
    const bool asks = asks_for_size(size2, buffer2);
    if ((asks_for_size(size3, buffer3) || asks) || asks_for_size(size4, buffer4)) {
      give(size4, work_bytes, "bufferSize4");
      return;
    }
    Operation operation(context);
    multiply_sparse(operation, given, 1.0, false, found);
    operation.finish();
    c->count = elements_in(found);
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMMreuse_copy(Context* handle, int transpose_a, int transpose_b,
                                                const SparseMatrix* a, const SparseMatrix* b,
                                                SparseMatrix* c, int, SparseProduct* result,
                                                std::size_t* size, void* buffer) {
  return call(__func__, handle, [&](Context& context) {
    const SparseProduct& found = described(result, "spgemmDescr");
    check_sparse_product({transpose_a, transpose_b, a, b, c});
    if (asks_for_size(size, buffer)) return;
    check_room(*c, found);
    Operation operation(context);
    write_structure(operation, *c, found);
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseSpGEMMreuse_compute(Context* handle, int transpose_a,
                                                   int transpose_b, const void* alpha,
                                                   const SparseMatrix* a, const SparseMatrix* b,
                                                   const void* beta, SparseMatrix* c, int compute,
                                                   int, SparseProduct* result) {
  return call(__func__, handle, [&](Context& context) {
    SparseProduct& found = described(result, "spgemmDescr");
    const ProductArguments given{transpose_a, transpose_b, a, b, c};
    check_sparse_product(given);
    check_types(compute, {a->type, b->type, c->type});
    check_room(*c, found);
    Operation operation(context);
    const Complex by = operation.scalar(alpha, compute, "alpha");
    const Complex keep = operation.scalar(beta, compute, "beta");
    multiply_sparse(operation, given, by, true, found);
    operation.multiply_add(compute, static_cast<double>(found.products));
    check_room(*c, found);
    write_values(operation, *c, found, keep);
    operation.finish();
  });
}
