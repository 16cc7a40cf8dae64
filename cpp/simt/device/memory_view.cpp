#include "simt/device/memory_view.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

#include "common/lazy_bytes.h"

namespace warpstack::simt {
namespace {

/// `count` ones from bit `first` on.
constexpr std::uint64_t bits_from(std::uint64_t first, std::uint64_t count) {
  return (count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

/// Bit i of the last byte becomes byte i, which is 1 or 0.
constexpr std::uint64_t bytes_of_bits(std::uint64_t bits) {
  const std::uint64_t spread = ((bits & 0xff) * 0x0101010101010101u) & 0x8040201008040201u;
  return ((spread + 0x7f7f7f7f7f7f7f7fu) & 0x8080808080808080u) >> 7;
}

/// Copies the bytes whose bits are set, out of 64.
void copy_marked(std::byte* target, const std::byte* source, std::uint64_t marks) {
  if (marks == ~std::uint64_t{0}) {
    std::memcpy(target, source, 64);
    return;
  }
  for (; marks != 0; marks >>= 8, target += 8, source += 8) {
    if ((marks & 0xff) == 0) continue;
    const std::uint64_t mask = bytes_of_bits(marks) * 0xff;
    std::uint64_t old;
    std::uint64_t value;
    std::memcpy(&old, target, 8);
    std::memcpy(&value, source, 8);
    value = (value & mask) | (old & ~mask);
    std::memcpy(target, &value, 8);
  }
}

}  // namespace

MemoryView::MemoryView(DeviceMemory& memory)
    : memory_(memory),
      num_deltas_((memory.end() - device_base) / line_bytes + 1),
      num_words_(num_deltas_ * (line_bytes / word_bytes)) {
  static_assert(offsetof(Line, data) == 0);
  deltas_ = static_cast<std::uint64_t*>(map_lazily(num_deltas_ * sizeof(std::uint64_t)));
  read_in_ = static_cast<std::uint8_t*>(map_lazily(num_words_));
  if (deltas_ == nullptr || read_in_ == nullptr) {
    if (deltas_ != nullptr) munmap(deltas_, num_deltas_ * sizeof(std::uint64_t));
    if (read_in_ != nullptr) munmap(read_in_, num_words_);
    throw std::bad_alloc();
  }
}

MemoryView::~MemoryView() {
  munmap(deltas_, num_deltas_ * sizeof(std::uint64_t));
  munmap(read_in_, num_words_);
}

void MemoryView::begin(bool notes_reads) {
  for (std::size_t i = 0; i < num_lines_; ++i) delta_of(line(i).address) = 0;
  num_lines_ = 0;
  copies_begin_ = ~std::uint64_t{0};
  copies_end_ = 0;
  notes_reads_ = notes_reads;
  if (!notes_reads) return;
  if (round_ == std::numeric_limits<std::uint8_t>::max()) {
    zero_mapped(read_in_, num_words_);
    round_ = 0;
  }
  ++round_;
}

std::uint64_t MemoryView::copy_line(std::uint64_t address) {
  if (num_lines_ == chunks_.size() * lines_per_chunk) {
    chunks_.push_back(std::make_unique_for_overwrite<Line[]>(lines_per_chunk));
  }
  Line& copy = line(num_lines_++);
  copy.address = address / line_bytes * line_bytes;
  const std::byte* const original = memory_.data(copy.address);
  std::memcpy(copy.data.data(), original, line_bytes);
  copy.written = {};
  copies_begin_ = std::min(copies_begin_, copy.address);
  copies_end_ = std::max(copies_end_, copy.address + line_bytes);
  return delta_of(address) = reinterpret_cast<std::uintptr_t>(copy.data.data()) -
                             reinterpret_cast<std::uintptr_t>(original);
}

void MemoryView::mark(Line& line, std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t next = address - line.address, end = next + bytes; next < end;) {
    const std::uint64_t count = std::min(end - next, 64 - next % 64);
    line.written[next / 64] |= bits_from(next % 64, count);
    next += count;
  }
}

void MemoryView::note_read(std::uint64_t address, std::uint64_t bytes) {
  if (!notes_reads_) return;
  const std::uint64_t first = (address - device_base) / word_bytes;
  const std::uint64_t last = (address - device_base + bytes - 1) / word_bytes;
  std::memset(read_in_ + first, round_, last - first + 1);
}

std::byte* MemoryView::place(std::uint64_t address, std::uint32_t bytes, bool reads, bool writes) {
  if (address / line_bytes != (address + bytes - 1) / line_bytes) throw NeedsItsTurn{};
  if (reads) note_read(address, bytes);
  std::uint64_t delta = delta_of(address);
  if (writes) {
    if (delta == 0) delta = copy_line(address);
    mark(line_at(address, delta), address, bytes);
  }
  return memory_.data(address) + static_cast<std::ptrdiff_t>(delta);
}

void MemoryView::place_lanes(const LaneAddresses& lanes, std::uint32_t bytes, bool writes,
                             LaneAddresses& moved) {
  moved.mask = lanes.mask;
  if (writes) {
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t address = lanes.address[lane];
      const std::uint64_t delta = writable_delta(address);
      Line& line = line_at(address, delta);
      line.written[address % line_bytes / 64] |= bits_from(address % 64, bytes);
      moved.address[lane] = address + delta;
    }
    return;
  }
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = lanes.address[lane];
    moved.address[lane] = address + delta_of(address);
  }
  note_reads(lanes, bytes);
}

void MemoryView::note_reads(const LaneAddresses& lanes, std::uint32_t bytes) {
  if (!notes_reads_) return;
  const std::uint32_t words = (bytes + word_bytes - 1) / word_bytes;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t first = (lanes.address[std::countr_zero(rest)] - device_base) / word_bytes;
    for (std::uint32_t word = 0; word < words; ++word) read_in_[first + word] = round_;
  }
}

std::byte* MemoryView::read_range(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t last = address + bytes - 1;
  const std::uint64_t delta = delta_of(address);
  if (address / line_bytes != last / line_bytes) {
    for (std::uint64_t next = address / line_bytes; next <= last / line_bytes; ++next) {
      if (delta_of(next * line_bytes) != 0) return nullptr;
    }
  }
  note_read(address, bytes);
  return memory_.data(address) + static_cast<std::ptrdiff_t>(delta);
}

std::byte* MemoryView::write_range(std::uint64_t address, std::uint64_t bytes) {
  if (address / line_bytes != (address + bytes - 1) / line_bytes) return nullptr;
  const std::uint64_t delta = writable_delta(address);
  mark(line_at(address, delta), address, bytes);
  return memory_.data(address) + static_cast<std::ptrdiff_t>(delta);
}

bool MemoryView::is_written(const Allocation& allocation, std::uint64_t address,
                            std::uint32_t bytes) const {
  if (allocation.written == nullptr) return true;
  for (std::uint64_t next = address; next < address + bytes; ++next) {
    if (allocation.written[next - allocation.address] != 0) continue;
    const std::uint64_t delta = delta_of(next);
    if (delta == 0) return false;
    const std::uint64_t at = next % line_bytes;
    if (((line_at(next, delta).written[at / 64] >> at % 64) & 1) == 0) return false;
  }
  return true;
}

bool MemoryView::conflicts_with(const MemoryView& earlier) const {
  constexpr std::uint64_t bits_of_word = (1u << word_bytes) - 1;
  for (std::size_t i = 0; i < earlier.num_lines_; ++i) {
    const Line& line = earlier.line(i);
    const std::uint8_t* const read = read_in_ + (line.address - device_base) / word_bytes;
    if (std::find(read, read + line_bytes / word_bytes, round_) == read + line_bytes / word_bytes) {
      continue;
    }
    for (std::uint64_t byte = 0; byte < line_bytes; byte += word_bytes) {
      const std::uint64_t written = (line.written[byte / 64] >> byte % 64) & bits_of_word;
      if (written != 0 && read[byte / word_bytes] == round_) return true;
    }
  }
  return false;
}

void MemoryView::commit() {
  Allocation* allocation = nullptr;
  for (std::size_t i = 0; i < num_lines_; ++i) {
    const Line& copy = line(i);
    if (allocation == nullptr || copy.address - allocation->address >= allocation->bytes) {
      allocation = memory_.find(copy.address);
    }
    std::uint8_t* const map = allocation->written != nullptr
                                  ? allocation->written.get() + (copy.address - allocation->address)
                                  : nullptr;
    for (std::size_t part = 0; part < copy.written.size(); ++part) {
      const std::uint64_t marks = copy.written[part];
      if (marks == 0) continue;
      copy_marked(memory_.data(copy.address) + 64 * part, copy.data.data() + 64 * part, marks);
      if (map == nullptr) continue;
      if (marks == ~std::uint64_t{0}) {
        std::memset(map + 64 * part, 1, 64);
        continue;
      }
      for (std::uint64_t rest = marks; rest != 0; rest &= rest - 1) {
        map[64 * part + static_cast<std::size_t>(std::countr_zero(rest))] = 1;
      }
    }
  }
}

}  // namespace warpstack::simt
