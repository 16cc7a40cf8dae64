#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/error.h"
#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

class BlockTeam;

/// Reads one kernel of an Accel-Sim (NVBit) trace from text that arrives in pieces: tracer versions
/// before 3, 3 to 6 and later, grouped by thread block (.traceg) or raw (.trace). Every error
/// names file and line; nothing of a malformed file is kept.
class AccelSimReader {
 public:
  /// With more than one thread, thread blocks of a grouped trace are parsed beside each other. The
  /// kernel, the counts and the errors are those of one thread.
  AccelSimReader(std::string file_name, std::shared_ptr<StorageBudget> budget,
                 unsigned num_threads = 1);
  ~AccelSimReader();

  /// Parses the next piece of the file. Pieces may end anywhere.
  void feed(std::string_view text);
  /// Declares the end of the file and returns the kernel.
  KernelTrace finish();

  /// The number of lines that end in unknown fields, and the first of them.
  struct UnknownFields {
    std::uint64_t lines = 0;
    std::uint64_t first_line = 0;
    std::string first_field;
  };
  [[nodiscard]] const UnknownFields& unknown_fields() const { return unknown_fields_; }
  /// Executed bulk copies (UTMALDG and the like), whose addresses are not kept.
  [[nodiscard]] std::uint64_t num_bulk_copies() const { return num_bulk_copies_; }

 private:
  friend class BlockTeam;

  /// A thread block that a branch has parsed.
  struct ParsedBlock {
    std::uint64_t index = 0;
    std::vector<WarpEntry> warps;
    ColumnBuffers columns;
  };

  /// Whole thread blocks as text, and what a branch made of them.
  struct Piece {
    std::string text;
    bool is_done = false;
    /// Nothing in the text needed the trunk: no error, no new instruction.
    bool is_good = false;
    std::vector<ParsedBlock> blocks;  ///< the first `num_blocks`
    std::size_t num_blocks = 0;
    std::vector<RowCounts> counts;
    std::uint64_t lines = 0;
    std::uint64_t idle_lines = 0;  ///< at the end
    UnknownFields unknown_fields;
    std::uint64_t num_bulk_copies = 0;
  };

  /// A branch of a reader that has read its header. It parses whole thread blocks in a thread of
  /// its own, and gives up on what only the trunk can do.
  explicit AccelSimReader(const AccelSimReader& trunk);
  /// Parses the text of a piece, in a branch.
  void parse_piece(Piece& piece);
  /// Takes over what a branch has parsed. Returns whether that was possible.
  bool take(Piece& piece);

  void feed_serially(std::string_view text);
  void feed_pieces(std::string_view text);
  [[nodiscard]] bool is_between_blocks() const {
    return grouped_ && !in_block_ && partial_line_.empty();
  }

  // The block and warp that lines belong to: of the builder or, in a branch, of its own.
  void open_block(std::uint64_t linear_index);
  void open_warp(std::uint32_t warp);
  void close_block();
  void end_parsed_warp();
  [[nodiscard]] ParsedBlock& parsed_block() { return parsed_[num_parsed_ - 1]; }
  [[nodiscard]] const ParsedBlock& parsed_block() const { return parsed_[num_parsed_ - 1]; }
  [[nodiscard]] std::uint64_t open_warp_instructions() const;
  [[nodiscard]] std::uint64_t open_block_bytes() const;
  void append_issued(std::uint32_t row, std::uint32_t mask, const LaneAddresses* lanes);

  /// A position in the current line.
  struct Cursor {
    const char* next;
    const char* end;
  };

  /// The meaning of the text between mask and addresses; the same for each execution of an
  /// instruction.
  struct LineForm {
    std::uint32_t pc;
    std::string text;
    std::uint32_t row;
    bool has_addresses;
    bool is_memory;
    bool is_async_copy;
    bool is_bulk_copy;
  };

  /// The register files that a trace line can name.
  enum class RegisterFile : std::uint8_t { vector, uniform, predicate, uniform_predicate, barrier };

  /// A register that a trace line names.
  struct Operand {
    RegisterFile file = RegisterFile::vector;
    std::uint16_t number = 0;
    bool constant = false;  ///< reads a constant and ignores writes: RZ, URZ, PT, SR_TID.X
  };

  /// Warp of a raw trace, whose lines interleave with those of other warps.
  struct RawWarp {
    ColumnBuffers columns;
    std::uint32_t last_row = 0;
    bool expects_global_half = false;  ///< the shared-memory half of an LDGSTS has just been seen
  };

  void parse_line(std::string_view line);
  void count_idle_line();
  void parse_header_line(std::string_view line);
  void parse_register_line(std::string_view form, std::string_view value);
  void parse_hash_line(std::string_view line);
  void parse_key_line(std::string_view line);
  void parse_instruction(std::string_view line);
  void parse_thread_block(std::string_view value);
  void start_body();
  void end_warp();
  void skip_prefix(Cursor& cursor);
  void measure_raw_prefix(std::string_view line);
  RawWarp& raw_warp(Cursor& cursor);
  const LineForm& line_form(Cursor& cursor, std::uint32_t pc, std::uint32_t source_line);
  [[nodiscard]] StaticInstruction instruction_of(std::uint32_t pc, const std::string& opcode,
                                                 const std::vector<Operand>& destinations,
                                                 const std::vector<Operand>& sources,
                                                 std::uint32_t source_line,
                                                 std::uint32_t width) const;
  void append_scalar_registers(std::vector<std::uint16_t>& registers, const Operand& operand,
                               std::uint32_t width) const;
  void parse_addresses(Cursor& cursor, LaneAddresses& lanes);
  void skip_bulk_copy(Cursor& cursor);
  void skip_tail(Cursor& cursor);
  void check_memory();
  void finish_raw();
  [[nodiscard]] std::uint64_t linear_block_index() const;

  // Tokens of the current line. Each throws when the token is absent or malformed.
  std::string_view token(Cursor& cursor, const char* field);
  std::uint64_t decimal(Cursor& cursor, const char* field);
  /// Takes the number that follows, in the common case that there is one, without an error.
  template <typename Number>
  static bool take_decimal(Cursor& cursor, Number& value);
  std::int64_t signed_decimal(Cursor& cursor, const char* field);
  std::uint64_t hexadecimal(Cursor& cursor, const char* field);
  std::uint64_t address(Cursor& cursor);
  std::uint16_t vector_register(Cursor& cursor, const char* field);
  /// A register of any file.
  Operand operand(Cursor& cursor, const char* field);
  void skip_decimal(Cursor& cursor, const char* field);
  void skip_hexadecimal(Cursor& cursor, const char* field);
  std::uint64_t header_number(std::string_view key, std::string_view value);
  Dim3 header_dimensions(std::string_view key, std::string_view value);

  /// Runs a call to the builder and adds file and line to its errors.
  template <typename Call>
  void located(Call call) const {
    try {
      call();
    } catch (const InputError& error) {
      fail(error.what());
    }
  }
  [[noreturn]] void fail(const std::string& what) const;

  std::string file_name_;
  std::shared_ptr<StorageBudget> budget_;
  std::string partial_line_;
  std::uint64_t line_number_ = 0;
  std::uint64_t idle_lines_ =
      0;  ///< consecutive lines that are neither header nor structure nor instruction
  UnknownFields unknown_fields_;
  std::uint64_t num_bulk_copies_ = 0;

  KernelHeader header_;
  std::map<std::string, std::uint64_t, std::less<>> header_lines_;  ///< key -> line number
  std::uint32_t version_ = 0;
  bool has_line_info_ = false;

  /// By PC and text: registers that AccelSimWriter lists because no tuples stand for them.
  struct ListedRegisters {
    std::vector<std::uint16_t> destinations;
    std::vector<std::uint16_t> sources;
  };
  std::unordered_map<std::string, ListedRegisters> listed_registers_;
  std::uint64_t max_register_ = zero_register;

  std::optional<TraceBuilder> builder_;
  bool grouped_ = false;
  bool in_block_ = false;
  bool in_warp_ = false;
  Dim3 block_index_{};
  std::uint32_t warp_index_ = 0;
  std::optional<std::uint64_t> announced_instructions_;

  std::size_t raw_prefix_tokens_ = 0;
  std::map<std::uint64_t, std::map<std::uint32_t, RawWarp>> raw_blocks_;
  std::uint64_t raw_bytes_ = 0;  ///< of the columns of all raw blocks

  std::vector<LineForm> forms_;
  std::unordered_map<std::string, std::uint32_t> form_by_text_;
  std::vector<std::uint32_t> form_by_pc_;  ///< the form last seen at pc / 8, plus one

  unsigned num_threads_;
  std::string held_;                 ///< text whose thread block has not ended
  std::unique_ptr<BlockTeam> team_;  ///< once there are thread blocks to parse
  /// In a branch: whose forms and rows it has, and the blocks that it has parsed of a piece.
  const AccelSimReader* trunk_ = nullptr;
  std::optional<TraceBranch> branch_;
  std::vector<ParsedBlock> parsed_;  ///< the first `num_parsed_`
  std::size_t num_parsed_ = 0;
  ColumnCounts open_begin_;  ///< first entries of the branch's open warp
  std::uint64_t open_warp_id_ = 0;
};

}  // namespace warpstack::trace
