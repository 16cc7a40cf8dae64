#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace warpstack::simt {

/// How an access stands beside others of the same address. Strong ones (volatile, relaxed, acquire,
/// release, atomic) do not race with each other.
enum class RaceKind : std::uint8_t { load, store, strong_load, strong_store };
inline constexpr std::size_t num_race_kinds = 4;

/// One lane's access, as RaceCheck sees it.
struct RaceAccess {
  std::uint64_t address = 0;  ///< generic
  std::uint32_t bytes = 0;    ///< at most 32
  /// Bytes whose value the access changes, one bit each: a write that leaves a byte as it is does
  /// not race with another write of it.
  std::uint32_t changes = ~std::uint32_t{0};
  RaceKind kind = RaceKind::load;
  bool atomic = false;  ///< reads and writes
  bool acquires = false;
  bool releases = false;
  std::uint32_t warp = 0;  ///< or another actor: see RaceCheck
  std::uint32_t lane = 0;
  std::uint32_t site = 0;  ///< the instruction, below max_race_sites
};
inline constexpr std::uint32_t max_race_sites = std::uint32_t{1} << 21;

/// Two accesses without an order between them; this is the earlier one.
struct Race {
  std::uint64_t address = 0;  ///< of the first byte that both touch
  RaceKind kind = RaceKind::load;
  std::uint32_t warp = 0;  ///< or another actor
  std::uint32_t lane = 0;
  std::uint32_t site = 0;
};

/// Memory that the checks of a launch may take together.
struct RaceBudget {
  std::uint64_t used = 0;
  std::uint64_t limit = std::uint64_t{1} << 30;
};

/// Finds accesses of different warps of one block to one byte, at least one of them a write, that
/// nothing orders. It keeps a vector clock per warp, and the last accesses of each kind per byte
/// (FastTrack, Flanagan and Freund 2009). Lanes of one warp are taken as ordered.
///
/// What orders: barriers (all that happened before a warp arrived comes before what a warp does
/// that waited there), and release and acquire patterns: a strong write that releases, or that
/// follows a fence, and a strong read of its value that acquires, or that a fence follows.
///
/// What goes on without the warp that has begun it is done by actors of its own, whose numbers
/// follow those of the warps: one for the products of each four warps, and one for the copies that
/// an mbarrier announces (barriers share actors where there are many). An operation begins after
/// what its warp has done before; a warp comes after it by wait_for_products(), or by acquiring the
/// barrier at which complete_copy() has been.
class RaceCheck {
 public:
  /// `has_async`: there are products of four warps, or copies that an mbarrier announces.
  RaceCheck(std::uint32_t num_warps, bool has_async, RaceBudget& budget);
  ~RaceCheck();
  RaceCheck(const RaceCheck&) = delete;
  RaceCheck& operator=(const RaceCheck&) = delete;

  /// Forgets all, for the next block.
  void begin_block();

  /// Notes an access; the races that it makes, one for each other instruction, until the next call.
  /// Throws InputError beyond the budget.
  std::span<const Race> access(const RaceAccess& access);
  /// Memory that a new owner gets: what came before does not count.
  void forget(std::uint64_t address, std::uint64_t bytes);

  void fence(std::uint32_t warp);
  /// A warp comes to a barrier.
  void arrive(std::uint32_t warp, std::uint32_t barrier);
  /// A warp that waited there goes on. `all`: the barrier is for all warps, so that those that have
  /// ended count as if they had come.
  void pass(std::uint32_t warp, std::uint32_t barrier, bool all);
  /// The barrier is complete: its next use starts.
  void reset(std::uint32_t barrier);
  void end_warp(std::uint32_t warp);

  /// A warp begins a copy that the mbarrier at an offset in shared memory announces. Returns the
  /// actor.
  std::uint32_t begin_copy(std::uint32_t warp, std::uint64_t barrier);
  /// The copies of an actor have arrived: who acquires the barrier comes after them.
  void complete_copy(std::uint32_t actor, std::uint64_t barrier, std::uint32_t bytes);
  /// A warp begins its part of a product. Returns the actor that reads.
  std::uint32_t begin_product(std::uint32_t warp);
  [[nodiscard]] bool is_copier(std::uint32_t actor) const { return actor >= first_copier_; }
  void commit_products(std::uint32_t warp);
  /// All groups that the warp has committed but the last `pending` ones are done, in all warps that
  /// multiply with it.
  void wait_for_products(std::uint32_t warp, std::uint64_t pending);

 private:
  static constexpr std::uint32_t max_warps = 32;
  static constexpr std::uint32_t warps_of_product = 4;
  static constexpr std::uint32_t num_copiers = 16;
  static constexpr std::uint32_t max_actors =
      max_warps + max_warps / warps_of_product + num_copiers;
  static constexpr std::uint32_t num_barriers = 16;
  using Clock = std::array<std::uint32_t, max_actors>;

  /// The last access of one kind: its actor's time, and site, lane and actor in one number. Two
  /// times are marks: the number is an index then.
  struct Record {
    std::uint32_t time = 0;  ///< 0: none
    std::uint32_t where = 0;
  };
  static constexpr std::uint32_t by_warp = ~std::uint32_t{0};        ///< in `vectors_`
  static constexpr std::uint32_t by_byte = ~std::uint32_t{0} - 1;    ///< in `splits_`
  static constexpr std::uint32_t last_time = ~std::uint32_t{0} - 2;  ///< of a clock

  /// The last accesses of a word, or of a byte of it.
  using Cell = std::array<Record, num_race_kinds>;
  static constexpr std::uint64_t page_words = 256;
  using Page = std::array<Cell, page_words>;

  static void join(Clock& to, const Clock& from);
  void tick(std::uint32_t warp);
  /// An actor begins something for a warp: it comes after what the warp has done.
  void follow(std::uint32_t actor, std::uint32_t warp);
  void acquire(const RaceAccess& access);
  void release(const RaceAccess& access);
  /// A plain store takes away what the values under it carry.
  void overwrite(const RaceAccess& access);
  Cell& cell_of(std::uint64_t address);
  /// Shares a word's cell out among its bytes.
  void split(Cell& cell);
  void touch(Cell& cell, const RaceAccess& access, std::uint64_t address, bool changes);
  bool is_ordered(const Record& record, std::uint32_t warp) const;
  /// A record that is not ordered before `warp` does what it does now.
  const Record* unordered(const Record& record, std::uint32_t warp) const;
  void put(Record& record, Record last, std::uint32_t warp);
  void take(std::uint64_t bytes);

  std::uint32_t num_warps_;
  std::uint32_t first_copier_;
  std::uint32_t num_actors_;
  RaceBudget& budget_;
  std::uint64_t taken_ = 0;

  std::array<Clock, max_actors> clocks_{};
  std::array<Clock, max_warps> fenced_{};    ///< at a warp's last fence
  std::array<Clock, max_warps> observed_{};  ///< releases that a warp read without acquiring
  std::array<Clock, num_barriers> barriers_{};
  Clock ended_{};  ///< of warps that have ended
  /// Times of a warp's products at its commits.
  std::array<std::vector<std::uint32_t>, max_warps> commits_;
  std::unordered_map<std::uint64_t, std::uint32_t> copiers_;  ///< by offset of the mbarrier
  /// What the value at an address carries to those who acquire it.
  struct Release {
    std::uint32_t bytes = 0;
    Clock clock{};
  };
  std::unordered_map<std::uint64_t, Release> releases_;

  std::unordered_map<std::uint64_t, Page*> pages_;
  std::vector<std::unique_ptr<Page>> pool_;
  std::size_t pool_used_ = 0;
  struct Recent {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };
  std::array<Recent, 64> recent_{};
  std::vector<Record> vectors_;  ///< `num_actors_` each
  std::deque<std::array<Cell, 4>> splits_;
  std::vector<Race> races_;  ///< of the last access
};

}  // namespace warpstack::simt
