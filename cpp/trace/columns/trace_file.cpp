#include "trace/columns/trace_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "common/digest.h"
#include "common/error.h"
#include "trace/columns/column_batch.h"

namespace warpstack::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they are");

constexpr std::string_view magic = "WSTRACE\n";
constexpr std::uint64_t oldest_version = 5;
/// Accesses of older files take the passes over the banks of L1 that their sectors imply.
constexpr std::uint64_t version_with_passes = 6;
/// Older files have the columns of every block.
constexpr std::uint64_t version_with_repeats = 7;
constexpr std::uint64_t version_with_clusters = 8;
constexpr std::uint64_t version_with_sources = 9;
constexpr std::uint64_t version_with_awaited_ticks = 10;
constexpr std::uint64_t max_u32 = ~std::uint32_t{0};
/// Target size of a piece, so that writing needs little memory.
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 24;

/// Adds `size` bytes, a multiple of eight, word by word, so that their division into calls does not
/// matter.
void add_words(Digest& digest, const std::byte* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    digest.add(word);
  }
}

/// A file that is removed unless it is finished.
class Writer {
 public:
  explicit Writer(std::string path)
      : path_(std::move(path)),
        partial_(path_ + ".partial"),
        file_(std::fopen(partial_.c_str(), "wb")) {
    if (file_ == nullptr) fail();
  }
  ~Writer() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(partial_.c_str());
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void bytes(const void* data, std::size_t size) {
    if (size > 0 && std::fwrite(data, 1, size, file_) != size) fail();
    const auto* start = static_cast<const std::byte*>(data);
    const std::size_t whole = size / 8 * 8;
    add_words(digest_, start, whole);
    if (size == whole) return;
    std::byte last[8] = {};
    std::memcpy(last, start + whole, size - whole);
    add_words(digest_, last, sizeof last);
    const std::size_t rest = sizeof last - (size - whole);
    if (std::fwrite(last + (size - whole), 1, rest, file_) != rest) fail();
  }
  void number(std::uint64_t value) { bytes(&value, sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes(value.data(), value.size());
  }
  template <typename T>
  void column(const std::vector<T>& values) {
    bytes(values.data(), values.size() * sizeof(T));
  }

  /// Ends the file with the digest of its content, and moves it to its place.
  void finish() {
    text(digest_.hex());
    const int closed = std::fclose(file_);
    file_ = nullptr;
    if (closed != 0 || std::rename(partial_.c_str(), path_.c_str()) != 0) {
      const int reason = errno;
      std::remove(partial_.c_str());
      errno = reason;
      fail();
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw InputError(path_ + ": cannot be written: " + std::strerror(errno));
  }

  std::string path_;
  std::string partial_;
  std::FILE* file_;
  Digest digest_;
};

/// A position in the content of a file.
class Reader {
 public:
  Reader(std::span<const std::byte> content, const std::string& file)
      : content_(content), file_(file) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(file_ + ", byte " + std::to_string(next_) + ": " + what +
                     "; the trace file is damaged, trace the program again");
  }

  const std::byte* bytes(std::uint64_t size) {
    const std::uint64_t available = content_.size() - next_;
    if (size > available || (size + 7) / 8 * 8 > available) fail("the file is cut");
    const std::byte* start = content_.data() + next_;
    next_ += (size + 7) / 8 * 8;
    return start;
  }
  std::uint64_t number() {
    std::uint64_t value;
    std::memcpy(&value, bytes(sizeof value), sizeof value);
    return value;
  }
  /// A number up to `bound`.
  std::uint64_t number(std::uint64_t bound, const char* field) {
    const std::uint64_t value = number();
    if (value > bound) fail(std::string(field) + " " + std::to_string(value) + " is too large");
    return value;
  }
  template <typename Enum>
  Enum choice() {
    return static_cast<Enum>(number(num_values<Enum> - 1, names_in<Enum>.what.data()));
  }
  std::string text() {
    const std::uint64_t size = number();
    return {reinterpret_cast<const char*>(bytes(size)), size};
  }
  /// A column of `size` values; copied, because the content may be unaligned.
  template <typename T>
  std::vector<T> column(std::uint64_t size) {
    if (size > content_.size() / sizeof(T)) fail("the file is cut");
    std::vector<T> values(size);
    const std::byte* source = bytes(size * sizeof(T));
    if (size > 0) std::memcpy(values.data(), source, size * sizeof(T));
    return values;
  }
  [[nodiscard]] bool at_end() const { return next_ == content_.size(); }
  /// The digest of what was read so far.
  [[nodiscard]] std::string digest() const {
    Digest digest;
    add_words(digest, content_.data(), next_);
    return digest.hex();
  }

 private:
  std::span<const std::byte> content_;
  const std::string& file_;
  std::uint64_t next_ = 0;
};

void write_header(Writer& file, const KernelHeader& header) {
  file.text(header.name);
  file.text(header.source);
  file.number(header.launch_id);
  file.number(header.parent);
  for (const Dim3& extent : {header.grid, header.block, header.cluster}) {
    for (const std::uint64_t value : extent) file.number(value);
  }
  for (const std::uint64_t value :
       {header.shared_memory_bytes, header.registers_per_thread, header.binary_version,
        header.stream, header.shared_window, header.local_window}) {
    file.number(value);
  }
  for (const AwaitedTicks& ticks : {header.awaited_cycles, header.awaited_ns}) {
    file.number(ticks.most);
    file.number(ticks.total);
    file.number(ticks.least);
  }
  file.number(header.sources.files.size());
  for (const SourceFile& source : header.sources.files) {
    file.text(source.name);
    file.number(source.time);
    file.number(source.bytes);
  }
  file.number(header.sources.calls.size());
  for (const InlinedCall& call : header.sources.calls) {
    file.text(call.function);
    for (const std::uint32_t value : {call.file, call.line, call.caller}) file.number(value);
  }
}

SourceTable read_sources(Reader& file) {
  SourceTable sources;
  for (std::uint64_t left = file.number(); left > 0; --left) {
    SourceFile& source = sources.files.emplace_back();
    source.name = file.text();
    source.time = file.number();
    source.bytes = file.number();
  }
  for (std::uint64_t left = file.number(); left > 0; --left) {
    InlinedCall& call = sources.calls.emplace_back();
    call.function = file.text();
    call.file = static_cast<std::uint32_t>(file.number(max_u32, "file of a call"));
    call.line = static_cast<std::uint32_t>(file.number(max_u32, "line of a call"));
    call.caller = static_cast<std::uint32_t>(file.number(max_u32, "caller of a call"));
  }
  return sources;
}

KernelHeader read_header(Reader& file, std::uint64_t version) {
  KernelHeader header;
  header.name = file.text();
  header.source = file.text();
  header.launch_id = file.number();
  header.parent = file.number();
  for (Dim3* extent : {&header.grid, &header.block}) {
    for (std::uint64_t& value : *extent) value = file.number();
  }
  if (version >= version_with_clusters) {
    for (std::uint64_t& value : header.cluster) value = file.number();
  }
  for (std::uint64_t* value :
       {&header.shared_memory_bytes, &header.registers_per_thread, &header.binary_version,
        &header.stream, &header.shared_window, &header.local_window}) {
    *value = file.number();
  }
  if (version >= version_with_awaited_ticks) {
    for (AwaitedTicks* ticks : {&header.awaited_cycles, &header.awaited_ns}) {
      ticks->most = file.number();
      ticks->total = file.number();
      ticks->least = file.number();
    }
  }
  if (version >= version_with_sources) header.sources = read_sources(file);
  return header;
}

void write_instruction(Writer& file, const StaticInstruction& instruction) {
  file.text(instruction.opcode);
  for (const std::uint64_t value :
       {std::uint64_t{instruction.pc}, std::uint64_t{instruction.source_line},
        std::uint64_t{instruction.source_file}, std::uint64_t{instruction.inlined_at},
        std::uint64_t{instruction.known_opcode}, static_cast<std::uint64_t>(instruction.op_class),
        static_cast<std::uint64_t>(instruction.space), static_cast<std::uint64_t>(instruction.kind),
        static_cast<std::uint64_t>(instruction.cache_operator), std::uint64_t{instruction.width}}) {
    file.number(value);
  }
  for (const auto* registers : {&instruction.destinations, &instruction.sources}) {
    file.number(registers->size());
    file.column(*registers);
  }
  file.number(std::uint64_t{instruction.control.has_value()});
  if (!instruction.control) return;
  for_each_control_field([&](const char*, auto field) {
    const std::uint8_t value = (*instruction.control).*field;
    file.bytes(&value, 1);
  });
}

StaticInstruction read_instruction(Reader& file, std::uint64_t version) {
  StaticInstruction instruction;
  instruction.opcode = file.text();
  instruction.pc = static_cast<std::uint32_t>(file.number(max_u32, "program counter"));
  instruction.source_line = static_cast<std::uint32_t>(file.number(max_u32, "source line"));
  if (version >= version_with_sources) {
    instruction.source_file = static_cast<std::uint32_t>(file.number(max_u32, "source file"));
    instruction.inlined_at = static_cast<std::uint32_t>(file.number(max_u32, "inlined call"));
  }
  instruction.known_opcode = file.number(1, "known opcode") != 0;
  instruction.op_class = file.choice<OpClass>();
  instruction.space = file.choice<MemorySpace>();
  instruction.kind = file.choice<MemoryKind>();
  instruction.cache_operator = file.choice<CacheOperator>();
  instruction.width = static_cast<std::uint32_t>(file.number(max_u32, "access width"));
  for (auto* registers : {&instruction.destinations, &instruction.sources}) {
    *registers = file.column<std::uint16_t>(file.number());
  }
  if (file.number(1, "control") != 0) {
    Control& control = instruction.control.emplace();
    for_each_control_field([&](const char* name, auto field) {
      const std::uint8_t value = file.column<std::uint8_t>(1)[0];
      // The builder checks the other fields.
      if (std::is_same_v<decltype(field), bool Control::*> && value > 1) {
        file.fail(std::string(name) + " " + std::to_string(value) + " is too large");
      }
      control.*field = value;
    });
  }
  return instruction;
}

void write_piece(Writer& file, const DistinctBatch& piece) {
  const BlockBatch& batch = piece.distinct;
  file.number(1);
  const ColumnCounts counts = batch.columns.counts();
  for (const std::uint64_t count :
       {batch.block.size(), counts.instructions, counts.memory, counts.sectors, counts.stores,
        batch.columns.atomic_lanes.size(), batch.columns.l1_passes.size(),
        piece.repeats.block.size(), piece.repeats.shift.size()}) {
    file.number(count);
  }
  file.column(batch.block);
  for (const auto* column :
       {&batch.warp, &batch.instructions, &batch.memory, &batch.sectors, &batch.stores,
        &batch.columns.instruction, &batch.columns.active_mask, &batch.columns.memory_static}) {
    file.column(*column);
  }
  file.column(batch.columns.memory_count);
  file.column(batch.columns.sector);
  file.column(batch.columns.store_bytes);
  file.column(batch.columns.atomic_lanes);
  file.column(batch.columns.l1_passes);
  file.column(piece.repeats.block);
  file.column(piece.repeats.like);
  file.column(piece.repeats.shifts);
  file.column(piece.repeats.shift);
}

/// Reads the columns of a piece with `num_warps` warps.
DistinctBatch read_piece(Reader& file, std::uint64_t num_warps, std::uint64_t version) {
  ColumnCounts counts;
  for (std::uint64_t* count :
       {&counts.instructions, &counts.memory, &counts.sectors, &counts.stores}) {
    *count = file.number();
  }
  const std::uint64_t num_lanes = file.number();
  const std::uint64_t num_passes = version >= version_with_passes ? file.number() : 0;
  const bool has_repeats = version >= version_with_repeats;
  const std::uint64_t num_repeats = has_repeats ? file.number() : 0;
  const std::uint64_t num_shifts = has_repeats ? file.number() : 0;
  DistinctBatch piece;
  BlockBatch& batch = piece.distinct;
  batch.block = file.column<std::uint64_t>(num_warps);
  for (auto* column :
       {&batch.warp, &batch.instructions, &batch.memory, &batch.sectors, &batch.stores}) {
    *column = file.column<std::uint32_t>(num_warps);
  }
  batch.columns.instruction = file.column<std::uint32_t>(counts.instructions);
  batch.columns.active_mask = file.column<std::uint32_t>(counts.instructions);
  batch.columns.memory_static = file.column<std::uint32_t>(counts.memory);
  batch.columns.memory_count = file.column<std::uint16_t>(counts.memory);
  batch.columns.sector = file.column<std::uint64_t>(counts.sectors);
  batch.columns.store_bytes = file.column<std::uint32_t>(counts.stores);
  batch.columns.atomic_lanes = file.column<AtomicLanes>(num_lanes);
  if (version >= version_with_passes) {
    batch.columns.l1_passes = file.column<std::uint8_t>(num_passes);
  }
  if (has_repeats) {
    piece.repeats.block = file.column<std::uint64_t>(num_repeats);
    piece.repeats.like = file.column<std::uint32_t>(num_repeats);
    piece.repeats.shifts = file.column<std::uint32_t>(num_repeats);
    piece.repeats.shift = file.column<std::int32_t>(num_shifts);
  }
  return piece;
}

/// A file in memory.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    // Without O_NONBLOCK a named pipe without a writer would block for ever.
    const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || ::fstat(file, &status) != 0) fail(path, file);
    if (!S_ISREG(status.st_mode)) {
      ::close(file);
      throw InputError(path + ": not a regular file");
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ > 0) {
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (data_ == MAP_FAILED) fail(path, file);
    }
    ::close(file);
  }
  ~Mapping() {
    if (size_ > 0) ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::span<const std::byte> content() const {
    return {static_cast<const std::byte*>(data_), size_};
  }

 private:
  [[noreturn]] static void fail(const std::string& path, int file) {
    const int reason = errno;
    if (file >= 0) ::close(file);
    throw InputError(path + ": cannot be read: " + std::strerror(reason));
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

void write_trace_file(const KernelTrace& trace, const std::string& path) {
  Writer file(path);
  file.bytes(magic.data(), magic.size());
  file.number(trace_file_version);
  write_header(file, trace.header());
  file.number(trace.instructions().size());
  for (const StaticInstruction& instruction : trace.instructions()) {
    write_instruction(file, instruction);
  }
  std::size_t first = 0;
  for (const std::size_t last : batch_ends(trace, piece_bytes)) {
    write_piece(file, read_distinct_batch(trace, first, last));
    first = last;
  }
  file.number(0);
  file.finish();
}

KernelTrace read_trace(std::span<const std::byte> content, const std::string& file_name,
                       std::shared_ptr<StorageBudget> budget) {
  Reader file(content, file_name);
  if (std::memcmp(file.bytes(magic.size()), magic.data(), magic.size()) != 0) {
    file.fail("it does not begin like a trace file");
  }
  const std::uint64_t version = file.number();
  if (version < oldest_version || version > trace_file_version) {
    throw InputError(file_name + ": format version " + std::to_string(version) +
                     ", this warpstack reads versions " + std::to_string(oldest_version) + " to " +
                     std::to_string(trace_file_version) + "; trace the program again");
  }
  try {
    TraceBuilder builder(read_header(file, version), std::move(budget));
    const std::uint64_t num_instructions = file.number();
    for (std::uint64_t row = 0; row < num_instructions; ++row) {
      if (builder.intern(read_instruction(file, version)) != row) {
        file.fail("instruction " + std::to_string(row) + " appears twice in the table");
      }
    }
    while (const std::uint64_t first = file.number()) {
      if (version < version_with_repeats) {
        const DistinctBatch piece = read_piece(file, first, version);
        add_batch(builder, view_of(piece.distinct));
        continue;
      }
      if (first != 1) file.fail("a piece begins with " + std::to_string(first));
      const DistinctBatch piece = read_piece(file, file.number(), version);
      const Repeats& repeats = piece.repeats;
      add_batch(builder, view_of(piece.distinct),
                {repeats.block, repeats.like, repeats.shifts, repeats.shift});
    }
    const std::string found = file.digest();
    // The file's digest is not shown, because in a damaged file it need not be text.
    if (file.text() != found)
      file.fail("its content has digest " + found + ", the file says another");
    if (!file.at_end()) file.fail("bytes follow the end");
    return builder.finish();
  } catch (const InputError& error) {
    const std::string_view what = error.what();
    if (what.starts_with(file_name)) throw;
    throw InputError(file_name + ": " + error.what());
  }
}

KernelTrace read_trace_file(const std::string& path, std::shared_ptr<StorageBudget> budget) {
  const Mapping file(path);
  return read_trace(file.content(), path, std::move(budget));
}

}  // namespace warpstack::trace
