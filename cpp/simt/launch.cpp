#include "simt/launch.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "common/error.h"
#include "common/lazy_bytes.h"
#include "common/text.h"
#include "simt/print.h"
#include "simt/program.h"
#include "simt/races.h"
#include "simt/sampling.h"
#include "simt/written_bytes.h"
#include "trace/trace_builder.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warpstack::simt {
namespace {

constexpr std::uint32_t all_lanes = ~std::uint32_t{0};
/// Steps of a warp before the others of its block get a turn. Warps stay about as close together as
/// on a GPU, so that a race shows here what it shows there as a rule.
constexpr std::uint64_t turn_steps = 16;
/// Turns of a warp without a wait after which its lanes that wait for spinning ones go ahead, and
/// after which a block of a cooperative launch makes room for the others.
constexpr std::uint32_t turns_in_a_row = (1u << 20) / turn_steps;
/// Compare-and-swap or exchange operations that a warp repeats without any divergence before lanes
/// that wait for the spinning ones go ahead of them.
constexpr std::uint32_t patience = 256;
/// Warp instructions between looks at the step limit and for an interruption.
constexpr std::uint64_t check_interval = std::uint64_t{1} << 18;
constexpr std::size_t num_barriers = 16;
constexpr std::uint32_t max_call_depth = 4096;
/// Of the registers and parameters of a warp, in all functions that it is in.
constexpr std::size_t max_file_bytes = std::size_t{64} << 20;
constexpr std::uint64_t max_shared_bytes = std::uint64_t{227} << 10;

/// Bits of the lanes whose predicate holds.
std::uint32_t pack(const std::byte* predicate) {
  std::uint32_t bits = 0;
#if defined(__SSE2__)
  for (int group = 0; group < 8; ++group) {
    const __m128 lanes = _mm_loadu_ps(reinterpret_cast<const float*>(predicate + group * 16));
    bits |= static_cast<std::uint32_t>(_mm_movemask_ps(lanes)) << (4 * group);
  }
#else
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    std::uint32_t value;
    std::memcpy(&value, predicate + 4 * lane, 4);
    bits |= (value & 1) << lane;
  }
#endif
  return bits;
}

/// The `pc` of lanes that wait for others of their warp: behind the end of every function.
constexpr std::uint32_t parked = none - 1;

/// Lanes that go on at `pc` until they meet the others at `reconvergence`.
struct PathEntry {
  std::uint32_t pc = 0;
  std::uint32_t reconvergence = none;
  std::uint32_t mask = 0;
  std::uint32_t resume = none;  ///< of parked lanes: the step where they wait
  std::uint32_t members = 0;    ///< of parked lanes: whom their operation names; 0 at a barrier
};

/// What lanes bring to a warp-wide operation.
struct Exchange {
  std::uint32_t present = 0;
  std::array<std::uint64_t, warp_size> values{};
};

/// A function that a warp is in.
struct Frame {
  const ProgramFunction* function = nullptr;
  std::size_t base = 0;        ///< of its registers in the warp's register file
  std::size_t first_path = 0;  ///< of its entries in the warp's stack
  std::uint32_t mask = 0;      ///< lanes that entered
  std::uint64_t local_base = 0;
  const Call* call = nullptr;
};

struct Warp {
  enum class State : std::uint8_t { ready, paused, waiting, done };

  std::uint32_t number = 0;  ///< in its block
  State state = State::ready;
  std::uint32_t live = 0;  ///< lanes that exist and have not exited
  std::uint32_t barrier = 0;
  std::uint32_t barrier_result = none;  ///< frame offset of a bar.red's result
  BarrierKind barrier_kind = BarrierKind::sync;
  std::uint32_t spins = 0;
  std::uint32_t turns = 0;    ///< since the warp last waited, or since lanes last went ahead
  bool is_parted = false;     ///< its lanes came to the barrier on several paths
  bool out_of_order = false;  ///< lanes have gone ahead of others that wait for them
  bool may_wait = false;      ///< for another block: it has looked at what that one may change
  std::vector<std::byte> file;
  std::vector<Frame> frames;
  std::vector<PathEntry> paths;
  LazyBytes local;  ///< of all lanes, one after the other
  WrittenBytes local_written;
  ColumnBuffers columns;
};

struct BlockBarrier {
  std::uint32_t warps = 0;    ///< that have arrived
  std::uint32_t threads = 0;  ///< needed; 0: all of the block
  std::uint32_t count = 0;    ///< lanes whose predicate holds
  bool all = true;

  /// What a bar.red gives.
  [[nodiscard]] std::uint64_t value(BarrierKind kind) const {
    if (kind == BarrierKind::all) return all ? ~std::uint64_t{0} : 0;
    if (kind == BarrierKind::any) return count > 0 ? ~std::uint64_t{0} : 0;
    return count;
  }
};

/// A thread block with all that is its own.
struct Block {
  std::uint64_t number = 0;
  Dim3 index{};
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  WrittenBytes shared_written;
  std::unique_ptr<RaceCheck> races;  ///< null unless the launch checks for them
  std::array<BlockBarrier, num_barriers> barriers{};
  bool done = false;
};

/// Runs the blocks of a launch, one after the other, or in turns when they cooperate.
class Machine {
 public:
  Machine(Device& device, const KernelProgram& program, std::span<const std::byte> parameters,
          const LaunchOptions& options, std::span<const std::uint64_t> bound_textures)
      : device_(device),
        memory_(device.memory),
        bound_textures_(bound_textures),
        program_(program),
        options_(options),
        parameters_(parameters.begin(), parameters.end()),
        num_threads_(
            static_cast<std::uint32_t>(options.block[0] * options.block[1] * options.block[2])),
        num_warps_((num_threads_ + warp_size - 1) / warp_size) {}

  ~Machine() {
    if (parameter_address_ != 0) memory_.free(parameter_address_);
    if (workspace_address_ != 0) memory_.free(workspace_address_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  LaunchResult run() {
    std::optional<TraceBuilder> builder;
    if (options_.trace) {
      builder.emplace(header(), options_.storage);
      builder_ = &*builder;
      for (const StaticInstruction& row : program_.rows) rows_.push_back(builder_->intern(row));
    }
    const std::uint64_t num_blocks = options_.grid[0] * options_.grid[1] * options_.grid[2];
    if (options_.cooperative) {
      run_in_turns(num_blocks);
    } else {
      for (std::uint64_t number = 0; number < num_blocks; ++number) {
        start_block(number);
        while (!block_.done) run_block();
        store_block();
        if (options_.progress) options_.progress(number + 1, num_blocks);
      }
    }
    LaunchResult result;
    result.warp_instructions = warp_instructions_;
    result.thread_instructions = thread_instructions_;
    if (builder_ != nullptr) result.trace = builder_->finish();
    return result;
  }

  /// Faults so far that the launch went on after.
  [[nodiscard]] const std::vector<Note>& notes() const { return notes_.notes(); }

 private:
  KernelHeader header() const {
    KernelHeader header;
    header.name = program_.name;
    header.launch_id = options_.launch_id;
    header.grid = options_.grid;
    header.block = options_.block;
    header.shared_memory_bytes = program_.dynamic_shared_offset + options_.dynamic_shared_bytes;
    header.registers_per_thread = options_.registers_per_thread != 0
                                      ? options_.registers_per_thread
                                      : program_.registers_per_thread;
    header.binary_version = program_.binary_version;
    header.stream = options_.stream;
    header.shared_window = shared_window;
    header.local_window = local_window;
    header.source = program_.source;
    return header;
  }

  // ---- blocks ----

  /// All blocks are there from the beginning and go on until they may wait for each other.
  void run_in_turns(std::uint64_t num_blocks) {
    if (program_.synchronizes_grid) {
      // A count of arrivals, behind four bytes that are not used here.
      const std::array<std::byte, 64> zeros{};
      workspace_address_ = memory_.allocate(zeros.size(), "(workspace of the cooperative launch)");
      memory_.write(workspace_address_, zeros.data(), zeros.size());
      cached_ = nullptr;
    }
    std::vector<Block> blocks(num_blocks);
    for (std::uint64_t number = 0; number < num_blocks; ++number) {
      start_block(number);
      std::swap(block_, blocks[number]);
    }
    std::uint64_t stored = 0;
    while (stored < num_blocks) {
      for (std::uint64_t number = stored; number < num_blocks; ++number) {
        if (blocks[number].done) continue;
        std::swap(block_, blocks[number]);
        run_block();
        std::swap(block_, blocks[number]);
      }
      for (; stored < num_blocks && blocks[stored].done; ++stored) {
        std::swap(block_, blocks[stored]);
        store_block();
        block_ = {};
        if (options_.progress) options_.progress(stored + 1, num_blocks);
      }
    }
  }

  void start_block(std::uint64_t number) {
    block_.number = number;
    block_.done = false;
    block_.index = {number % options_.grid[0], number / options_.grid[0] % options_.grid[1],
                    number / options_.grid[0] / options_.grid[1]};
    block_.shared.assign(program_.uses_dynamic_shared
                             ? program_.dynamic_shared_offset + options_.dynamic_shared_bytes
                             : program_.shared_bytes,
                         std::byte{0});
    start_checks();
    block_.barriers = {};
    block_.warps.resize(num_warps_);
    const ProgramFunction& kernel = program_.functions[0];
    for (std::uint32_t w = 0; w < num_warps_; ++w) {
      Warp& warp = block_.warps[w];
      warp.number = w;
      warp.state = Warp::State::ready;
      const std::uint32_t lanes = std::min(num_threads_ - w * warp_size, warp_size);
      warp.live = lanes == warp_size ? all_lanes : (1u << lanes) - 1;
      warp.spins = 0;
      warp.turns = 0;
      warp.is_parted = false;
      warp.out_of_order = false;
      warp.may_wait = false;
      warp.file.assign(frame_bytes(kernel), std::byte{0});
      std::ranges::copy(kernel.constants, warp.file.begin());
      warp.frames.assign(1, {.function = &kernel, .mask = warp.live});
      warp.paths.assign(1, {0, none, warp.live});
      const std::uint64_t local_bytes = program_.local_bytes * warp_size;
      assign_zeros(warp.local, local_bytes);
      warp.local_written.reset(options_.check_uninitialized ? local_bytes : 0);
      warp.columns.clear();
    }
  }

  void start_checks() {
    block_.shared_written.reset(options_.check_uninitialized ? block_.shared.size() : 0);
    if (!block_.shared_written.whole()) {
      // Nobody writes the gaps between variables.
      std::uint64_t end = 0;
      for (const SharedVariable& variable : program_.shared_variables) {
        block_.shared_written.mark(end, variable.offset - end);
        end = variable.offset + variable.bytes;
      }
      if (program_.uses_dynamic_shared) {
        block_.shared_written.mark(end, program_.dynamic_shared_offset - end);
      }
    }
    if (!options_.check_races) return;
    if (block_.races != nullptr) {
      block_.races->begin_block();
    } else {
      block_.races = std::make_unique<RaceCheck>(num_warps_, race_budget_);
    }
  }

  /// Gives the warps of the block turns, one after the other, until none of them can go on.
  void run_block() {
    for (Warp& warp : block_.warps) {
      if (warp.state == Warp::State::paused) warp.state = Warp::State::ready;
    }
    std::uint32_t rounds = 0;
    bool progress = true;
    for (; progress && rounds <= turns_in_a_row; ++rounds) {
      progress = false;
      for (Warp& warp : block_.warps) {
        if (warp.state != Warp::State::ready) continue;
        run_warp(warp);
        progress = true;
      }
    }
    block_.done = std::ranges::all_of(
        block_.warps, [](const Warp& warp) { return warp.state == Warp::State::done; });
    if (rounds == 1 && !progress && !block_.done) report_deadlock();
  }

  void store_block() {
    if (builder_ == nullptr) return;
    builder_->begin_block(block_.number);
    for (const Warp& warp : block_.warps) {
      builder_->begin_warp(warp.number);
      builder_->append_columns(warp.columns.view());
    }
    builder_->end_block();
  }

  [[noreturn]] void report_deadlock() const {
    std::string where;
    for (const Warp& warp : block_.warps) {
      if (warp.state != Warp::State::waiting || where.size() > 200) continue;
      // The warp goes on behind the barrier.
      const PathEntry& path = warp.paths.back();
      const Step& step =
          warp.frames.back().function->steps[path.pc == parked ? path.resume : path.pc - 1];
      where += (where.empty() ? "warp " : ", warp ") + std::to_string(warp.number) +
               " at barrier " + std::to_string(warp.barrier) + " (" + place_of(warp, step) + ")";
    }
    throw InputError("kernel " + program_.name + ", block " + block_text() +
                     ": deadlock: all warps that have not finished wait: " + where);
  }

  static std::size_t frame_bytes(const ProgramFunction& function) {
    return function.register_bytes + std::size_t{function.parameter_bytes} * warp_size;
  }

  // ---- errors ----

  std::string block_text() const {
    return "(" + std::to_string(block_.index[0]) + ", " + std::to_string(block_.index[1]) + ", " +
           std::to_string(block_.index[2]) + ")";
  }

  const Step& step_of(const Warp& warp) const {
    const auto& steps = warp.frames.back().function->steps;
    return steps[std::min<std::size_t>(warp.paths.back().pc, steps.size() - 1)];
  }

  static const SourceInstruction& text_of(const Warp& warp, const Step& step) {
    return warp.frames.back().function->instructions[step.instruction];
  }

  /// "bfs.cu:12, PTX line 45, ld.global.f32"
  static std::string place_of(const Warp& warp, const Step& step) {
    return place_of(text_of(warp, step));
  }
  static std::string place_of(const SourceInstruction& text) {
    return text.source + (text.source.empty() ? "" : ", ") + text.place + ", " + text.opcode;
  }

  /// "kernel bfs (bfs.cu:12, …), block (0, 0, 0), thread (3, 0, 0)"
  std::string place_of(const Warp& warp, const Step& step, std::uint32_t lane) const {
    const auto thread = thread_index(warp, lane);
    return "kernel " + program_.name + " (" + place_of(warp, step) + "), block " + block_text() +
           ", thread (" + std::to_string(thread[0]) + ", " + std::to_string(thread[1]) + ", " +
           std::to_string(thread[2]) + ")";
  }

  std::array<std::uint64_t, 3> thread_index(const Warp& warp, std::uint32_t lane) const {
    const std::uint64_t thread = warp.number * warp_size + lane;
    return {thread % options_.block[0], thread / options_.block[0] % options_.block[1],
            thread / options_.block[0] / options_.block[1]};
  }

  [[noreturn]] void fault(const Warp& warp, const Step& step, std::uint32_t lane,
                          const std::string& what) const {
    throw InputError(place_of(warp, step, lane) + ": " + what);
  }

  /// What tells notes apart: the source line, without line information the place in the program.
  static const std::string& note_line(const SourceInstruction& text) {
    return text.source.empty() ? text.place : text.source;
  }

  /// A fault that a GPU may let pass: stops the launch, or notes it and returns. `kind` is a
  /// literal; `what` makes the message, which names no place.
  template <class What>
  void diagnose(const Warp& warp, const Step& step, std::uint32_t lane, std::string_view kind,
                const What& what) {
    if (options_.on_fault == OnFault::stop) fault(warp, step, lane, what());
    take_note(warp, step, lane, kind, what);
  }

  /// Notes what a launch goes on after whatever `on_fault` says.
  template <class What>
  void take_note(const Warp& warp, const Step& step, std::uint32_t lane, std::string_view kind,
                 const What& what) {
    const SourceInstruction& text = text_of(warp, step);
    Note& note = notes_.note(kind, &text, [&] { return note_line(text); });
    if (note.count++ > 0) return;
    note.place = place_of(warp, step, lane);
    note.what = what();
  }

  // ---- warps ----

  std::byte* registers_of(Warp& warp) { return warp.file.data() + warp.frames.back().base; }

  void set_mask(std::uint32_t mask, std::uint32_t live) {
    if (lanes_.bits != mask) lanes_.set(mask);
    lanes_.all = mask == live;  // nobody reads the registers of lanes that have exited
  }

  static bool is_matrix_access(Action action) {
    return action == Action::matrix_load || action == Action::matrix_store ||
           action == Action::fragment_load || action == Action::fragment_store;
  }

  void emit(Warp& warp, const Step& step, std::uint32_t mask) {
    for (std::uint32_t i = 0; i < step.num_rows; ++i) {
      builder_->append_plain(warp.columns, rows_[step.first_row + i], mask);
    }
  }

  /// One of the rows of a step, its first as a rule.
  void emit_access(Warp& warp, const Step& step, std::uint32_t mask, const LaneAddresses* lanes,
                   std::uint32_t row = 0) {
    if (builder_ == nullptr || step.num_rows == 0) return;
    builder_->append_to(warp.columns, block_.number * num_warps_ + warp.number,
                        rows_[step.first_row + row], mask, lanes);
  }

  /// An access without an active lane is issued all the same.
  void skip_access(Warp& warp, const Step& step) {
    if (is_matrix_access(step.action)) {
      for (std::uint32_t row = 0; row < step.num_rows; ++row) {
        emit_access(warp, step, 0, nullptr, row);
      }
    } else if (program_.memory[step.detail].constant) {
      if (builder_ != nullptr) emit(warp, step, 0);
    } else {
      emit_access(warp, step, 0, nullptr);
    }
  }

  static bool is_access(Action action) {
    return action == Action::load || action == Action::store || action == Action::atomic ||
           action == Action::async_copy || is_matrix_access(action);
  }

  /// Runs a warp until it waits, is done, or has had its turn.
  void run_warp(Warp& warp) {
    if (warp_instructions_ >= next_check_) {
      if (options_.interrupt) options_.interrupt();
      next_check_ = warp_instructions_ + check_interval;
    }
    if (warp_instructions_ > options_.step_limit) report_step_limit(warp);
    // Near the limit a turn is shorter.
    const std::uint64_t rest = options_.step_limit - warp_instructions_;
    std::uint64_t left = rest < turn_steps ? rest + 1 : turn_steps;
    while (warp.state == Warp::State::ready) {
      if (left-- == 0) {
        if (++warp.turns >= turns_in_a_row) {
          warp.turns = 0;
          rotate(warp);
        }
        return;
      }
      PathEntry& path = warp.paths.back();
      const ProgramFunction& function = *warp.frames.back().function;
      if (path.pc == parked) {
        let_others_come(warp);
        continue;
      }
      if (path.pc >= function.steps.size()) {  // falls off the end
        leave(warp, path.mask, warp.frames.size() == 1);
        continue;
      }
      const Step& step = function.steps[path.pc];
      if (step.reconverges && path.pc == path.reconvergence) {
        warp.paths.pop_back();
        warp.spins = 0;
        continue;
      }
      std::byte* const registers = registers_of(warp);
      std::uint32_t mask = path.mask;
      if (step.guard != none) {
        const std::uint32_t guard = pack(registers + step.guard);
        mask &= step.guard_negated ? ~guard : guard;
      }
      if (step.begins) {
        ++warp_instructions_;
        thread_instructions_ += static_cast<std::uint64_t>(std::popcount(mask));
      }
      if (step.action == Action::lanes) {
        if (builder_ != nullptr) emit(warp, step, mask);
        if (mask != 0) {
          set_mask(mask, warp.live);
          step.function(registers, step.operands, lanes_);
        }
        ++path.pc;
        continue;
      }
      act(warp, step, registers, mask);
    }
  }

  [[noreturn]] void report_step_limit(const Warp& warp) const {
    throw InputError("kernel " + program_.name + " (" + place_of(warp, step_of(warp)) +
                     "), block " + block_text() + ": the launch has executed more than " +
                     std::to_string(options_.step_limit) +
                     " warp instructions; raise step_limit if it is not an endless loop");
  }

  /// All actions but arithmetic. Moves the warp on.
  void act(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    PathEntry& path = warp.paths.back();
    const bool access = is_access(step.action);
    if (builder_ != nullptr && !access) emit(warp, step, mask);
    switch (step.action) {
      case Action::branch:
        branch(warp, step, mask);
        return;
      case Action::indexed_branch:
        indexed_branch(warp, step, registers, mask);
        return;
      case Action::exit:
        ++path.pc;
        if (mask != 0) leave(warp, mask, true);
        return;
      case Action::function_return:
        ++path.pc;
        if (mask != 0) leave(warp, mask, false);
        return;
      case Action::trap:
        if (mask != 0) {
          fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
                program_.synchronizes_grid && !options_.cooperative
                    ? "the kernel executed a trap: to synchronize its grid it needs a cooperative "
                      "launch"
                    : "the kernel executed a trap");
        }
        break;
      case Action::barrier:
        arrive(warp, step, registers, mask);
        return;
      case Action::shuffle:
      case Action::vote:
      case Action::match:
      case Action::reduce:
      case Action::elect:
      case Action::warp_sync:
        meet(warp, step, registers, mask);
        return;
      case Action::call:
      case Action::indirect_call:
        ++path.pc;
        if (mask != 0) call(warp, step, registers, mask);
        return;
      default:
        if (access && mask == 0) skip_access(warp, step);
        if (mask != 0) perform(warp, step, registers, mask);
        break;
    }
    ++warp.paths.back().pc;
  }

  void perform(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    switch (step.action) {
      case Action::nothing:
        break;
      case Action::fence:
        if (block_.races != nullptr) block_.races->fence(warp.number);
        break;
      case Action::special:
        read_special(warp, step, registers, mask);
        break;
      case Action::local_address:
        broadcast(registers, step.operands.target, step.operands.immediate, mask,
                  warp.frames.back().local_base + program_.local_offsets[step.detail]);
        break;
      case Action::parameter_base:
        broadcast(registers, step.operands.target, 8, mask, parameter_address());
        break;
      case Action::kernel_parameter:
        load_kernel_parameter(warp, step, registers, mask);
        break;
      case Action::parameter_load:
        access_parameter(warp, step, registers, mask, true);
        break;
      case Action::parameter_store:
        access_parameter(warp, step, registers, mask, false);
        break;
      case Action::load:
      case Action::store:
      case Action::atomic:
      case Action::async_copy:
        access_memory(warp, step, registers, mask);
        break;
      case Action::address_query:
        query_address(step, registers, mask);
        break;
      case Action::texture:
      case Action::surface_load:
      case Action::surface_store:
      case Action::texture_query:
        access_texture(warp, step, registers, mask);
        break;
      case Action::active_mask:
        broadcast(registers, program_.collectives[step.detail].result, 4, mask, mask);
        break;
      case Action::matrix_multiply:
        require_whole_warp(warp, step, mask);
        multiply_matrices(registers, program_.multiplications[step.detail]);
        break;
      case Action::matrix_transpose:
        require_whole_warp(warp, step, mask);
        transpose_matrix(step, registers);
        break;
      case Action::matrix_load:
      case Action::matrix_store:
        access_matrices(warp, step, registers, mask);
        break;
      case Action::fragment_load:
      case Action::fragment_store:
        access_fragment(warp, step, registers, mask);
        break;
      default:
        break;
    }
  }

  // ---- control flow ----

  void branch(Warp& warp, const Step& step, std::uint32_t taken) {
    PathEntry& path = warp.paths.back();
    if (warp.may_wait && taken != 0 && step.jump <= path.pc) {
      // Round a loop that may wait for another block, which goes on now.
      warp.may_wait = false;
      warp.turns = 0;
      warp.state = Warp::State::paused;
    }
    if (taken == path.mask) {
      if (step.jump <= path.pc && warp.spins > patience) {
        path.pc = step.jump;
        rotate(warp);
        return;
      }
      path.pc = step.jump;
      return;
    }
    if (taken == 0) {
      ++path.pc;
      return;
    }
    std::pair<std::uint32_t, std::uint32_t> ways[] = {{path.pc + 1, path.mask & ~taken},
                                                      {step.jump, taken}};
    // The last runs first: the way that leaves, so that others need not wait for it at barriers.
    const auto& steps = warp.frames.back().function->steps;
    if (path.pc + 1 < steps.size() && steps[path.pc + 1].action == Action::exit) {
      std::swap(ways[0], ways[1]);
    }
    diverge(warp, step.reconvergence, ways);
  }

  void indexed_branch(Warp& warp, const Step& step, const std::byte* registers,
                      std::uint32_t mask) {
    PathEntry& path = warp.paths.back();
    const IndexedBranch& targets = program_.indexed_branches[step.detail];
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;  // target, lanes
    const auto add = [&ways](std::uint32_t target, std::uint32_t lanes) {
      for (auto& [known, members] : ways) {
        if (known == target) {
          members |= lanes;
          return;
        }
      }
      ways.emplace_back(target, lanes);
    };
    if (mask != path.mask) add(path.pc + 1, path.mask & ~mask);
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint32_t index = lane_u32(registers, targets.index, lane);
      if (index >= targets.targets.size()) {
        fault(warp, step, static_cast<std::uint32_t>(lane),
              "branch index " + std::to_string(index) + " of a list of " +
                  std::to_string(targets.targets.size()) + " targets");
      }
      add(targets.targets[index], 1u << lane);
    }
    if (ways.size() == 1) {
      path.pc = ways[0].first;
      return;
    }
    diverge(warp, step.reconvergence, ways);
  }

  /// Splits the top path. The entry of the lanes that wait at the reconvergence point stays below;
  /// it is left out when the path itself ends there, or when the ways meet nowhere.
  void diverge(Warp& warp, std::uint32_t reconvergence,
               std::span<const std::pair<std::uint32_t, std::uint32_t>> ways) {
    PathEntry& path = warp.paths.back();
    const bool meets = reconvergence < warp.frames.back().function->steps.size();
    if (!meets) reconvergence = path.reconvergence;
    const bool same_end = path.reconvergence == reconvergence;
    if (same_end) {
      warp.paths.pop_back();
    } else {
      path.pc = reconvergence;
    }
    for (const auto& [target, lanes] : ways) {
      if (meets && target == reconvergence) continue;  // waits already
      warp.paths.push_back({target, reconvergence, lanes});
    }
    warp.spins = 0;
  }

  /// Lanes return from the function, or exit.
  void leave(Warp& warp, std::uint32_t mask, bool exits) {
    warp.spins = 0;
    const std::size_t first = exits ? 0 : warp.frames.back().first_path;
    for (std::size_t i = first; i < warp.paths.size(); ++i) warp.paths[i].mask &= ~mask;
    if (exits) warp.live &= ~mask;
    while (true) {
      const std::size_t bottom = warp.frames.back().first_path;
      if (warp.out_of_order) drop_empty_paths(warp);
      while (warp.paths.size() > bottom && warp.paths.back().mask == 0) warp.paths.pop_back();
      if (warp.paths.size() > bottom) return;
      if (warp.frames.size() == 1) {
        warp.state = Warp::State::done;
        if (block_.races != nullptr) block_.races->end_warp(warp.number);
        release_barriers();
        return;
      }
      finish_call(warp);
    }
  }

  /// Lets lanes that wait for a spinning path, or siblings of it, go ahead (a lock's holder may be
  /// among them).
  void rotate(Warp& warp) {
    warp.spins = 0;
    const std::size_t bottom = warp.frames.back().first_path;
    const std::size_t size = warp.paths.size();
    if (size - bottom < 2) return;
    const PathEntry top = warp.paths[size - 1];
    std::size_t siblings = size - 1;
    while (siblings > bottom && warp.paths[siblings - 1].reconvergence == top.reconvergence &&
           warp.paths[siblings - 1].pc != top.reconvergence) {
      --siblings;
    }
    if (siblings < size - 1) {
      std::rotate(warp.paths.begin() + static_cast<std::ptrdiff_t>(siblings), warp.paths.end() - 1,
                  warp.paths.end());
      return;
    }
    if (warp.out_of_order) {
      let_others_go(warp);
      return;
    }
    PathEntry& below = warp.paths[size - 2];
    if (below.pc != top.reconvergence) return;
    const std::uint32_t waiting = below.mask & ~top.mask;
    if (waiting == 0) return;
    // They no longer meet here, but where the entry below would meet others.
    const PathEntry ahead{below.pc, below.reconvergence, waiting};
    below = {top.pc, below.reconvergence, top.mask};
    warp.paths.back() = ahead;
  }

  // ---- calls ----

  void call(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    const Call& call = program_.calls[step.detail];
    if (call.built_in != Call::BuiltIn::none) {
      call_built_in(warp, step, call, mask);
      return;
    }
    if (step.action == Action::call) {
      enter(warp, step, call, call.function, mask);
      return;
    }
    // One callee at a time; the other lanes come back to this call.
    std::uint32_t function = none;
    std::uint32_t same = 0;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t address = lane_u64(registers, call.address, lane);
      const auto found = program_.function_addresses.find(address);
      if (found == program_.function_addresses.end()) {
        fault(warp, step, static_cast<std::uint32_t>(lane),
              "call of " + hexadecimal(address) + ", which is no function");
      }
      if (function == none) function = found->second;
      if (found->second == function) same |= 1u << lane;
    }
    if (same != mask) {
      const PathEntry all = warp.paths.back();  // waits behind the call, where they meet
      warp.paths.push_back({all.pc - 1, all.pc, all.mask & ~same});
      warp.paths.push_back({all.pc, all.pc, same});
    }
    const ProgramFunction& callee = program_.functions[function];
    if (callee.parameters.size() != call.arguments.size() ||
        callee.results.size() != call.results.size()) {
      fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(same)),
            "call of " + callee.name + ", which has another number of parameters");
    }
    enter(warp, step, call, function, same);
  }

  void enter(Warp& warp, const Step& step, const Call& call, std::uint32_t function,
             std::uint32_t mask) {
    const ProgramFunction& callee = program_.functions[function];
    const Frame caller = warp.frames.back();
    const std::uint64_t local_base = caller.local_base + caller.function->local_bytes;
    if (warp.frames.size() >= max_call_depth ||
        local_base + callee.local_bytes > program_.local_bytes) {
      fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
            "stack overflow: " + std::to_string(warp.frames.size()) + " calls deep");
    }
    const std::size_t base = warp.file.size();
    if (base + frame_bytes(callee) > max_file_bytes) {
      fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
            "stack overflow: the parameters and registers of " +
                std::to_string(warp.frames.size()) + " calls take more than 64 MiB per warp");
    }
    warp.file.resize(base + frame_bytes(callee));
    std::ranges::copy(callee.constants, warp.file.begin() + static_cast<std::ptrdiff_t>(base));
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      move_piece(warp, caller, call.arguments[i], base, callee, callee.parameters[i], mask, true);
    }
    warp.frames.push_back({.function = &callee,
                           .base = base,
                           .first_path = warp.paths.size(),
                           .mask = mask,
                           .local_base = local_base,
                           .call = &call});
    warp.paths.push_back({0, none, mask});
    if (warp.local_written.whole() || callee.local_bytes == 0) return;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {  // of earlier calls
      const auto lane = static_cast<std::uint64_t>(std::countr_zero(rest));
      warp.local_written.forget(lane * program_.local_bytes + local_base, callee.local_bytes);
    }
  }

  void finish_call(Warp& warp) {
    const Frame callee = warp.frames.back();
    warp.frames.pop_back();
    const Frame& caller = warp.frames.back();
    for (std::size_t i = 0; i < callee.call->results.size(); ++i) {
      move_piece(warp, caller, callee.call->results[i], callee.base, *callee.function,
                 callee.function->results[i], callee.mask & warp.live, false);
    }
    warp.file.resize(callee.base);
  }

  /// Copies between the parameter areas of a caller and the function it calls.
  static void move_piece(Warp& warp, const Frame& caller, const Call::Piece& outer,
                         std::size_t callee_base, const ProgramFunction& callee,
                         const Call::Piece& inner, std::uint32_t mask, bool into_callee) {
    const std::size_t bytes = std::min(outer.bytes, inner.bytes);
    std::byte* const outer_area =
        warp.file.data() + caller.base + caller.function->register_bytes + outer.offset;
    std::byte* const inner_area =
        warp.file.data() + callee_base + callee.register_bytes + inner.offset;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
      std::byte* const a = outer_area + lane * caller.function->parameter_bytes;
      std::byte* const b = inner_area + lane * callee.parameter_bytes;
      std::memcpy(into_callee ? b : a, into_callee ? a : b, bytes);
    }
  }

  void call_built_in(Warp& warp, const Step& step, const Call& call, std::uint32_t mask) {
    const Frame& frame = warp.frames.back();
    std::byte* const area = warp.file.data() + frame.base + frame.function->register_bytes;
    const auto argument = [&](std::size_t i, std::uint32_t lane) {
      std::uint64_t value = 0;
      if (i >= call.arguments.size()) return value;
      const Call::Piece& piece = call.arguments[i];
      std::memcpy(&value, area + std::size_t{lane} * frame.function->parameter_bytes + piece.offset,
                  std::min(piece.bytes, 8u));
      return value;
    };
    const auto give = [&](std::uint32_t lane, std::uint64_t value) {
      if (call.results.empty()) return;
      const Call::Piece& piece = call.results[0];
      std::memcpy(area + std::size_t{lane} * frame.function->parameter_bytes + piece.offset, &value,
                  std::min(piece.bytes, 8u));
    };
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      switch (call.built_in) {
        case Call::BuiltIn::print: {
          const std::string text = format_text(
              text_at(warp, step, lane, argument(0, lane)),
              [&](std::uint64_t offset, std::uint32_t bytes) {
                std::uint64_t value = 0;
                std::memcpy(&value, generic(warp, step, lane, argument(1, lane) + offset, bytes),
                            bytes);
                return value;
              },
              [&](std::uint64_t address) { return text_at(warp, step, lane, address); });
          if (device_.print) {
            device_.print(text);
          } else {
            std::fwrite(text.data(), 1, text.size(), stdout);
          }
          give(lane, text.size());
          break;
        }
        case Call::BuiltIn::assert_fail:
          fault(warp, step, lane,
                "assertion `" + text_at(warp, step, lane, argument(0, lane)) + "` failed (" +
                    text_at(warp, step, lane, argument(1, lane)) + ":" +
                    std::to_string(argument(2, lane) & 0xffffffffu) + ")");
        case Call::BuiltIn::allocate: {
          std::uint64_t address = 0;
          try {
            address = memory_.allocate(argument(0, lane));
            if (block_.races != nullptr) block_.races->forget(address, argument(0, lane));
          } catch (const InputError&) {  // malloc() answers with a null pointer
          }
          give(lane, address);
          cached_ = nullptr;
          break;
        }
        case Call::BuiltIn::release:
          if (argument(0, lane) != 0) {
            try {
              memory_.free(argument(0, lane));
            } catch (const InputError& error) {
              fault(warp, step, lane, error.what());
            }
          }
          cached_ = nullptr;
          break;
        case Call::BuiltIn::none:
          break;
      }
    }
  }

  /// Zero-terminated text at a generic address.
  std::string text_at(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address) {
    std::string text;
    if (address == 0) return "(null)";
    while (text.size() < 65536) {
      const char c = static_cast<char>(*generic(warp, step, lane, address++, 1));
      if (c == '\0') break;
      text += c;
    }
    return text;
  }

  // ---- registers ----

  static std::uint32_t lane_u32(const std::byte* registers, std::uint32_t slot, int lane) {
    std::uint32_t value;
    std::memcpy(&value, registers + slot + 4 * lane, 4);
    return value;
  }
  static std::uint64_t lane_u64(const std::byte* registers, std::uint32_t slot, int lane) {
    std::uint64_t value;
    std::memcpy(&value, registers + slot + 8 * lane, 8);
    return value;
  }
  /// Values of registers of 2, 4 or 8 bytes, zero-extended.
  static std::uint64_t get(const std::byte* registers, std::uint32_t slot, std::uint32_t bytes,
                           int lane) {
    return bytes == 8 ? lane_u64(registers, slot, lane) : lane_u32(registers, slot, lane);
  }
  static void put(std::byte* registers, std::uint32_t slot, std::uint32_t bytes, int lane,
                  std::uint64_t value) {
    if (bytes == 8) {
      std::memcpy(registers + slot + 8 * lane, &value, 8);
    } else {
      const auto low = static_cast<std::uint32_t>(bytes == 2 ? value & 0xffff : value);
      std::memcpy(registers + slot + 4 * lane, &low, 4);
    }
  }
  static void broadcast(std::byte* registers, std::uint32_t slot, std::uint32_t bytes,
                        std::uint32_t mask, std::uint64_t value) {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      put(registers, slot, bytes, std::countr_zero(rest), value);
    }
  }

  void read_special(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    const SpecialRead& read = program_.specials[step.detail];
    const std::uint32_t c = read.component;
    const std::uint32_t bytes = step.operands.immediate;
    const auto per_lane = [&](auto f) {
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        put(registers, step.operands.target, bytes, lane, f(static_cast<std::uint32_t>(lane)));
      }
    };
    const auto uniform = [&](std::uint64_t value) {
      broadcast(registers, step.operands.target, bytes, mask, value);
    };
    switch (read.special) {
      case Special::tid:
        per_lane([&](std::uint32_t lane) { return c < 3 ? thread_index(warp, lane)[c] : 0; });
        break;
      case Special::ntid:
        uniform(c < 3 ? options_.block[c] : 0);
        break;
      case Special::ctaid:
        uniform(c < 3 ? block_.index[c] : 0);
        break;
      case Special::nctaid:
        uniform(c < 3 ? options_.grid[c] : 0);
        break;
      case Special::laneid:
        per_lane([](std::uint32_t lane) { return std::uint64_t{lane}; });
        break;
      case Special::warpid:
        uniform(warp.number);
        break;
      case Special::nwarpid:
        uniform(num_warps_);
        break;
      case Special::smid:
        uniform(0);
        break;
      case Special::nsmid:
        uniform(1);
        break;
      case Special::gridid:
        uniform(options_.launch_id);
        break;
      case Special::lanemask_eq:
        per_lane([](std::uint32_t lane) { return std::uint64_t{1} << lane; });
        break;
      case Special::lanemask_le:
        per_lane([](std::uint32_t lane) { return (std::uint64_t{2} << lane) - 1; });
        break;
      case Special::lanemask_lt:
        per_lane([](std::uint32_t lane) { return (std::uint64_t{1} << lane) - 1; });
        break;
      case Special::lanemask_ge:
        per_lane(
            [](std::uint32_t lane) { return 0xffffffffu & ~((std::uint64_t{1} << lane) - 1); });
        break;
      case Special::lanemask_gt:
        per_lane(
            [](std::uint32_t lane) { return 0xffffffffu & ~((std::uint64_t{2} << lane) - 1); });
        break;
      // Time is the number of executed warp instructions: it grows, and is the same in every run.
      case Special::clock:
      case Special::clock64:
      case Special::globaltimer:
      case Special::globaltimer_lo:
        uniform(warp_instructions_);
        break;
      case Special::clock_hi:
      case Special::globaltimer_hi:
        uniform(warp_instructions_ >> 32);
        break;
      case Special::dynamic_smem_size:
        uniform(options_.dynamic_shared_bytes);
        break;
      case Special::total_smem_size:
        uniform(block_.shared.size());
        break;
      case Special::envreg:
        uniform(c == 1 ? workspace_address_ >> 32 : workspace_address_ & 0xffffffffu);
        break;
      default:
        uniform(0);
        break;
    }
  }

  // ---- parameters ----

  /// The parameter buffer as a piece of device memory, for kernels that take its address.
  std::uint64_t parameter_address() {
    if (parameter_address_ == 0) {
      parameter_address_ = memory_.allocate(parameters_.size(), "(kernel parameters)");
      memory_.write(parameter_address_, parameters_.data(), parameters_.size());
      cached_ = nullptr;
    }
    return parameter_address_;
  }

  static std::uint64_t extended(std::uint64_t value, std::uint32_t bytes, bool sign_extend) {
    if (!sign_extend || bytes == 8) return value;
    const std::uint32_t shift = 64 - 8 * bytes;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
  }

  void load_kernel_parameter(Warp& warp, const Step& step, std::byte* registers,
                             std::uint32_t mask) {
    const ParameterAccess& access = program_.parameter_accesses[step.detail];
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::uint64_t offset = access.offset;
      if (access.address != none) {
        offset += get(registers, access.address, access.address_is_64_bits ? 8 : 4, lane);
      }
      const std::uint64_t bytes = std::uint64_t{access.bytes} * access.elements;
      if (offset > parameters_.size() || bytes > parameters_.size() - offset) {
        fault(warp, step, static_cast<std::uint32_t>(lane),
              "load of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                  " of " + std::to_string(parameters_.size()) + " bytes of parameters");
      }
      for (std::uint32_t e = 0; e < access.elements; ++e) {
        std::uint64_t value = 0;
        std::memcpy(&value, parameters_.data() + offset + e * access.bytes, access.bytes);
        put(registers, access.values[e], access.value_bytes[e], lane,
            extended(value, access.bytes, access.sign_extend));
      }
    }
  }

  void access_parameter(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
                        bool is_load) {
    const ParameterAccess& access = program_.parameter_accesses[step.detail];
    const ProgramFunction& function = *warp.frames.back().function;
    std::byte* const area = registers + function.register_bytes;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::uint64_t offset = access.offset;
      if (access.address != none) {
        offset += get(registers, access.address, access.address_is_64_bits ? 8 : 4, lane);
      }
      const std::uint64_t bytes = std::uint64_t{access.bytes} * access.elements;
      if (offset > function.parameter_bytes || bytes > function.parameter_bytes - offset) {
        fault(warp, step, static_cast<std::uint32_t>(lane),
              "access beyond the parameters of " + function.name);
      }
      std::byte* place = area + static_cast<std::size_t>(lane) * function.parameter_bytes + offset;
      for (std::uint32_t e = 0; e < access.elements; ++e, place += access.bytes) {
        std::uint64_t value = 0;
        if (is_load) {
          std::memcpy(&value, place, access.bytes);
          put(registers, access.values[e], access.value_bytes[e], lane,
              extended(value, access.bytes, access.sign_extend));
        } else {
          value = get(registers, access.values[e], access.value_bytes[e], lane);
          std::memcpy(place, &value, access.bytes);
        }
      }
    }
  }

  // ---- memory ----

  static void read_addresses(const std::byte* registers, std::uint32_t slot, bool is_64_bits,
                             std::int64_t offset, std::uint32_t mask, LaneAddresses& lanes) {
    lanes.mask = mask;
    const auto addend = static_cast<std::uint64_t>(offset);
    if (slot == none) {
      lanes.address.fill(addend);
    } else if (is_64_bits) {
      std::memcpy(lanes.address.data(), registers + slot, sizeof lanes.address);
      for (std::uint64_t& address : lanes.address) address += addend;
    } else {
      std::array<std::uint32_t, warp_size> narrow;
      std::memcpy(narrow.data(), registers + slot, sizeof narrow);
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        lanes.address[lane] = (narrow[lane] + addend) & 0xffffffffu;
      }
    }
  }

  static const char* verb_of(const Step& step) {
    switch (step.action) {
      case Action::store:
      case Action::matrix_store:
      case Action::fragment_store:
        return "store";
      case Action::atomic:
        return "atomic operation";
      case Action::async_copy:
        return "copy";
      default:
        return "load";
    }
  }

  /// "misaligned load of 4 bytes at 0x7001"
  static std::string access_text(const Step& step, const char* problem, std::uint64_t address,
                                 std::uint64_t bytes) {
    return std::string(problem) + verb_of(step) + " of " + std::to_string(bytes) + " bytes at " +
           hexadecimal(address);
  }

  static bool inside(std::uint64_t address, std::uint64_t window) {
    return address - window < window_bytes;
  }

  /// Host address for an access that may go on outside memory: it reads zeros, what it writes is
  /// lost.
  std::byte* out_of_bounds(const Warp& warp, const Step& step, std::uint32_t lane,
                           std::uint64_t address, std::uint64_t bytes, const std::string& where) {
    diagnose(warp, step, lane, "out-of-bounds",
             [&] { return access_text(step, "out-of-bounds ", address, bytes) + ": " + where; });
    outside_.fill(std::byte{0});
    return outside_.data();
  }

  /// Host address of a global access, after all checks.
  std::byte* global(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                    std::uint32_t bytes, bool reads, bool writes) {
    if (cached_ == nullptr || address - cached_->address >= cached_->bytes) {
      cached_ = memory_.find(address);
    }
    if (cached_ == nullptr || address - cached_->address > cached_->bytes ||
        bytes > cached_->bytes - (address - cached_->address)) {
      cached_ = nullptr;
      const std::string where = "it is " + memory_.describe(address);
      if (memory_.is_mapped(address)) {
        return out_of_bounds(warp, step, lane, address, bytes, where);
      }
      fault(warp, step, lane,
            access_text(step, "out-of-bounds ", address, bytes) + ": " +
                (address == 0 ? "a null pointer" : where));
    }
    if (cached_->written != nullptr) {
      std::uint8_t* const written = cached_->written.get() + (address - cached_->address);
      if (reads && options_.check_uninitialized) {
        for (std::uint32_t b = 0; b < bytes; ++b) {
          if (written[b] != 0) continue;
          diagnose(warp, step, lane, "uninitialised", [&] {
            return access_text(step, "", address, bytes) +
                   ", which nobody has written: " + memory_.describe(address) +
                   " (copy data there first, or launch with check_uninitialized off)";
          });
          break;
        }
      }
      if (writes) std::memset(written, 1, bytes);
    }
    return memory_.data(address);
  }

  /// What an access does with the bytes at an address.
  struct Use {
    bool reads = true;
    bool writes = false;
  };

  /// Finds reads of shared or local memory that nobody has written, and notes writes. `place` is in
  /// the map, `address` in messages.
  /// One byte that was written is enough, also of a vector: the others may be the padding of a
  /// structure, which is copied with what surrounds it. A read of local memory is noted and stops
  /// nothing: compilers load variables ahead of the branch that decides whether they are needed.
  void check_written(Warp& warp, const Step& step, std::uint32_t lane, WrittenBytes& written,
                     std::uint64_t place, std::uint64_t address, std::uint32_t bytes, Use use,
                     bool is_shared) {
    if (use.reads && !written.any(place, bytes)) {
      const auto what = [&] {
        return access_text(step, "", address, bytes) + " of " +
               (is_shared ? "shared memory" : "local memory") + ", which nobody has written" +
               (is_shared ? ": " + describe_shared(address) : "") +
               " (write it first, or launch with check_uninitialized off)";
      };
      if (is_shared) {
        diagnose(warp, step, lane, "uninitialised", what);
      } else {
        take_note(warp, step, lane, "uninitialised", what);
      }
    }
    if (use.writes) written.mark(place, bytes);
  }

  /// "12 bytes into the shared variable tile"
  std::string describe_shared(std::uint64_t address) const {
    for (const SharedVariable& variable : program_.shared_variables) {
      if (address - variable.offset >= variable.bytes) continue;
      return std::to_string(address - variable.offset) + " bytes into the shared variable " +
             variable.name;
    }
    if (program_.uses_dynamic_shared && address >= program_.dynamic_shared_offset) {
      return std::to_string(address - program_.dynamic_shared_offset) +
             " bytes into the dynamic shared memory";
    }
    return "between the shared variables";
  }

  std::byte* shared(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                    std::uint32_t bytes, Use use) {
    if (address > block_.shared.size() || bytes > block_.shared.size() - address) {
      return out_of_bounds(
          warp, step, lane, address, bytes,
          "the block has " + std::to_string(block_.shared.size()) + " bytes of shared memory");
    }
    if (!block_.shared_written.whole()) {
      check_written(warp, step, lane, block_.shared_written, address, address, bytes, use, true);
    }
    return block_.shared.data() + address;
  }

  std::byte* local(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                   std::uint32_t bytes, Use use) {
    if (address > program_.local_bytes || bytes > program_.local_bytes - address) {
      return out_of_bounds(
          warp, step, lane, address, bytes,
          "the thread has " + std::to_string(program_.local_bytes) + " bytes of local memory");
    }
    const std::uint64_t place = lane * program_.local_bytes + address;
    if (!warp.local_written.whole()) {
      check_written(warp, step, lane, warp.local_written, place, address, bytes, use, false);
    }
    return reinterpret_cast<std::byte*>(warp.local.get()) + place;
  }

  /// Host address of a read through a generic address.
  std::byte* generic(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                     std::uint32_t bytes) {
    return pointer(warp, step, AddressSpace::generic, lane, address, bytes, {});
  }

  std::byte* pointer(Warp& warp, const Step& step, AddressSpace space, std::uint32_t lane,
                     std::uint64_t address, std::uint32_t bytes, Use use) {
    switch (space) {
      case AddressSpace::shared:
        return shared(warp, step, lane, address, bytes, use);
      case AddressSpace::local:
        return local(warp, step, lane, address, bytes, use);
      case AddressSpace::global:
        return global(warp, step, lane, address, bytes, use.reads, use.writes);
      case AddressSpace::generic:
        break;
    }
    if (inside(address, shared_window)) {
      return shared(warp, step, lane, address - shared_window, bytes, use);
    }
    if (inside(address, local_window)) {
      return local(warp, step, lane, address - local_window, bytes, use);
    }
    return global(warp, step, lane, address, bytes, use.reads, use.writes);
  }

  void check_alignment(Warp& warp, const Step& step, const LaneAddresses& lanes,
                       std::uint32_t bytes) const {
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (lanes.address[lane] % bytes != 0) {
        fault(warp, step, static_cast<std::uint32_t>(lane),
              access_text(step, "misaligned ", lanes.address[lane], bytes) +
                  ", which is no multiple of " + std::to_string(bytes));
      }
    }
  }

  /// Host address that corresponds to device address 0, when all active lanes of a global access
  /// fall into one allocation whose bytes need no bookkeeping; null otherwise.
  std::byte* common_base(const LaneAddresses& lanes, std::uint32_t bytes) {
    std::uint64_t least = ~std::uint64_t{0};
    std::uint64_t greatest = 0;
    std::uint64_t any = 0;
    if (lanes.mask == all_lanes) {
      for (const std::uint64_t address : lanes.address) {
        least = std::min(least, address);
        greatest = std::max(greatest, address);
        any |= address;
      }
    } else {
      for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
        const std::uint64_t address = lanes.address[std::countr_zero(rest)];
        least = std::min(least, address);
        greatest = std::max(greatest, address);
        any |= address;
      }
    }
    if ((any & (bytes - 1)) != 0) return nullptr;
    if (cached_ == nullptr || least - cached_->address >= cached_->bytes) {
      cached_ = memory_.find(least);
    }
    if (cached_ == nullptr || cached_->written != nullptr || cached_->bytes < bytes ||
        greatest - cached_->address > cached_->bytes - bytes) {
      return nullptr;
    }
    return memory_.data(least) - least;
  }

  template <class T>
  static void load_element(std::byte* registers, const MemoryAccess& access, std::uint32_t element,
                           const LaneAddresses& lanes, const std::byte* base) {
    const std::uint32_t slot = access.values[element];
    const std::uint64_t offset = std::uint64_t{element} * sizeof(T);
    const std::uint32_t bytes = access.value_bytes[element];
    // The plain case: the register is as wide as the value.
    if (bytes == sizeof(T) && sizeof(T) >= 4) {
      T* const target = reinterpret_cast<T*>(registers + slot);
      if (lanes.mask == all_lanes) {
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
          std::memcpy(&target[lane], base + lanes.address[lane] + offset, sizeof(T));
        }
      } else {
        for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
          const int lane = std::countr_zero(rest);
          std::memcpy(&target[lane], base + lanes.address[lane] + offset, sizeof(T));
        }
      }
      return;
    }
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      T value;
      std::memcpy(&value, base + lanes.address[lane] + offset, sizeof(T));
      put(registers, slot, bytes, lane, extended(value, sizeof(T), access.sign_extend));
    }
  }

  template <class T>
  static void store_element(const std::byte* registers, const MemoryAccess& access,
                            std::uint32_t element, const LaneAddresses& lanes, std::byte* base) {
    const std::uint32_t slot = access.values[element];
    const std::uint64_t offset = std::uint64_t{element} * sizeof(T);
    const std::uint32_t stride = access.value_bytes[element] == 8 ? 8 : 4;
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      T value;
      std::memcpy(&value, registers + slot + stride * static_cast<std::uint32_t>(lane), sizeof(T));
      std::memcpy(base + lanes.address[lane] + offset, &value, sizeof(T));
    }
  }

  template <class F>
  static void for_width(std::uint32_t bytes, F f) {
    switch (bytes) {
      case 1:
        f(std::uint8_t{});
        break;
      case 2:
        f(std::uint16_t{});
        break;
      case 4:
        f(std::uint32_t{});
        break;
      default:
        f(std::uint64_t{});
        break;
    }
  }

  /// Loads or stores when one host base serves all lanes.
  static void move_elements(std::byte* registers, const MemoryAccess& access,
                            const LaneAddresses& lanes, std::byte* base, bool is_load) {
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      for_width(access.bytes, [&]<class T>(T) {
        if (is_load) {
          load_element<T>(registers, access, e, lanes, base);
        } else {
          store_element<T>(registers, access, e, lanes, base);
        }
      });
    }
  }

  void access_memory(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    const MemoryAccess& access = program_.memory[step.detail];
    LaneAddresses& lanes = addresses_;
    read_addresses(registers, access.address, access.address_is_64_bits, access.offset, mask,
                   lanes);
    if (step.action == Action::async_copy) {
      copy_async(warp, step, access, registers, lanes);
      return;
    }
    const std::uint32_t bytes = std::uint32_t{access.bytes} * access.elements;
    if (step.action == Action::atomic) {
      check_alignment(warp, step, lanes, bytes);
      update(warp, step, access, registers, lanes);
    } else {
      const bool is_load = step.action == Action::load;
      std::byte* base = nullptr;
      if (access.space == AddressSpace::global || access.space == AddressSpace::generic) {
        base = common_base(lanes, bytes);
      } else if (access.space == AddressSpace::shared) {
        base = common_shared_base(lanes, bytes, is_load);
      }
      const bool notes_changes = block_.races != nullptr && !is_load;
      if (notes_changes) keep_bytes(access.space, lanes, bytes);
      if (base != nullptr) {
        move_elements(registers, access, lanes, base, is_load);
      } else {
        check_alignment(warp, step, lanes, bytes);
        LaneAddresses one;
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
          const int lane = std::countr_zero(rest);
          one.mask = 1u << lane;
          one.address[lane] = 0;
          std::byte* const place =
              pointer(warp, step, access.space, static_cast<std::uint32_t>(lane),
                      lanes.address[lane], bytes, {.reads = is_load, .writes = !is_load});
          move_elements(registers, access, one, place, is_load);
        }
      }
      if (notes_changes) find_changes(access.space, lanes, bytes);
    }
    if (block_.races != nullptr && !access.constant) {
      const bool is_load = step.action == Action::load;
      check_races(warp, step, access.space, lanes, bytes,
                  is_load         ? access.strong ? RaceKind::strong_load : RaceKind::load
                  : access.strong ? RaceKind::strong_store
                                  : RaceKind::store,
                  &access);
    }
    if (access.strong && step.action == Action::load) warp.may_wait = options_.cooperative;
    if (access.constant) {
      if (builder_ != nullptr) emit(warp, step, mask);
    } else {
      emit_access(warp, step, mask, &lanes);
    }
  }

  // ---- races ----

  /// Host address of bytes that a store may change, or null.
  const std::byte* peek(AddressSpace space, std::uint64_t address, std::uint32_t bytes) {
    if (space == AddressSpace::local || inside(address, local_window)) return nullptr;
    if (space == AddressSpace::generic && inside(address, shared_window)) {
      address -= shared_window;
      space = AddressSpace::shared;
    }
    if (space == AddressSpace::shared) {
      const std::uint64_t size = block_.shared.size();
      return address <= size && bytes <= size - address ? block_.shared.data() + address : nullptr;
    }
    const Allocation* const owner = memory_.find(address);
    if (owner == nullptr || bytes > owner->bytes - (address - owner->address)) return nullptr;
    return memory_.data(address);
  }

  /// Keeps what a store is about to overwrite.
  void keep_bytes(AddressSpace space, const LaneAddresses& lanes, std::uint32_t bytes) {
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
      const std::byte* const place = peek(space, lanes.address[lane], bytes);
      if (place != nullptr) std::memcpy(kept_[lane].data(), place, bytes);
    }
  }

  /// Finds the bytes that the store has changed.
  void find_changes(AddressSpace space, const LaneAddresses& lanes, std::uint32_t bytes) {
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
      const std::byte* const place = peek(space, lanes.address[lane], bytes);
      std::uint32_t changes = 0;
      for (std::uint32_t b = 0; place != nullptr && b < bytes; ++b) {
        changes |= std::uint32_t{place[b] != kept_[lane][b]} << b;
      }
      changes_[lane] = changes;
    }
  }

  /// Notes an access of a warp, and reports the races that it makes. `access` is that of a load,
  /// store or atomic; of a store, find_changes() has been called.
  void check_races(const Warp& warp, const Step& step, AddressSpace space,
                   const LaneAddresses& lanes, std::uint32_t bytes, RaceKind kind,
                   const MemoryAccess* access = nullptr) {
    if (space == AddressSpace::local) return;
    const ProgramFunction& function = *warp.frames.back().function;
    RaceAccess one{
        .bytes = bytes,
        .kind = kind,
        .atomic = step.action == Action::atomic,
        .acquires = access != nullptr && access->acquires,
        .releases = access != nullptr && access->releases,
        .warp = warp.number,
        .site = first_site(function) + static_cast<std::uint32_t>(&step - function.steps.data())};
    if (one.site >= max_race_sites) {
      fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(lanes.mask)),
            "the kernel is too large for the check for races: launch it with check_races off");
    }
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      one.lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      one.address = lanes.address[one.lane];
      if (space == AddressSpace::shared) one.address += shared_window;
      if (inside(one.address, local_window)) continue;
      if (access != nullptr && step.action == Action::store) one.changes = changes_[one.lane];
      for (const Race& race : block_.races->access(one)) report_race(warp, step, one, race);
    }
  }

  std::uint32_t first_site(const ProgramFunction& function) const {
    std::size_t first = 0;
    for (const ProgramFunction* other = program_.functions.data(); other != &function; ++other) {
      first += other->steps.size();
    }
    return static_cast<std::uint32_t>(std::min<std::size_t>(first, max_race_sites));
  }

  const SourceInstruction& text_of_site(std::uint32_t site) const {
    std::size_t index = site;
    const ProgramFunction* function = program_.functions.data();
    for (; index >= function->steps.size(); ++function) index -= function->steps.size();
    return function->instructions[function->steps[index].instruction];
  }

  static bool writes(RaceKind kind) {
    return kind == RaceKind::store || kind == RaceKind::strong_store;
  }

  void report_race(const Warp& warp, const Step& step, const RaceAccess& later,
                   const Race& earlier) {
    const SourceInstruction& text = text_of(warp, step);
    const SourceInstruction& other = text_of_site(earlier.site);
    const auto what = [&] {
      const bool is_shared = inside(earlier.address, shared_window);
      const std::uint64_t address = is_shared ? earlier.address - shared_window : earlier.address;
      const auto thread = thread_index(block_.warps[earlier.warp], earlier.lane);
      const bool both_write = writes(later.kind) && writes(earlier.kind);
      return std::string(both_write ? "write-write" : "read-write") + " race between warps " +
             std::to_string(warp.number) + " and " + std::to_string(earlier.warp) + " at " +
             hexadecimal(address) + " of " + (is_shared ? "shared" : "global") + " memory, " +
             (is_shared ? describe_shared(address) : memory_.describe(address)) + ": this " +
             verb_of(step) + " and the " + (writes(earlier.kind) ? "write" : "read") + " at " +
             place_of(other) + ", thread (" + std::to_string(thread[0]) + ", " +
             std::to_string(thread[1]) + ", " + std::to_string(thread[2]) +
             "), have no barrier between them (add __syncthreads(), or make both atomic)";
    };
    if (options_.on_fault == OnFault::stop) fault(warp, step, later.lane, what());
    // One note per pair of lines, whichever comes first.
    const auto pair = race_pairs_.insert(std::minmax({&text, &other})).first;
    Note& note = notes_.note("race", &*pair, [&] {
      std::string first = note_line(text);
      std::string second = note_line(other);
      if (second < first) std::swap(first, second);
      return first + " " + second;
    });
    if (note.count++ > 0) return;
    note.place = place_of(warp, step, later.lane);
    note.what = what();
  }

  std::byte* common_shared_base(const LaneAddresses& lanes, std::uint32_t bytes, bool is_load) {
    std::uint64_t greatest = 0;
    std::uint64_t any = 0;
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const std::uint64_t address = lanes.address[std::countr_zero(rest)];
      greatest = std::max(greatest, address);
      any |= address;
    }
    if ((any & (bytes - 1)) != 0 || block_.shared.size() < bytes ||
        greatest > block_.shared.size() - bytes) {
      return nullptr;
    }
    if (!block_.shared_written.whole()) {
      if (!is_load) {
        block_.shared_written.mark_lanes(lanes, bytes);
      } else if (!block_.shared_written.holds_lanes(lanes, bytes)) {
        return nullptr;
      }
    }
    return block_.shared.data();
  }

  void update(Warp& warp, const Step& step, const MemoryAccess& access, std::byte* registers,
              const LaneAddresses& lanes) {
    const std::uint32_t register_bytes = access.bytes;
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::byte* const place = pointer(warp, step, access.space, static_cast<std::uint32_t>(lane),
                                       lanes.address[lane], access.bytes, {.writes = true});
      std::uint64_t old = 0;
      std::memcpy(&old, place, access.bytes);
      const std::uint64_t b = get(registers, access.operand_b, register_bytes, lane);
      const std::uint64_t c =
          access.operand_c == none ? 0 : get(registers, access.operand_c, register_bytes, lane);
      const std::uint64_t value = access.atomic(old, b, c);
      std::memcpy(place, &value, access.bytes);
      if (access.result != none) put(registers, access.result, register_bytes, lane, old);
    }
    if (access.takes_locks) ++warp.spins;
    if (access.result != none) warp.may_wait = options_.cooperative;
  }

  void copy_async(Warp& warp, const Step& step, const MemoryAccess& access, std::byte* registers,
                  const LaneAddresses& to) {
    LaneAddresses from;
    read_addresses(registers, access.second_address, access.second_is_64_bits, access.second_offset,
                   to.mask, from);
    check_alignment(warp, step, to, access.bytes);
    check_alignment(warp, step, from, access.bytes);
    for (std::uint32_t rest = to.mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::uint32_t bytes = access.bytes;
      if (access.source_bytes != none) {
        bytes = std::min(bytes, lane_u32(registers, access.source_bytes, lane));
      }
      std::byte* const target =
          shared(warp, step, static_cast<std::uint32_t>(lane), to.address[lane], access.bytes,
                 {.reads = false, .writes = true});
      std::memset(target, 0, access.bytes);
      if (bytes == 0) continue;
      const std::byte* const source = global(warp, step, static_cast<std::uint32_t>(lane),
                                             from.address[lane], bytes, true, false);
      std::memcpy(target, source, bytes);
      if (block_.races != nullptr) {
        LaneAddresses one = from;
        one.mask = 1u << lane;
        check_races(warp, step, AddressSpace::global, one, bytes, RaceKind::load);
      }
    }
    if (block_.races != nullptr) {
      check_races(warp, step, AddressSpace::shared, to, access.bytes, RaceKind::store);
    }
    emit_access(warp, step, to.mask, &from);
  }

  void query_address(const Step& step, std::byte* registers, std::uint32_t mask) const {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t address = lane_u64(registers, step.operands.source[0], lane);
      const bool in_shared = inside(address, shared_window);
      const bool in_local = inside(address, local_window);
      bool holds = !in_shared && !in_local;  // global and const share one range
      if (step.operands.immediate == 2) holds = in_shared;
      if (step.operands.immediate == 3) holds = in_local;
      put(registers, step.operands.target, 4, lane, holds ? ~std::uint64_t{0} : 0);
    }
  }

  // ---- textures ----

  const Texture& texture_of(Warp& warp, const Step& step, const TextureAccess& access,
                            const std::byte* registers, int lane) const {
    const std::uint64_t handle = access.reference != none
                                     ? bound_textures_[access.reference]
                                     : lane_u64(registers, access.object, lane);
    const Texture* texture = device_.textures.find(handle);
    if (texture == nullptr) {
      fault(warp, step, static_cast<std::uint32_t>(lane),
            access.reference != none ? std::string("the texture reference is not bound")
                                     : std::to_string(handle) + " is no texture or surface object");
    }
    return *texture;
  }

  void access_texture(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    const TextureAccess& access = program_.textures[step.detail];
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const Texture& texture = texture_of(warp, step, access, registers, lane);
      try {
        if (step.action == Action::texture) {
          sample_lane(access, texture, registers, lane);
        } else if (step.action == Action::texture_query) {
          put(registers, access.values[0], 4, lane, texture.size[access.query]);
        } else {
          access_surface(warp, step, access, texture, registers, lane);
        }
      } catch (const TextureFault& problem) {
        fault(warp, step, static_cast<std::uint32_t>(lane), problem.what());
      }
    }
  }

  void sample_lane(const TextureAccess& access, const Texture& texture, std::byte* registers,
                   int lane) const {
    const auto integer = [&](std::uint32_t i) {
      return std::int64_t{
          static_cast<std::int32_t>(lane_u32(registers, access.coordinates[i], lane))};
    };
    const std::uint32_t first = access.layered ? 1 : 0;
    std::array<std::int64_t, 3> position{};
    std::array<float, 3> coordinates{};
    for (std::uint32_t d = 0; d < access.dimensions; ++d) {
      position[d] = integer(first + d);
      coordinates[d] =
          std::bit_cast<float>(lane_u32(registers, access.coordinates[first + d], lane));
    }
    std::array<std::uint32_t, 4> texel;
    if (access.cube) {
      texel = sample_cube(memory_, texture, coordinates, access.layered ? integer(0) : 0);
    } else {
      // A layer is a texture of its own, made here; others are not copied.
      std::optional<Texture> layer;
      if (access.layered) layer = layer_of(texture, integer(0));
      const Texture& plane = layer ? *layer : texture;
      texel = access.fetch ? fetch(memory_, plane, access.dimensions, position)
                           : sample(memory_, plane, access.dimensions, coordinates);
    }
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      put(registers, access.values[e], 4, lane, texel[e]);
    }
  }

  void access_surface(Warp& warp, const Step& step, const TextureAccess& access,
                      const Texture& texture, std::byte* registers, int lane) {
    const std::uint32_t first = access.layered ? 1 : 0;
    std::array<std::int64_t, 3> position{};
    for (std::uint32_t d = 0; d < access.dimensions; ++d) {
      position[d] =
          static_cast<std::int32_t>(lane_u32(registers, access.coordinates[first + d], lane));
    }
    const std::uint32_t bytes = std::uint32_t{access.element_bytes} * access.elements;
    const bool is_load = step.action == Action::surface_load;
    std::int64_t layer = 0;
    if (access.layered) {
      layer = static_cast<std::int32_t>(lane_u32(registers, access.coordinates[0], lane));
    }
    const Texture& plane = access.layered ? layer_of(texture, layer) : texture;
    auto address = surface_address(plane, access.dimensions, position, bytes);
    if (access.layered && (layer < 0 || static_cast<std::uint64_t>(layer) >= texture.layers)) {
      address.reset();
    }
    if (!address && access.out_of_bounds == 0) {
      fault(warp, step, static_cast<std::uint32_t>(lane), "access outside the surface");
    }
    if (!address && access.out_of_bounds == 1) {
      const auto texel = std::int64_t{plane.channels} * plane.channel_bytes;
      const std::array<std::int64_t, 3> last{
          static_cast<std::int64_t>(plane.size[0]) * texel - bytes,
          static_cast<std::int64_t>(plane.size[1]) - 1,
          static_cast<std::int64_t>(plane.size[2]) - 1};
      for (std::uint32_t d = 0; d < access.dimensions; ++d) {
        position[d] = std::clamp<std::int64_t>(position[d], 0, std::max<std::int64_t>(last[d], 0));
      }
      address = surface_address(plane, access.dimensions, position, bytes);
    }
    std::byte* const place = address ? global(warp, step, static_cast<std::uint32_t>(lane),
                                              *address, bytes, is_load, !is_load)
                                     : nullptr;
    if (block_.races != nullptr && place != nullptr) {
      LaneAddresses one;
      one.mask = 1u << lane;
      one.address[lane] = *address;
      check_races(warp, step, AddressSpace::global, one, bytes,
                  is_load ? RaceKind::load : RaceKind::store);
    }
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      const std::uint32_t width = access.element_bytes == 8 ? 8 : access.element_bytes < 4 ? 2 : 4;
      if (is_load) {
        std::uint64_t value = 0;
        if (place != nullptr) {
          std::memcpy(&value, place + e * access.element_bytes, access.element_bytes);
        }
        put(registers, access.values[e], width, lane, value);
      } else if (place != nullptr) {
        const std::uint64_t value = get(registers, access.values[e], width, lane);
        std::memcpy(place + e * access.element_bytes, &value, access.element_bytes);
      }
    }
  }

  // ---- warp-wide operations ----

  static constexpr const char* remedy =
      " (correct the mask; on_fault=\"continue\" of a launch, --on-fault continue of warpstack "
      "trace, gives what a GPU does)";

  static std::string lanes_text(std::uint32_t lanes) {
    std::string text = std::popcount(lanes) == 1 ? "lane " : "lanes ";
    const char* comma = "";
    while (lanes != 0) {
      const int first = std::countr_zero(lanes);
      const int last = first + std::countr_one(lanes >> first) - 1;
      text += comma + std::to_string(first);
      if (last > first) text += (last > first + 1 ? "-" : ", ") + std::to_string(last);
      comma = ", ";
      lanes &= last == 31 ? 0 : all_lanes << (last + 1);
    }
    return text;
  }

  /// Lanes of `lanes` that hold the same value in a slot as the first of them.
  static std::uint32_t alike(const std::byte* registers, std::uint32_t slot, std::uint32_t lanes) {
    const std::uint32_t value = lane_u32(registers, slot, std::countr_zero(lanes));
    std::uint32_t same = 0;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      same |= std::uint32_t{lane_u32(registers, slot, static_cast<int>(lane)) == value} << lane;
    }
    return same & lanes;
  }

  /// A warp-wide operation: runs it when all lanes that its mask names are here or have exited, or
  /// lets the lanes that are here wait for the others.
  void meet(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    const Collective& c = program_.collectives[step.detail];
    if (mask == 0) {
      ++warp.paths.back().pc;
      return;
    }
    if (c.members == none ||
        (alike(registers, c.members, mask) == mask &&
         (lane_u32(registers, c.members, std::countr_zero(mask)) & warp.live) == mask)) {
      exchange_all(warp, step, registers, mask);
      ++warp.paths.back().pc;
      return;
    }
    // Each mask with the lanes that give it.
    std::uint32_t outside = 0;
    std::uint32_t disagreeing = 0;
    std::uint32_t waiting = 0;
    std::uint32_t left = 0;
    for (std::uint32_t rest = mask; rest != 0;) {
      const std::uint32_t same = alike(registers, c.members, rest);
      const std::uint32_t members = lane_u32(registers, c.members, std::countr_zero(rest));
      refuse_callers(warp, step, same, members);
      left |= elsewhere(warp, members);
      outside |= same & ~members;
      if ((members & mask & ~same) != 0) disagreeing |= same;
      if ((members & ~mask & reachable(warp)) != 0) waiting |= same;
      rest &= ~same;
    }
    if (outside != 0 || disagreeing != 0) {
      const auto lane =
          static_cast<std::uint32_t>(std::countr_zero(outside != 0 ? outside : disagreeing));
      const std::string members =
          hexadecimal(lane_u32(registers, c.members, static_cast<int>(lane)));
      const auto text = [&] {
        return (outside != 0
                    ? "masks leave out lanes that execute this with them: " + lanes_text(outside)
                    : "lanes execute this together and their masks differ: " +
                          lanes_text(disagreeing)) +
               " of the warp, lane " + std::to_string(lane) + " with the mask " + members;
      };
      refuse_unknown(warp, step, lane, text);
      diagnose(warp, step, lane, "mask", [&] { return text() + remedy; });
    } else if (waiting != 0) {
      park(warp, step, registers, mask);
      return;
    }
    if (left != 0) note_left(warp, step, mask, left);
    exchange_all(warp, step, registers, mask);
    ++warp.paths.back().pc;
  }

  /// Live lanes of `members` that are not in the function: they have returned from it or have not
  /// called it.
  static std::uint32_t elsewhere(const Warp& warp, std::uint32_t members) {
    return members & warp.live & ~reachable(warp);
  }

  /// Stops where lanes wait for some that are in a caller: on a GPU these may come to this call
  /// yet, here they cannot before the function returns.
  void refuse_callers(const Warp& warp, const Step& step, std::uint32_t mask,
                      std::uint32_t members) const {
    const std::uint32_t callers = elsewhere(warp, members) & ~warp.frames.back().mask;
    if (callers == 0) return;
    fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
          lanes_text(mask) + " of the warp wait here for " + lanes_text(callers) +
              ", which their mask " + hexadecimal(members) +
              " names and which wait in a caller of " + warp.frames.back().function->name +
              ": on_fault does not apply (name those lanes alone that call the function together, "
              "or have it inlined)");
  }

  /// A warp-wide operation without lanes that have returned from the function.
  void note_left(const Warp& warp, const Step& step, std::uint32_t mask, std::uint32_t left) {
    diagnose(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)), "absent lanes", [&] {
      return lanes_text(mask) + " of the warp name " + lanes_text(left) +
             " in their masks, which have returned from " + warp.frames.back().function->name +
             remedy;
    });
  }

  /// Stops at a wrong mask where nobody knows what a GPU does.
  template <class What>
  void refuse_unknown(const Warp& warp, const Step& step, std::uint32_t lane,
                      const What& what) const {
    if (step.action != Action::match && step.action != Action::reduce &&
        step.action != Action::elect) {
      return;
    }
    fault(warp, step, lane,
          what() +
              ": what a GPU gives is not known, so that on_fault does not apply (correct the "
              "mask)");
  }

  /// Lanes of the function that may still come to its other steps.
  static std::uint32_t reachable(const Warp& warp) {
    std::uint32_t lanes = 0;
    for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
      lanes |= warp.paths[i].mask;
    }
    return lanes;
  }

  /// Sends the lanes of the top path that execute its step to wait there, those with one mask
  /// together.
  void park(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask) {
    const PathEntry path = warp.paths.back();
    warp.paths.pop_back();
    const std::uint32_t members =
        step.action == Action::barrier ? none : program_.collectives[step.detail].members;
    for (std::uint32_t rest = mask; rest != 0;) {
      const std::uint32_t same = members == none ? rest : alike(registers, members, rest);
      warp.paths.push_back(
          {parked, path.reconvergence, same, path.pc,
           members == none ? 0 : lane_u32(registers, members, std::countr_zero(same))});
      rest &= ~same;
    }
    const std::uint32_t others = path.mask & ~mask;
    if (others != 0) warp.paths.push_back({path.pc + 1, path.reconvergence, others});
    warp.spins = 0;
  }

  /// The top path waits: runs an operation for which all are here, or puts a path on top that can
  /// go on.
  void let_others_come(Warp& warp) {
    if (complete_operation(warp) || let_others_go(warp)) return;
    if (go_on_without(warp)) return;
    const std::size_t bottom = warp.frames.back().first_path;
    for (std::size_t i = warp.paths.size(); i-- > bottom;) {
      if (warp.paths[i].members != 0) report_missing(warp, warp.paths[i]);
    }
    arrive_parted(warp);
  }

  /// All lanes wait: runs an operation without the lanes that wait at barriers of the block, if
  /// there is one that waits for no others. GPUs get through such code; PTX does not promise it.
  bool go_on_without(Warp& warp) {
    const std::size_t bottom = warp.frames.back().first_path;
    for (std::size_t i = warp.paths.size(); i-- > bottom;) {
      const PathEntry path = warp.paths[i];
      if (path.members == 0) continue;
      const std::uint32_t here = lanes_at_operation(warp, path);
      std::uint32_t others = 0;  // at other operations
      for (std::size_t j = bottom; j < warp.paths.size(); ++j) {
        if (warp.paths[j].members != 0) others |= warp.paths[j].mask & ~here;
      }
      if ((path.members & others) != 0) continue;
      const Step& step = step_of(warp, path);
      diagnose(warp, step, static_cast<std::uint32_t>(std::countr_zero(path.mask)), "absent lanes",
               [&] {
                 return missing_text(warp, path, path.members & reachable(warp) & ~here) +
                        ": a GPU may wait for ever (name those lanes alone that execute this; "
                        "on_fault=\"continue\" of a launch, --on-fault continue of warpstack "
                        "trace, goes on without the others)";
               });
      run_operation(warp, i);
      return true;
    }
    return false;
  }

  const Step& step_of(const Warp& warp, const PathEntry& path) const {
    return warp.frames.back().function->steps[path.resume];
  }

  /// Lanes of two paths wait at warp-wide operations that exchange values with each other.
  bool same_operation(const Warp& warp, const PathEntry& a, const PathEntry& b) const {
    if (a.pc != parked || b.pc != parked || a.members != b.members) return false;
    const Step& s = step_of(warp, a);
    const Step& t = step_of(warp, b);
    if (s.action != t.action) return false;
    const Collective& c = program_.collectives[s.detail];
    const Collective& d = program_.collectives[t.detail];
    return c.mode == d.mode && c.type == d.type && c.combine == d.combine;
  }

  /// Lanes that wait at the operation of a path.
  std::uint32_t lanes_at_operation(const Warp& warp, const PathEntry& path) const {
    std::uint32_t here = 0;
    for (std::size_t j = warp.frames.back().first_path; j < warp.paths.size(); ++j) {
      if (same_operation(warp, path, warp.paths[j])) here |= warp.paths[j].mask;
    }
    return here;
  }

  /// Runs one operation whose lanes wait on several paths and have all come.
  bool complete_operation(Warp& warp) {
    for (std::size_t i = warp.paths.size(); i-- > warp.frames.back().first_path;) {
      const PathEntry path = warp.paths[i];
      if (path.pc != parked || path.members == 0) continue;
      const std::uint32_t here = lanes_at_operation(warp, path);
      if ((path.members & reachable(warp) & ~here) != 0) continue;
      if (const std::uint32_t left = elsewhere(warp, path.members)) {
        note_left(warp, step_of(warp, path), path.mask, left);
      }
      run_operation(warp, i);
      return true;
    }
    return false;
  }

  /// Runs the operation of path `i` with all lanes that wait at it.
  void run_operation(Warp& warp, std::size_t i) {
    const PathEntry path = warp.paths[i];
    const std::uint32_t here = lanes_at_operation(warp, path);
    const std::size_t bottom = warp.frames.back().first_path;
    Exchange exchange;
    std::byte* const registers = registers_of(warp);
    for (std::size_t j = bottom; j < warp.paths.size(); ++j) {
      if (!same_operation(warp, path, warp.paths[j])) continue;
      bring(step_of(warp, warp.paths[j]), registers, warp.paths[j].mask, exchange);
    }
    for (std::size_t j = bottom; j < warp.paths.size(); ++j) {
      PathEntry& each = warp.paths[j];
      if (!same_operation(warp, path, each)) continue;
      take(warp, step_of(warp, each), registers, each.mask, exchange);
      each = {each.resume + 1, each.reconvergence, each.mask};
    }
    join_paths(warp, here);
  }

  /// Joins paths of lanes that have waited for each other and go on at the same step.
  static void join_paths(Warp& warp, std::uint32_t lanes) {
    warp.out_of_order = true;
    const std::size_t bottom = warp.frames.back().first_path;
    for (std::size_t i = warp.paths.size(); i-- > bottom;) {
      if ((warp.paths[i].mask & lanes) == 0 || warp.paths[i].pc == parked) continue;
      for (std::size_t j = i; j-- > bottom;) {
        PathEntry& other = warp.paths[j];
        if ((other.mask & ~lanes) != 0 || other.pc != warp.paths[i].pc ||
            other.reconvergence != warp.paths[i].reconvergence) {
          continue;
        }
        warp.paths[i].mask |= other.mask;
        other.mask = 0;
      }
      // A path that no other meets may lie on top of all.
      std::rotate(warp.paths.begin() + static_cast<std::ptrdiff_t>(i),
                  warp.paths.begin() + static_cast<std::ptrdiff_t>(i) + 1, warp.paths.end());
      break;
    }
    drop_empty_paths(warp);
  }

  static void drop_empty_paths(Warp& warp) {
    const auto first =
        warp.paths.begin() + static_cast<std::ptrdiff_t>(warp.frames.back().first_path);
    warp.paths.erase(std::remove_if(first, warp.paths.end(),
                                    [](const PathEntry& path) { return path.mask == 0; }),
                     warp.paths.end());
  }

  /// Puts other lanes than the top path's on top: a path that is not parked, or lanes that wait for
  /// others at a reconvergence point, which they leave without them. False: there are none.
  static bool let_others_go(Warp& warp) {
    const std::size_t bottom = warp.frames.back().first_path;
    std::uint32_t above = warp.paths.back().mask;
    for (std::size_t i = warp.paths.size() - 1; i-- > bottom;) {
      PathEntry& path = warp.paths[i];
      const std::uint32_t waiting = path.mask & ~above;
      above |= path.mask;
      if (waiting == 0 || path.pc == parked) continue;
      warp.out_of_order = true;
      const PathEntry ahead{path.pc, path.reconvergence, waiting};
      path.mask &= ~waiting;
      warp.paths.push_back(ahead);
      drop_empty_paths(warp);
      return true;
    }
    return false;
  }

  [[noreturn]] void report_missing(const Warp& warp, const PathEntry& path) const {
    const std::uint32_t missing = path.members & reachable(warp) & ~path.mask;
    fault(warp, step_of(warp, path), static_cast<std::uint32_t>(std::countr_zero(path.mask)),
          missing_text(warp, path, missing) +
              ": a GPU may wait for ever, so that on_fault does not apply (name those lanes alone "
              "that execute this)");
  }

  /// "lanes 0-7 of the warp wait here for …; … wait at …"
  std::string missing_text(const Warp& warp, const PathEntry& path, std::uint32_t missing) const {
    std::string where;
    for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
      const PathEntry& other = warp.paths[i];
      if (other.pc != parked || (other.mask & missing) == 0) continue;
      where = "; " + lanes_text(other.mask & missing) + " wait at " +
              place_of(warp, step_of(warp, other));
    }
    return lanes_text(path.mask) + " of the warp wait here for " + lanes_text(missing) +
           ", which their mask " + hexadecimal(path.members) + " names and which do not come" +
           where;
  }

  /// The operation for lanes of one path, which all are here.
  void exchange_all(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    Exchange exchange;
    bring(step, registers, mask, exchange);
    take(warp, step, registers, mask, exchange);
  }

  void bring(const Step& step, const std::byte* registers, std::uint32_t mask,
             Exchange& exchange) const {
    const Collective& c = program_.collectives[step.detail];
    exchange.present |= mask;
    if (c.a == none) return;
    const std::uint32_t bytes = step.action == Action::match ? bytes_of(c.type) : 4;
    if (step.action == Action::vote) {
      const std::uint32_t yes = pack(registers + c.a);
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        if ((mask >> lane & 1) != 0) exchange.values[lane] = yes >> lane & 1;
      }
      return;
    }
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      exchange.values[static_cast<std::size_t>(lane)] = get(registers, c.a, bytes, lane);
    }
  }

  /// Gives the lanes of a path their results.
  void take(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
            const Exchange& exchange) {
    const Collective& c = program_.collectives[step.detail];
    for (std::uint32_t rest = mask; rest != 0;) {
      const std::uint32_t lanes = c.members == none ? rest : alike(registers, c.members, rest);
      const std::uint32_t members =
          c.members == none ? mask : lane_u32(registers, c.members, std::countr_zero(rest));
      rest &= ~lanes;
      const std::uint32_t group = members & exchange.present;
      switch (step.action) {
        case Action::shuffle:
          shuffle(warp, step, registers, lanes, members, exchange);
          break;
        case Action::vote:
          vote(c, registers, lanes, group, exchange);
          break;
        case Action::match:
          match(c, registers, lanes, group, exchange);
          break;
        case Action::reduce:
          reduce(c, registers, lanes, group, exchange);
          break;
        case Action::elect:
          elect(c, registers, lanes, group);
          break;
        default:
          break;
      }
    }
  }

  void shuffle(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
               std::uint32_t members, const Exchange& exchange) {
    const Collective& c = program_.collectives[step.detail];
    const std::uint32_t readable = members & exchange.present;
    std::uint32_t readers = 0;  // of lanes that they may not read
    int first_source = 0;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const auto b = static_cast<int>(lane_u32(registers, c.b, lane) & 31);
      const std::uint32_t control = lane_u32(registers, c.c, lane);
      const auto segment = static_cast<int>((control >> 8) & 31);
      const auto bound = static_cast<int>(control & 31);
      const int last = (lane & segment) | (bound & ~segment);
      const int first = lane & segment;
      int source = lane;
      bool valid = false;
      switch (static_cast<ShuffleMode>(c.mode)) {
        case ShuffleMode::up:
          source = lane - b;
          valid = source >= last;
          break;
        case ShuffleMode::down:
          source = lane + b;
          valid = source <= last;
          break;
        case ShuffleMode::butterfly:
          source = lane ^ b;
          valid = source <= last;
          break;
        case ShuffleMode::index:
          source = first | (b & ~segment);
          valid = source <= last;
          break;
      }
      if (!valid) source = lane;
      if (source != lane && (readable >> source & 1) == 0) {
        if (readers == 0) first_source = source;
        readers |= 1u << lane;
      }
      // A lane that is not here gives 0.
      put(registers, c.result, 4, lane, exchange.values[static_cast<std::size_t>(source)]);
      if (c.predicate != none) put(registers, c.predicate, 4, lane, valid ? ~std::uint64_t{0} : 0);
    }
    if (readers == 0) return;
    const auto reader = static_cast<std::uint32_t>(std::countr_zero(readers));
    diagnose(warp, step, reader, "shuffle", [&] {
      const bool is_here = (exchange.present >> first_source & 1) != 0;
      const bool is_named = (members >> first_source & 1) != 0;
      return lanes_text(readers) + " of the warp read lanes whose values are undefined: lane " +
             std::to_string(reader) + " reads lane " + std::to_string(first_source) +
             (is_named  ? ", which does not execute this"
              : is_here ? ", which the mask " + hexadecimal(members) + " leaves out"
                        : ", which the mask " + hexadecimal(members) +
                              " leaves out and which does not execute this") +
             remedy;
    });
  }

  static void vote(const Collective& c, std::byte* registers, std::uint32_t mask,
                   std::uint32_t voters, const Exchange& exchange) {
    std::uint32_t yes = 0;
    for (std::uint32_t rest = voters; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      yes |= static_cast<std::uint32_t>(exchange.values[static_cast<std::size_t>(lane)]) << lane;
    }
    std::uint64_t result = 0;
    switch (static_cast<VoteMode>(c.mode)) {
      case VoteMode::all:
        result = yes == voters ? ~std::uint64_t{0} : 0;
        break;
      case VoteMode::any:
        result = yes != 0 ? ~std::uint64_t{0} : 0;
        break;
      case VoteMode::uniform:
        result = yes == voters || yes == 0 ? ~std::uint64_t{0} : 0;
        break;
      case VoteMode::ballot:
        result = yes;
        break;
    }
    broadcast(registers, c.result, 4, mask, result);
  }

  static void match(const Collective& c, std::byte* registers, std::uint32_t mask,
                    std::uint32_t group, const Exchange& exchange) {
    const auto& values = exchange.values;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::uint32_t same = 0;
      for (std::uint32_t others = group; others != 0; others &= others - 1) {
        const int other = std::countr_zero(others);
        if (values[static_cast<std::size_t>(other)] == values[static_cast<std::size_t>(lane)]) {
          same |= 1u << other;
        }
      }
      const bool all = same == group;
      put(registers, c.result, 4, lane, c.mode == 0 || all ? same : 0);
      if (c.predicate != none) put(registers, c.predicate, 4, lane, all ? ~std::uint64_t{0} : 0);
    }
  }

  static void reduce(const Collective& c, std::byte* registers, std::uint32_t mask,
                     std::uint32_t group, const Exchange& exchange) {
    std::uint64_t value = exchange.values[static_cast<std::size_t>(std::countr_zero(group))];
    for (std::uint32_t rest = group & (group - 1); rest != 0; rest &= rest - 1) {
      value =
          c.combine(value, exchange.values[static_cast<std::size_t>(std::countr_zero(rest))], 0);
    }
    broadcast(registers, c.result, 4, mask, value);
  }

  static void elect(const Collective& c, std::byte* registers, std::uint32_t mask,
                    std::uint32_t group) {
    const auto leader = static_cast<std::uint32_t>(std::countr_zero(group));
    broadcast(registers, c.result, 4, mask, leader);
    if (c.predicate == none) return;
    broadcast(registers, c.predicate, 4, mask, 0);
    broadcast(registers, c.predicate, 4, mask & (1u << leader), ~std::uint64_t{0});
  }

  // ---- matrices ----

  void require_whole_warp(const Warp& warp, const Step& step, std::uint32_t mask) const {
    if (mask == all_lanes) return;
    fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
          "a matrix instruction needs all 32 threads of its warp, " +
              std::to_string(std::popcount(mask)) + " of warp " + std::to_string(warp.number) +
              " execute it");
  }

  /// Lane 4 * r + t holds the elements 2 * t and 2 * t + 1 of row r, the first in the low half.
  using SmallMatrix = std::array<std::array<std::uint16_t, 8>, 8>;
  static void put_matrix(std::byte* registers, std::uint32_t slot, const SmallMatrix& matrix,
                         bool transposed) {
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      const std::uint32_t row = lane / 4;
      const std::uint32_t column = lane % 4 * 2;
      const std::uint32_t low = transposed ? matrix[column][row] : matrix[row][column];
      const std::uint32_t high = transposed ? matrix[column + 1][row] : matrix[row][column + 1];
      put(registers, slot, 4, static_cast<int>(lane), low | high << 16);
    }
  }
  static SmallMatrix get_matrix(const std::byte* registers, std::uint32_t slot, bool transposed) {
    SmallMatrix matrix;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      const std::uint32_t row = lane / 4;
      const std::uint32_t column = lane % 4 * 2;
      const std::uint32_t word = lane_u32(registers, slot, static_cast<int>(lane));
      (transposed ? matrix[column][row] : matrix[row][column]) = static_cast<std::uint16_t>(word);
      (transposed ? matrix[column + 1][row] : matrix[row][column + 1]) =
          static_cast<std::uint16_t>(word >> 16);
    }
    return matrix;
  }

  static void transpose_matrix(const Step& step, std::byte* registers) {
    put_matrix(registers, step.operands.target,
               get_matrix(registers, step.operands.source[0], true), false);
  }

  /// ldmatrix, stmatrix: the first lanes have the addresses of rows of 16 bytes.
  void access_matrices(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    require_whole_warp(warp, step, mask);
    const MatrixAccess& access = program_.matrix_accesses[step.detail];
    const bool is_load = step.action == Action::matrix_load;
    constexpr std::uint32_t row_bytes = sizeof(SmallMatrix::value_type);
    const std::uint32_t rows = 8u * access.matrices;
    LaneAddresses& lanes = addresses_;
    read_addresses(registers, access.address, access.address_is_64_bits, access.offset,
                   rows == warp_size ? all_lanes : (1u << rows) - 1, lanes);
    if (access.space == AddressSpace::generic) {
      for (std::uint32_t lane = 0; lane < rows; ++lane) {
        if (!inside(lanes.address[lane], shared_window)) {
          fault(warp, step, lane,
                hexadecimal(lanes.address[lane]) + " is no address of shared memory");
        }
        lanes.address[lane] -= shared_window;
      }
    }
    check_alignment(warp, step, lanes, row_bytes);
    SmallMatrix matrix{};
    // All of a load is read before the first register is written: one may hold addresses.
    std::array<SmallMatrix, 4> loaded;
    for (std::uint32_t m = 0; m < access.matrices; ++m) {
      if (!is_load) matrix = get_matrix(registers, access.values[m], access.transposed);
      for (std::uint32_t row = 0; row < 8; ++row) {
        const std::uint32_t lane = 8 * m + row;
        std::byte* const place = shared(warp, step, lane, lanes.address[lane], row_bytes,
                                        {.reads = is_load, .writes = !is_load});
        if (is_load) {
          std::memcpy(loaded[m][row].data(), place, row_bytes);
        } else {
          std::memcpy(place, matrix[row].data(), row_bytes);
        }
      }
    }
    for (std::uint32_t m = 0; is_load && m < access.matrices; ++m) {
      put_matrix(registers, access.values[m], loaded[m], access.transposed);
    }
    if (block_.races != nullptr) {
      check_races(warp, step, AddressSpace::shared, lanes, row_bytes,
                  is_load ? RaceKind::load : RaceKind::store);
    }
    // In the trace each lane moves as many bytes as it gets, of the rows one after the other.
    LaneAddresses shares{.mask = mask, .address = {}};
    const std::uint32_t share = 4u * access.matrices;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      shares.address[lane] = lanes.address[lane * share / row_bytes] + lane * share % row_bytes;
    }
    emit_access(warp, step, mask, &shares);
  }

  /// wmma.load, wmma.store: tile after tile, each one access of all lanes or one per element.
  void access_fragment(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
    require_whole_warp(warp, step, mask);
    const FragmentAccess& access = program_.fragment_accesses[step.detail];
    const MatrixFragment& fragment = access.fragment;
    const bool is_load = step.action == Action::fragment_load;
    LaneAddresses bases;
    read_addresses(registers, access.address, access.address_is_64_bits, access.offset, all_lanes,
                   bases);
    std::array<std::uint64_t, warp_size> strides;
    strides.fill(access.column_major ? fragment.rows : fragment.columns);
    if (access.stride != none) {
      for (int lane = 0; lane < static_cast<int>(warp_size); ++lane) {
        strides[lane] = lane_u32(registers, access.stride, lane);
      }
    }
    // b1: strides count in bits.
    const std::uint64_t stride_bits = fragment.element == MatrixElement::b1 && access.stride != none
                                          ? 1
                                          : bits_of(fragment.element);
    const std::uint32_t element_bits = bits_of(fragment.element);
    const auto address_of = [&](std::uint32_t lane, MatrixPosition at) {
      const std::uint64_t major = access.column_major ? at.column : at.row;
      const std::uint64_t minor = access.column_major ? at.row : at.column;
      return bases.address[lane] + (major * strides[lane] * stride_bits + minor * element_bits) / 8;
    };
    const bool whole = access.is_contiguous();
    const std::uint32_t count = fragment.per_tile();
    const std::uint32_t pieces = whole ? 1 : count;
    const std::uint32_t bytes = count * element_bits / 8 / pieces;
    const bool by_column = fragment.role == MatrixRole::b;
    LaneAddresses& lanes = addresses_;
    lanes.mask = all_lanes;
    std::array<std::array<std::byte, 16>, warp_size> tile_bytes{};
    std::array<std::byte, warp_size * 64> made{};  // a load's registers, written at the end
    const std::uint32_t register_bytes = fragment.register_bytes();
    const std::uint32_t lane_bytes = fragment.num_registers() * register_bytes;
    for (std::uint32_t tile = 0; tile < fragment.num_tiles(); ++tile) {
      const std::uint32_t tile_size = pieces * bytes;
      if (!is_load) read_tile(registers, access, tile, tile_bytes);
      for (std::uint32_t piece = 0; piece < pieces; ++piece) {
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
          MatrixPosition at = fragment.position(tile, lane);
          (by_column ? at.row : at.column) += piece;
          lanes.address[lane] = address_of(lane, at);
        }
        move_pieces(warp, step, access.space, lanes, bytes, piece * bytes, tile_bytes, is_load);
        if (!access.is_exchanged()) {
          emit_access(warp, step, mask, &lanes, tile * pieces + piece);
        }
      }
      if (access.is_exchanged()) {
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
          // The tile is square: its rows are read as if they were its columns.
          const MatrixPosition first = fragment.position(tile, 0);
          lanes.address[lane] =
              by_column ? address_of(lane, {first.row + lane / 4, first.column + lane % 4 * 2})
                        : address_of(lane, {first.row + lane % 4 * 2, first.column + lane / 4});
        }
        emit_access(warp, step, mask, &lanes, tile);
      }
      if (!is_load) continue;
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        std::memcpy(made.data() + lane * lane_bytes + tile * tile_size, tile_bytes[lane].data(),
                    tile_size);
      }
    }
    if (!is_load) return;
    for (std::uint32_t r = 0; r < access.registers; ++r) {
      const std::uint32_t from = r % fragment.num_registers() * register_bytes;
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        std::memcpy(registers + access.values[r] + register_bytes * lane,
                    made.data() + lane * lane_bytes + from, register_bytes);
      }
    }
  }

  /// A tile of a store's registers, the elements of each lane one after the other.
  static void read_tile(const std::byte* registers, const FragmentAccess& access,
                        std::uint32_t tile,
                        std::array<std::array<std::byte, 16>, warp_size>& tile_bytes) {
    const MatrixFragment& fragment = access.fragment;
    const std::uint32_t bytes = fragment.register_bytes();
    const std::uint32_t per_tile = fragment.num_registers() / fragment.num_tiles();
    for (std::uint32_t r = 0; r < per_tile; ++r) {
      const std::uint32_t slot = access.values[tile * per_tile + r];
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        std::memcpy(tile_bytes[lane].data() + r * bytes, registers + slot + bytes * lane, bytes);
      }
    }
  }

  /// Loads or stores `bytes` per lane at `offset` of its part of a tile.
  void move_pieces(Warp& warp, const Step& step, AddressSpace space, const LaneAddresses& lanes,
                   std::uint32_t bytes, std::uint32_t offset,
                   std::array<std::array<std::byte, 16>, warp_size>& tile_bytes, bool is_load) {
    std::byte* const base = space == AddressSpace::shared
                                ? common_shared_base(lanes, bytes, is_load)
                                : common_base(lanes, bytes);
    if (base == nullptr) check_alignment(warp, step, lanes, bytes);
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      std::byte* const place = base != nullptr
                                   ? base + lanes.address[lane]
                                   : pointer(warp, step, space, lane, lanes.address[lane], bytes,
                                             {.reads = is_load, .writes = !is_load});
      std::byte* const value = tile_bytes[lane].data() + offset;
      std::memcpy(is_load ? value : place, is_load ? place : value, bytes);
    }
    if (block_.races != nullptr) {
      check_races(warp, step, space, lanes, bytes, is_load ? RaceKind::load : RaceKind::store);
    }
  }

  // ---- barriers ----

  void arrive(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask) {
    const Barrier& barrier = program_.barriers[step.detail];
    PathEntry& path = warp.paths.back();
    if (mask == 0) {
      ++path.pc;
      return;
    }
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    if (mask != warp.live) {
      arrive_divergent(warp, step, mask);
      return;
    }
    join_barrier(warp, step, registers, mask);
    ++state_of(step, registers, lane).warps;
    if (block_.races != nullptr) block_.races->arrive(warp.number, warp.barrier);
    ++path.pc;
    if (barrier.kind != BarrierKind::arrive) {
      warp.state = Warp::State::waiting;
      warp.turns = 0;
      warp.barrier_kind = barrier.kind;
      warp.barrier_result = barrier.result;
    }
    warp.spins = 0;
    release_barriers();
  }

  /// Part of a warp is at a barrier: it waits there for the rest, since Volta's barriers count
  /// threads.
  void arrive_divergent(Warp& warp, const Step& step, std::uint32_t mask) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    // Others wait for these lanes at a warp-wide operation, which is the fault then; or the rest is
    // at this very barrier.
    bool awaited = false;
    std::uint32_t here = mask;
    for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
      const PathEntry& other = warp.paths[i];
      if (other.pc != parked) continue;
      if ((other.members & mask) != 0) awaited = true;
      if (&step_of(warp, other) == &step) here |= other.mask;
    }
    const bool may_diverge = program_.barriers[step.detail].may_diverge;
    if (!may_diverge && !awaited && here != warp.live) {
      diagnose(warp, step, lane, "divergent barrier", [&] {
        const auto absent = static_cast<std::uint32_t>(std::countr_zero(warp.live & ~mask));
        const auto thread = thread_index(warp, absent);
        return "divergent barrier: " + std::to_string(std::popcount(mask)) + " of " +
               std::to_string(std::popcount(warp.live)) + " threads of warp " +
               std::to_string(warp.number) + " are here, thread (" + std::to_string(thread[0]) +
               ", " + std::to_string(thread[1]) + ", " + std::to_string(thread[2]) + ") is not";
      });
    }
    if (program_.barriers[step.detail].kind == BarrierKind::arrive) {
      fault(warp, step, lane,
            "divergent barrier: a warp cannot arrive in parts at a barrier for which it does not "
            "wait");
    }
    park(warp, step, registers_of(warp), mask);
  }

  BlockBarrier& state_of(const Step& step, const std::byte* registers, std::uint32_t lane) {
    return block_.barriers[lane_u32(registers, program_.barriers[step.detail].number,
                                    static_cast<int>(lane))];
  }

  /// All lanes of a warp that are left wait at barriers, on several paths: the warp arrives.
  void arrive_parted(Warp& warp) {
    std::uint32_t here = 0;
    for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
      if (warp.paths[i].pc == parked) here |= warp.paths[i].mask;
    }
    const PathEntry top = warp.paths.back();
    const auto first = static_cast<std::uint32_t>(std::countr_zero(top.mask));
    if (here != warp.live) {
      fault(warp, step_of(warp, top), first,
            "divergent barrier: it waits for " + lanes_text(warp.live & ~here) +
                " of the warp, which have not called this function or have returned from it");
    }
    const std::byte* const registers = registers_of(warp);
    BlockBarrier* state = nullptr;
    for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
      const PathEntry& path = warp.paths[i];
      if (path.pc != parked) continue;
      const Step& step = step_of(warp, path);
      join_barrier(warp, step, registers, path.mask);
      BlockBarrier& own =
          state_of(step, registers, static_cast<std::uint32_t>(std::countr_zero(path.mask)));
      if (state != nullptr && state != &own) {
        fault(warp, step, static_cast<std::uint32_t>(std::countr_zero(path.mask)),
              "divergent barrier: lanes of the warp wait at different barriers");
      }
      state = &own;
    }
    ++state->warps;
    if (block_.races != nullptr) block_.races->arrive(warp.number, warp.barrier);
    warp.state = Warp::State::waiting;
    warp.turns = 0;
    warp.is_parted = true;
    release_barriers();
  }

  /// Checks a barrier and adds the predicates of lanes that have come.
  void join_barrier(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask) {
    const Barrier& barrier = program_.barriers[step.detail];
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    const std::uint32_t number = lane_u32(registers, barrier.number, static_cast<int>(lane));
    if (number >= num_barriers) {
      fault(warp, step, lane, "barrier " + std::to_string(number) + " of 16");
    }
    BlockBarrier& state = block_.barriers[number];
    std::uint32_t threads = 0;
    if (barrier.threads != none) {
      threads = lane_u32(registers, barrier.threads, static_cast<int>(lane));
      if (threads == 0 || threads % warp_size != 0) {
        fault(warp, step, lane,
              "barrier for " + std::to_string(threads) + " threads, which is no multiple of 32");
      }
    }
    if (state.warps > 0 && state.threads != threads) {
      fault(warp, step, lane,
            "barrier " + std::to_string(number) + " is used with different thread counts");
    }
    state.threads = threads;
    warp.barrier = number;
    if (barrier.predicate == none) return;
    const std::uint32_t holds = pack(registers + barrier.predicate) & mask;
    state.count += static_cast<std::uint32_t>(std::popcount(holds));
    state.all = state.all && holds == mask;
  }

  /// The lanes that waited on several paths go on.
  void leave_barrier(Warp& warp, const BlockBarrier& barrier) {
    warp.is_parted = false;
    std::byte* const registers = registers_of(warp);
    for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
      PathEntry& path = warp.paths[i];
      if (path.pc != parked) continue;
      const Barrier& own = program_.barriers[step_of(warp, path).detail];
      if (own.result != none) {
        broadcast(registers, own.result, 4, path.mask, barrier.value(own.kind));
      }
      path = {path.resume + 1, path.reconvergence, path.mask};
    }
    join_paths(warp, warp.live);
  }

  /// Lets the warps of every complete barrier go on. Warps that are done count as if they came.
  void release_barriers() {
    const auto live = static_cast<std::uint32_t>(std::ranges::count_if(
        block_.warps, [](const Warp& warp) { return warp.state != Warp::State::done; }));
    for (std::uint32_t number = 0; number < num_barriers; ++number) {
      BlockBarrier& barrier = block_.barriers[number];
      if (barrier.warps == 0) continue;
      const bool complete = barrier.threads == 0 ? barrier.warps >= live
                                                 : barrier.warps * warp_size >= barrier.threads;
      if (!complete) continue;
      for (Warp& warp : block_.warps) {
        if (warp.state != Warp::State::waiting || warp.barrier != number) continue;
        warp.state = Warp::State::ready;
        if (block_.races != nullptr) {
          block_.races->pass(warp.number, number, barrier.threads == 0);
        }
        if (warp.is_parted) {
          leave_barrier(warp, barrier);
        } else if (warp.barrier_result != none) {
          broadcast(registers_of(warp), warp.barrier_result, 4, warp.live,
                    barrier.value(warp.barrier_kind));
        }
      }
      barrier = {};
      if (block_.races != nullptr) block_.races->reset(number);
    }
  }

  Device& device_;
  DeviceMemory& memory_;
  std::span<const std::uint64_t> bound_textures_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  std::vector<std::byte> parameters_;
  std::uint64_t parameter_address_ = 0;
  std::uint64_t workspace_address_ = 0;  ///< of a cooperative launch that synchronizes
  std::uint32_t num_threads_;
  std::uint32_t num_warps_;

  TraceBuilder* builder_ = nullptr;
  std::vector<std::uint32_t> rows_;  ///< of the program, in the trace's table
  std::uint64_t warp_instructions_ = 0;
  std::uint64_t next_check_ = 0;
  std::uint64_t thread_instructions_ = 0;
  NoteBook notes_;

  RaceBudget race_budget_;
  std::set<std::pair<const SourceInstruction*, const SourceInstruction*>> race_pairs_;  ///< noted
  std::array<std::array<std::byte, 32>, warp_size> kept_{};  ///< what a store overwrites
  std::array<std::uint32_t, warp_size> changes_{};           ///< which bytes of it differ now

  Block block_;  ///< that runs
  LaneMask lanes_;
  LaneAddresses addresses_;
  Allocation* cached_ = nullptr;         ///< of the last global access
  std::array<std::byte, 64> outside_{};  ///< in place of memory that is not there
};

void check_launch(const KernelProgram& program, std::span<const std::byte> parameters,
                  const DeviceMemory& memory, const LaunchOptions& options) {
  const auto fail = [&](const std::string& what) {
    throw InputError("kernel " + program.name + ": " + what);
  };
  KernelHeader shape;
  shape.name = program.name;
  shape.grid = options.grid;
  shape.block = options.block;
  shape.validate();
  const std::uint64_t threads = shape.threads_per_block();
  if (threads > program.max_threads) {
    fail("a block of " + std::to_string(threads) + " threads is too large: at most " +
         std::to_string(program.max_threads));
  }
  const std::uint64_t shared = program.dynamic_shared_offset + options.dynamic_shared_bytes;
  if (options.dynamic_shared_bytes > max_shared_bytes || shared > max_shared_bytes) {
    fail("a block needs " + std::to_string(shared) + " bytes of shared memory, at most " +
         std::to_string(max_shared_bytes) + " are possible");
  }
  const std::uint64_t blocks = options.grid[0] * options.grid[1] * options.grid[2];
  if (options.cooperative && blocks > max_resident_blocks) {
    fail("a cooperative launch of " + std::to_string(blocks) +
         " blocks is too large: they are resident at once, and no GPU holds more than " +
         std::to_string(max_resident_blocks));
  }
  // As on a GPU, local memory comes out of the device's memory.
  const std::uint64_t local = resident_local_bytes(program, options);
  if (const std::uint64_t free = memory.capacity() - memory.used(); local > free) {
    fail("the threads that run at once need " + std::to_string(local) + " bytes of local memory (" +
         std::to_string(program.local_bytes) + " each), and the device has " +
         std::to_string(free) + " of " + std::to_string(memory.capacity()) +
         " bytes free; give it more memory or launch smaller thread blocks");
  }
  if (parameters.size() < program.parameter_bytes) {
    fail("its parameters take " + std::to_string(program.parameter_bytes) + " bytes, " +
         std::to_string(parameters.size()) + " are given");
  }
}

}  // namespace

std::uint64_t resident_local_bytes(const KernelProgram& program, const LaunchOptions& options) {
  const std::uint64_t threads = options.block[0] * options.block[1] * options.block[2];
  const std::uint64_t blocks =
      options.cooperative ? options.grid[0] * options.grid[1] * options.grid[2] : 1;
  return (threads + warp_size - 1) / warp_size * warp_size * blocks * program.local_bytes;
}

LaunchResult launch(Device& device, const KernelProgram& program,
                    std::span<const std::byte> parameters, const LaunchOptions& options,
                    std::span<const std::uint64_t> bound_textures) {
  check_launch(program, parameters, device.memory, options);
  Machine machine(device, program, parameters, options, bound_textures);
  const auto tell = [&] {
    if (!options.note) return;
    for (const Note& note : machine.notes()) options.note(note);
  };
  LaunchResult result;
  try {
    result = machine.run();
  } catch (...) {
    tell();  // they may be what led to the error
    throw;
  }
  tell();
  return result;
}

}  // namespace warpstack::simt
