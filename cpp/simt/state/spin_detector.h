#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace warpstack::simt {

struct Step;
struct Warp;

/// What watched warps have done recently.
struct Sightings {
  bool news = false;     ///< an access that its warp had not made before with these values
  bool changes = false;  ///< memory has changed
};

/// Finds out whether a warp that has run for long only waits until another one changes memory: then
/// it repeats a loop with the same accesses, and finds the same values.
class SpinDetector {
 public:
  /// The whole state of the warp is compared in at most `most_states` rounds of a loop.
  SpinDetector(Sightings& sightings, std::uint32_t most_states)
      : sightings_(sightings), most_states_(most_states) {}

  // ---- what the warp does ----

  /// An access to memory begins; `access` numbers it in the program.
  void begin_access(std::uint32_t access, std::uint32_t mask);
  /// The value that a lane finds, and the one that it leaves.
  void before(std::uint64_t address, const std::byte* place, std::uint32_t bytes);
  void after(const std::byte* place, std::uint32_t bytes) { after_ = mix(after_, place, bytes); }
  /// `is_look` says that it reads what other blocks may have written, without a cache.
  void end_access(const Step& step, bool is_look);
  /// The warp does something that is not followed: prints, or uses a matrix or a texture.
  void work() { begin_again(); }
  /// The warp goes back to step `target`.
  void circle(const Warp& warp, std::uint32_t target);
  /// The warp comes to a barrier of its block.
  void meet() {
    ++circles_;
    ++meetings_;
  }

  // ---- what follows from it ----

  /// Forgets how often the warp went round, but not which accesses are known.
  void begin_again();
  /// Whether the warp has gone round without news for some time.
  [[nodiscard]] bool circles() const {
    return circles_ >= few_circles && (looks_ > 0 || meetings_ > 0 || recurs());
  }
  /// Whether the warp waits until others change memory.
  [[nodiscard]] bool spins() const { return circles_ >= few_circles && (looks_ > 0 || recurs()); }
  /// Whether its registers were the same at the same step before: then it never leaves its loop
  /// unless memory changes.
  [[nodiscard]] bool recurs() const { return period_ > 0 && circles_ - last_ <= period_; }
  [[nodiscard]] bool recurs_for(std::uint32_t circles) const {
    return circles_ >= circles && recurs();
  }
  /// Whether there was a strong look at memory since the warp has been followed.
  [[nodiscard]] bool has_looked() const { return has_looked_; }
  /// The last access that read (null without one), and its first address.
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

  std::uint64_t access_ = 0;  ///< the current one, without its values
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
