#include "gpu/latencies.h"

namespace warpstack::gpu {
namespace {

using trace::OpClass;
using trace::TensorType;

constexpr std::size_t index(OpClass op_class) { return static_cast<std::size_t>(op_class); }

/// The fields of the latencies by class; unknown operations are taken for integer ones.
constexpr std::pair<OpClass, double Gpu::*> latency_fields[] = {
    {OpClass::unknown, &Gpu::integer_latency}, {OpClass::integer, &Gpu::integer_latency},
    {OpClass::fp32, &Gpu::fp32_latency},       {OpClass::fp16, &Gpu::fp16_latency},
    {OpClass::fp64, &Gpu::fp64_latency},       {OpClass::sfu, &Gpu::sfu_latency},
    {OpClass::tensor, &Gpu::tensor_latency},   {OpClass::uniform, &Gpu::uniform_latency},
    {OpClass::control, &Gpu::control_latency}, {OpClass::barrier, &Gpu::barrier_latency},
    {OpClass::shuffle, &Gpu::shuffle_latency}, {OpClass::constant_load, &Gpu::constant_latency},
    {OpClass::texture, &Gpu::texture_latency},
};
constexpr std::pair<OpClass, std::uint32_t Gpu::*> interval_fields[] = {
    {OpClass::unknown, &Gpu::integer_interval}, {OpClass::integer, &Gpu::integer_interval},
    {OpClass::fp32, &Gpu::fp32_interval},       {OpClass::fp16, &Gpu::fp16_interval},
    {OpClass::fp64, &Gpu::fp64_interval},       {OpClass::sfu, &Gpu::sfu_interval},
    {OpClass::tensor, &Gpu::tensor_interval},
};
constexpr std::pair<TensorType, double Gpu::*> rate_fields[] = {
    {TensorType::f16, &Gpu::tensor_f16_rate},   {TensorType::f16_f32, &Gpu::tensor_f16_f32_rate},
    {TensorType::bf16, &Gpu::tensor_bf16_rate}, {TensorType::tf32, &Gpu::tensor_tf32_rate},
    {TensorType::f64, &Gpu::tensor_f64_rate},   {TensorType::f8, &Gpu::tensor_f8_rate},
    {TensorType::s8, &Gpu::tensor_s8_rate},     {TensorType::s4, &Gpu::tensor_s4_rate},
    {TensorType::b1, &Gpu::tensor_b1_rate},
};

}  // namespace

TensorUnit TensorUnit::of(const Gpu& gpu) {
  TensorUnit unit;
  for (const auto& [type, field] : rate_fields) {
    unit.rates[static_cast<std::size_t>(type)] = gpu.*field;
  }
  unit.interval = gpu.tensor_interval;
  unit.more_of_warp = gpu.tensor_warp_cycles;
  return unit;
}

ClassLatencies ClassLatencies::of(const Gpu& gpu) {
  ClassLatencies latencies;
  for (const auto& [op_class, field] : latency_fields) {
    latencies.of_class[index(op_class)] = gpu.*field;
  }
  latencies.shared_memory = gpu.shared_memory_latency;
  latencies.more_shared_wavefront = gpu.shared_wavefront_cycles;
  latencies.tensor = TensorUnit::of(gpu);
  return latencies;
}

std::array<std::uint32_t, trace::num_op_classes> class_intervals(const Gpu& gpu) {
  std::array<std::uint32_t, trace::num_op_classes> intervals{};
  for (const auto& [op_class, field] : interval_fields) intervals[index(op_class)] = gpu.*field;
  return intervals;
}

bool has_interval(trace::OpClass op_class) {
  return std::ranges::any_of(interval_fields,
                             [op_class](const auto& each) { return each.first == op_class; });
}

}  // namespace warpstack::gpu
