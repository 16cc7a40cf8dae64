#include "simt/async/tensor_memory_unit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/text.h"
#include "simt/arithmetic/half_bits.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

constexpr std::uint32_t tensor_piece_bytes = 16;
constexpr std::uint32_t factor_columns = factor_bytes / 4;
/// Bytes that shared memory delivers per wavefront.
constexpr std::uint32_t tensor_wavefront = 128;
constexpr std::uint32_t one_nan = 0x7fffffffu;

std::uint32_t wavefronts_of(std::uint32_t bytes) {
  return std::max((bytes + tensor_wavefront - 1) / tensor_wavefront, 1u);
}

template <class Each>
void for_each_lane(std::uint32_t mask, Each each) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    each(static_cast<std::uint32_t>(std::countr_zero(rest)));
  }
}

/// The wrapping or saturating sum of products and an old sum.
std::uint32_t add_integer(float products, std::uint32_t old, bool saturates) {
  const std::int64_t sum = static_cast<std::int64_t>(products) + static_cast<std::int32_t>(old);
  if (!saturates) return static_cast<std::uint32_t>(sum);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(sum, std::int64_t{-1} - 0x7fffffff, 0x7fffffff));
}

}  // namespace

void TensorMemoryUnit::require_warp(const Issue& issue, std::uint32_t mask) const {
  if (mask == all_lanes) return;
  stop(issue, "an operation of a warp on tensor memory needs all 32 threads, " +
                  std::to_string(std::popcount(mask)) + " of warp " +
                  std::to_string(issue.warp.number) + " execute it");
}

std::uint32_t TensorMemoryUnit::same_address(const Issue& issue, const std::byte* registers,
                                             const AddressOperand& operand,
                                             const char* what) const {
  const std::uint64_t first = address_in(execution_, registers, operand, 0);
  for (std::uint32_t lane = 1; lane < warp_size; ++lane) {
    const std::uint64_t other = address_in(execution_, registers, operand, lane);
    if (other == first) continue;
    stop(issue, std::string("the threads of the warp have different ") + what + ", " +
                    hexadecimal(first) + " and " + hexadecimal(other));
  }
  return static_cast<std::uint32_t>(first);
}

TensorPlace TensorMemoryUnit::place(const Issue& issue, std::uint64_t address,
                                    std::uint32_t columns, const char* what) const {
  const TensorPlace result{static_cast<std::uint32_t>(address >> 16 & 0xffff),
                           static_cast<std::uint32_t>(address & 0xffff)};
  for (std::uint32_t side = 0; side < num_sides_; ++side) {
    const TensorMemory* const memory = sides_[side].memory;
    if (result.lane < tensor_lanes && memory != nullptr && memory->holds(result.column, columns)) {
      continue;
    }
    const char* const whose = num_sides_ == 1 ? "the block"
                              : side == 0     ? "the even block of the pair"
                                              : "the odd block of the pair";
    stop(issue, std::string(what) + " at " + hexadecimal(address) + " has columns " +
                    std::to_string(result.column) + "-" +
                    std::to_string(result.column + columns - 1) + " from lane " +
                    std::to_string(result.lane) + " of tensor memory on; " + whose +
                    " has allocated " + (memory == nullptr ? "no columns" : memory->text()) +
                    " of 128 lanes");
  }
  return result;
}

Block& TensorMemoryUnit::other_block(const Issue& issue) {
  const std::uint32_t rank = rank_in_cluster(execution_.block, execution_.cluster) ^ 1;
  Block* const other = block_of_rank(execution_, rank);
  if (other != nullptr) return *other;
  const std::uint64_t present = cluster_blocks(execution_.cluster);
  stop(issue,
       "an operation of a pair of blocks, and the other block of the pair, of rank " +
           std::to_string(rank) + " in the cluster, " +
           (rank < present ? "has ended (a barrier of the cluster keeps it)"
                           : "does not exist: clusters of the launch have " +
                                 std::to_string(present) + (present == 1 ? " block" : " blocks")));
}

void TensorMemoryUnit::take_sides(const Issue& issue, bool is_of_pair) {
  num_sides_ = is_of_pair ? 2 : 1;
  sides_[0] = {.memory = execution_.block.tensors.get()};
  if (!is_of_pair) return;
  const std::uint32_t rank = rank_in_cluster(execution_.block, execution_.cluster);
  sides_[1] = {.memory = other_block(issue).tensors.get(), .window = cluster_address(0, rank ^ 1)};
  if (rank % 2 == 1) std::swap(sides_[0], sides_[1]);
}

std::optional<std::uint32_t> TensorMemoryUnit::allocate_in_both(const Issue& issue,
                                                                std::uint32_t columns) {
  TensorMemory& own = *execution_.block.tensors;
  std::unique_ptr<TensorMemory>& tensors = other_block(issue).tensors;
  if (tensors == nullptr) tensors = std::make_unique<TensorMemory>();
  TensorMemory& other = *tensors;
  if (own.granted) {
    const std::uint32_t first = *own.granted;
    own.granted.reset();
    own.awaited = 0;
    return first;
  }
  own.awaited = columns;
  if (other.awaited == 0 || other.granted) return std::nullopt;
  if (other.awaited != columns) {
    stop(issue, "the blocks of a pair allocate " + std::to_string(columns) + " and " +
                    std::to_string(other.awaited) +
                    " columns of tensor memory together; both must name the same number");
  }
  const auto first = own.allocate(columns, &other);
  if (!first) return std::nullopt;
  other.granted = first;
  own.awaited = 0;
  ++execution_.async_events;
  return first;
}

void TensorMemoryUnit::require_columns(const Issue& issue, std::uint32_t columns) const {
  if (std::has_single_bit(columns) && columns >= TensorMemory::least_columns &&
      columns <= tensor_columns) {
    return;
  }
  stop(issue, std::to_string(columns) +
                  " columns of tensor memory; a power of two from 32 to 512 is possible");
}

void TensorMemoryUnit::sign(const Issue& issue, TensorMemory& memory, std::uint32_t first) const {
  TensorMemory::Allocation& made = memory.allocation_at(first);
  made.made_by = &issue.warp.text_of(issue.step);
  made.place = faults_.place_of(issue.warp, issue.step, issue.lane);
}

void TensorMemoryUnit::release(const Issue& issue, std::uint32_t first, std::uint32_t columns) {
  TensorMemory& memory = *execution_.block.tensors;
  if (!memory.release(first, columns)) {
    stop(issue, "there is no allocation of " + std::to_string(columns) + " columns at " +
                    hexadecimal(first) + " of tensor memory; the block has allocated " +
                    memory.text());
  }
  ++execution_.async_events;
}

bool TensorMemoryUnit::find_groups(const Issue& issue, std::byte* registers, std::uint32_t mask) {
  const TensorAllocation& request = program_.tensor_allocations[issue.step.detail];
  TensorMemory& own = *execution_.block.tensors;
  const std::uint32_t columns = lane_u32(registers, request.columns, static_cast<int>(issue.lane)) *
                                TensorMemory::least_columns;
  require_columns(issue, columns);
  TensorMemory* other = nullptr;
  if (request.is_of_pair) {
    std::unique_ptr<TensorMemory>& tensors = other_block(issue).tensors;
    if (tensors == nullptr) tensors = std::make_unique<TensorMemory>();
    other = tensors.get();
  }
  const auto first = own.allocate(columns, other);
  if (!first) return false;
  sign(issue, own, *first);
  if (other != nullptr) sign(issue, *other, *first);
  for_each_lane(mask, [&](std::uint32_t lane) {
    write_lane(registers, request.address, 4, static_cast<int>(lane),
               *first / TensorMemory::least_columns);
  });
  return true;
}

bool TensorMemoryUnit::allocate(Warp& warp, const Step& step, std::byte* registers,
                                std::uint32_t mask) {
  using Kind = TensorAllocation::Kind;
  const TensorAllocation& request = program_.tensor_allocations[step.detail];
  const Issue issue{warp, step, static_cast<std::uint32_t>(std::countr_zero(mask))};
  if (execution_.block.tensors == nullptr) {
    execution_.block.tensors = std::make_unique<TensorMemory>();
  }
  if (request.kind == Kind::find_groups) return find_groups(issue, registers, mask);
  TensorMemory& memory = *execution_.block.tensors;
  if (request.kind == Kind::free_groups) {
    const std::uint32_t freed = ~lane_u32(registers, request.columns, static_cast<int>(issue.lane));
    const auto first = static_cast<std::uint32_t>(std::countr_zero(freed));
    release(issue, first * TensorMemory::least_columns,
            static_cast<std::uint32_t>(std::popcount(freed)) * TensorMemory::least_columns);
    return true;
  }
  require_warp(issue, mask);
  if (request.kind == Kind::relinquish) {
    memory.may_allocate = false;
    return true;
  }
  const std::uint32_t columns = same_address(
      issue, registers, {.slot = request.columns, .is_64_bits = false}, "numbers of columns");
  require_columns(issue, columns);
  if (request.kind == Kind::release) {
    release(issue, same_address(issue, registers, {.slot = request.address, .is_64_bits = false}),
            columns);
    return true;
  }
  if (!memory.may_allocate) {
    stop(issue, "the block allocates tensor memory after tcgen05.relinquish_alloc_permit");
  }
  const auto first =
      request.is_of_pair ? allocate_in_both(issue, columns) : memory.allocate(columns);
  if (!first) return false;
  sign(issue, memory, *first);
  const std::uint64_t target = address_in(execution_, registers, request.result, issue.lane);
  std::byte* const to = spaces_.shared_place(warp, step, issue.lane, request.result.space, target,
                                             sizeof *first, {.reads = false, .writes = true});
  std::memcpy(to, &*first, sizeof *first);
  if (races_.is_on()) {
    LaneAddresses one;
    one.mask = 1u << issue.lane;
    one.address[issue.lane] = target;
    races_.check(warp, step, request.result.space, one, sizeof *first, RaceKind::store);
  }
  return true;
}

std::string TensorMemoryUnit::text(const Warp& warp, const Step& step) const {
  const TensorAllocation& request = program_.tensor_allocations[step.detail];
  const std::byte* const registers = warp.file.data() + warp.frames.back().base;
  const bool counts_groups = request.kind == TensorAllocation::Kind::find_groups;
  const std::uint32_t unit = counts_groups ? TensorMemory::least_columns : 1;
  const int lane = std::countr_zero(warp.async.held_mask);
  return "tcgen05.alloc of " + std::to_string(lane_u32(registers, request.columns, lane) * unit) +
         " columns of tensor memory, of which the block has allocated " +
         execution_.block.tensors->text() +
         (request.is_of_pair ? ", by both blocks of a pair" : "");
}

MatrixDescriptor TensorMemoryUnit::descriptor(const Issue& issue, std::uint64_t bits,
                                              const char* what) const {
  const auto found = MatrixDescriptor::unpack_of_tensor(bits);
  if (!found) {
    stop(issue, std::string("the descriptor of ") + what + ", " + hexadecimal(bits) +
                    ", has a swizzle that does not exist, or an absolute address as its stride");
  }
  return *found;
}

const std::byte* TensorMemoryUnit::shared_piece(const Issue& issue, std::uint64_t address) {
  const std::byte* const found = spaces_.shared(issue.warp, issue.step, issue.lane, address,
                                                tensor_piece_bytes, {.reads = true});
  if (races_.is_on()) {
    races_.check_async(issue.warp, issue.step, AddressSpace::shared, issue.lane, address,
                       tensor_piece_bytes, RaceKind::load, issue.warp.number);
  }
  return found;
}

void TensorMemoryUnit::read_factor(const Issue& issue, const MatrixDescriptor& from,
                                   bool by_columns, std::uint32_t element_bytes) {
  const std::size_t count = rows_.size() / num_sides_;
  for (std::uint32_t side = 0; side < num_sides_; ++side) {
    read_rows(issue, from, sides_[side].window, by_columns, element_bytes,
              std::span(rows_).subspan(side * count, count));
  }
}

void TensorMemoryUnit::read_rows(const Issue& issue, const MatrixDescriptor& from,
                                 std::uint64_t window, bool by_columns, std::uint32_t element_bytes,
                                 std::span<FactorRow> rows) {
  const bool by_32_bytes = from.swizzle == Swizzle::bytes_128_by_32;
  if (by_columns != by_32_bytes && (by_32_bytes || element_bytes == 4)) {
    stop(issue,
         "a swizzle of 128 bytes in pieces of 32 is for factors of tf32 that are stored by "
         "columns, and these have no other one");
  }
  for (std::uint32_t row = 0; row < rows.size() && !by_columns; ++row) {
    for (std::uint32_t k = 0; k < factor_bytes; k += tensor_piece_bytes) {
      std::memcpy(rows[row].data() + k, shared_piece(issue, window + from.by_rows(row, k)),
                  tensor_piece_bytes);
    }
  }
  if (!by_columns) return;
  const std::uint32_t rows_of_piece = tensor_piece_bytes / element_bytes;
  for (std::uint32_t row = 0; row < rows.size(); row += rows_of_piece) {
    for (std::uint32_t k = 0; k < factor_bytes / element_bytes; ++k) {
      const std::byte* const piece =
          shared_piece(issue, window + from.by_columns(row, k, element_bytes));
      for (std::uint32_t r = 0; r < rows_of_piece && row + r < rows.size(); ++r) {
        std::memcpy(rows[row + r].data() + k * element_bytes, piece + r * element_bytes,
                    element_bytes);
      }
    }
  }
}

void TensorMemoryUnit::read_from_tensor(const Issue& issue, TensorPlace first,
                                        const TensorProduct& product,
                                        const trace::ProductStep& shape) {
  const std::uint32_t rows_of_side = shape.m / num_sides_;
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    TensorMemory& memory = memory_of(row, shape);
    const std::uint32_t lane = first.lane + place_of_sum(shape, product, row, 0).lane;
    std::memcpy(rows_[row].data(), &memory.word(lane, first.column), factor_bytes);
    // Each half of the lanes multiplies its own copy by its half of the columns.
    if (!product.is_of_pair || rows_of_side == tensor_lanes) continue;
    if (std::memcmp(rows_[row].data(), &memory.word(lane + rows_of_side, first.column),
                    factor_bytes) != 0) {
      stop(issue, "lanes " + std::to_string(lane) + " and " + std::to_string(lane + rows_of_side) +
                      " of A in tensor memory differ; with M = 128, both halves of the lanes hold "
                      "the same rows");
    }
  }
}

void TensorMemoryUnit::multiply(Warp& warp, const Step& step, const std::byte* registers,
                                std::uint32_t mask) {
  const TensorProduct& product = program_.tensor_products[step.detail];
  if (warp.detector != nullptr) warp.detector->work();
  trace::ProductStep shape;
  for_each_lane(mask, [&](std::uint32_t lane) {
    const Issue issue{warp, step, lane};
    const std::uint32_t bits = lane_u32(registers, product.instruction, static_cast<int>(lane));
    const auto descriptor = ProductDescriptor::unpack(product.kind, bits);
    const auto fault = descriptor ? descriptor->fault(product) : "it names types that do not exist";
    if (fault) stop(issue, "the instruction descriptor " + hexadecimal(bits) + ": " + *fault);
    multiply_lane(issue, registers, *descriptor);
    shape = descriptor->shape;
  });
  const std::uint32_t rows_of_a = product.a_descriptor == none ? 0 : shape.m;
  const auto record = [&](Warp& of) {
    recorder_.record_wavefronts(
        of, step, mask, wavefronts_of((rows_of_a + shape.n) / product.num_blocks() * factor_bytes));
    recorder_.record_product(of, step, mask, shape, 1);
  };
  record(warp);
  if (!product.is_of_pair) return;
  // The SM of the other block does its half, in the trace by the same warp there.
  const Issue issue{warp, step, static_cast<std::uint32_t>(std::countr_zero(mask))};
  Block& other = other_block(issue);
  Warp& there = other.warps[warp.number];
  if (there.state == Warp::State::done) return;
  recorder_.take_block(other);
  record(there);
  recorder_.take_block();
}

void TensorMemoryUnit::multiply_lane(const Issue& issue, const std::byte* registers,
                                     const ProductDescriptor& descriptor) {
  const TensorProduct& product = program_.tensor_products[issue.step.detail];
  const trace::ProductStep& shape = descriptor.shape;
  const auto lane = static_cast<int>(issue.lane);
  take_sides(issue, product.is_of_pair);
  const bool is_half_used = shape.m == 64 && !product.weights_stationary;
  const std::uint32_t folds = folds_of(shape, product);
  const TensorPlace d =
      place(issue, address_in(execution_, registers, product.d, issue.lane), shape.n / folds, "D");
  if (d.lane != 0 && !(is_half_used && d.lane == 16)) {
    stop(issue, "D begins at lane " + std::to_string(d.lane) + " of tensor memory, not at 0" +
                    (is_half_used ? " or 16" : ""));
  }
  const bool is_dense = product.kind == TensorKind::mxf4 || product.kind == TensorKind::mxf4nvf4;
  const ElementPacking packing = is_dense ? ElementPacking::dense : ElementPacking::padded;
  const auto bytes_of = [](trace::ProductElement element) {
    return std::max(bits_of(element) / 8, 1u);
  };
  rows_.resize(shape.m);
  if (product.a_descriptor == none) {
    const TensorPlace a =
        place(issue, address_in(execution_, registers, product.a, issue.lane), factor_columns, "A");
    if (a.lane != d.lane) {
      stop(issue, "A begins at lane " + std::to_string(a.lane) +
                      " of tensor memory and D at lane " + std::to_string(d.lane));
    }
    if (folds > 1 && product.weights_stationary) {
      stop(issue, "A in tensor memory of a product with .ws and M = " + std::to_string(shape.m) +
                      " is not supported");
    }
    read_from_tensor(issue, a, product, shape);
    a_.read(shape.a, is_dense ? packing : ElementPacking::bytes, shape.k, rows_,
            descriptor.negate_a);
  } else {
    read_factor(issue,
                this->descriptor(issue, lane_u64(registers, product.a_descriptor, lane), "A"),
                descriptor.transpose_a, bytes_of(shape.a));
    a_.read(shape.a, packing, shape.k, rows_, descriptor.negate_a);
  }
  rows_.resize(shape.n);
  read_factor(issue, this->descriptor(issue, lane_u64(registers, product.b_descriptor, lane), "B"),
              descriptor.transpose_b, bytes_of(shape.b));
  b_.read(shape.b, packing, shape.k, rows_, descriptor.negate_b);
  b_.turn(shape.n, shape.k);
  const bool accumulates = (predicate_bits(registers + product.accumulates) >> issue.lane & 1) != 0;
  sums_.assign(std::size_t{shape.m} * shape.n, 0.0f);
  const bool is_integer = shape.d == trace::ProductElement::s32;
  if (accumulates && !is_integer) load_sums(d, product, descriptor);
  if (is_block_scaled(product.kind)) {
    add_scaled(issue, registers, descriptor);
  } else {
    const bool is_exact = bits_of(shape.a) < 32 && shape.a != trace::ProductElement::bf16;
    add_products(sums_.data(), a_.data(), b_.data(), shape, 0, shape.k, is_exact);
  }
  std::array<std::uint32_t, 8> disabled{};
  for (std::size_t i = 0; i < disabled.size(); ++i) {
    if (product.disabled[i] != none) disabled[i] = lane_u32(registers, product.disabled[i], lane);
  }
  store_sums(d, product, descriptor, disabled, accumulates);
}

void TensorMemoryUnit::load_sums(TensorPlace d, const TensorProduct& product,
                                 const ProductDescriptor& descriptor) {
  const trace::ProductStep& shape = descriptor.shape;
  const bool is_half = shape.d == trace::ProductElement::f16;
  const float factor = std::ldexp(1.0f, -static_cast<int>(product.shift_of_d));
  float* sum = sums_.data();
  for (std::uint32_t row = 0; row < shape.m; ++row) {
    TensorMemory& memory = memory_of(row, shape);
    for (std::uint32_t column = 0; column < shape.n; ++column, ++sum) {
      const TensorPlace at = place_of_sum(shape, product, row, column);
      const std::uint32_t word = memory.word(d.lane + at.lane, d.column + at.column);
      *sum =
          (is_half ? half_to_float(static_cast<std::uint16_t>(word)) : std::bit_cast<float>(word)) *
          factor;
    }
  }
}

void TensorMemoryUnit::store_sums(TensorPlace d, const TensorProduct& product,
                                  const ProductDescriptor& descriptor,
                                  std::span<const std::uint32_t> disabled, bool accumulates) {
  const trace::ProductStep& shape = descriptor.shape;
  const float* sum = sums_.data();
  for (std::uint32_t row = 0; row < shape.m; ++row) {
    TensorMemory& memory = memory_of(row, shape);
    const auto kept = disabled.subspan(row / (shape.m / num_sides_) * 4, 4);
    for (std::uint32_t column = 0; column < shape.n; ++column, ++sum) {
      const TensorPlace at = place_of_sum(shape, product, row, column);
      const std::uint32_t lane = d.lane + at.lane;
      if ((kept[lane / 32] >> lane % 32 & 1) != 0) continue;
      std::uint32_t& word = memory.word(lane, d.column + at.column);
      if (shape.d == trace::ProductElement::s32) {
        word = add_integer(*sum, accumulates ? word : 0, descriptor.saturate);
      } else if (shape.d == trace::ProductElement::f16) {
        word = *sum != *sum ? one_nan & 0xffff : float_to_half(*sum);
      } else {
        word = *sum != *sum ? one_nan : std::bit_cast<std::uint32_t>(*sum);
      }
    }
  }
}

void TensorMemoryUnit::add_scaled(const Issue& issue, const std::byte* registers,
                                  const ProductDescriptor& descriptor) {
  const TensorProduct& product = program_.tensor_products[issue.step.detail];
  const trace::ProductStep& shape = descriptor.shape;
  const auto scales_at = [&](const AddressOperand& operand, std::uint32_t rows, const char* what) {
    const TensorPlace found =
        place(issue, address_in(execution_, registers, operand, issue.lane) & 0x3fffffff,
              (rows + 31) / 32, what);
    if (found.lane == 0) return found;
    stop(issue, std::string(what) + " begin at lane " + std::to_string(found.lane) +
                    " of tensor memory, not at 0");
  };
  // Each block of a pair has the scales of its rows of A, and all of B. The halves of the columns
  // of D that are below each other have those of B in their lanes.
  const std::uint32_t rows_of_side = shape.m / num_sides_;
  const std::uint32_t wide = shape.n / folds_of(shape, product);
  const TensorPlace of_a = scales_at(product.scale_a, rows_of_side, "the scales of A");
  const TensorPlace of_b = scales_at(product.scale_b, wide, "the scales of B");
  // Row r is lane r % 32, column r / 32; the other groups of 32 lanes hold the same.
  const auto scale = [&](std::uint32_t side, TensorPlace from, std::uint32_t lane,
                         std::uint32_t row, std::uint32_t byte) {
    const std::uint32_t word = sides_[side].memory->word(lane + row % 32, from.column + row / 32);
    return scale_of(static_cast<std::uint8_t>(word >> 8 * byte), descriptor.scales_are_exponents);
  };
  const std::uint32_t per_scale = product.elements_per_scale;
  std::vector<double> scales_b(shape.n);
  for (std::uint32_t block = 0; block < shape.k / per_scale; ++block) {
    block_sums_.assign(sums_.size(), 0.0f);
    add_products(block_sums_.data(), a_.data(), b_.data(), shape, block * per_scale,
                 (block + 1) * per_scale, true);
    for (std::uint32_t m = 0; m < shape.m; ++m) {
      const std::uint32_t side = m / rows_of_side;
      if (m % rows_of_side == 0) {
        for (std::uint32_t n = 0; n < shape.n; ++n) {
          scales_b[n] =
              scale(side, of_b, n / wide * rows_of_side, n % wide, descriptor.scale_b_byte + block);
        }
      }
      const double scale_a =
          scale(side, of_a, 0, m % rows_of_side, descriptor.scale_a_byte + block);
      float* const sums = sums_.data() + std::size_t{m} * shape.n;
      const float* const products = block_sums_.data() + std::size_t{m} * shape.n;
      for (std::uint32_t n = 0; n < shape.n; ++n) {
        sums[n] = static_cast<float>(sums[n] + products[n] * (scale_a * scales_b[n]));
      }
    }
  }
}

void TensorMemoryUnit::transfer(Warp& warp, const Step& step, std::byte* registers,
                                std::uint32_t mask) {
  const TensorTransfer& transfer = program_.tensor_transfers[step.detail];
  const Issue issue{warp, step, static_cast<std::uint32_t>(std::countr_zero(mask))};
  require_warp(issue, mask);
  take_sides(issue, false);
  const std::uint32_t address = same_address(issue, registers, transfer.address);
  const std::uint32_t wide = transfer.is_packed ? 2 : 1;
  const auto count = static_cast<std::uint32_t>(transfer.values.size());
  const TensorPlace last = place_of_register(transfer.shape, warp_size - 1, count - 1);
  const std::uint32_t columns = (last.column + 1) * wide;
  const TensorPlace first = place(issue, address, columns, "the transfer");
  const bool is_halves = transfer.shape == TensorShape::l16b32x2;
  if (is_halves)
    (void)place(issue, address + transfer.second, columns, "the transfer's second half");
  const std::uint32_t own = warp.number % (tensor_lanes / lanes_of_warp) * lanes_of_warp;
  const bool may_be_upper = transfer.shape != TensorShape::l32b32;
  if (first.lane != own && !(may_be_upper && first.lane == own + 16)) {
    stop(issue, "warp " + std::to_string(warp.number) + " has lanes " + std::to_string(own) + "-" +
                    std::to_string(own + lanes_of_warp - 1) +
                    " of tensor memory; the address names lane " + std::to_string(first.lane) +
                    (may_be_upper ? "; it begins at the first or the 17th of them"
                                  : "; it begins at the first of them"));
  }
  for (std::uint32_t number = 0; number < count; ++number) {
    for (std::uint32_t lane = transfer.first_lane; lane < transfer.end_lane; ++lane) {
      const TensorPlace at = place_of_register(transfer.shape, lane, number);
      const std::uint32_t column =
          first.column + at.column * wide + (is_halves && lane >= 16 ? transfer.second : 0);
      std::uint32_t& low = memory().word(first.lane + at.lane, column);
      const auto l = static_cast<int>(lane);
      if (!transfer.is_store) {
        std::uint32_t word = low;
        if (transfer.is_packed) {
          word = (low & 0xffff) | memory().word(first.lane + at.lane, column + 1) << 16;
        }
        write_lane(registers, transfer.values[number], 4, l, word);
        continue;
      }
      const std::uint32_t word = lane_u32(registers, transfer.values[number], l);
      low = transfer.is_packed ? word & 0xffff : word;
      if (transfer.is_packed) memory().word(first.lane + at.lane, column + 1) = word >> 16;
    }
  }
}

void TensorMemoryUnit::fill(Warp& warp, const Step& step, const std::byte* registers,
                            std::uint32_t mask) {
  const TensorFill& fill = program_.tensor_fills[step.detail];
  if (warp.detector != nullptr) warp.detector->work();
  for_each_lane(mask, [&](std::uint32_t lane) {
    const Issue issue{warp, step, lane};
    take_sides(issue, fill.is_of_pair);
    const TensorPlace to = place(issue, address_in(execution_, registers, fill.address, lane),
                                 fill.bytes / 4, "the copy's target");
    const std::uint32_t last = (fill.rows - 1) % 32 * fill.lane_step +
                               (fill.rows - 1) / 32 * fill.upper_rows +
                               (fill.copies - 1) * fill.copy_step;
    if (to.lane + last >= tensor_lanes) {
      stop(issue, "a copy to lanes " + std::to_string(to.lane) + "-" +
                      std::to_string(to.lane + last) + " of tensor memory, which has 128");
    }
    const MatrixDescriptor from = descriptor(
        issue, lane_u64(registers, fill.descriptor, static_cast<int>(lane)), "the source");
    for (std::uint32_t i = 0; i < fill.rows * num_sides_; ++i) {
      const std::uint32_t row = i % fill.rows;
      const Side& side = sides_[i / fill.rows];
      const std::uint32_t target = to.lane + row % 32 * fill.lane_step + row / 32 * fill.upper_rows;
      for (std::uint32_t at = 0; at < fill.bytes; at += tensor_piece_bytes) {
        std::array<std::byte, tensor_piece_bytes> piece;
        const std::byte* const source = shared_piece(issue, side.window + from.by_rows(row, at));
        if (fill.format == TensorFill::Format::bytes) {
          std::memcpy(piece.data(), source, tensor_piece_bytes);
        } else {
          piece = spread_numbers(source, fill.format);
        }
        for (std::uint32_t copy = 0; copy < fill.copies; ++copy) {
          std::memcpy(&side.memory->word(target + copy * fill.copy_step, to.column + at / 4),
                      piece.data(), tensor_piece_bytes);
        }
      }
    }
  });
  recorder_.record_wavefronts(warp, step, mask, wavefronts_of(fill.rows * fill.bytes));
}

void TensorMemoryUnit::shift(Warp& warp, const Step& step, const std::byte* registers,
                             std::uint32_t mask) {
  for_each_lane(mask, [&](std::uint32_t lane) {
    const Issue issue{warp, step, lane};
    const TensorShift& shift = program_.tensor_shifts[step.detail];
    take_sides(issue, shift.is_of_pair);
    const TensorPlace first = place(issue, address_in(execution_, registers, shift.address, lane),
                                    factor_columns, "the shift");
    if (first.lane % lanes_of_warp != 0) {
      stop(issue, "a shift from lane " + std::to_string(first.lane) +
                      " of tensor memory on; it begins at a multiple of 32");
    }
    for (std::uint32_t i = 0; i < (lanes_of_warp - 1) * num_sides_; ++i) {
      TensorMemory& memory = *sides_[i / (lanes_of_warp - 1)].memory;
      const std::uint32_t row = first.lane + i % (lanes_of_warp - 1);
      std::memcpy(&memory.word(row, first.column), &memory.word(row + 1, first.column),
                  factor_bytes);
    }
  });
}

void TensorMemoryUnit::commit(Warp& warp, const Step& step, const std::byte* registers,
                              std::uint32_t mask) {
  const TensorCommit& commit = program_.tensor_commits[step.detail];
  if (warp.detector != nullptr) warp.detector->work();
  recorder_.record_phase(
      warp, step, mask, barriers_.count_completion(registers, commit.barrier, mask, commit.blocks));
  for_each_lane(mask, [&](std::uint32_t lane) {
    const std::uint64_t address = address_in(execution_, registers, commit.barrier, lane);
    if (commit.blocks == none) {
      barriers_.arrive_once(warp, step, lane, commit.barrier.space, address);
      return;
    }
    const std::uint32_t ranks = lane_u32(registers, commit.blocks, static_cast<int>(lane)) & 0xffff;
    const std::uint64_t present = cluster_blocks(execution_.cluster);
    if (ranks >> present != 0) {
      stop({warp, step, lane}, "an arrival in the blocks of the mask " + hexadecimal(ranks) +
                                   " of a cluster of " + std::to_string(present));
    }
    const std::uint64_t shared =
        commit.barrier.space == AddressSpace::generic ? address - shared_window : address;
    for_each_lane(ranks, [&](std::uint32_t rank) {
      barriers_.arrive_once(warp, step, lane, AddressSpace::shared,
                            cluster_address(shared % trace::window_bytes, rank));
    });
  });
}

void TensorMemoryUnit::check_end() {
  const TensorMemory* const memory = execution_.block.tensors.get();
  if (memory == nullptr) return;
  for (const TensorMemory::Allocation& one : memory->allocations()) {
    execution_.need_turn();  // the text is that of the first occurrence
    Note& note = faults_.book().note("tensor memory", one.made_by,
                                     [&] { return Faults::line_of(*one.made_by); });
    if (note.count++ > 0) continue;
    note.place = one.place;
    note.what = "the block ends with these " + std::to_string(one.columns) +
                " columns of tensor memory, which tcgen05.dealloc must release";
  }
}

}  // namespace warpstack::simt
