#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simt/program/async_operations.h"
#include "simt/program/device_runtime.h"
#include "simt/program/lane_form.h"
#include "simt/program/matrix.h"
#include "simt/program/operand.h"
#include "simt/program/special_register.h"
#include "simt/program/tensor_memory.h"
#include "simt/program/type.h"
#include "trace/instructions/source_table.h"
#include "trace/instructions/static_instruction.h"

namespace warpstack::simt {

/// What a step does, apart from arithmetic.
enum class Action : std::uint8_t {
  lanes,    ///< Step::function
  nothing,  ///< prefetches, cache hints
  sleep,    ///< nanosleep: for the ticks in the first source
  fence,
  special,           ///< reads a special register
  local_address,     ///< address of a local variable
  parameter_base,    ///< address of the kernel's parameter buffer
  kernel_parameter,  ///< loads a parameter of the kernel
  parameter_load,    ///< loads from parameters of this function or a call of it
  parameter_store,
  bank_load,  ///< loads from a constant bank
  load,
  store,
  atomic,
  async_copy,
  address_query,  ///< isspacep
  texture,
  surface_load,
  surface_store,
  texture_query,
  shuffle,
  vote,
  match,
  reduce,
  active_mask,
  elect,
  warp_sync,  ///< bar.warp.sync
  begin_convergence,
  converge,
  leave_convergence,
  divergence_test,  ///< whether the lanes of the path for which a predicate holds differ from a
                    ///< mask
  separate,         ///< lanes with different masks go on separately
  matrix_multiply,
  matrix_transpose,  ///< movmatrix
  matrix_load,       ///< ldmatrix
  matrix_store,
  fragment_load,  ///< wmma.load
  fragment_store,
  barrier,
  branch,
  indexed_branch,
  call,
  indirect_call,
  function_return,
  exit,
  trap,
  async_barrier,       ///< mbarrier
  bulk_copy,           ///< cp.async.bulk, cp.reduce.async.bulk
  tensor_copy,         ///< the same for tiles of tensors
  tensor_map,          ///< tensormap.replace
  tensor_map_copy,     ///< tensormap.cp_fenceproxy
  warpgroup_multiply,  ///< wgmma.mma_async
  warpgroup_commit,
  warpgroup_wait,
  tensor_allocate,  ///< tcgen05.alloc, dealloc, relinquish_alloc_permit
  tensor_product,   ///< tcgen05.mma
  tensor_transfer,  ///< tcgen05.ld, st
  tensor_fill,      ///< tcgen05.cp
  tensor_shift,     ///< tcgen05.shift
  tensor_commit,    ///< tcgen05.commit
  cluster_arrive,   ///< barrier.cluster.arrive
  cluster_wait,
  cluster_rank,  ///< getctarank
};

/// Whether an action is an operation of async_operations.h or tensor_memory.h.
[[nodiscard]] constexpr bool is_async(Action action) {
  return action >= Action::async_barrier && action <= Action::tensor_commit;
}

/// One step of a program. Most instructions of the text take one step, some several.
struct Step {
  LaneFunction function = nullptr;
  LaneOperands operands;  ///< byte offsets of slots in the function's frame
  std::uint32_t guard = none;
  std::uint32_t first_row = none;  ///< in KernelProgram::rows
  std::uint16_t num_rows = 0;      ///< 0: folded, or not the instruction's first step
  Action action = Action::lanes;
  bool guard_negated = false;
  bool begins = false;  ///< first step of its instruction
  /// Lanes may wait for others here, because it is the reconvergence point of a branch.
  bool reconverges = false;
  /// How many steps from this one on only compute and always follow each other; see
  /// find_stretches().
  std::uint8_t stretch = 0;
  std::uint32_t jump = none;           ///< branch target
  std::uint32_t reconvergence = none;  ///< of a branch: its immediate post-dominator
  std::uint32_t detail = none;         ///< entry in the table of its action
  std::uint32_t instruction = 0;       ///< of the source text, for messages
};

/// A load, store, atomic or asynchronous copy.
struct MemoryAccess {
  AddressSpace space = AddressSpace::global;
  bool constant = false;         ///< ld.const: not an access of the memory stage
  std::uint8_t bytes = 4;        ///< of an element
  std::uint8_t elements = 1;     ///< 1, 2, 4 or 8
  bool sign_extend = false;      ///< of loaded elements, to the register's width
  std::uint32_t address = none;  ///< slot; none: the address is `offset` alone
  bool address_is_64_bits = true;
  /// Slot of the upper words of addresses whose lower words are in `address`; none: `address` has
  /// both.
  std::uint32_t address_high = none;
  std::int64_t offset = 0;
  std::array<std::uint32_t, 8> values{};      ///< slots: targets of a load, sources of a store
  std::array<std::uint8_t, 8> value_bytes{};  ///< widths of these registers: 2, 4 or 8
  AtomicFunction atomic = nullptr;
  bool strong = false;  ///< volatile, relaxed, acquire, release or atomic
  bool acquires = false;
  bool releases = false;
  bool overwrites = false;  ///< an exchange whose old value nobody gets
  /// An addition to an integer whose result is used: blocks take numbers, or the next piece of
  /// work.
  bool counts = false;
  bool takes_locks = false;     ///< compare-and-swap or exchange: loops of these may spin
  std::uint32_t result = none;  ///< of an atomic; none: reduction
  bool result_is_read = true;   ///< false: no step reads what an atomic returns
  std::uint32_t operand_b = none;
  std::uint32_t operand_c = none;
  /// Results and operands of an atomic on a vector, for its elements after the first.
  std::array<std::uint32_t, 7> more_results{none, none, none, none, none, none, none};
  std::array<std::uint32_t, 7> more_operands{none, none, none, none, none, none, none};
  std::uint32_t second_address = none;  ///< source of an async_copy; `address` is its target
  bool second_is_64_bits = true;
  std::int64_t second_offset = 0;
  std::uint32_t source_bytes = none;  ///< slot, for an async_copy that fills the rest with zeros
};

enum class ShuffleMode : std::uint8_t { up, down, butterfly, index };
enum class VoteMode : std::uint8_t { all, any, uniform, ballot };
enum class BarrierKind : std::uint8_t { sync, arrive, count, all, any };

/// Shuffles, votes, matches, reductions: slots by role.
struct Collective {
  std::uint8_t mode = 0;  ///< ShuffleMode, VoteMode; match: 1 for .all
  Type type = Type::b32;
  std::uint32_t result = none;
  std::uint32_t predicate = none;  ///< second result
  std::uint32_t a = none;
  std::uint32_t b = none;
  std::uint32_t c = none;
  std::uint32_t members = none;  ///< none: all active lanes
  AtomicFunction combine = nullptr;
};

/// ldmatrix, stmatrix: 8 x 8 matrices of 16 bits. Lane 8 * m + r has the address of row r of matrix
/// m.
struct MatrixAccess {
  AddressSpace space = AddressSpace::shared;
  std::uint8_t matrices = 1;  ///< 1, 2 or 4
  bool transposed = false;
  std::uint32_t address = none;
  bool address_is_64_bits = true;
  std::int64_t offset = 0;
  std::array<std::uint32_t, 4> values{};  ///< slots, one per matrix
};

/// wmma.load, wmma.store: a whole matrix in memory.
struct FragmentAccess {
  MatrixFragment fragment;
  AddressSpace space = AddressSpace::generic;
  bool column_major = false;
  std::uint32_t address = none;
  bool address_is_64_bits = true;
  std::int64_t offset = 0;
  std::uint32_t stride = none;  ///< slot: elements between rows (columns); none: dense
  std::uint8_t registers = 0;   ///< later ones repeat the first ones
  std::array<std::uint32_t, 8> values{};

  /// Whether the elements of a lane's part of a tile are neighbours in memory.
  [[nodiscard]] bool is_contiguous() const {
    return column_major == (fragment.role == MatrixRole::b);
  }
  /// Whether this is a 16-bit tile in the other order, read along memory and transposed by the
  /// lanes.
  [[nodiscard]] bool is_exchanged() const {
    return !is_contiguous() && bits_of(fragment.element) == 16;
  }
  /// Accesses of the trace per tile, and their bytes per lane.
  [[nodiscard]] std::uint32_t accesses_per_tile() const {
    return is_contiguous() || is_exchanged() ? 1 : fragment.per_tile();
  }
  [[nodiscard]] std::uint32_t access_bytes() const {
    return fragment.per_tile() * bits_of(fragment.element) / 8 / accesses_per_tile();
  }
};

struct Barrier {
  BarrierKind kind = BarrierKind::sync;
  std::uint32_t number = none;   ///< slot
  std::uint32_t threads = none;  ///< slot; none: all of the block
  std::uint32_t predicate = none;
  std::uint32_t result = none;
  bool may_diverge = false;  ///< lanes of a warp may arrive separately; otherwise a fault
};

/// A variable in the shared memory of a block.
struct SharedVariable {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct SpecialRead {
  Special special = Special::tid;
  std::uint8_t component = 0;
};

/// Loads or stores of `.param` variables of functions, per lane.
struct ParameterAccess {
  std::uint64_t offset = 0;      ///< in the frame's parameter area, or in the kernel's buffer
  std::uint32_t address = none;  ///< slot of a computed offset
  bool address_is_64_bits = true;
  std::uint8_t bytes = 4;
  std::uint8_t elements = 1;
  bool sign_extend = false;
  std::array<std::uint32_t, 8> values{};
  std::array<std::uint8_t, 8> value_bytes{};
  std::uint32_t bank = 0;  ///< of a bank_load
};

/// A convergence barrier of a warp. Each lane keeps in a slot the mask of the lanes that it waits
/// for. `begin_convergence` sets it to the lanes of the path, `leave_convergence` removes lanes,
/// and at `converge` the lanes go on together when all remaining ones have come.
struct Convergence {
  std::uint32_t members = none;  ///< slot
};

/// A function call: which pieces of the caller's parameter area become the callee's.
struct Call {
  std::uint32_t function = none;  ///< in KernelProgram::functions; none: indirect or built in
  enum class BuiltIn : std::uint8_t { none, print, assert_fail, allocate, release, runtime };
  BuiltIn built_in = BuiltIn::none;
  RuntimeFunction runtime_function{};  ///< of BuiltIn::runtime
  std::uint32_t address = none;        ///< slot of an indirect call
  struct Piece {
    std::uint32_t offset = 0;  ///< in the caller's area
    std::uint32_t bytes = 0;
  };
  std::vector<Piece> arguments;
  std::vector<Piece> results;
};

/// Jumps to targets[(index + offset) >> shift]. The index is a word.
struct IndexedBranch {
  std::uint32_t index = none;  ///< slot
  std::int64_t offset = 0;
  std::uint32_t shift = 0;
  std::vector<std::uint32_t> targets;
};

/// A bank of constants, which instructions name by their offset in it.
struct ConstantBank {
  std::vector<std::byte> bytes;  ///< empty if the bank lies in device memory
  std::uint64_t address = 0;     ///< in device memory; 0: not there
  std::uint64_t size = 0;        ///< there
};

/// A word of constant bank 0 that a launch fills in: ntid, nctaid, dynamic_smem_size or gridid.
struct LaunchWord {
  std::uint32_t offset = 0;
  Special special = Special::ntid;
  std::uint8_t component = 0;
};

/// A slot of the kernel's frame whose lanes hold a word of a constant bank from the start.
struct FrameConstant {
  std::uint32_t slot = 0;
  std::uint32_t bank = 0;
  std::uint32_t offset = 0;
};

struct TextureAccess {
  std::uint8_t dimensions = 2;  ///< coordinates without the layer
  bool layered = false;         ///< the first coordinate is an integer, the layer
  bool cube = false;
  bool fetch = false;              ///< tex1Dfetch and friends: integer coordinates
  bool gather = false;             ///< tex2Dgather: a component of each of four texels
  std::uint8_t component = 0;      ///< of a gather: 0 to 3
  Type type = Type::f32;           ///< of the result
  std::uint32_t object = none;     ///< slot of the handle
  std::uint32_t reference = none;  ///< or the number of a `.texref` variable
  std::array<std::uint32_t, 4> coordinates{};
  std::uint32_t layer_mask = ~std::uint32_t{0};  ///< the bits of the first one that are the layer
  /// Slots whose bits from `offset_shifts` on are a number of texels, with a sign, that is added to
  /// the coordinate.
  std::array<std::uint32_t, 3> offsets{none, none, none};
  std::array<std::uint8_t, 3> offset_shifts{};
  std::uint8_t offset_bits = 4;
  std::array<std::uint32_t, 4> values{};
  std::uint8_t elements = 4;
  std::uint8_t element_bytes = 4;  ///< surfaces
  std::uint8_t out_of_bounds = 0;  ///< surfaces: 0 trap, 1 clamp, 2 zero
  std::uint8_t query = 0;          ///< txq: 0 width, 1 height, 2 depth
};

[[nodiscard]] constexpr bool is_texel_access(Action action) {
  return action == Action::texture || action == Action::surface_load ||
         action == Action::surface_store;
}

/// Makes the row of a texture or surface instruction an access of global memory, for traces that
/// have its addresses.
void make_texel_access(trace::StaticInstruction& row, Action action, const TextureAccess& access);

/// How messages describe an instruction of the source text. Its address also identifies it.
struct SourceInstruction {
  std::string source;  ///< "bfs.cu:12"; empty without line information
  std::string place;   ///< in the program's own text: "PTX line 45"
  std::string opcode;  ///< "ld.global.f32"
};

/// A constant of a frame that is the address of a shared variable.
struct SharedAddress {
  std::uint32_t slot = 0;
  std::uint32_t bytes = 4;
};

struct ProgramFunction {
  std::string name;
  std::vector<SourceInstruction> instructions;  ///< see Step::instruction
  std::vector<Step> steps;
  std::vector<std::byte> constants;             ///< initial bytes of the frame: immediate operands
  std::vector<SharedAddress> shared_addresses;  ///< those that are addresses of shared variables
  std::uint32_t register_bytes = 0;             ///< of the frame, constants included
  std::uint32_t parameter_bytes = 0;            ///< per lane, after the registers
  std::vector<Call::Piece> parameters;          ///< formal ones, in its parameter area
  std::vector<Call::Piece> results;
  std::uint32_t local_bytes = 0;  ///< per lane
  std::uint32_t pressure = 0;     ///< largest number of 32-bit registers that are live at once
};

/// A kernel with the functions that it reaches, ready to run.
struct KernelProgram {
  std::string name;
  std::string source;                ///< what its trace names as its source: "ptx"
  std::uint64_t binary_version = 0;  ///< 75 for sm_75
  std::uint64_t parameter_bytes = 0;
  std::vector<ProgramFunction> functions;      ///< 0: the kernel
  std::vector<trace::StaticInstruction> rows;  ///< of the trace
  trace::SourceTable sources;                  ///< of `rows`
  std::uint64_t shared_bytes = 0;              ///< static
  /// The system's bytes before the static ones. The code's addresses count them; sizes that users
  /// see do not.
  std::uint64_t reserved_shared_bytes = 0;
  /// Machine code: blocks of a pair allocate tensor memory with words of the system's bytes.
  bool has_pair_allocations = false;
  std::vector<SharedVariable> shared_variables;  ///< static ones, by offset
  std::uint64_t dynamic_shared_offset = 0;
  bool uses_dynamic_shared = false;
  std::uint64_t local_bytes = 0;  ///< per thread, all frames of the deepest chain of calls
  bool grows_stack = false;  ///< its needs are only known at run time: LaunchOptions::stack_bytes
  std::uint32_t registers_per_thread = 0;
  std::uint32_t max_threads = 1024;
  /// Blocks of a cluster that the kernel asks for; 0: the launch says.
  std::array<std::uint64_t, 3> required_cluster{0, 0, 0};
  bool recursive = false;
  bool has_ranks_in_addresses = false;  ///< of shared memory, in bits 24 and up
  /// Blocks of a cluster work in pairs, and tell from an address in which of them it is: those of
  /// shared variables are addresses of the cluster (address_space.h).
  bool has_pairs = false;
  bool synchronizes_grid = false;  ///< uses the workspace of a cooperative launch

  std::vector<MemoryAccess> memory;
  std::vector<ParameterAccess> parameter_accesses;
  std::vector<SpecialRead> specials;
  std::vector<Collective> collectives;
  std::vector<MatrixMultiply> multiplications;
  std::vector<MatrixAccess> matrix_accesses;
  std::vector<FragmentAccess> fragment_accesses;
  std::vector<Barrier> barriers;
  std::vector<Call> calls;
  std::vector<IndexedBranch> indexed_branches;
  std::vector<TextureAccess> textures;
  std::vector<Convergence> convergences;
  std::vector<AsyncBarrier> async_barriers;
  std::vector<BulkCopy> bulk_copies;
  std::vector<TensorCopy> tensor_copies;
  std::vector<TensorMapChange> tensor_map_changes;
  std::vector<TensorMapCopy> tensor_map_copies;
  std::vector<WarpgroupMultiply> warpgroup_multiplications;
  std::vector<WarpgroupWait> warpgroup_waits;
  std::vector<TensorAllocation> tensor_allocations;
  std::vector<TensorProduct> tensor_products;
  std::vector<TensorTransfer> tensor_transfers;
  std::vector<TensorFill> tensor_fills;
  std::vector<TensorShift> tensor_shifts;
  std::vector<TensorCommit> tensor_commits;
  std::vector<ConstantBank> constant_banks;  ///< by number
  std::vector<LaunchWord> launch_words;      ///< of bank 0
  std::uint32_t parameter_offset = none;  ///< offset of the parameters in bank 0; none: not there
  std::uint32_t stack_top = none;  ///< offset in bank 0 of the size of a thread's local memory
  std::vector<FrameConstant> frame_constants;                 ///< of functions[0]
  std::vector<std::uint64_t> local_offsets;                   ///< of Action::local_address
  std::map<std::uint64_t, std::uint32_t> function_addresses;  ///< to `functions`
};

}  // namespace warpstack::simt
