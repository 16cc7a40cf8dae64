#include "stand_ins/cusolver/sparse_memory.h"

#include <dlfcn.h>

#include <cstring>
#include <numeric>

namespace warpstack::cusolver {
namespace {

/// A property of a cusparseMatDescr_t, which the program's cuSPARSE knows.
int property_of(const void* descriptor, const char* function) {
  using Get = int (*)(const void*);
  for (const char* name : {"libcusparse.so.12", "libcusparse.so.11"}) {
    void* const handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    if (void* const found = dlsym(handle, function))
      return reinterpret_cast<Get>(found)(descriptor);
  }
  throw Failure(Status::internal_error,
                "the program has not loaded libcusparse, which makes descriptors of matrices");
}

}  // namespace

int index_base_of(const void* descriptor) {
  require(descriptor != nullptr, "the descriptor of a matrix is null");
  return property_of(descriptor, "cusparseGetMatIndexBase");
}

Bytes read_array(Where where, const void* place, std::size_t bytes, const char* name) {
  if (where != nullptr) return where->read(place, bytes, name);
  Bytes found(bytes);
  if (bytes == 0) return found;
  require(place != nullptr, std::string(name) + " is null");
  std::memcpy(found.data(), place, bytes);
  return found;
}

void write_array(Where where, void* place, Bytes bytes, const char* name) {
  if (where != nullptr) return where->write(place, std::move(bytes), name);
  if (bytes.empty()) return;
  require(place != nullptr, std::string(name) + " is null");
  std::memcpy(place, bytes.data(), bytes.size());
}

Pattern read_pattern(Where where, const SparseArguments& given) {
  size_of("m", given.rows);
  size_of("n", given.columns);
  size_of("nnz", given.count);
  Pattern pattern;
  pattern.columns = given.columns;
  pattern.base = index_base_of(given.descriptor);
  require(property_of(given.descriptor, "cusparseGetMatType") == 0,
          Status::matrix_type_not_supported,
          "the type of descrA is not CUSPARSE_MATRIX_TYPE_GENERAL");
  const auto read = [&](const int* place, int count, const char* name) {
    const auto size = static_cast<std::size_t>(count);
    const Bytes bytes = read_array(where, place, size * sizeof(int), name);
    std::vector<int> found(size);
    std::memcpy(found.data(), bytes.data(), bytes.size());
    for (int& index : found) index -= pattern.base;
    return found;
  };
  const auto wrong = [&](const char* name, std::size_t at, int value, const std::string& why) {
    return Failure(Status::invalid_value, std::string(name) + ": element " + std::to_string(at) +
                                              " = " + std::to_string(value + pattern.base) + " " +
                                              why);
  };
  pattern.offsets = read(given.offsets, given.rows + 1, "csrRowPtr");
  for (std::size_t i = 0; i < pattern.offsets.size(); ++i) {
    const int least = i == 0 ? 0 : pattern.offsets[i - 1];
    if (pattern.offsets[i] < least || (i == 0 && pattern.offsets[i] > 0)) {
      throw wrong("csrRowPtr", i, pattern.offsets[i],
                  i == 0 ? "is not the index base" : "is less than the one before");
    }
  }
  if (pattern.offsets.back() != given.count) {
    throw wrong("csrRowPtr", pattern.offsets.size() - 1, pattern.offsets.back(),
                "does not say the nnz of " + std::to_string(given.count));
  }
  pattern.indices = read(given.indices, given.count, "csrColInd");
  for (std::size_t i = 0; i < pattern.indices.size(); ++i) {
    if (pattern.indices[i] < 0 || pattern.indices[i] >= given.columns) {
      throw wrong("csrColInd", i, pattern.indices[i], "is outside of the matrix");
    }
  }
  return pattern;
}

sparse::Neighbours neighbours_of(const Pattern& pattern) {
  const std::size_t size = pattern.offsets.size() - 1;
  require(sparse::place(pattern.columns) == size, "the matrix is not square");
  sparse::Neighbours graph(size);
  for (std::size_t row = 0; row < size; ++row) {
    for (int i = pattern.offsets[row]; i < pattern.offsets[row + 1]; ++i) {
      const int column = pattern.indices[sparse::place(i)];
      if (column == static_cast<int>(row)) continue;
      graph[row].push_back(column);
      graph[sparse::place(column)].push_back(static_cast<int>(row));
    }
  }
  for (auto& nodes : graph) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  return graph;
}

std::vector<int> order_of(int reorder, const sparse::Neighbours& graph) {
  check_choice("reorder", reorder, 0, 3);
  if (reorder == 1) return sparse::reverse_cuthill_mckee(graph);
  if (reorder > 1) return sparse::minimum_degree(graph);
  std::vector<int> order(graph.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace warpstack::cusolver
