#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bindings/bindings.h"
#include "common/demangle.h"
#include "common/error.h"
#include "common/threads.h"
#include "trace/accelsim/reader.h"
#include "trace/accelsim/writer.h"
#include "trace/changes/program_change.h"
#include "trace/columns/block_sample.h"
#include "trace/columns/column_batch.h"
#include "trace/columns/dependent_launch.h"
#include "trace/columns/launch_features.h"
#include "trace/columns/program.h"
#include "trace/columns/sector_steps.h"
#include "trace/columns/touched_pages.h"
#include "trace/columns/trace_file.h"
#include "trace/instructions/sass_names.h"
#include "trace/instructions/tensor_operation.h"
#include "trace/nvbit/mem_trace_reader.h"

namespace warpstack::bindings {
namespace {

py::dict instruction_table(const trace::KernelTrace& trace) {
  const auto& rows = trace.instructions();
  const auto texts = [&rows](auto get) {
    py::list list;
    for (const trace::StaticInstruction& row : rows) list.append(py::str(std::string(get(row))));
    return list;
  };
  py::list destinations;
  py::list sources;
  for (const trace::StaticInstruction& row : rows) {
    destinations.append(row.destinations);
    sources.append(row.sources);
  }
  using Row = trace::StaticInstruction;
  py::dict table;
  table["pc"] = column_of<std::uint32_t>(rows, [](const Row& r) { return r.pc; });
  table["source_line"] = column_of<std::uint32_t>(rows, [](const Row& r) { return r.source_line; });
  table["source_file"] = column_of<std::uint32_t>(rows, [](const Row& r) { return r.source_file; });
  table["inlined_at"] = column_of<std::uint32_t>(rows, [](const Row& r) { return r.inlined_at; });
  table["opcode"] = texts([](const Row& r) { return r.opcode; });
  table["known_opcode"] =
      column_of<std::uint8_t>(rows, [](const Row& r) { return r.known_opcode; });
  table["op_class"] = texts([](const Row& r) { return name_of(r.op_class); });
  table["space"] = texts([](const Row& r) { return name_of(r.space); });
  table["kind"] = texts([](const Row& r) { return name_of(r.kind); });
  table["cache_operator"] = texts([](const Row& r) { return name_of(r.cache_operator); });
  table["width"] = column_of<std::uint32_t>(rows, [](const Row& r) { return r.width; });
  table["destinations"] = destinations;
  table["sources"] = sources;
  if (trace.has_control()) {
    trace::for_each_control_field([&](const char* name, auto field) {
      table[name] =
          column_of<std::uint8_t>(rows, [field](const Row& r) { return (*r.control).*field; });
    });
  }
  table["executions"] = column_of<std::uint64_t>(
      trace.row_counts(), [](const trace::RowCounts& c) { return c.issued; });
  return table;
}

/// Warp instructions that each unit of a scheduler executes: all but memory accesses.
py::dict unit_instructions(const trace::LaunchFeatures& features) {
  py::dict result;
  for (const trace::OpClass op_class : values_of<trace::OpClass>) {
    result[py::str(std::string(name_of(op_class)))] =
        features.units[static_cast<std::size_t>(op_class)];
  }
  return result;
}

/// Matrix instructions whose type is known: type, multiply-adds of a warp, whether four warps share
/// each, how many were issued.
py::list tensor_operations(const trace::KernelTrace& trace) {
  py::list result;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const auto& operation = trace.effects()[row].tensor;
    if (!operation) continue;
    result.append(py::make_tuple(std::string(name_of(operation->type)), operation->multiply_adds,
                                 operation->is_of_group, trace.row_counts()[row].issued));
  }
  return result;
}

py::dict features_to_dict(const trace::LaunchFeatures& features) {
  py::dict result = unit_instructions(features);
  result["loads"] = features.loads;
  result["stores"] = features.stores;
  result["atomics"] = features.atomics;
  result["shared_wavefronts"] = features.shared_wavefronts;
  result["read_sectors"] = features.read_sectors;
  result["written_sectors"] = features.written_sectors;
  return result;
}

/// One of the numbers of atomic lanes.
py::array_t<std::uint8_t> lanes_of(std::span<const trace::AtomicLanes> lanes,
                                   std::uint8_t trace::AtomicLanes::* number) {
  py::array_t<std::uint8_t> result(static_cast<py::ssize_t>(lanes.size()));
  std::ranges::transform(lanes, result.mutable_data(), number);
  return result;
}

/// Passes of L1 of each memory instruction, also where sectors imply all of them.
py::array_t<std::uint8_t> passes_of(const trace::ColumnView& view) {
  py::array_t<std::uint8_t> result(static_cast<py::ssize_t>(view.memory_static.size()));
  if (view.l1_passes.empty()) {
    std::fill_n(result.mutable_data(), result.size(), std::uint8_t{0});
  } else {
    std::ranges::copy(view.l1_passes, result.mutable_data());
  }
  return result;
}

/// Columns of one warp: NumPy views of the trace, or of a copy when it lives in a file.
py::dict warp_columns(const py::object& self, const trace::WarpPosition& position) {
  const auto& trace = self.cast<const trace::KernelTrace&>();
  if (position.block >= trace.blocks().size() ||
      position.warp >= trace.blocks().warps(position.block).size()) {
    throw InputError("there is no such warp in the trace");
  }
  auto* scratch = new std::vector<std::byte>;
  const py::capsule scratch_owner(scratch,
                                  [](void* p) { delete static_cast<std::vector<std::byte>*>(p); });
  const trace::ColumnView view = trace.warp(position, *scratch);
  const py::handle owner = trace.blocks().spilled() ? py::handle(scratch_owner) : py::handle(self);
  const py::handle owner_of_sectors =
      trace.blocks().copies_sectors(position.block) ? py::handle(scratch_owner) : py::handle(self);
  py::dict columns;
  columns["instruction"] = view_of(view.instruction, owner);
  columns["active_mask"] = view_of(view.active_mask, owner);
  columns["memory_static"] = view_of(view.memory_static, owner);
  columns["memory_count"] = view_of(view.memory_count, owner);
  columns["sector"] = view_of(view.sector, owner_of_sectors);
  columns["store_bytes"] = view_of(view.store_bytes, owner);
  columns["sector_lanes"] = lanes_of(view.atomic_lanes, &trace::AtomicLanes::sector);
  columns["word_lanes"] = lanes_of(view.atomic_lanes, &trace::AtomicLanes::word);
  columns["l1_passes"] = passes_of(view);
  return columns;
}

py::dict batch_to_dict(trace::BlockBatch&& batch) {
  py::dict result;
  result["block"] = array_of(std::move(batch.block));
  result["warp"] = array_of(std::move(batch.warp));
  result["instructions"] = array_of(std::move(batch.instructions));
  result["memory"] = array_of(std::move(batch.memory));
  result["sectors"] = array_of(std::move(batch.sectors));
  result["stores"] = array_of(std::move(batch.stores));
  result["instruction"] = array_of(std::move(batch.columns.instruction));
  result["active_mask"] = array_of(std::move(batch.columns.active_mask));
  result["memory_static"] = array_of(std::move(batch.columns.memory_static));
  result["memory_count"] = array_of(std::move(batch.columns.memory_count));
  result["sector"] = array_of(std::move(batch.columns.sector));
  result["store_bytes"] = array_of(std::move(batch.columns.store_bytes));
  result["sector_lanes"] = lanes_of(batch.columns.atomic_lanes, &trace::AtomicLanes::sector);
  result["word_lanes"] = lanes_of(batch.columns.atomic_lanes, &trace::AtomicLanes::word);
  result["l1_passes"] = array_of(std::move(batch.columns.l1_passes));
  return result;
}

/// `has_steps`: it has the steps of sectors in their place.
py::dict distinct_batch_to_dict(trace::DistinctBatch&& batch, bool has_steps) {
  py::dict result = batch_to_dict(std::move(batch.distinct));
  if (has_steps) {
    result["step"] = result.attr("pop")("sector").attr("view")(py::dtype::of<std::int64_t>());
  }
  result["repeat"] = array_of(std::move(batch.repeats.block));
  result["like"] = array_of(std::move(batch.repeats.like));
  result["shifts"] = array_of(std::move(batch.repeats.shifts));
  result["shift"] = array_of(std::move(batch.repeats.shift));
  return result;
}

/// `are_distinct`: the batch has no equal blocks, but may have those that repeat another. It has
/// sectors or their steps.
void add_batch_from_dict(trace::TraceBuilder& builder, const py::dict& batch, bool are_distinct) {
  const auto u64 = [&batch](const char* key) {
    return batch[key].cast<Contiguous<std::uint64_t>>();
  };
  const auto u32 = [&batch](const char* key) {
    return batch[key].cast<Contiguous<std::uint32_t>>();
  };
  const bool has_steps = batch.contains("step");
  Contiguous<std::uint64_t> sector;
  if (has_steps) {
    sector = batch["step"].attr("view")(py::dtype::of<std::uint64_t>()).cast<decltype(sector)>();
  } else {
    sector = u64("sector");
  }
  const auto block = u64("block");
  const auto warp = u32("warp"), instructions = u32("instructions"), memory = u32("memory"),
             sectors = u32("sectors"), stores = u32("stores"), instruction = u32("instruction"),
             mask = u32("active_mask"), memory_static = u32("memory_static"),
             store_bytes = u32("store_bytes");
  const auto memory_count = batch["memory_count"].cast<Contiguous<std::uint16_t>>();
  std::vector<trace::AtomicLanes> lanes;
  if (batch.contains("sector_lanes")) {
    const auto in_sector = batch["sector_lanes"].cast<Contiguous<std::uint8_t>>();
    const auto in_word = batch["word_lanes"].cast<Contiguous<std::uint8_t>>();
    if (in_sector.size() != in_word.size()) {
      throw InputError("sector_lanes and word_lanes differ in length");
    }
    for (py::ssize_t i = 0; i < in_sector.size(); ++i) {
      lanes.push_back({in_sector.data()[i], in_word.data()[i]});
    }
  }
  Contiguous<std::uint8_t> passes;
  if (batch.contains("l1_passes")) passes = batch["l1_passes"].cast<Contiguous<std::uint8_t>>();
  trace::BlockBatchView view{
      span_of(block),
      span_of(warp),
      span_of(instructions),
      span_of(memory),
      span_of(sectors),
      span_of(stores),
      {span_of(instruction), span_of(mask), span_of(memory_static), span_of(memory_count),
       span_of(sector), span_of(store_bytes), lanes, span_of(passes)}};
  std::vector<std::uint64_t> found;
  const auto find_sectors = [&] {
    if (!has_steps) return;
    found = sectors_of_steps(view.columns, builder.has_sectors());
    view.columns.sector = found;
  };
  if (!are_distinct) {
    const py::gil_scoped_release unlocked;
    find_sectors();
    add_batch(builder, view);
    return;
  }
  Contiguous<std::uint64_t> repeat;
  Contiguous<std::uint32_t> like, shifts;
  Contiguous<std::int32_t> shift;
  if (batch.contains("repeat")) {
    repeat = u64("repeat");
    like = u32("like");
    shifts = u32("shifts");
    shift = batch["shift"].cast<Contiguous<std::int32_t>>();
  }
  const trace::RepeatsView repeats{span_of(repeat), span_of(like), span_of(shifts), span_of(shift)};
  const py::gil_scoped_release unlocked;
  find_sectors();
  add_batch(builder, view, repeats);
}

void append_program_from_list(trace::TraceBuilder& builder, const py::list& steps) {
  struct Arrays {
    Contiguous<std::uint8_t> issued;
    Contiguous<std::uint32_t> mask;
    Contiguous<std::uint64_t> addresses;
  };
  std::vector<Arrays> arrays;
  std::vector<trace::ProgramStep> program;
  arrays.reserve(steps.size());
  for (const py::handle step : steps) {
    const auto [row, issued, mask, addresses] =
        step.cast<std::tuple<std::uint32_t, py::object, py::object, py::object>>();
    Arrays& held = arrays.emplace_back();
    trace::ProgramStep& next = program.emplace_back();
    next.row = row;
    if (!issued.is_none())
      next.issued = span_of(held.issued = issued.cast<decltype(held.issued)>());
    if (!mask.is_none()) next.mask = span_of(held.mask = mask.cast<decltype(held.mask)>());
    if (!addresses.is_none()) {
      next.addresses = span_of(held.addresses = addresses.cast<decltype(held.addresses)>());
    }
  }
  const py::gil_scoped_release unlocked;
  append_program(builder, program, python_interrupt());
}

trace::StaticInstruction instruction_from_row(const py::dict& row) {
  trace::StaticInstruction instruction;
  instruction.pc = row["pc"].cast<std::uint32_t>();
  instruction.source_line = row["source_line"].cast<std::uint32_t>();
  for (const auto& [name, value] : {std::pair{"source_file", &instruction.source_file},
                                    std::pair{"inlined_at", &instruction.inlined_at}}) {
    if (row.contains(name)) *value = row[name].cast<std::uint32_t>();
  }
  instruction.opcode = row["opcode"].cast<std::string>();
  instruction.known_opcode = row["known_opcode"].cast<bool>();
  instruction.op_class = enum_of<trace::OpClass>(row["op_class"].cast<std::string>());
  instruction.space = enum_of<trace::MemorySpace>(row["space"].cast<std::string>());
  instruction.kind = enum_of<trace::MemoryKind>(row["kind"].cast<std::string>());
  instruction.cache_operator =
      enum_of<trace::CacheOperator>(row["cache_operator"].cast<std::string>());
  instruction.width = row["width"].cast<std::uint32_t>();
  instruction.destinations = row["destinations"].cast<std::vector<std::uint16_t>>();
  instruction.sources = row["sources"].cast<std::vector<std::uint16_t>>();
  if (row.contains("stall")) {
    trace::Control& control = instruction.control.emplace();
    trace::for_each_control_field([&](const char* name, auto field) {
      auto& value = control.*field;
      value = row[name].cast<std::remove_reference_t<decltype(value)>>();
    });
  }
  for (const auto* registers : {&instruction.destinations, &instruction.sources}) {
    for (const std::uint16_t reg : *registers) {
      // Numbers are dense already: 255 is a register like others, and PTX has more than SASS.
      if (reg == 0xFFFF) throw InputError("a register number is beyond 65534");
    }
  }
  return instruction;
}

/// Files as (name, time, bytes), and calls as (function, file, line, caller).
trace::SourceTable sources_from_dict(const py::dict& table) {
  trace::SourceTable sources;
  for (const py::handle row : table["files"].cast<py::list>()) {
    const auto [name, time, bytes] =
        row.cast<std::tuple<std::string, std::uint64_t, std::uint64_t>>();
    sources.files.push_back({name, time, bytes});
  }
  for (const py::handle row : table["calls"].cast<py::list>()) {
    const auto [function, file, line, caller] =
        row.cast<std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint32_t>>();
    sources.calls.push_back({function, file, line, caller});
  }
  return sources;
}

/// Text of a file or symbol, which need not be UTF-8.
py::str readable(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

py::dict sources_to_dict(const trace::SourceTable& sources) {
  py::list files;
  for (const trace::SourceFile& file : sources.files) {
    files.append(py::make_tuple(readable(file.name), file.time, file.bytes));
  }
  py::list calls;
  for (const trace::InlinedCall& call : sources.calls) {
    calls.append(py::make_tuple(readable(call.function), call.file, call.line, call.caller));
  }
  py::dict table;
  table["files"] = files;
  table["calls"] = calls;
  return table;
}

trace::KernelHeader header_from_dict(const py::dict& fields) {
  trace::KernelHeader header;
  header.name = fields["name"].cast<std::string>();
  header.launch_id = fields["launch_id"].cast<std::uint64_t>();
  if (fields.contains("parent")) header.parent = fields["parent"].cast<std::uint64_t>();
  header.grid = fields["grid"].cast<trace::Dim3>();
  header.block = fields["block"].cast<trace::Dim3>();
  if (fields.contains("cluster")) header.cluster = fields["cluster"].cast<trace::Dim3>();
  header.shared_memory_bytes = fields["shared_memory_bytes"].cast<std::uint64_t>();
  header.registers_per_thread = fields["registers_per_thread"].cast<std::uint64_t>();
  header.binary_version = fields["binary_version"].cast<std::uint64_t>();
  header.stream = fields["stream"].cast<std::uint64_t>();
  header.shared_window = fields["shared_window"].cast<std::uint64_t>();
  header.local_window = fields["local_window"].cast<std::uint64_t>();
  const auto ticks_of = [&](const char* name) -> trace::AwaitedTicks {
    if (!fields.contains(name)) return {};
    const auto [most, total, least] = fields[name].cast<std::array<std::uint64_t, 3>>();
    return {most, total, least};
  };
  header.awaited_cycles = ticks_of("awaited_cycles");
  header.awaited_ns = ticks_of("awaited_ns");
  header.source = fields["source"].cast<std::string>();
  if (fields.contains("sources")) {
    header.sources = sources_from_dict(fields["sources"].cast<py::dict>());
  }
  return header;
}

py::dict header_to_dict(const trace::KernelHeader& header) {
  py::dict fields;
  fields["name"] = header.name;
  fields["launch_id"] = header.launch_id;
  fields["parent"] = header.parent;
  fields["grid"] = header.grid;
  fields["block"] = header.block;
  fields["cluster"] = header.cluster;
  fields["shared_memory_bytes"] = header.shared_memory_bytes;
  fields["registers_per_thread"] = header.registers_per_thread;
  fields["binary_version"] = header.binary_version;
  fields["stream"] = header.stream;
  fields["shared_window"] = header.shared_window;
  fields["local_window"] = header.local_window;
  const auto tuple_of = [](const trace::AwaitedTicks& ticks) {
    return py::make_tuple(ticks.most, ticks.total, ticks.least);
  };
  fields["awaited_cycles"] = tuple_of(header.awaited_cycles);
  fields["awaited_ns"] = tuple_of(header.awaited_ns);
  fields["source"] = header.source;
  return fields;
}

py::dict room_for_changes(const trace::KernelTrace& trace) {
  std::vector<trace::RowRoom> rows;
  {
    const py::gil_scoped_release unlocked;
    rows = trace::room_for_changes(trace, python_interrupt());
  }
  py::dict columns;
  const auto add = [&](const char* name, std::uint64_t trace::RowRoom::* field) {
    columns[name] =
        column_of<std::uint64_t>(rows, [field](const trace::RowRoom& row) { return row.*field; });
  };
  add("partial", &trace::RowRoom::partial);
  add("sectors", &trace::RowRoom::sectors);
  add("passes", &trace::RowRoom::passes);
  add("meeting_lanes", &trace::RowRoom::meeting_lanes);
  add("atomics", &trace::RowRoom::atomics);
  add("again", &trace::RowRoom::again);
  add("held", &trace::RowRoom::held);
  add("tiled", &trace::RowRoom::tiled);
  add("divisions", &trace::RowRoom::divisions);
  add("waits", &trace::RowRoom::waits);
  add("pitch", &trace::RowRoom::pitch);
  return columns;
}

/// Gives a reader of text the next piece of it.
template <typename Reader>
void feed(Reader& reader, const py::buffer& data) {
  const py::buffer_info info = data.request();
  const std::string_view text(static_cast<const char*>(info.ptr),
                              static_cast<std::size_t>(info.size * info.itemsize));
  const py::gil_scoped_release unlocked;
  reader.feed(text);
}

void bind_accelsim(py::module_& module) {
  py::class_<trace::AccelSimReader>(module, "AccelSimReader")
      .def(py::init([](std::string file_name, std::shared_ptr<trace::StorageBudget> budget,
                       unsigned num_threads) {
             // More threads than these wait for the text.
             return std::make_unique<trace::AccelSimReader>(
                 std::move(file_name), std::move(budget),
                 std::min(threads_asked_for(num_threads), 16u));
           }),
           py::arg("file_name"), py::arg("budget"), py::arg("num_threads") = 0)
      .def("feed", &feed<trace::AccelSimReader>)
      .def("finish", &trace::AccelSimReader::finish, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("unknown_fields",
                             [](const trace::AccelSimReader& reader) {
                               const auto& fields = reader.unknown_fields();
                               return std::tuple(fields.lines, fields.first_line,
                                                 fields.first_field);
                             })
      .def_property_readonly("num_bulk_copies", &trace::AccelSimReader::num_bulk_copies);

  py::class_<trace::MemTraceReader>(module, "MemTraceReader")
      .def(py::init<std::string, std::shared_ptr<trace::StorageBudget>>(), py::arg("file_name"),
           py::arg("budget"))
      .def("feed", &feed<trace::MemTraceReader>)
      .def("finish", &trace::MemTraceReader::finish, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("num_without_access", &trace::MemTraceReader::num_without_access);

  py::class_<trace::AccelSimWriter>(module, "AccelSimWriter")
      .def(py::init([](const trace::KernelTrace& trace, std::uint64_t binary_version,
                       const std::optional<std::uint64_t>& stream) {
             const py::gil_scoped_release unlocked;
             return std::make_unique<trace::AccelSimWriter>(trace, binary_version, stream,
                                                            python_interrupt());
           }),
           py::arg("trace"), py::arg("binary_version") = 0, py::arg("stream") = py::none(),
           py::keep_alive<1, 2>())
      .def("header", [](const trace::AccelSimWriter& writer) { return py::bytes(writer.header()); })
      .def(
          "blocks",
          [](trace::AccelSimWriter& writer, std::size_t first, std::size_t last) {
            std::string text;
            {
              const py::gil_scoped_release unlocked;
              text = writer.blocks(first, last);
            }
            return py::bytes(text);
          },
          py::arg("first"), py::arg("last"))
      .def_property_readonly("warps_without_exit", &trace::AccelSimWriter::warps_without_exit);

  module.def("sass_versions", [] {
    const auto versions = trace::sass_versions();
    return std::vector<std::uint64_t>(versions.begin(), versions.end());
  });
  module.def(
      "sass_opcode",
      [](const py::dict& row, std::uint64_t binary_version, bool returns_from_function) {
        return sass_opcode(
            instruction_from_row(row), binary_version,
            returns_from_function ? trace::ReturnKind::from_function : trace::ReturnKind::exit);
      },
      py::arg("row"), py::arg("binary_version"), py::arg("returns_from_function") = false);
}

}  // namespace

void bind_trace(py::module_& module) {
  py::class_<trace::StorageBudget, std::shared_ptr<trace::StorageBudget>>(module, "StorageBudget")
      .def(py::init<std::uint64_t, std::string>(), py::arg("limit"), py::arg("spill_folder"));

  py::class_<trace::KernelTrace>(module, "KernelTrace")
      .def_property_readonly("header",
                             [](const trace::KernelTrace& t) { return header_to_dict(t.header()); })
      .def_property_readonly(
          "sources",
          [](const trace::KernelTrace& t) { return sources_to_dict(t.header().sources); })
      .def_property_readonly("digest", &trace::KernelTrace::digest)
      .def_property_readonly("digest_without_lanes", &trace::KernelTrace::digest_without_lanes)
      .def_property_readonly("has_atomics", &trace::KernelTrace::has_atomics)
      .def_property_readonly("has_passes",
                             [](const trace::KernelTrace& t) { return t.blocks().has_passes(); })
      .def_property_readonly("num_registers", &trace::KernelTrace::num_registers)
      .def_property_readonly("num_warps", &trace::KernelTrace::num_warps)
      .def_property_readonly("num_instructions",
                             [](const trace::KernelTrace& t) { return t.totals().instructions; })
      .def_property_readonly("num_sectors",
                             [](const trace::KernelTrace& t) { return t.totals().sectors; })
      .def_property_readonly("num_memory_instructions",
                             &trace::KernelTrace::num_memory_instructions)
      .def_property_readonly("num_missing_blocks", &trace::KernelTrace::num_missing_blocks)
      .def_property_readonly("is_sampled", &trace::is_sampled)
      .def("launch_of_blocks", &trace::launch_of_blocks, py::arg("positions"), py::arg("budget"),
           py::call_guard<py::gil_scoped_release>())
      .def("touched_lines", &trace::touched_lines, py::arg("levels_of"), py::arg("levels"),
           py::arg("line_bytes"), py::arg("one_in") = 1, py::call_guard<py::gil_scoped_release>())
      .def(
          "changed",
          [](const trace::KernelTrace& t, const std::string& change,
             const std::vector<std::uint8_t>& is_chosen,
             std::shared_ptr<trace::StorageBudget> budget) {
            const auto which = enum_of<trace::ProgramChange>(change);
            const py::gil_scoped_release unlocked;
            return trace::changed(t, which, is_chosen, std::move(budget), python_interrupt());
          },
          py::arg("change"), py::arg("is_chosen"), py::arg("budget"))
      .def("room_for_changes", &room_for_changes)
      .def_property_readonly("num_traced_blocks",
                             [](const trace::KernelTrace& t) { return t.blocks().size(); })
      .def_property_readonly("num_blocks",
                             [](const trace::KernelTrace& t) { return t.header().num_blocks(); })
      .def_property_readonly(
          "blocks_together",
          [](const trace::KernelTrace& t) { return t.header().blocks_together(); })
      .def_property_readonly(
          "warps_per_block",
          [](const trace::KernelTrace& t) { return t.header().warps_per_block(); })
      .def_property_readonly(
          "threads_per_block",
          [](const trace::KernelTrace& t) { return t.header().threads_per_block(); })
      .def_property_readonly("bytes",
                             [](const trace::KernelTrace& t) { return t.blocks().bytes(); })
      .def_property_readonly("stored_bytes",
                             [](const trace::KernelTrace& t) { return t.blocks().stored_bytes(); })
      .def_property_readonly("num_distinct_blocks",
                             [](const trace::KernelTrace& t) { return t.blocks().num_classes(); })
      .def_property_readonly("has_control", &trace::KernelTrace::has_control)
      .def_property_readonly("in_file",
                             [](const trace::KernelTrace& t) { return t.blocks().spilled(); })
      .def_property_readonly("unknown_opcodes", &trace::KernelTrace::unknown_opcodes)
      .def_property_readonly("num_idle_blocks", &trace::KernelTrace::num_idle_blocks)
      .def_property_readonly("num_missing_warps", &trace::KernelTrace::num_missing_warps)
      .def_property_readonly("working_warps_per_block",
                             &trace::KernelTrace::working_warps_per_block)
      .def(
          "dpki",
          [](const trace::KernelTrace& t, std::uint32_t line_bytes) {
            const py::gil_scoped_release unlocked;
            return t.dpki(line_bytes, python_interrupt());
          },
          py::arg("line_bytes"))
      .def("num_thread_instructions",
           [](const trace::KernelTrace& t) {
             const py::gil_scoped_release unlocked;
             return t.num_thread_instructions(python_interrupt());
           })
      .def("instruction_table", &instruction_table)
      .def("tensor_operations", &tensor_operations)
      .def("unit_instructions",
           [](const trace::KernelTrace& t) { return unit_instructions(launch_features(t)); })
      .def("launch_features",
           [](const trace::KernelTrace& t) { return features_to_dict(launch_features(t)); })
      .def("dependent_launch",
           [](const trace::KernelTrace& t) {
             const trace::DependentLaunch found = dependent_launch(t, python_interrupt());
             return std::pair(found.trigger, found.wait);
           })
      .def("block_warps",
           [](const trace::KernelTrace& t, std::size_t block) {
             if (block >= t.blocks().size()) throw py::index_error("no such block in the trace");
             std::vector<std::uint32_t> numbers;
             for (const trace::WarpEntry& warp : t.blocks().warps(block))
               numbers.push_back(warp.number);
             return std::pair(t.blocks().linear_index(block), numbers);
           })
      .def("block_work",
           [](const trace::KernelTrace& t) {
             const std::size_t blocks = t.blocks().size();
             std::vector<std::uint64_t> instructions(blocks);
             std::vector<std::uint64_t> longest(blocks);
             for (std::size_t b = 0; b < blocks; ++b) {
               for (const trace::WarpEntry& warp : t.blocks().warps(b)) {
                 instructions[b] += warp.instructions;
                 longest[b] = std::max<std::uint64_t>(longest[b], warp.instructions);
               }
             }
             return std::pair(array_of(std::move(instructions)), array_of(std::move(longest)));
           })
      .def("warp_columns", [](const py::object& self, std::uint32_t block,
                              std::uint32_t warp) { return warp_columns(self, {block, warp}); })
      .def(
          "read_batch",
          [](const trace::KernelTrace& t, std::size_t first, std::size_t last) {
            trace::BlockBatch batch;
            {
              const py::gil_scoped_release unlocked;
              batch = read_batch(t, first, std::min(last, t.blocks().size()));
            }
            return batch_to_dict(std::move(batch));
          },
          py::arg("first"), py::arg("last"))
      .def(
          "read_distinct_batch",
          [](const trace::KernelTrace& t, std::size_t first, std::size_t last, bool has_steps) {
            trace::DistinctBatch batch;
            {
              const py::gil_scoped_release unlocked;
              batch = read_distinct_batch(t, first, std::min(last, t.blocks().size()));
              if (has_steps) {
                trace::ColumnBuffers& columns = batch.distinct.columns;
                columns.sector = trace::steps_of_sectors(columns.view(), t.has_sectors());
              }
            }
            return distinct_batch_to_dict(std::move(batch), has_steps);
          },
          py::arg("first"), py::arg("last"), py::arg("has_steps") = false)
      .def("batch_ends", &trace::batch_ends, py::arg("bytes"));

  py::class_<trace::TouchedPages>(module, "TouchedPages")
      .def(py::init<>())
      .def(
          "add",
          [](trace::TouchedPages& pages, const trace::KernelTrace& t) {
            const py::gil_scoped_release unlocked;
            return pages.add(t, python_interrupt());
          },
          py::arg("trace"));

  bind_accelsim(module);

  py::list control_fields;
  trace::for_each_control_field([&](const char* name, auto) { control_fields.append(name); });
  module.attr("CONTROL_FIELDS") = py::tuple(control_fields);

  py::class_<trace::TraceBuilder>(module, "TraceBuilder")
      .def(py::init([](const py::dict& header, std::shared_ptr<trace::StorageBudget> budget) {
             return std::make_unique<trace::TraceBuilder>(header_from_dict(header),
                                                          std::move(budget));
           }),
           py::arg("header"), py::arg("budget"))
      .def(
          "intern",
          [](trace::TraceBuilder& builder, std::uint32_t pc, std::string opcode,
             const std::vector<std::uint16_t>& destinations,
             const std::vector<std::uint16_t>& sources) {
            return builder.intern(
                trace::make_static_instruction(pc, std::move(opcode), destinations, sources));
          },
          py::arg("pc"), py::arg("opcode"), py::arg("destinations"), py::arg("sources"))
      .def("intern_row",
           [](trace::TraceBuilder& builder, const py::dict& row) {
             return builder.intern(instruction_from_row(row));
           })
      .def("append_program", &append_program_from_list)
      .def("add_batch", &add_batch_from_dict, py::arg("batch"), py::arg("are_distinct") = false)
      .def_property_readonly("has_atomics", &trace::TraceBuilder::has_atomics)
      .def("finish", &trace::TraceBuilder::finish);

  module.def("write_trace_file", &trace::write_trace_file, py::arg("trace"), py::arg("path"),
             py::call_guard<py::gil_scoped_release>());
  module.def("read_trace_file", &trace::read_trace_file, py::arg("path"), py::arg("budget"),
             py::call_guard<py::gil_scoped_release>());

  module.def(
      "sampled_blocks",
      [](std::uint64_t num_blocks, std::uint64_t sampled, std::uint64_t together) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
        const trace::BlockSample sample(num_blocks, sampled, together);
        for (const trace::BlockSample::Run& run : sample.runs()) {
          runs.emplace_back(run.first, run.blocks);
        }
        return runs;
      },
      py::arg("num_blocks"), py::arg("sampled"), py::arg("together") = 1);

  module.def(
      "sample_size",
      [](std::uint64_t num_blocks, std::uint64_t one_in, std::uint64_t together,
         bool are_persistent) {
        return trace::BlockSample::one_in(num_blocks, one_in, together, are_persistent).size();
      },
      py::arg("num_blocks"), py::arg("one_in"), py::arg("together") = 1,
      py::arg("are_persistent") = false);

  module.def("demangled", &demangled, py::arg("name"));
  module.def(
      "decode_opcode",
      [](const std::string& opcode, std::size_t num_sources) {
        const trace::DecodedOpcode decoded = trace::decode_opcode(opcode);
        const trace::OperandWidths widths = operand_widths(opcode, decoded, num_sources);
        py::dict result;
        result["op_class"] = name_of(decoded.op_class);
        result["space"] = name_of(decoded.space);
        result["kind"] = name_of(decoded.kind);
        result["cache_operator"] = name_of(decoded.cache_operator);
        result["width"] = decoded.width;
        result["destination_registers"] = widths.destination;
        result["source_registers"] = std::vector<std::uint32_t>(
            widths.source.begin(), widths.source.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                               num_sources, trace::max_operands)));
        return result;
      },
      py::arg("opcode"), py::arg("num_sources") = 0);
}

}  // namespace warpstack::bindings
