#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stand_ins/cufft/abi.h"
#include "stand_ins/library/calls.h"
#include "stand_ins/library/deferral.h"
#include "stand_ins/library/numbers.h"
#include "stand_ins/state/abi.h"

namespace warpstack::cufft {

using Failure = library::Failure<Status>;
using library::Precision;
using library::require;

enum class Kind { complex, real_to_complex, complex_to_real };

/// Where the elements of a batch lie, as NVIDIA's guide says under Advanced Data Layout: element
/// (x, y, z) of transform b at b * distance + ((x * embed[1] + y) * embed[2] + z) * stride.
struct Layout {
  std::vector<std::int64_t> embed;
  std::int64_t stride = 1;
  std::int64_t distance = 0;
};

/// What a plan computes.
struct Transform {
  Kind kind = Kind::complex;
  Precision precision = Precision::f32;
  std::vector<std::int64_t> lengths;  ///< the last changes fastest
  std::int64_t batch = 1;
  /// Without them the elements lie one after another, and real ones in place as many as there is
  /// room for in the rows of complex ones.
  std::optional<Layout> input, output;

  /// Lengths of the half of a spectrum which is kept of real numbers; of complex ones, `lengths`.
  [[nodiscard]] std::vector<std::int64_t> spectrum() const;
  [[nodiscard]] bool input_is_real() const { return kind == Kind::real_to_complex; }
  [[nodiscard]] bool output_is_real() const { return kind == Kind::complex_to_real; }
  /// Elements of the input, and of the output.
  [[nodiscard]] Layout input_layout(bool in_place) const;
  [[nodiscard]] Layout output_layout(bool in_place) const;
};

/// What a cufftHandle stands for.
struct Context {
  std::optional<Transform> transform;  ///< once the plan is made
  cudart::StreamHandle stream = 0;
  bool allocates = true;
  void* work_area = nullptr;
  std::map<int, long long> properties;
};

/// Major version of the libcufft that the program was linked with: 10, 11 or 12.
int abi_version();

/// A new handle, which no plan before has had: what was destroyed is known as such.
Handle add_context();
void remove_context(Handle handle);

/// What the functions of cuFFT have of their own.
struct Library {
  using Status = cufft::Status;
  static constexpr const char* title = "cuFFT";
  static constexpr Status allocation_failed = Status::alloc_failed;
  static constexpr Status internal_error = Status::internal_error;
  static constexpr Status execution_failed = Status::exec_failed;
  /// Throws Failure(invalid_plan) unless the program has created this handle.
  static Context& context_of(Handle handle);
};
inline constexpr library::Call<Library> call;
inline constexpr library::StreamCall<Library> call_in_stream;

/// The transform of a handle. Throws Failure(invalid_plan) unless its plan has been made.
const Transform& transform_of(const Context& context);

/// The arguments of a function that makes a plan, as the program gives them.
struct Request {
  int rank = 1;
  const long long* lengths = nullptr;
  const long long* input_embed = nullptr;
  long long input_stride = 1;
  long long input_distance = 0;
  const long long* output_embed = nullptr;
  long long output_stride = 1;
  long long output_distance = 0;
  long long batch = 1;
};
/// Throws Failure if there is no such transform.
Transform checked(const Request& request, Kind kind, Precision precision);
/// The kind and precision of a cufftType, or of three cudaDataTypes. They throw
/// Failure(invalid_type).
std::pair<Kind, Precision> type_of(int type);
std::pair<Kind, Precision> type_of(int input, int output, int execution);

/// Bytes of the work area: cuFFT's own are not published. One copy of the spectrum.
std::size_t work_bytes(const Transform& transform);
/// Bytes that a GPU's kernels read and write, if each pass over the data is over as many factors of
/// a length as shared memory holds.
std::size_t moved_bytes(const Transform& transform);
/// Its arithmetic by the usual count, 5 N log2 N of complex numbers and half of it of real ones,
/// for N points (M. Frigo and S. G. Johnson, "The Design and Implementation of FFTW3", 2005).
cudart::Computation computation_of(const Transform& transform);

/// Transforms numbers in the program's memory, which is the device's.
void execute(const Context& context, const Transform& transform, const void* input, void* output,
             bool inverse);

}  // namespace warpstack::cufft
