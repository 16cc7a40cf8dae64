#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>

#include "common/error.h"
#include "gpu/field.h"
#include "gpu/gpu.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::gpu {
namespace {

using Fault = std::optional<std::string>;

/// Lines of all caches together that a simulation can hold: 3 GiB of state.
constexpr double most_lines = 0x1p26;
/// Banks of DRAM of all channels together that a simulation can hold.
constexpr std::uint64_t most_banks = 1 << 20;
constexpr std::uint32_t most_line_bytes = 256;
constexpr std::uint32_t sector = trace::sector_bytes;

/// Text with numbers, as printf writes it.
template <typename... Arguments>
std::string text(const char* format, Arguments... arguments) {
  std::array<char, 512> written;
  std::snprintf(written.data(), written.size(), format, arguments...);
  return written.data();
}

Fault value_fault(const Gpu& gpu) {
  try {
    Gpu checked;
    for (const Field& field : fields()) set(checked, field.id, value_of(gpu, field.id));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// A level of caches as its rules see it.
struct Level {
  const char* name;
  double size_kib;
  std::uint32_t ways;
  std::uint32_t line_bytes;
  std::uint32_t sector_bytes;
  std::uint32_t slices;
  std::uint32_t interleave_bytes;
  Replacement replacement;
};

Fault level_fault(const Level& level) {
  const char* name = level.name;
  if (level.line_bytes % sector != 0 || level.line_bytes > most_line_bytes) {
    return text("%s_line_bytes = %u is not a multiple of 32 up to 256", name, level.line_bytes);
  }
  if (level.sector_bytes % sector != 0 || level.line_bytes % level.sector_bytes != 0) {
    return text("%s_sector_bytes = %u is not a multiple of 32 that divides %s_line_bytes = %u",
                name, level.sector_bytes, name, level.line_bytes);
  }
  const double size = level.size_kib * 1024;
  const double unit = double{1} * level.line_bytes * level.ways * level.slices;
  if (std::fmod(size, unit) != 0) {
    const double near = std::max(std::nearbyint(size / unit), 1.0) * unit / 1024;
    return text(
        "%s_size_kib = %g is not a multiple of %s_line_bytes * %s_ways%s = %g KiB; the "
        "nearest that is: %g",
        name, size / 1024, name, name, level.slices > 1 ? " * l2_slices" : "", unit / 1024, near);
  }
  if (level.interleave_bytes % level.line_bytes != 0) {
    return text("l2_slice_interleave_bytes = %u is not a multiple of l2_line_bytes = %u",
                level.interleave_bytes, level.line_bytes);
  }
  return {};
}

Fault replacement_fault(const Level& level) {
  if (level.replacement != Replacement::plru || std::has_single_bit(level.ways)) return {};
  return text("%s_ways = %u is not a power of two, which %s_replacement = plru needs", level.name,
              level.ways, level.name);
}

std::string shown(const std::vector<double>& numbers) {
  std::string list;
  for (const double number : numbers) {
    list += (list.empty() ? "" : ",") + text("%.12g", number);
  }
  return list;
}

Fault carve_out_fault(const Gpu& gpu) {
  const auto& carve_outs = gpu.shared_memory_carve_outs_kib;
  if ((gpu.unified_l1_kib != 0) != !carve_outs.empty()) {
    return text("unified_l1_kib = %g and shared_memory_carve_outs_kib = ", gpu.unified_l1_kib) +
           shown(carve_outs) + " belong together; give both or none";
  }
  const bool keeps_ways = gpu.adaptive_l1_keeps == AdaptiveL1::ways;
  const double sets = gpu.l1_size_kib * 1024 / gpu.l1_line_bytes / gpu.l1_ways;
  const double unit = gpu.l1_line_bytes * (keeps_ways ? gpu.l1_ways : sets) / 1024;
  for (const double carve_out : carve_outs) {
    const double left = gpu.unified_l1_kib - carve_out;
    if (left <= 0 || std::fmod(left, unit) != 0) {
      return text(
          "a carve-out of %g KiB leaves L1 %g of unified_l1_kib = %g, which is not a "
          "positive multiple of %g KiB, its %s",
          carve_out, left, gpu.unified_l1_kib, unit, keeps_ways ? "ways" : "sets");
    }
    const auto grown = static_cast<std::uint64_t>(std::nearbyint(left / unit));
    if (!keeps_ways && gpu.l1_replacement == Replacement::plru && !std::has_single_bit(grown)) {
      return text(
          "a carve-out of %g KiB leaves L1 %llu ways, which is not a power of two, as "
          "l1_replacement = plru needs; keep the ways (adaptive_l1_keeps)",
          carve_out, static_cast<unsigned long long>(grown));
    }
  }
  return {};
}

Fault dram_fault(const Gpu& gpu) {
  const std::uint32_t channels = gpu.num_dram_channels();
  if (gpu.dram_row_bytes != 0 && std::uint64_t{gpu.dram_banks} * channels > most_banks) {
    return text(
        "dram_banks = %u of each of %u channels are more than %llu banks; the most that a "
        "simulation can hold",
        gpu.dram_banks, channels, static_cast<unsigned long long>(most_banks));
  }
  if (gpu.dram_banks % gpu.dram_interleaved_banks != 0) {
    return text("dram_interleaved_banks = %u does not divide dram_banks = %u",
                gpu.dram_interleaved_banks, gpu.dram_banks);
  }
  // Until the next refresh closes it, a row must be open for long enough to be read, however late
  // it can be opened after the one before.
  const std::uint32_t needed =
      std::max({gpu.dram_trfc, gpu.dram_tras + gpu.dram_trp, gpu.dram_trrd}) + gpu.dram_trcd;
  if (gpu.dram_trefi != 0 && gpu.dram_trefi <= needed) {
    return text(
        "dram_trefi = %u is not more than %u, that is dram_trcd and the longest of "
        "dram_trfc, dram_tras + dram_trp and dram_trrd: refreshes would leave no time for "
        "accesses",
        gpu.dram_trefi, needed);
  }
  return {};
}

}  // namespace

Fault fault_of(const Gpu& gpu) {
  if (auto fault = value_fault(gpu)) return fault;
  return contradiction_in(gpu);
}

Fault contradiction_in(const Gpu& gpu) {
  const double lines = gpu.num_sms * gpu.l1_size_kib * 1024 / gpu.l1_line_bytes +
                       gpu.l2_size_kib * 1024 / gpu.l2_line_bytes;
  if (lines > most_lines) {
    return text(
        "num_sms = %u times l1_size_kib = %g, and l2_size_kib = %g, are %.3g cache lines; "
        "at most %.0f can be simulated",
        gpu.num_sms, gpu.l1_size_kib, gpu.l2_size_kib, lines, most_lines);
  }
  const Level levels[] = {
      {"l1", gpu.l1_size_kib, gpu.l1_ways, gpu.l1_line_bytes, gpu.l1_sector_bytes, 1,
       gpu.l1_line_bytes, gpu.l1_replacement},
      {"l2", gpu.l2_size_kib, gpu.l2_ways, gpu.l2_line_bytes, gpu.l2_sector_bytes, gpu.l2_slices,
       gpu.l2_slice_interleave_bytes, gpu.l2_replacement},
  };
  for (const Level& level : levels) {
    if (auto fault = level_fault(level)) return fault;
  }
  for (const Level& level : levels) {
    if (auto fault = replacement_fault(level)) return fault;
  }
  if (gpu.dram_channels != 0 && gpu.l2_slices % gpu.dram_channels != 0) {
    return text("dram_channels = %u does not divide l2_slices = %u", gpu.dram_channels,
                gpu.l2_slices);
  }
  if (gpu.l1_latency_place == L1Latency::before_tags &&
      std::ceil(gpu.l1_latency) > gpu.l2_latency) {
    return text(
        "l2_latency = %g is less than l1_latency = %g, which is part of it where "
        "l1_latency_place = before_tags; raise it, or let the latency pass after_tags",
        gpu.l2_latency, gpu.l1_latency);
  }
  if (auto fault = dram_fault(gpu)) return fault;
  return carve_out_fault(gpu);
}

void check(const Gpu& gpu) {
  if (const auto fault = fault_of(gpu)) throw InputError(*fault);
}

}  // namespace warpstack::gpu
