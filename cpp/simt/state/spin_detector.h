#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace warpstack::simt {

struct Step;
struct Warp;

/// What warps that are watched have done of late.
struct Sightings {
  bool news = false;     ///< an access that its warp had not made before, or had with other values
  bool changes = false;  ///< memory has other contents
};

/// Follows a warp that has run for long: does it only wait until somebody else changes memory? It
/// goes round a loop then, makes the same accesses again and again, and finds the same values.
class SpinDetector {
 public:
  /// `most_states`: rounds of a loop in which the whole state of the warp is looked at.
  SpinDetector(Sightings& sightings, std::uint32_t most_states)
      : sightings_(sightings), most_states_(most_states) {}

  // ---- what the warp does ----

  /// An access to memory begins; `access` numbers it in the program.
  void begin_access(std::uint32_t access, std::uint32_t mask);
  /// What a lane finds, and what it leaves.
  void before(std::uint64_t address, const std::byte* place, std::uint32_t bytes);
  void after(const std::byte* place, std::uint32_t bytes) { after_ = mix(after_, place, bytes); }
  /// `is_look`: it reads what other blocks may have written, without a cache.
  void end_access(const Step& step, bool is_look);
  /// Something whose outcome is not followed: a printed line, a matrix, a texture.
  void work() { begin_again(); }
  /// The warp goes back to step `target`.
  void circle(const Warp& warp, std::uint32_t target);
  /// The warp comes to a barrier of its block.
  void meet() {
    ++circles_;
    ++meetings_;
  }

  // ---- what follows from it ----

  /// Forgets how often the warp went round, and keeps which accesses are known.
  void begin_again();
  /// It has gone round without news for some time.
  [[nodiscard]] bool circles() const {
    return circles_ >= few_circles && (looks_ > 0 || meetings_ > 0 || recurs());
  }
  /// It waits for what others do with memory.
  [[nodiscard]] bool spins() const { return circles_ >= few_circles && (looks_ > 0 || recurs()); }
  /// Its registers have been the same at the same step before: unless memory changes, it never
  /// leaves its loop.
  [[nodiscard]] bool recurs() const { return period_ > 0 && circles_ - last_ <= period_; }
  [[nodiscard]] bool recurs_for(std::uint32_t circles) const {
    return circles_ >= circles && recurs();
  }
  /// A strong look at memory since it began to follow the warp.
  [[nodiscard]] bool has_looked() const { return has_looked_; }
  /// The last access that read, null without one, and the first address of it.
  [[nodiscard]] const Step* look() const { return look_; }
  [[nodiscard]] std::uint64_t look_address() const { return look_address_; }

 private:
  static constexpr std::uint32_t few_circles = 8;
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
  }
  static std::uint64_t mix(std::uint64_t hash, const std::byte* bytes, std::size_t count);

  Sightings& sightings_;
  const std::uint32_t most_states_;
  std::unordered_set<std::uint64_t> known_;  ///< accesses, with their values

  std::uint64_t access_ = 0;  ///< the one at hand, without its values
  std::uint64_t before_ = 0;  ///< values that it found
  std::uint64_t after_ = 0;   ///< values that it left
  std::uint64_t address_ = 0;
  bool is_first_lane_ = false;

  // Since the last news:
  std::uint32_t circles_ = 0;
  std::uint32_t meetings_ = 0;
  std::uint32_t looks_ = 0;
  std::uint64_t state_ = 0;   ///< of the warp, at a circle whose number is a power of two
  std::uint32_t taken_ = 0;   ///< the number of that circle
  std::uint32_t last_ = 0;    ///< the last circle with the same state
  std::uint32_t period_ = 0;  ///< circles between two of the same state; 0: not seen

  bool has_looked_ = false;
  const Step* look_ = nullptr;
  std::uint64_t look_address_ = 0;
};

}  // namespace warpstack::simt
