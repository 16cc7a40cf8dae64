#include "bindings/bindings.h"
#include "memory/cache/lru_sets.h"
#include "memory/reuse/line_stream.h"
#include "memory/reuse/reuse_profile.h"

namespace warpstack::bindings {
namespace {

/// Hands the streams of a kernel on to a profiler.
class ProfilerSink : public memory::LineSink {
 public:
  explicit ProfilerSink(memory::ReuseProfiler& profiler) : profiler_(profiler) {}
  void lines(std::span<const std::uint64_t> lines, std::span<const std::uint8_t> kinds) override {
    profiler_.access(lines, kinds);
  }
  void end_stream() override { profiler_.end_stream(); }

 private:
  memory::ReuseProfiler& profiler_;
};

/// Keeps the streams.
struct StoringSink : memory::LineSink {
  std::vector<std::uint64_t> stored;
  std::vector<std::uint8_t> stored_kinds;
  std::vector<std::uint64_t> ends;

  void lines(std::span<const std::uint64_t> lines, std::span<const std::uint8_t> kinds) override {
    stored.insert(stored.end(), lines.begin(), lines.end());
    stored_kinds.insert(stored_kinds.end(), kinds.begin(), kinds.end());
  }
  void end_stream() override { ends.push_back(stored.size()); }
};

/// Distances that occur and how often, for each kind of access, and cold accesses.
py::list histograms_to_list(const memory::ReuseProfiler::Histograms& histograms) {
  py::list result;
  for (const memory::DistanceHistogram& histogram : histograms) {
    std::vector<std::uint64_t> distances;
    std::vector<std::uint64_t> counts;
    for (std::size_t d = 0; d < histogram.count.size(); ++d) {
      if (histogram.count[d] == 0) continue;
      distances.push_back(d);
      counts.push_back(histogram.count[d]);
    }
    result.append(py::make_tuple(array_of(std::move(distances)), array_of(std::move(counts)),
                                 histogram.cold));
  }
  return result;
}

/// The profiler's results: accesses, histograms of the whole sample, histograms of each batch.
py::tuple profile_to_tuple(const memory::ReuseProfiler& profiler) {
  py::list batches;
  for (std::size_t b = 0; b < profiler.num_batches(); ++b) {
    batches.append(histograms_to_list(profiler.batch(b)));
  }
  return py::make_tuple(profiler.accesses(), histograms_to_list(profiler.histograms()), batches);
}

}  // namespace

void bind_reuse(py::module_& module) {
  // A filter: sets, ways, and whether stores allocate.
  using Filter = std::optional<std::tuple<std::uint64_t, std::uint32_t, bool>>;
  py::class_<memory::LineStreamConfig>(module, "LineStreamConfig")
      .def(py::init([](std::uint32_t num_sms, std::uint32_t blocks_per_sm, std::uint32_t line_bytes,
                       bool merged, const Filter& filter) {
             memory::LineStreamConfig config{num_sms, blocks_per_sm, line_bytes, merged, {}};
             if (filter) {
               const auto [sets, ways, allocate] = *filter;
               config.filter = memory::LineFilter{sets, ways, allocate};
             }
             return config;
           }),
           py::kw_only(), py::arg("num_sms"), py::arg("blocks_per_sm"), py::arg("line_bytes"),
           py::arg("merged"), py::arg("filter"))
      .def_readonly("line_bytes", &memory::LineStreamConfig::line_bytes);

  module.def(
      "stack_distances",
      [](const Contiguous<std::uint64_t>& lines) {
        std::vector<std::uint64_t> distances(static_cast<std::size_t>(lines.size()));
        {
          const py::gil_scoped_release unlocked;
          memory::StackDistances().access(span_of(lines), distances, python_interrupt());
        }
        return array_of(std::move(distances));
      },
      py::arg("lines"));

  module.def(
      "profile_lines",
      [](const Contiguous<std::uint64_t>& lines, double rate, std::uint32_t batches,
         std::uint64_t seed) {
        memory::ReuseProfiler profiler({rate, batches, seed});
        {
          const py::gil_scoped_release unlocked;
          profiler.access(span_of(lines), {}, python_interrupt());
        }
        return profile_to_tuple(profiler);
      },
      py::arg("lines"), py::arg("rate"), py::arg("batches"), py::arg("seed"));

  module.def(
      "profile_kernel",
      [](const trace::KernelTrace& trace, const memory::LineStreamConfig& config, double rate,
         std::uint32_t batches, std::uint64_t seed) {
        memory::ReuseProfiler profiler({rate, batches, seed});
        {
          const py::gil_scoped_release unlocked;
          ProfilerSink sink(profiler);
          stream_lines(trace, config, sink, python_interrupt());
        }
        return profile_to_tuple(profiler);
      },
      py::arg("trace"), py::arg("config"), py::arg("rate"), py::arg("batches"), py::arg("seed"));

  module.def(
      "kernel_lines",
      [](const trace::KernelTrace& trace, const memory::LineStreamConfig& config) {
        StoringSink sink;
        {
          const py::gil_scoped_release unlocked;
          stream_lines(trace, config, sink, python_interrupt());
        }
        return py::make_tuple(array_of(std::move(sink.stored)),
                              array_of(std::move(sink.stored_kinds)),
                              array_of(std::move(sink.ends)));
      },
      py::arg("trace"), py::arg("config"));

  module.def(
      "cache_family",
      [](const Contiguous<std::uint64_t>& lines, const std::vector<std::uint64_t>& sets,
         std::uint32_t max_ways) {
        memory::CacheFamily family(sets, max_ways);
        {
          const py::gil_scoped_release unlocked;
          family.access(span_of(lines), python_interrupt());
        }
        return array_of(family.hits());
      },
      py::arg("lines"), py::arg("sets"), py::arg("max_ways"));
}

}  // namespace warpstack::bindings
