// Plans: what is to be transformed, and the size of their work areas.

#include <array>

#include "stand_ins/cufft/plan.h"

using namespace warpstack::cufft;

namespace {

using Types = std::pair<Kind, Precision>;

/// Lengths and embeddings of 32 bits as those of 64.
struct Wide {
  explicit Wide(int rank, const int* values) : is_given(values != nullptr) {
    for (int i = 0; is_given && i < rank && i < 3; ++i) {
      numbers[static_cast<std::size_t>(i)] = values[i];
    }
  }
  [[nodiscard]] const long long* data() const { return is_given ? numbers.data() : nullptr; }

  bool is_given;
  std::array<long long, 3> numbers{};
};

void make(Context& context, const Request& request, Types types, std::size_t* work_size) {
  require(!context.transform.has_value(), Status::invalid_plan,
          "the handle has a plan: cufftMakePlan can be called once for each");
  Transform transform = checked(request, types.first, types.second);
  if (work_size != nullptr) *work_size = work_bytes(transform);
  context.transform = std::move(transform);
}

/// Makes a plan with a new handle, of which nothing is left if it fails.
Status create(const char* function, Handle* plan, const Request& request, int type) {
  return call(function, [&] {
    require(plan != nullptr, Status::invalid_value, "nowhere to put the plan");
    const Types types = type_of(type);
    Context context;
    make(context, request, types, nullptr);
    *plan = add_context();
    Library::context_of(*plan) = std::move(context);
  });
}

Status make(const char* function, Handle plan, const Request& request, int type,
            std::size_t* work_size) {
  return call(function, plan,
              [&](Context& context) { make(context, request, type_of(type), work_size); });
}

void size(const Request& request, Types types, std::size_t* work_size) {
  require(work_size != nullptr, Status::invalid_value, "nowhere to put the size");
  *work_size = work_bytes(checked(request, types.first, types.second));
}

Status size(const char* function, Handle plan, const Request& request, int type,
            std::size_t* work_size) {
  return call(function, plan, [&](Context&) { size(request, type_of(type), work_size); });
}

Status estimate(const char* function, const Request& request, int type, std::size_t* work_size) {
  return call(function, [&] { size(request, type_of(type), work_size); });
}

/// Data one after another.
Request simple(const std::array<long long, 3>& lengths, int rank, int batch = 1) {
  Request request;
  request.rank = rank;
  request.lengths = lengths.data();
  request.batch = batch;
  return request;
}

Request many(int rank, const long long* n, const long long* inembed, long long istride,
             long long idist, const long long* onembed, long long ostride, long long odist,
             long long batch) {
  return {rank, n, inembed, istride, idist, onembed, ostride, odist, batch};
}

}  // namespace

CUFFT_EXPORT Status cufftCreate(Handle* plan) {
  return call(__func__, [&] {
    require(plan != nullptr, Status::invalid_value, "nowhere to put the plan");
    *plan = add_context();
  });
}

CUFFT_EXPORT Status cufftDestroy(Handle plan) {
  if (plan == no_plan) return Status::invalid_plan;  // safe to call, as the header says
  return call(__func__, plan, [&](Context&) { remove_context(plan); });
}

CUFFT_EXPORT Status cufftPlan1d(Handle* plan, int nx, int type, int batch) {
  const std::array<long long, 3> n{nx};
  return create(__func__, plan, simple(n, 1, batch), type);
}

CUFFT_EXPORT Status cufftPlan2d(Handle* plan, int nx, int ny, int type) {
  const std::array<long long, 3> n{nx, ny};
  return create(__func__, plan, simple(n, 2), type);
}

CUFFT_EXPORT Status cufftPlan3d(Handle* plan, int nx, int ny, int nz, int type) {
  const std::array<long long, 3> n{nx, ny, nz};
  return create(__func__, plan, simple(n, 3), type);
}

CUFFT_EXPORT Status cufftPlanMany(Handle* plan, int rank, int* n, int* inembed, int istride,
                                  int idist, int* onembed, int ostride, int odist, int type,
                                  int batch) {
  const Wide lengths(rank, n), input(rank, inembed), output(rank, onembed);
  return create(__func__, plan,
                many(rank, lengths.data(), input.data(), istride, idist, output.data(), ostride,
                     odist, batch),
                type);
}

CUFFT_EXPORT Status cufftMakePlan1d(Handle plan, int nx, int type, int batch,
                                    std::size_t* work_size) {
  const std::array<long long, 3> n{nx};
  return make(__func__, plan, simple(n, 1, batch), type, work_size);
}

CUFFT_EXPORT Status cufftMakePlan2d(Handle plan, int nx, int ny, int type, std::size_t* work_size) {
  const std::array<long long, 3> n{nx, ny};
  return make(__func__, plan, simple(n, 2), type, work_size);
}

CUFFT_EXPORT Status cufftMakePlan3d(Handle plan, int nx, int ny, int nz, int type,
                                    std::size_t* work_size) {
  const std::array<long long, 3> n{nx, ny, nz};
  return make(__func__, plan, simple(n, 3), type, work_size);
}

CUFFT_EXPORT Status cufftMakePlanMany(Handle plan, int rank, int* n, int* inembed, int istride,
                                      int idist, int* onembed, int ostride, int odist, int type,
                                      int batch, std::size_t* work_size) {
  const Wide lengths(rank, n), input(rank, inembed), output(rank, onembed);
  return make(__func__, plan,
              many(rank, lengths.data(), input.data(), istride, idist, output.data(), ostride,
                   odist, batch),
              type, work_size);
}

CUFFT_EXPORT Status cufftMakePlanMany64(Handle plan, int rank, long long* n, long long* inembed,
                                        long long istride, long long idist, long long* onembed,
                                        long long ostride, long long odist, int type,
                                        long long batch, std::size_t* work_size) {
  return make(__func__, plan,
              many(rank, n, inembed, istride, idist, onembed, ostride, odist, batch), type,
              work_size);
}

CUFFT_EXPORT Status cufftXtMakePlanMany(Handle plan, int rank, long long* n, long long* inembed,
                                        long long istride, long long idist, int input_type,
                                        long long* onembed, long long ostride, long long odist,
                                        int output_type, long long batch, std::size_t* work_size,
                                        int execution_type) {
  return call(__func__, plan, [&](Context& context) {
    make(context, many(rank, n, inembed, istride, idist, onembed, ostride, odist, batch),
         type_of(input_type, output_type, execution_type), work_size);
  });
}

CUFFT_EXPORT Status cufftGetSize1d(Handle plan, int nx, int type, int batch,
                                   std::size_t* work_size) {
  const std::array<long long, 3> n{nx};
  return size(__func__, plan, simple(n, 1, batch), type, work_size);
}

CUFFT_EXPORT Status cufftGetSize2d(Handle plan, int nx, int ny, int type, std::size_t* work_size) {
  const std::array<long long, 3> n{nx, ny};
  return size(__func__, plan, simple(n, 2), type, work_size);
}

CUFFT_EXPORT Status cufftGetSize3d(Handle plan, int nx, int ny, int nz, int type,
                                   std::size_t* work_size) {
  const std::array<long long, 3> n{nx, ny, nz};
  return size(__func__, plan, simple(n, 3), type, work_size);
}

CUFFT_EXPORT Status cufftGetSizeMany(Handle plan, int rank, int* n, int* inembed, int istride,
                                     int idist, int* onembed, int ostride, int odist, int type,
                                     int batch, std::size_t* work_size) {
  const Wide lengths(rank, n), input(rank, inembed), output(rank, onembed);
  return size(__func__, plan,
              many(rank, lengths.data(), input.data(), istride, idist, output.data(), ostride,
                   odist, batch),
              type, work_size);
}

CUFFT_EXPORT Status cufftGetSizeMany64(Handle plan, int rank, long long* n, long long* inembed,
                                       long long istride, long long idist, long long* onembed,
                                       long long ostride, long long odist, int type,
                                       long long batch, std::size_t* work_size) {
  return size(__func__, plan,
              many(rank, n, inembed, istride, idist, onembed, ostride, odist, batch), type,
              work_size);
}

CUFFT_EXPORT Status cufftXtGetSizeMany(Handle plan, int rank, long long* n, long long* inembed,
                                       long long istride, long long idist, int input_type,
                                       long long* onembed, long long ostride, long long odist,
                                       int output_type, long long batch, std::size_t* work_size,
                                       int execution_type) {
  return call(__func__, plan, [&](Context&) {
    size(many(rank, n, inembed, istride, idist, onembed, ostride, odist, batch),
         type_of(input_type, output_type, execution_type), work_size);
  });
}

CUFFT_EXPORT Status cufftGetSize(Handle plan, std::size_t* work_size) {
  return call(__func__, plan, [&](Context& context) {
    require(work_size != nullptr, Status::invalid_value, "nowhere to put the size");
    *work_size = work_bytes(transform_of(context));
  });
}

CUFFT_EXPORT Status cufftEstimate1d(int nx, int type, int batch, std::size_t* work_size) {
  const std::array<long long, 3> n{nx};
  return estimate(__func__, simple(n, 1, batch), type, work_size);
}

CUFFT_EXPORT Status cufftEstimate2d(int nx, int ny, int type, std::size_t* work_size) {
  const std::array<long long, 3> n{nx, ny};
  return estimate(__func__, simple(n, 2), type, work_size);
}

CUFFT_EXPORT Status cufftEstimate3d(int nx, int ny, int nz, int type, std::size_t* work_size) {
  const std::array<long long, 3> n{nx, ny, nz};
  return estimate(__func__, simple(n, 3), type, work_size);
}

CUFFT_EXPORT Status cufftEstimateMany(int rank, int* n, int* inembed, int istride, int idist,
                                      int* onembed, int ostride, int odist, int type, int batch,
                                      std::size_t* work_size) {
  const Wide lengths(rank, n), input(rank, inembed), output(rank, onembed);
  return estimate(__func__,
                  many(rank, lengths.data(), input.data(), istride, idist, output.data(), ostride,
                       odist, batch),
                  type, work_size);
}
