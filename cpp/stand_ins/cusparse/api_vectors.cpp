// Sparse vectors with dense ones.

#include <utility>

#include "stand_ins/cusparse/descriptors.h"

using namespace warpstack::cusparse;

namespace {

/// The sparse and the dense vector of a call, with their numbers.
struct VectorPair {
  VectorPair(Operation& operation, const SparseVector* x, const DenseVector* y)
      : sparse(described(x, "vecX")), dense(described(y, "vecY")) {
    require(sparse.size == dense.size, with_number("the size of vecX", sparse.size) + " is not " +
                                           with_number("that of vecY", dense.size));
    indices = operation.read_indices(sparse.indices, sparse.count, sparse.index_type, sparse.base,
                                     sparse.size, "the indices of vecX");
    // Kernels touch of the dense vector only what the indices name.
    dense_bytes = bytes_of(operation, dense, "the values of vecY", false);
    dense_size = bytes_of_type(dense.type, "the type of vecY");
    touched = indices.size() * dense_size;
  }

  [[nodiscard]] Bytes sparse_bytes(Operation& operation) const {
    return operation.read(sparse.values,
                          indices.size() * bytes_of_type(sparse.type, "the type of vecX"),
                          "the values of vecX");
  }

  const SparseVector& sparse;
  const DenseVector& dense;
  Indices indices;
  Bytes dense_bytes;
  std::size_t dense_size = 0, touched = 0;
};

void check_same_type(const VectorPair& pair) {
  require(pair.sparse.type == pair.dense.type, Status::not_supported,
          "vecX and vecY have different types of values");
}

/// Of numbers of a type, the one in which alpha and beta are given.
int scalar_type(int type) {
  if (type == data_f16 || type == data_bf16) return data_f32;
  return type == data_c16 || type == data_cbf16 ? static_cast<int>(data_c32) : type;
}

}  // namespace

CUSPARSE_EXPORT Status cusparseAxpby(Context* handle, const void* alpha, const SparseVector* x,
                                     const void* beta, DenseVector* y) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    Operation operation(context);
    const int type = described(y, "vecY").type;
    const Complex a = operation.scalar(alpha, scalar_type(type), "alpha");
    const Complex b = operation.scalar(beta, scalar_type(type), "beta");
    VectorPair pair(operation, x, y);
    check_same_type(pair);
    const Bytes sparse = pair.sparse_bytes(operation);
    operation.multiply_add(scalar_type(type), static_cast<double>(pair.indices.size()));
    std::vector<Complex> sums(static_cast<std::size_t>(pair.dense.size));
    for (std::size_t i = 0; b != 0.0 && i < sums.size(); ++i) {
      sums[i] = product(b, load_value(type, pair.dense_bytes.data(), static_cast<std::int64_t>(i)));
    }
    for (std::size_t i = 0; i < pair.indices.size(); ++i) {
      sums[static_cast<std::size_t>(pair.indices[i])] +=
          product(a, load_value(type, sparse.data(), static_cast<std::int64_t>(i)));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      store_value(type, pair.dense_bytes.data(), static_cast<std::int64_t>(i), sums[i]);
    }
    const std::size_t all = pair.dense_bytes.size();
    const std::size_t moved = b == 1.0 ? 2 * pair.touched : b == 0.0 ? all : 2 * all;
    operation.write(pair.dense.values, std::move(pair.dense_bytes), "the values of vecY", moved);
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseGather(Context* handle, const DenseVector* y, SparseVector* x) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    Operation operation(context);
    const VectorPair pair(operation, x, y);
    check_same_type(pair);
    Bytes sparse(pair.touched);
    for (std::size_t i = 0; i < pair.indices.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      store_value(pair.sparse.type, sparse.data(), at,
                  load_value(pair.dense.type, pair.dense_bytes.data(), pair.indices[i]));
    }
    operation.write(pair.sparse.values, std::move(sparse), "the values of vecX", 2 * pair.touched);
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseScatter(Context* handle, const SparseVector* x, DenseVector* y) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    Operation operation(context);
    VectorPair pair(operation, x, y);
    check_same_type(pair);
    const Bytes sparse = pair.sparse_bytes(operation);
    for (std::size_t i = 0; i < pair.indices.size(); ++i) {
      store_value(pair.dense.type, pair.dense_bytes.data(), pair.indices[i],
                  load_value(pair.sparse.type, sparse.data(), static_cast<std::int64_t>(i)));
    }
    operation.write(pair.dense.values, std::move(pair.dense_bytes), "the values of vecY",
                    pair.touched);
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseRot(Context* handle, const void* cosine, const void* sine,
                                   SparseVector* x, DenseVector* y) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    Operation operation(context);
    const int type = described(y, "vecY").type;
    const Complex c = operation.scalar(cosine, scalar_type(type), "c_coeff");
    const Complex s = operation.scalar(sine, scalar_type(type), "s_coeff");
    VectorPair pair(operation, x, y);
    check_same_type(pair);
    Bytes sparse = pair.sparse_bytes(operation);
    // Four multiplications and two additions.
    operation.multiply_add(scalar_type(type), 3 * static_cast<double>(pair.indices.size()));
    for (std::size_t i = 0; i < pair.indices.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const Complex first = load_value(type, sparse.data(), at);
      const Complex second = load_value(type, pair.dense_bytes.data(), pair.indices[i]);
      store_value(type, sparse.data(), at, product(c, first) + product(s, second));
      store_value(type, pair.dense_bytes.data(), pair.indices[i],
                  product(c, second) - product(s, first));
    }
    operation.write(pair.sparse.values, std::move(sparse), "the values of vecX");
    operation.write(pair.dense.values, std::move(pair.dense_bytes), "the values of vecY",
                    2 * pair.touched);
    operation.finish();
  });
}

CUSPARSE_EXPORT Status cusparseSpVV_bufferSize(Context* handle, int, const SparseVector* x,
                                               const DenseVector* y, const void*, int,
                                               std::size_t* size) {
  return call(__func__, handle, [&](Context&) {
    described(x, "vecX");
    described(y, "vecY");
    give(size, work_bytes, "bufferSize");
  });
}

CUSPARSE_EXPORT Status cusparseSpVV(Context* handle, int transpose, const SparseVector* x,
                                    const DenseVector* y, void* result, int compute, void*) {
  return call_in_stream(__func__, handle, [=](Context& context) {
    check_choice("opX", transpose, operation_none, operation_adjoint);
    Operation operation(context);
    const VectorPair pair(operation, x, y);
    check_types(compute, {pair.sparse.type, pair.dense.type});
    const Bytes sparse = pair.sparse_bytes(operation);
    operation.multiply_add(compute, static_cast<double>(pair.indices.size()));
    Complex sum = 0;
    for (std::size_t i = 0; i < pair.indices.size(); ++i) {
      Complex first = load_value(pair.sparse.type, sparse.data(), static_cast<std::int64_t>(i));
      if (transpose == operation_adjoint) first = std::conj(first);
      sum += product(first, load_value(pair.dense.type, pair.dense_bytes.data(), pair.indices[i]));
    }
    operation.give_scalar(result, compute, sum, "result");
    operation.finish();
  });
}
