// Arrays of indices: offsets from rows and back, and sorting.

#include <algorithm>
#include <numeric>

#include "stand_ins/cusparse/descriptors.h"
#include "stand_ins/cusparse/legacy.h"

using namespace warpstack::cusparse;

namespace {

void check_counts(int rows, int columns, int count) {
  require(rows >= 0 && columns >= 0 && count >= 0, with_number("m", rows) + ", " +
                                                       with_number("n", columns) + " or " +
                                                       with_number("nnz", count) + " is negative");
}

/// Sorts pairs by their first, then their second index; `permutation` says where they came from,
/// and is taken along if the program gives one.
void sort_pairs(Operation& operation, const Indices& first, const Indices& second, int* permutation,
                int* to_first, int* to_second, int base, const char* names[2]) {
  Indices order(first.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::pair(first[at(a)], second[at(a)]) < std::pair(first[at(b)], second[at(b)]);
  });
  const auto sorted = [&](const Indices& from) {
    Indices found;
    for (const std::int64_t i : order) found.push_back(from[at(i)]);
    return found;
  };
  if (permutation != nullptr) {
    const Indices given = operation.read_indices(
        permutation, static_cast<std::int64_t>(order.size()), index_i32, 0, -1, "P", INT32_MIN);
    operation.write_indices(permutation, sorted(given), index_i32, 0, "P");
  }
  if (to_first != nullptr) {
    operation.write_indices(to_first, sorted(first), index_i32, base, names[0]);
  }
  operation.write_indices(to_second, sorted(second), index_i32, base, names[1]);
}

Status sort_coordinates(const char* function, Context* handle, int rows, int columns, int count,
                        int* row_indices, int* column_indices, int* permutation, bool by_row) {
  return call(function, handle, [&](Context& context) {
    check_counts(rows, columns, count);
    Operation operation(context);
    // The base is not said: indices are compared as they are.
    const auto read = [&](const int* place, std::int64_t limit, const char* name) {
      return operation.read_indices(place, count, index_i32, 0, limit + 1, name);
    };
    const Indices all_rows = read(row_indices, rows, "cooRowsA");
    const Indices all_columns = read(column_indices, columns, "cooColsA");
    const char* by_rows[] = {"cooRowsA", "cooColsA"};
    const char* by_columns[] = {"cooColsA", "cooRowsA"};
    if (by_row) {
      sort_pairs(operation, all_rows, all_columns, permutation, row_indices, column_indices, 0,
                 by_rows);
    } else {
      sort_pairs(operation, all_columns, all_rows, permutation, column_indices, row_indices, 0,
                 by_columns);
    }
    operation.finish();
  });
}

/// Sorts the indices in each of the lines that offsets begin.
Status sort_lines(const char* function, Context* handle, int rows, int columns, int lines,
                  int others, int count, const LegacyMatrix* legacy, const int* offsets,
                  int* indices, int* permutation) {
  return call(function, handle, [&](Context& context) {
    check_counts(rows, columns, count);
    const int base = described(legacy, "descrA").base;
    Operation operation(context);
    const Indices starts =
        operation.read_offsets(offsets, lines, index_i32, base, count, "the offsets");
    const Indices found =
        operation.read_indices(indices, count, index_i32, base, others, "the indices");
    Indices line_of;
    for (std::size_t line = 0; line + 1 < starts.size(); ++line) {
      line_of.resize(static_cast<std::size_t>(starts[line + 1]), static_cast<std::int64_t>(line));
    }
    line_of.resize(found.size(), lines);
    const char* names[] = {"", "the indices"};
    sort_pairs(operation, line_of, found, permutation, nullptr, indices, base, names);
    operation.finish();
  });
}

Status give_size(const char* function, Context* handle, std::size_t* size) {
  return call(function, handle, [&](Context&) { give(size, work_bytes, "pBufferSizeInBytes"); });
}

}  // namespace

CUSPARSE_EXPORT Status cusparseXcoo2csr(Context* handle, const int* rows, int count, int lines,
                                        int* offsets, int base) {
  return call(__func__, handle, [&](Context& context) {
    check_counts(lines, 0, count);
    check_choice("idxBase", base, 0, 1);
    Operation operation(context);
    const Indices found = operation.read_indices(rows, count, index_i32, base, lines, "cooRowInd");
    require(std::is_sorted(found.begin(), found.end()), "cooRowInd is not sorted");
    Indices starts(static_cast<std::size_t>(lines) + 1);
    for (const std::int64_t row : found) ++starts[static_cast<std::size_t>(row) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    operation.write_indices(offsets, starts, index_i32, base, "csrSortedRowPtr");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseXcsr2coo(Context* handle, const int* offsets, int count, int lines,
                                        int* rows, int base) {
  return call(__func__, handle, [&](Context& context) {
    check_counts(lines, 0, count);
    check_choice("idxBase", base, 0, 1);
    Operation operation(context);
    const Indices starts =
        operation.read_offsets(offsets, lines, index_i32, base, count, "csrSortedRowPtr");
    Indices found;
    for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
      found.resize(static_cast<std::size_t>(starts[row + 1]), static_cast<std::int64_t>(row));
    }
    operation.write_indices(rows, found, index_i32, base, "cooRowInd");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseCreateIdentityPermutation(Context* handle, int count, int* places) {
  return call(__func__, handle, [&](Context& context) {
    check_counts(0, 0, count);
    Operation operation(context);
    Indices found(static_cast<std::size_t>(count));
    std::iota(found.begin(), found.end(), 0);
    operation.write_indices(places, found, index_i32, 0, "p");
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseXcoosort_bufferSizeExt(Context* handle, int, int, int, const int*,
                                                      const int*, std::size_t* size) {
  return give_size(__func__, handle, size);
}

CUSPARSE_EXPORT Status cusparseXcoosortByRow(Context* handle, int rows, int columns, int count,
                                             int* row_indices, int* column_indices,
                                             int* permutation, void*) {
  return sort_coordinates(__func__, handle, rows, columns, count, row_indices, column_indices,
                          permutation, true);
}

CUSPARSE_EXPORT Status cusparseXcoosortByColumn(Context* handle, int rows, int columns, int count,
                                                int* row_indices, int* column_indices,
                                                int* permutation, void*) {
  return sort_coordinates(__func__, handle, rows, columns, count, row_indices, column_indices,
                          permutation, false);
}

CUSPARSE_EXPORT Status cusparseXcsrsort_bufferSizeExt(Context* handle, int, int, int, const int*,
                                                      const int*, std::size_t* size) {
  return give_size(__func__, handle, size);
}

CUSPARSE_EXPORT Status cusparseXcsrsort(Context* handle, int rows, int columns, int count,
                                        const LegacyMatrix* legacy, const int* offsets,
                                        int* indices, int* permutation, void*) {
  return sort_lines(__func__, handle, rows, columns, rows, columns, count, legacy, offsets, indices,
                    permutation);
}

CUSPARSE_EXPORT Status cusparseXcscsort_bufferSizeExt(Context* handle, int, int, int, const int*,
                                                      const int*, std::size_t* size) {
  return give_size(__func__, handle, size);
}

CUSPARSE_EXPORT Status cusparseXcscsort(Context* handle, int rows, int columns, int count,
                                        const LegacyMatrix* legacy, const int* offsets,
                                        int* indices, int* permutation, void*) {
  return sort_lines(__func__, handle, rows, columns, columns, rows, count, legacy, offsets, indices,
                    permutation);
}
