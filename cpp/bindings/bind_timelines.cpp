#include "bindings/bindings.h"
#include "model/kernel_speeds.h"
#include "timelines/schedule.h"

namespace warpstack::bindings {
namespace {

template <typename T>
Contiguous<T> column(const py::dict& columns, const char* name) {
  return columns[name].cast<Contiguous<T>>();
}

py::dict schedule_to_dict(timelines::Schedule&& made) {
  py::dict columns;
  columns["host_start"] = array_of(std::move(made.host_start));
  columns["host_end"] = array_of(std::move(made.host_end));
  columns["ready"] = array_of(std::move(made.ready));
  columns["start"] = array_of(std::move(made.start));
  columns["end"] = array_of(std::move(made.end));
  columns["why"] = array_of(std::move(made.why));
  columns["released_by"] = array_of(std::move(made.released_by));
  columns["freed_by"] = array_of(std::move(made.freed_by));
  columns["host_waited_for"] = array_of(std::move(made.host_waited_for));
  columns["held_by"] = array_of(std::move(made.held_by));
  return columns;
}

py::dict play_operations(const py::dict& columns, std::uint32_t concurrent_grids, bool in_order,
                         model::KernelSpeeds* speeds, double both_ways) {
  // The arrays stay alive until the end: the columns are views of them.
  const auto thread = column<std::int32_t>(columns, "thread");
  const auto host_before = column<double>(columns, "host_before");
  const auto host_call = column<double>(columns, "host_call");
  const auto host_return = column<double>(columns, "host_return");
  const auto delay = column<double>(columns, "delay");
  const auto engine = column<std::uint8_t>(columns, "engine");
  const auto has_device = column<std::uint8_t>(columns, "has_device");
  const auto duration = column<double>(columns, "duration");
  const auto gap = column<double>(columns, "gap");
  const auto blocks = column<double>(columns, "blocks");
  const auto places = column<double>(columns, "places");
  const auto kernel_class = column<std::int32_t>(columns, "kernel_class");
  const auto priority = column<std::int32_t>(columns, "priority");
  const auto connection = column<std::int32_t>(columns, "connection");
  const auto on_link = column<std::uint8_t>(columns, "on_link");
  const auto trigger = column<double>(columns, "trigger");
  const auto wait = column<double>(columns, "wait");
  const auto early = column<std::uint8_t>(columns, "after_early");
  const auto after_first = column<std::int64_t>(columns, "after_first");
  const auto after_rows = column<std::int32_t>(columns, "after_rows");
  const auto waits_first = column<std::int64_t>(columns, "waits_first");
  const auto waits_rows = column<std::int32_t>(columns, "waits_rows");
  const auto begins_first = column<std::int64_t>(columns, "begins_first");
  const auto begins_rows = column<std::int32_t>(columns, "begins_rows");
  const timelines::Operations operations{
      .thread = span_of(thread),
      .host_before = span_of(host_before),
      .host_call = span_of(host_call),
      .host_return = span_of(host_return),
      .delay = span_of(delay),
      .engine = span_of(engine),
      .has_device = span_of(has_device),
      .duration = span_of(duration),
      .gap = span_of(gap),
      .blocks = span_of(blocks),
      .places = span_of(places),
      .kernel_class = span_of(kernel_class),
      .priority = span_of(priority),
      .connection = span_of(connection),
      .on_link = span_of(on_link),
      .trigger = span_of(trigger),
      .wait = span_of(wait),
      .after = {span_of(after_first), span_of(after_rows)},
      .early = span_of(early),
      .waits = {span_of(waits_first), span_of(waits_rows)},
      .begins = {span_of(begins_first), span_of(begins_rows)},
  };
  timelines::Device device{
      .concurrent_grids = concurrent_grids, .in_order = in_order, .both_ways = both_ways};
  if (speeds != nullptr) {
    device.speeds = [speeds](std::span<const timelines::RunningKernel> kernels) {
      std::vector<model::RunningBlocks> launches;
      for (const auto& [of_class, blocks, alone] : kernels) {
        launches.push_back({of_class, blocks, alone});
      }
      return speeds->of(launches);
    };
  }
  const InterruptCheck interrupt = python_interrupt();
  timelines::Schedule made;
  {
    const py::gil_scoped_release unlocked;
    made = timelines::play(operations, device, interrupt);
  }
  return schedule_to_dict(std::move(made));
}

template <NamedEnum Enum>
py::tuple names_as_tuple() {
  py::list names;
  for (const Enum value : values_of<Enum>) names.append(py::str(std::string(name_of(value))));
  return py::tuple(names);
}

}  // namespace

void bind_timelines(py::module_& module) {
  module.attr("TIMELINE_ENGINES") = names_as_tuple<timelines::Engine>();
  module.attr("TIMELINE_REASONS") = names_as_tuple<timelines::Why>();
  module.def("play_operations", &play_operations, py::arg("columns"), py::arg("concurrent_grids"),
             py::arg("in_order"), py::arg("speeds") = nullptr, py::arg("both_ways") = 1.0);
}

}  // namespace warpstack::bindings
