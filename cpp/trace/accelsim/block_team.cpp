#include "trace/accelsim/block_team.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

namespace warpstack::trace {
namespace {

/// Text that a thread parses at a time.
constexpr std::size_t piece_bytes = 1 << 19;
/// A thread block with more text than this is parsed by the trunk as it comes.
constexpr std::size_t max_held_bytes = 1 << 24;
/// Idle lines before a piece; a longer run that goes on in the piece is counted by the trunk.
constexpr std::uint64_t max_idle_before = 1 << 19;
constexpr std::string_view end_line = "\n#END_TB";

}  // namespace

BlockTeam::BlockTeam(AccelSimReader& trunk, unsigned num_threads) : trunk_(trunk) {
  for (unsigned i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
}

BlockTeam::~BlockTeam() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    waiting_.clear();
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BlockTeam::work() {
  AccelSimReader branch(trunk_);
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return stops_ || !waiting_.empty(); });
    if (stops_) return;
    Piece* const piece = waiting_.front();
    waiting_.pop_front();
    ++busy_;
    lock.unlock();
    branch.parse_piece(*piece);
    lock.lock();
    --busy_;
    piece->is_done = true;
    has_result_.notify_all();
  }
}

bool BlockTeam::first_is_done() {
  const std::lock_guard lock(mutex_);
  return !pieces_.empty() && pieces_.front()->is_done;
}

void BlockTeam::take_first() {
  std::unique_ptr<Piece> piece = std::move(pieces_.front());
  pieces_.pop_front();
  std::unique_lock lock(mutex_);
  has_result_.wait(lock, [&] { return piece->is_done; });
  lock.unlock();
  if (!trunk_.take(*piece)) {
    // Threads read the trunk's instructions, so that it adds none while they run.
    lock.lock();
    has_result_.wait(lock, [this] { return waiting_.empty() && busy_ == 0; });
    lock.unlock();
    trunk_.feed_serially(piece->text);
  }
  spare_.push_back(std::move(piece));
}

void BlockTeam::submit(std::string_view text) {
  while (first_is_done() || pieces_.size() > 2 * threads_.size()) take_first();
  if (spare_.empty()) spare_.push_back(std::make_unique<Piece>());
  std::unique_ptr<Piece> piece = std::move(spare_.back());
  spare_.pop_back();
  piece->is_done = false;
  piece->text = text;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(piece.get());
  }
  pieces_.push_back(std::move(piece));
  has_work_.notify_one();
}

void BlockTeam::finish() {
  while (!pieces_.empty()) take_first();
}

AccelSimReader::AccelSimReader(const AccelSimReader& trunk)
    : file_name_(trunk.file_name_),
      budget_(trunk.budget_),
      header_(trunk.header_),
      version_(trunk.version_),
      has_line_info_(trunk.has_line_info_),
      max_register_(trunk.max_register_),
      grouped_(true),
      num_threads_(1),
      trunk_(&trunk) {
  branch_.emplace(*trunk.builder_);
}

void AccelSimReader::parse_piece(Piece& piece) {
  line_number_ = num_bulk_copies_ = 0;
  idle_lines_ = max_idle_before;
  unknown_fields_ = {};
  in_block_ = in_warp_ = false;
  partial_line_.clear();
  // Pieces are used again, and their buffers are large enough by then.
  parsed_.swap(piece.blocks);
  num_parsed_ = 0;
  piece.is_good = false;
  try {
    branch_->begin();
    feed_serially(piece.text);
    piece.is_good = is_between_blocks() && num_parsed_ > 0;
  } catch (const std::exception&) {  // the trunk meets it again
  } catch (const TraceBranch::NewRow&) {
  }
  parsed_.swap(piece.blocks);
  piece.num_blocks = num_parsed_;
  if (!piece.is_good) return;
  piece.counts = branch_->row_counts();
  piece.lines = line_number_;
  piece.idle_lines = idle_lines_;
  piece.unknown_fields = unknown_fields_;
  piece.num_bulk_copies = num_bulk_copies_;
}

bool AccelSimReader::take(Piece& piece) {
  if (!piece.is_good || !is_between_blocks() || idle_lines_ > max_idle_before) return false;
  if (piece.blocks.front().index < builder_->next_block()) return false;
  for (const ParsedBlock& block : std::span(piece.blocks).first(piece.num_blocks)) {
    const ColumnView columns = block.columns.view();
    builder_->add_recorded(block.index, block.warps, {&columns, 1});
  }
  builder_->add_counts(piece.counts);
  if (unknown_fields_.lines == 0 && piece.unknown_fields.lines > 0) {
    unknown_fields_ = piece.unknown_fields;
    unknown_fields_.first_line += line_number_;
  } else {
    unknown_fields_.lines += piece.unknown_fields.lines;
  }
  num_bulk_copies_ += piece.num_bulk_copies;
  line_number_ += piece.lines;
  idle_lines_ = piece.idle_lines;
  return true;
}

void AccelSimReader::feed(std::string_view text) {
  if (num_threads_ < 2) {
    feed_serially(text);
    return;
  }
  while (!text.empty()) {
    if (is_between_blocks() && builder_) {
      feed_pieces(text);
      return;
    }
    // The header, the first thread block, whose instructions the others mostly have, and the rest
    // of a large one.
    std::size_t end = builder_ && !grouped_ ? std::string_view::npos : text.find(end_line);
    if (end != std::string_view::npos) end = text.find('\n', end + 1);
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    feed_serially(text.substr(0, size));
    text.remove_prefix(size);
  }
}

void AccelSimReader::feed_pieces(std::string_view text) {
  held_ += text;
  std::size_t begin = 0;
  while (held_.size() - begin > piece_bytes) {
    std::size_t end = held_.find(end_line, begin + piece_bytes);
    if (end != std::string::npos) end = held_.find('\n', end + 1);
    if (end == std::string::npos) break;
    if (!team_) team_ = std::make_unique<BlockTeam>(*this, num_threads_);
    team_->submit(std::string_view(held_).substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  held_.erase(0, begin);
  if (held_.size() <= max_held_bytes) return;
  if (team_) team_->finish();
  feed_serially(std::exchange(held_, {}));
}

void AccelSimReader::open_block(std::uint64_t linear_index) {
  if (!branch_) {
    builder_->begin_block(linear_index);
    return;
  }
  if (num_parsed_ > 0 && linear_index <= parsed_block().index) {
    throw InputError("thread blocks are out of order");
  }
  if (++num_parsed_ > parsed_.size()) parsed_.emplace_back();
  ParsedBlock& block = parsed_block();
  block.index = linear_index;
  block.warps.clear();
  block.columns.clear();
}

void AccelSimReader::open_warp(std::uint32_t warp) {
  if (!branch_) {
    builder_->begin_warp(warp);
    return;
  }
  ParsedBlock& block = parsed_block();
  if (warp >= header_.warps_per_block() ||
      (!block.warps.empty() && warp <= block.warps.back().number)) {
    throw InputError("warps are out of order");
  }
  end_parsed_warp();
  block.warps.push_back({.number = warp});
  open_begin_ = block.columns.counts();
  open_warp_id_ = block.index * header_.warps_per_block() + warp;
}

void AccelSimReader::close_block() {
  if (!branch_) {
    builder_->end_block();
    return;
  }
  if (parsed_block().warps.empty()) throw InputError("a thread block has no warp");
  end_parsed_warp();
  check_memory();
}

void AccelSimReader::end_parsed_warp() {
  ParsedBlock& block = parsed_block();
  if (block.warps.empty()) return;
  const ColumnCounts end = block.columns.counts();
  block.warps.back() = TraceBuilder::entry_of(
      block.index, block.warps.back().number,
      {end.instructions - open_begin_.instructions, end.memory - open_begin_.memory,
       end.sectors - open_begin_.sectors, end.stores - open_begin_.stores});
}

void AccelSimReader::append_issued(std::uint32_t row, std::uint32_t mask,
                                   const LaneAddresses* lanes) {
  if (!branch_) {
    builder_->append(row, mask, lanes);
  } else {
    branch_->append_to(parsed_block().columns, open_warp_id_, row, mask, lanes);
  }
}

std::uint64_t AccelSimReader::open_warp_instructions() const {
  if (!branch_) return builder_->open_warp_instructions();
  return parsed_block().columns.instruction.size() - open_begin_.instructions;
}

std::uint64_t AccelSimReader::open_block_bytes() const {
  if (!branch_) return builder_->open_block_bytes();
  return num_parsed_ == 0 ? 0 : bytes_of(parsed_block().columns.counts());
}

}  // namespace warpstack::trace
