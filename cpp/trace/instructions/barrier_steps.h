#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace warpstack::trace {

/// Barriers of a thread block (PTX ISA, "bar{.cta}, barrier{.cta}").
inline constexpr std::uint32_t num_block_barriers = 16;

/// What an instruction does at one of the barriers of its thread block. Where that is another one
/// than barrier 0 of all threads, its opcode ends with the number and, unless they are all, the
/// threads that are awaited: `bar.sync.id1.128`, `BAR.ARV.id2.256`, `barrier.cta.sync.id3`.
struct BarrierStep {
  enum class Kind : std::uint8_t {
    none,
    wait,    ///< its warp arrives, and waits
    arrive,  ///< its warp arrives, and goes on
    part,    ///< lanes arrive at a wait before others of their warp: `bar.sync.id1.part`
  };
  Kind kind = Kind::none;
  std::uint8_t number = 0;
  std::uint32_t threads = 0;  ///< 0: all of the block

  bool operator==(const BarrierStep&) const = default;
};

/// The opcode of an instruction that does such a step, which is not `none`.
std::string barrier_opcode(const std::string& opcode, const BarrierStep& step);

/// The step of an instruction. A wait whose opcode has no such end, as in traces before version 0.3
/// and of other programs, is at barrier 0 of all threads, and an arrival without it is none.
BarrierStep barrier_step(std::string_view opcode);

/// What the warps of a block have done at its barriers.
class BlockBarriers {
 public:
  /// A warp arrives. The first one after a barrier was complete says for how many.
  void arrive(const BarrierStep& step);

  /// Whether a barrier has its warps. One of all threads does not wait for warps that have exited,
  /// of which `unfinished` are left.
  [[nodiscard]] bool is_complete(std::uint32_t number, std::uint32_t unfinished) const {
    const Barrier& barrier = barriers_[number];
    return barrier.warps > 0 && barrier.warps >= awaited(number, unfinished);
  }
  /// It lets its warps go, and begins anew.
  void clear(std::uint32_t number) { barriers_[number] = {}; }

  [[nodiscard]] std::uint32_t arrived(std::uint32_t number) const {
    return barriers_[number].warps;
  }
  /// The warps that a barrier needs.
  [[nodiscard]] std::uint32_t awaited(std::uint32_t number, std::uint32_t unfinished) const;

  /// `barrier 1, at which 2 of 4 warps have arrived`
  [[nodiscard]] std::string describe(std::uint32_t number, std::uint32_t unfinished) const;

 private:
  struct Barrier {
    std::uint32_t warps = 0;    ///< that have arrived
    std::uint32_t threads = 0;  ///< that are awaited; 0: all of the block
  };
  std::array<Barrier, num_block_barriers> barriers_{};
};

}  // namespace warpstack::trace
