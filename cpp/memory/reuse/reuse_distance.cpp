#include "memory/reuse/reuse_distance.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

namespace warpstack::memory {
namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t page_words = 64;
constexpr std::uint64_t book_pages = 64;
constexpr std::uint64_t page_bits = word_bits * page_words;
constexpr std::uint64_t book_bits = page_bits * book_pages;
/// Times per line after compaction: the more, the rarer are compactions.
constexpr std::uint64_t times_per_line = 4;
/// How many accesses ahead table entries are prefetched.
constexpr std::size_t lookahead = 24;

/// Bits set in a word, without relying on a population count instruction.
std::uint64_t count_bits(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return word * 0x0101010101010101 >> 56;
}

std::uint32_t sum(const std::uint32_t* values, std::uint64_t count) {
  return std::accumulate(values, values + count, std::uint32_t{0});
}

/// Sum of fewer than 64 bytes of at most 64 each, eight at a time in lanes of 16 bits. Reads up to
/// seven bytes past the end.
std::uint64_t sum(const std::uint8_t* values, std::uint64_t count) {
  static_assert(std::endian::native == std::endian::little, "the first bytes are the low ones");
  constexpr std::uint64_t even = 0x00ff00ff00ff00ff;
  const auto load = [values](std::uint64_t at) {
    std::uint64_t bytes;
    std::memcpy(&bytes, values + at, sizeof bytes);
    return bytes;
  };
  std::uint64_t lanes = 0;
  std::uint64_t at = 0;
  for (; at + 8 <= count; at += 8) lanes += (load(at) & even) + (load(at) >> 8 & even);
  if (at < count) {
    const std::uint64_t bytes = load(at) & ((std::uint64_t{1} << 8 * (count - at)) - 1);
    lanes += (bytes & even) + (bytes >> 8 & even);
  }
  return lanes * 0x0001000100010001 >> 48;
}

}  // namespace

StackDistances::StackDistances() : table_(1 << 10) { compact(); }

std::size_t StackDistances::home(std::uint64_t line) const {
  // Multiplicative hashing: neighbouring lines spread over the table.
  const std::uint64_t mixed = (line ^ line >> 32) * 0x9e3779b97f4a7c15;
  return mixed >> (64 - std::countr_zero(table_.size()));
}

StackDistances::Entry& StackDistances::find_or_insert(std::uint64_t line) {
  const std::size_t mask = table_.size() - 1;
  std::size_t i = home(line);
  while (table_[i].time != 0 && table_[i].line != line) i = (i + 1) & mask;
  return table_[i];
}

void StackDistances::grow_table() {
  const std::vector<Entry> old = std::exchange(table_, std::vector<Entry>(table_.size() * 2));
  for (const Entry& entry : old) {
    if (entry.time != 0) find_or_insert(entry.line) = entry;
  }
}

void StackDistances::set_time(std::uint64_t time) {
  bits_[time / word_bits] |= std::uint64_t{1} << time % word_bits;
  ++word_count_[time / word_bits];
  ++page_count_[time / page_bits];
  ++book_count_[time / book_bits];
}

void StackDistances::clear_time(std::uint64_t time) {
  bits_[time / word_bits] &= ~(std::uint64_t{1} << time % word_bits);
  --word_count_[time / word_bits];
  --page_count_[time / page_bits];
  --book_count_[time / book_bits];
}

std::uint64_t StackDistances::count_after(std::uint64_t time) const {
  const std::uint64_t word = time / word_bits;
  const std::uint64_t page = word / page_words;
  const std::uint64_t book = page / book_pages;
  // No bit is set from now_ on, so short distances look at few counts.
  const std::uint64_t words = std::min((page + 1) * page_words, now_ / word_bits + 1);
  const std::uint64_t pages = std::min((book + 1) * book_pages, now_ / page_bits + 1);
  const std::uint64_t books = now_ / book_bits + 1;
  return count_bits(bits_[word] >> time % word_bits >> 1) +
         sum(word_count_.data() + word + 1, words - word - 1) +
         sum(page_count_.data() + page + 1, pages - page - 1) +
         sum(book_count_.data() + book + 1, books - book - 1);
}

void StackDistances::compact() {
  // Ranks of the old times: distances depend only on the order of last accesses.
  std::vector<std::uint64_t> before(bits_.size() + 1, 0);
  for (std::size_t w = 0; w < bits_.size(); ++w) before[w + 1] = before[w] + word_count_[w];
  for (Entry& entry : table_) {
    if (entry.time == 0) continue;
    const std::uint64_t time = entry.time - 1;
    const std::uint64_t earlier = (std::uint64_t{1} << time % word_bits) - 1;
    entry.time = before[time / word_bits] + count_bits(bits_[time / word_bits] & earlier) + 1;
  }
  const std::uint64_t books = num_lines_ * times_per_line / book_bits + 1;
  bits_.assign(books * book_pages * page_words, 0);
  word_count_.assign(bits_.size() + 7, 0);  // sum() reads past the last
  page_count_.assign(books * book_pages, 0);
  book_count_.assign(books, 0);
  for (std::uint64_t time = 0; time < num_lines_; ++time) set_time(time);
  now_ = num_lines_;
}

void StackDistances::access(std::span<const std::uint64_t> lines,
                            std::span<std::uint64_t> distances, const InterruptCheck& interrupt) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i % (1 << 20) == 0 && interrupt) interrupt();
    if (lines[i] == last_line_ && num_lines_ != 0) {
      distances[i] = 0;  // the order of last accesses stays as it is
      continue;
    }
    last_line_ = lines[i];
    if (i + lookahead < lines.size()) __builtin_prefetch(&table_[home(lines[i + lookahead])]);
    if (now_ == bits_.size() * word_bits) compact();
    Entry* entry = &find_or_insert(lines[i]);
    if (entry->time == 0) {
      distances[i] = cold_access;
      entry->line = lines[i];
      ++num_lines_;
    } else {
      distances[i] = count_after(entry->time - 1);
      clear_time(entry->time - 1);
    }
    entry->time = now_ + 1;
    set_time(now_++);
    if (num_lines_ * 2 > table_.size()) grow_table();
  }
}

}  // namespace warpstack::memory
