#include "trace/block_storage.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace warpstack {
namespace {

/// Byte offsets of the columns in a packed record, widest elements first so that all are aligned.
struct Layout {
  std::uint64_t sector, instruction, active_mask, memory_static, store_bytes, memory_count, end;

  explicit Layout(const ColumnCounts& counts) {
    std::uint64_t next = 0;
    const auto place = [&next](std::uint64_t elements, std::uint64_t size) {
      return std::exchange(next, next + elements * size);
    };
    sector = place(counts.sectors, 8);
    instruction = place(counts.instructions, 4);
    active_mask = place(counts.instructions, 4);
    memory_static = place(counts.memory, 4);
    store_bytes = place(counts.stores, 4);
    memory_count = place(counts.memory, 2);
    end = next;
  }
};

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Runs a partial read or write until all bytes are through.
template <typename Call>
void transfer_all(std::uint64_t bytes, const char* what, Call call) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t count = call(done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(what);
    if (count == 0) throw std::system_error(EIO, std::generic_category(), what);
    done += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

BlockStorage::BlockStorage(std::shared_ptr<StorageBudget> budget) : budget_(std::move(budget)) {}

BlockStorage::~BlockStorage() {
  if (file_ >= 0) ::close(file_);
  budget_->give_back(bytes_in_memory_);
}

void BlockStorage::append(BlockRecord record, const ColumnView& columns) {
  const Layout layout(record.counts());
  record.data = std::make_unique_for_overwrite<std::byte[]>(layout.end);
  const auto copy = [&record](std::uint64_t offset, const auto& column) {
    if (!column.empty())
      std::memcpy(record.data.get() + offset, column.data(), column.size_bytes());
  };
  copy(layout.sector, columns.sector);
  copy(layout.instruction, columns.instruction);
  copy(layout.active_mask, columns.active_mask);
  copy(layout.memory_static, columns.memory_static);
  copy(layout.store_bytes, columns.store_bytes);
  copy(layout.memory_count, columns.memory_count);

  bytes_ += layout.end;
  if (!spilled() && budget_->try_take(layout.end)) {
    bytes_in_memory_ += layout.end;
  } else {
    if (!spilled()) {
      open_file();
      for (BlockRecord& earlier : records_) spill(earlier, Layout(earlier.counts()).end);
      budget_->give_back(std::exchange(bytes_in_memory_, 0));
    }
    spill(record, layout.end);
  }
  records_.push_back(std::move(record));
}

void BlockStorage::open_file() {
  std::string path = budget_->spill_folder() + "/warpstack-XXXXXX";
  file_ = ::mkstemp(path.data());
  if (file_ < 0) throw_system_error("cannot create a temporary trace file " + path);
  ::fcntl(file_, F_SETFD, FD_CLOEXEC);
  ::unlink(
      path.c_str());  // the space is freed when the descriptor closes, however the process ends
}

void BlockStorage::spill(BlockRecord& record, std::uint64_t bytes) {
  record.file_offset = file_end_;
  transfer_all(bytes, "cannot write the temporary trace file",
               [&](std::uint64_t done, std::uint64_t rest) {
                 return ::pwrite(file_, record.data.get() + done, rest,
                                 static_cast<off_t>(record.file_offset + done));
               });
  file_end_ += bytes;
  record.data.reset();
}

ColumnView BlockStorage::read(std::size_t block, const ColumnCounts& first,
                              const ColumnCounts& last, std::vector<std::byte>& scratch) const {
  const BlockRecord& record = records_[block];
  const Layout layout(record.counts());
  struct Range {
    std::uint64_t offset, bytes;
    const std::byte* data;
  };
  const auto range = [](std::uint64_t column, std::uint64_t size, std::uint64_t from,
                        std::uint64_t to) {
    return Range{column + from * size, (to - from) * size, nullptr};
  };
  std::array<Range, 6> ranges{
      range(layout.sector, 8, first.sectors, last.sectors),
      range(layout.instruction, 4, first.instructions, last.instructions),
      range(layout.active_mask, 4, first.instructions, last.instructions),
      range(layout.memory_static, 4, first.memory, last.memory),
      range(layout.store_bytes, 4, first.stores, last.stores),
      range(layout.memory_count, 2, first.memory, last.memory),
  };
  if (record.data) {
    for (Range& r : ranges) r.data = record.data.get() + r.offset;
  } else {
    std::uint64_t total = 0;
    for (const Range& r : ranges) total += r.bytes;
    scratch.resize(total);
    std::byte* target = scratch.data();
    for (Range& r : ranges) {
      transfer_all(r.bytes, "cannot read the temporary trace file",
                   [&](std::uint64_t done, std::uint64_t rest) {
                     return ::pread(file_, target + done, rest,
                                    static_cast<off_t>(record.file_offset + r.offset + done));
                   });
      r.data = target;
      target += r.bytes;
    }
  }
  const auto as = []<typename T>(const Range& r, T) {
    return std::span<const T>(reinterpret_cast<const T*>(r.data), r.bytes / sizeof(T));
  };
  return {as(ranges[1], std::uint32_t{}), as(ranges[2], std::uint32_t{}),
          as(ranges[3], std::uint32_t{}), as(ranges[5], std::uint16_t{}),
          as(ranges[0], std::uint64_t{}), as(ranges[4], std::uint32_t{})};
}

}  // namespace warpstack
