// Incomplete factorisations without fill-in: LU and Cholesky of compressed rows.

#include <algorithm>
#include <map>
#include <utility>

#include "stand_ins/cusparse/descriptors.h"
#include "stand_ins/cusparse/legacy.h"

using namespace warpstack::cusparse;
using warpstack::library::Handles;

namespace {

/// What csrilu02Info_t and csric02Info_t point to.
struct LuInfo {
  std::int64_t zero_pivot = -1;  ///< from 0
  int base = 0;
};
struct CholeskyInfo {
  std::int64_t zero_pivot = -1;
  int base = 0;
};

/// The arguments of all these functions.
struct FactorArguments {
  int rows, count;
  const LegacyMatrix* legacy;
  void* values;
  const int *offsets, *indices;
};

SparseMatrix matrix_of(const FactorArguments& given, int type) {
  require(given.rows >= 0 && given.count >= 0,
          with_number("m", given.rows) + " or " + with_number("nnz", given.count) + " is negative");
  SparseMatrix matrix;
  matrix.rows = matrix.columns = given.rows;
  matrix.count = given.count;
  matrix.offsets = const_cast<int*>(given.offsets);
  matrix.indices = const_cast<int*>(given.indices);
  matrix.values = given.values;
  matrix.base = described(given.legacy, "descrA").base;
  matrix.type = type;
  return matrix;
}

/// The elements of rows by their columns.
using SparseRows = std::vector<std::map<std::int64_t, Entry>>;

SparseRows rows_of(const std::vector<Entry>& entries, std::int64_t rows) {
  SparseRows found(static_cast<std::size_t>(rows));
  for (const Entry& entry : entries)
    found[static_cast<std::size_t>(entry.row)][entry.column] = entry;
  return found;
}

/// The first row without a diagonal element, or -1.
std::int64_t first_without_diagonal(const SparseRows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    if (rows[i].count(row) == 0) return row;
  }
  return -1;
}

/// L with ones on the diagonal and U replace the matrix; `multiply_adds` grows by the
/// multiplications and the divisions. Returns the first row whose pivot is zero or missing, or -1.
std::int64_t factor_lu(SparseRows& rows, double& multiply_adds) {
  std::int64_t zero = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (auto& [k, factor] : rows[i]) {
      if (k >= static_cast<std::int64_t>(i)) break;
      const auto& above = rows[static_cast<std::size_t>(k)];
      const auto pivot = above.find(k);
      if (pivot == above.end()) continue;
      factor.value = quotient(factor.value, pivot->second.value);
      ++multiply_adds;
      for (auto right = std::next(pivot); right != above.end(); ++right) {
        const auto found = rows[i].find(right->first);
        if (found != rows[i].end()) {
          ++multiply_adds;
          found->second.value -= product(factor.value, right->second.value);
        }
      }
    }
    const auto own = rows[i].find(static_cast<std::int64_t>(i));
    if (zero < 0 && (own == rows[i].end() || own->second.value == 0.0)) {
      zero = static_cast<std::int64_t>(i);
    }
  }
  return zero;
}

/// The lower triangle of the matrix becomes L. Returns the first row whose pivot is not positive or
/// missing, or -1.
std::int64_t factor_cholesky(SparseRows& rows, double& multiply_adds) {
  std::int64_t zero = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto own = static_cast<std::int64_t>(i);
    for (auto& [j, element] : rows[i]) {
      if (j > own) break;
      const auto& other = rows[static_cast<std::size_t>(j)];
      Complex sum = element.value;
      for (const auto& [k, left] : rows[i]) {
        if (k >= j) break;
        const auto right = other.find(k);
        if (right == other.end()) continue;
        sum -= product(left.value, std::conj(right->second.value));
        ++multiply_adds;
      }
      ++multiply_adds;
      if (j < own) {
        const auto pivot = other.find(j);
        element.value = pivot == other.end() ? sum : quotient(sum, pivot->second.value);
      } else {
        if (zero < 0 && !(sum.real() > 0)) zero = own;
        element.value = std::sqrt(sum.real());
      }
    }
    if (zero < 0 && rows[i].count(own) == 0) zero = own;
  }
  return zero;
}

std::int64_t factor(LuInfo&, SparseRows& rows, double& multiply_adds) {
  return factor_lu(rows, multiply_adds);
}
std::int64_t factor(CholeskyInfo&, SparseRows& rows, double& multiply_adds) {
  return factor_cholesky(rows, multiply_adds);
}

template <typename Info>
Status analyse_factor(const char* function, Context* handle, const FactorArguments& given,
                      Info* info, int type) {
  return call(function, handle, [&](Context& context) {
    Info& found = described(info, "info");
    const SparseMatrix matrix = matrix_of(given, type);
    Operation operation(context);
    found.zero_pivot =
        first_without_diagonal(rows_of(entries_of(operation, matrix, 0, false), matrix.rows));
    found.base = matrix.base;
    operation.finish();
  });
}

template <typename Info>
Status run_factor(const char* function, Context* handle, const FactorArguments& given, Info* info,
                  int type) {
  return call(function, handle, [&](Context& context) {
    Info& found = described(info, "info");
    const SparseMatrix matrix = matrix_of(given, type);
    Operation operation(context);
    SparseRows rows = rows_of(entries_of(operation, matrix), matrix.rows);
    Bytes bytes = operation.read(
        matrix.values,
        static_cast<std::size_t>(matrix.count) * bytes_of_type(type, "the type of the values"),
        "the values", false);
    double multiply_adds = 0;
    found.zero_pivot = factor(found, rows, multiply_adds);
    operation.multiply_add(type, multiply_adds);
    found.base = matrix.base;
    for (const auto& row : rows) {
      for (const auto& [column, entry] : row) {
        store_value(type, bytes.data(), entry.place, entry.value);
      }
    }
    operation.write(matrix.values, std::move(bytes), "the values");
    operation.finish();
  });
}

template <typename Info, typename Size>
Status size_of_factor(const char* function, Context* handle, const FactorArguments& given,
                      Info* info, Size* size, int type) {
  return call(function, handle, [&](Context&) {
    described(info, "info");
    matrix_of(given, type);
    give(size, work_bytes, "the size");
  });
}

template <typename Info>
Status tell_zero_pivot(const char* function, Context* handle, Info* info, int* position) {
  return call(function, handle, [&](Context& context) {
    const Info& found = described(info, "info");
    const std::int64_t at = found.zero_pivot < 0 ? -1 : found.zero_pivot + found.base;
    Operation operation(context);
    operation.give_scalar(position, data_i32, static_cast<double>(at), "position");
    operation.finish();
    if (at >= 0) throw Failure(Status::zero_pivot, with_number("zero pivot in row", at));
  });
}

}  // namespace

CUSPARSE_EXPORT Status cusparseCreateCsrilu02Info(LuInfo** info) {
  return call(__func__, [&] { create(info, "info"); });
}
CUSPARSE_EXPORT Status cusparseDestroyCsrilu02Info(LuInfo* info) {
  return call(__func__, [&] { Handles<LuInfo>::remove(&described(info, "info")); });
}
CUSPARSE_EXPORT Status cusparseXcsrilu02_zeroPivot(Context* handle, LuInfo* info, int* position) {
  return tell_zero_pivot(__func__, handle, info, position);
}
CUSPARSE_EXPORT Status cusparseCreateCsric02Info(CholeskyInfo** info) {
  return call(__func__, [&] { create(info, "info"); });
}
CUSPARSE_EXPORT Status cusparseDestroyCsric02Info(CholeskyInfo* info) {
  return call(__func__, [&] { Handles<CholeskyInfo>::remove(&described(info, "info")); });
}
CUSPARSE_EXPORT Status cusparseXcsric02_zeroPivot(Context* handle, CholeskyInfo* info,
                                                  int* position) {
  return tell_zero_pivot(__func__, handle, info, position);
}

#define FACTOR(name, type, Info)                                                                   \
  CUSPARSE_EXPORT Status name##_bufferSize(                                                        \
      Context* handle, int rows, int count, const LegacyMatrix* legacy, void* values,              \
      const int* offsets, const int* indices, Info* info, int* size) {                             \
    return size_of_factor(__func__, handle, {rows, count, legacy, values, offsets, indices}, info, \
                          size, type);                                                             \
  }                                                                                                \
  CUSPARSE_EXPORT Status name##_bufferSizeExt(                                                     \
      Context* handle, int rows, int count, const LegacyMatrix* legacy, void* values,              \
      const int* offsets, const int* indices, Info* info, std::size_t* size) {                     \
    return size_of_factor(__func__, handle, {rows, count, legacy, values, offsets, indices}, info, \
                          size, type);                                                             \
  }                                                                                                \
  CUSPARSE_EXPORT Status name##_analysis(                                                          \
      Context* handle, int rows, int count, const LegacyMatrix* legacy, void* values,              \
      const int* offsets, const int* indices, Info* info, int, void*) {                            \
    return analyse_factor(__func__, handle, {rows, count, legacy, values, offsets, indices}, info, \
                          type);                                                                   \
  }                                                                                                \
  CUSPARSE_EXPORT Status name(Context* handle, int rows, int count, const LegacyMatrix* legacy,    \
                              void* values, const int* offsets, const int* indices, Info* info,    \
                              int, void*) {                                                        \
    return run_factor(__func__, handle, {rows, count, legacy, values, offsets, indices}, info,     \
                      type);                                                                       \
  }
FACTOR(cusparseScsrilu02, data_f32, LuInfo)
FACTOR(cusparseDcsrilu02, data_f64, LuInfo)
FACTOR(cusparseCcsrilu02, data_c32, LuInfo)
FACTOR(cusparseZcsrilu02, data_c64, LuInfo)
FACTOR(cusparseScsric02, data_f32, CholeskyInfo)
FACTOR(cusparseDcsric02, data_f64, CholeskyInfo)
FACTOR(cusparseCcsric02, data_c32, CholeskyInfo)
FACTOR(cusparseZcsric02, data_c64, CholeskyInfo)
#undef FACTOR
