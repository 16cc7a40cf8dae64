#include "stand_ins/cufft/plan.h"

#include <algorithm>
#include <cmath>

#include "stand_ins/cufft/fourier.h"

namespace warpstack::cufft {
namespace {

int version = 12;

std::map<Handle, Context>& contexts() {
  static auto* const all = new std::map<Handle, Context>;  // programs may call at their exit
  return *all;
}

/// Elements that one kernel transforms in shared memory: 4096 complex numbers in f32 are 32 KiB.
constexpr double elements_of_a_pass = 4096;

/// Elements, and their bytes, have to fit in 63 bits.
constexpr double most_elements = 1e17;

std::string with_number(const char* name, long long value) {
  return std::string(name) + " = " + std::to_string(value);
}

bool is_power_of_two(long long value) { return (value & (value - 1)) == 0; }

double size_of(const std::vector<std::int64_t>& lengths) {
  double size = 1;
  for (const std::int64_t length : lengths) size *= static_cast<double>(length);
  return size;
}

/// The elements of a batch one after another.
Layout packed(std::vector<std::int64_t> lengths) {
  Layout layout;
  layout.distance = 1;
  for (const std::int64_t length : lengths) layout.distance *= length;
  layout.embed = std::move(lengths);
  return layout;
}

Layout layout_of(const char* side, const Request& request, const long long* embed, long long stride,
                 long long distance) {
  const std::string letter = side;
  Layout layout;
  layout.stride = stride;
  layout.distance = distance;
  require(stride >= 1, Status::invalid_value,
          with_number((letter + "stride").c_str(), stride) + " is less than 1");
  require(distance >= 0, Status::invalid_value,
          with_number((letter + "dist").c_str(), distance) + " is negative");
  double size = static_cast<double>(distance) * static_cast<double>(request.batch);
  double row = static_cast<double>(stride);
  for (int i = request.rank - 1; i >= 0; --i) {
    // The first is not used.
    require(i == 0 || embed[i] >= 1, Status::invalid_value,
            with_number((letter + "nembed").c_str(), embed[i]) + " is less than 1");
    layout.embed.push_back(embed[i]);
    size += row * static_cast<double>(request.lengths[i]);
    row *= static_cast<double>(embed[i]);
  }
  std::reverse(layout.embed.begin(), layout.embed.end());
  require(size < most_elements, Status::invalid_size, "the data have more bytes than memory can");
  return layout;
}

}  // namespace

int abi_version() { return version; }

Handle add_context() {
  static Handle last = 0;
  contexts()[++last];
  return last;
}

void remove_context(Handle handle) { contexts().erase(handle); }

Context& Library::context_of(Handle handle) {
  const auto found = contexts().find(handle);
  require(found != contexts().end(), Status::invalid_plan,
          with_number("plan", handle) + " is not a plan: it was destroyed, or never created");
  return found->second;
}

const Transform& transform_of(const Context& context) {
  require(context.transform.has_value(), Status::invalid_plan,
          "cufftCreate has made the handle, but no cufftMakePlan its plan");
  return *context.transform;
}

std::vector<std::int64_t> Transform::spectrum() const {
  std::vector<std::int64_t> kept = lengths;
  if (kind != Kind::complex) kept.back() = kept.back() / 2 + 1;
  return kept;
}

Layout Transform::input_layout(bool in_place) const {
  if (input) return *input;
  if (!input_is_real()) return packed(spectrum());
  if (!in_place) return packed(lengths);
  std::vector<std::int64_t> padded = spectrum();
  padded.back() *= 2;
  return packed(std::move(padded));
}

Layout Transform::output_layout(bool in_place) const {
  if (output) return *output;
  if (!output_is_real()) return packed(spectrum());
  if (!in_place) return packed(lengths);
  std::vector<std::int64_t> padded = spectrum();
  padded.back() *= 2;
  return packed(std::move(padded));
}

Transform checked(const Request& request, Kind kind, Precision precision) {
  require(request.rank >= 1 && request.rank <= 3, Status::invalid_size,
          with_number("rank", request.rank) + " is not 1, 2 or 3");
  require(request.lengths != nullptr, Status::invalid_value, "n is null");
  require(request.batch >= 1, Status::invalid_size,
          with_number("batch", request.batch) + " is less than 1");
  const bool narrow = precision == Precision::f16 || precision == Precision::bf16;
  Transform transform;
  transform.kind = kind;
  transform.precision = precision;
  transform.batch = request.batch;
  for (int i = 0; i < request.rank; ++i) {
    const long long length = request.lengths[i];
    require(length >= 1, Status::invalid_size, with_number("n", length) + " is less than 1");
    require(!narrow || is_power_of_two(length), Status::invalid_size,
            with_number("n", length) +
                " is not a power of two, as transforms of half precision and bf16 must be");
    transform.lengths.push_back(length);
  }
  require(size_of(transform.lengths) * static_cast<double>(request.batch) < most_elements,
          Status::invalid_size, "the data have more bytes than memory can");
  // Without one of the two neither side has a layout of its own.
  if (request.input_embed != nullptr && request.output_embed != nullptr) {
    transform.input =
        layout_of("i", request, request.input_embed, request.input_stride, request.input_distance);
    transform.output = layout_of("o", request, request.output_embed, request.output_stride,
                                 request.output_distance);
    const long long of_real = kind == Kind::real_to_complex   ? request.input_stride
                              : kind == Kind::complex_to_real ? request.output_stride
                                                              : 1;
    require(!narrow || of_real == 1, Status::not_supported,
            "transforms of half precision and bf16 have no stride of real numbers");
  }
  return transform;
}

std::pair<Kind, Precision> type_of(int type) {
  switch (type) {
    case type_c2c:
      return {Kind::complex, Precision::f32};
    case type_r2c:
      return {Kind::real_to_complex, Precision::f32};
    case type_c2r:
      return {Kind::complex_to_real, Precision::f32};
    case type_z2z:
      return {Kind::complex, Precision::f64};
    case type_d2z:
      return {Kind::real_to_complex, Precision::f64};
    case type_z2d:
      return {Kind::complex_to_real, Precision::f64};
    default:
      throw Failure(Status::invalid_type, with_number("type", type) + " is not one of cufftType");
  }
}

std::pair<Kind, Precision> type_of(int input, int output, int execution) {
  struct Types {
    int real, complex;
    Precision precision;
  };
  for (const auto& [real, complex, precision] :
       {Types{data_f16, data_c16, Precision::f16}, Types{data_bf16, data_cbf16, Precision::bf16},
        Types{data_f32, data_c32, Precision::f32}, Types{data_f64, data_c64, Precision::f64}}) {
    if (execution != complex) continue;
    if (input == complex && output == complex) return {Kind::complex, precision};
    if (input == real && output == complex) return {Kind::real_to_complex, precision};
    if (input == complex && output == real) return {Kind::complex_to_real, precision};
  }
  throw Failure(Status::invalid_type,
                "the types of input (" + std::to_string(input) + "), output (" +
                    std::to_string(output) + ") and execution (" + std::to_string(execution) +
                    ") are not of one precision, two of them complex; that of execution must be");
}

std::size_t work_bytes(const Transform& transform) {
  return static_cast<std::size_t>(size_of(transform.spectrum()) *
                                  static_cast<double>(transform.batch)) *
         2 * bytes_of(transform.precision);
}

std::size_t moved_bytes(const Transform& transform) {
  double passes = 0;
  for (const std::int64_t length : transform.lengths) {
    if (length == 1) continue;
    const auto passes_of = [](double elements) {
      return std::max(1.0, std::ceil(std::log2(elements) / std::log2(elements_of_a_pass) - 1e-9));
    };
    if (prime_factors(length).back() <= Fourier::largest_factor) {
      passes += passes_of(static_cast<double>(length));
    } else {
      const auto wide = static_cast<double>(convolution_length(length));
      passes += 2 * passes_of(wide) * wide / static_cast<double>(length);
    }
  }
  return static_cast<std::size_t>(2 * std::max(passes, 1.0) *
                                  static_cast<double>(work_bytes(transform)));
}

cudart::Computation computation_of(const Transform& transform) {
  double points = 1;
  for (const std::int64_t length : transform.lengths) points *= static_cast<double>(length);
  const double of_point = transform.kind == Kind::complex ? 5 : 2.5;
  using cudart::Arithmetic;
  const Arithmetic arithmetic = transform.precision == Precision::f64    ? Arithmetic::fp64
                                : transform.precision == Precision::f32  ? Arithmetic::fp32
                                : transform.precision == Precision::bf16 ? Arithmetic::bf16
                                                                         : Arithmetic::fp16;
  return {of_point * points * std::log2(points) * static_cast<double>(transform.batch), arithmetic,
          false};
}

}  // namespace warpstack::cufft

/// Called by the library that the program is linked with.
CUFFT_EXPORT void warpstack_cufft_set_abi(int abi) { warpstack::cufft::version = abi; }
