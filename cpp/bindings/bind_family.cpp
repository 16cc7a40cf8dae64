#include "bindings/bindings.h"
#include "memory/families/family_replay.h"
#include "memory/system/order_recording.h"

namespace warpstack::bindings {
namespace {

py::dict lines_to_dict(const memory::OrderRecording& recording) {
  using Line = memory::RecordedLine;
  const std::vector<Line>& lines = recording.lines;
  py::dict result;
  result["sm"] = column_of<std::uint16_t>(lines, [](const Line& l) { return l.sm; });
  result["access"] = column_of<std::uint32_t>(lines, [](const Line& l) { return l.access; });
  result["line"] = column_of<std::uint64_t>(lines, [](const Line& l) { return l.line; });
  result["mask"] = column_of<std::uint8_t>(lines, [](const Line& l) { return l.mask; });
  result["kind"] = column_of<std::uint8_t>(
      lines, [](const Line& l) { return static_cast<std::uint8_t>(l.kind); });
  result["time"] = column_of<std::uint32_t>(lines, [](const Line& l) { return l.time; });
  return result;
}

py::dict accesses_to_dict(const memory::OrderRecording& recording) {
  using Access = memory::RecordedAccess;
  const std::vector<Access>& accesses = recording.accesses;
  py::dict result;
  result["row"] = column_of<std::uint32_t>(accesses, [](const Access& a) { return a.row; });
  result["warp"] = column_of<std::uint32_t>(accesses, [](const Access& a) { return a.warp; });
  result["sent"] = column_of<std::uint32_t>(accesses, [](const Access& a) { return a.sent; });
  result["is_awaited"] =
      column_of<std::uint8_t>(accesses, [](const Access& a) { return a.is_awaited; });
  result["ends_wait"] =
      column_of<std::uint8_t>(accesses, [](const Access& a) { return a.ends_wait; });
  result["is_repeat"] =
      column_of<std::uint8_t>(accesses, [](const Access& a) { return a.is_repeat; });
  return result;
}

/// Lets what a function raises end a long call, in threads that no signal reaches.
InterruptCheck calling(const py::object& function) {
  return [&function] {
    const py::gil_scoped_acquire gil;
    function();
  };
}

}  // namespace

void bind_family(py::module_& module) {
  py::class_<memory::OrderRecording>(module, "OrderRecording")
      .def_property_readonly(
          "reference", [](const memory::OrderRecording& recording) { return recording.reference; })
      .def_property_readonly("num_lines",
                             [](const memory::OrderRecording& r) { return r.lines.size(); })
      .def_property_readonly("lines", &lines_to_dict)
      .def_property_readonly("accesses", &accesses_to_dict);

  module.def(
      "record_order",
      [](memory::MemorySystem& system, const trace::KernelTrace& trace) {
        const py::gil_scoped_release unlocked;
        return system.record(trace, python_interrupt());
      },
      py::arg("system"), py::arg("trace"));
  module.def(
      "replay_order",
      [](const std::vector<const trace::KernelTrace*>& traces,
         const std::vector<const memory::OrderRecording*>& recordings,
         const std::vector<const gpu::Gpu*>& gpus, const std::string& access_order, double share,
         bool flush_l2, double written_by_strangers, const py::object& interrupt) {
        std::vector<memory::RecordedLaunch> launches;
        for (std::size_t i = 0; i < std::min(traces.size(), recordings.size()); ++i) {
          launches.push_back({traces[i], recordings[i]});
        }
        std::vector<memory::MemoryConfig> systems;
        const memory::CacheOptions options{
            .block_order = {},
            .access_order = enum_of<memory::AccessOrder>(access_order),
            .written_by_strangers = written_by_strangers};
        for (const gpu::Gpu* gpu : gpus) {
          systems.push_back(memory::MemoryConfig::of(*gpu, options));
        }
        memory::ReplayedLaunches replayed;
        {
          const py::gil_scoped_release unlocked;
          replayed = memory::replay(launches, systems, share, flush_l2,
                                    interrupt.is_none() ? python_interrupt() : calling(interrupt));
        }
        return py::make_tuple(std::move(replayed.distinct), std::move(replayed.of_configs));
      },
      py::arg("traces"), py::arg("recordings"), py::arg("gpus"), py::arg("access_order"),
      py::arg("share"), py::arg("flush_l2"), py::arg("written_by_strangers") = 0.0,
      py::arg("interrupt") = py::none());
}

}  // namespace warpstack::bindings
