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

/// The kind of an access. Strong ones (volatile, relaxed, acquire, release, atomic) do not race
/// with each other.
enum class RaceKind : std::uint8_t { load, store, strong_load, strong_store };
inline constexpr std::size_t num_race_kinds = 4;

/// One lane's access, as RaceCheck sees it.
struct RaceAccess {
  std::uint64_t address = 0;  ///< generic
  std::uint32_t bytes = 0;    ///< at most 32
  /// Bytes whose value the access changes, one bit each. A write that does not change a byte does
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

/// Describes the earlier of two accesses without an order between them.
struct Race {
  std::uint64_t address = 0;  ///< of the first byte that both touch
  RaceKind kind = RaceKind::load;
  std::uint32_t warp = 0;  ///< or another actor
  std::uint32_t lane = 0;
  std::uint32_t site = 0;
};

/// Memory that all checks of a launch may take together.
struct RaceBudget {
  std::uint64_t used = 0;
  std::uint64_t limit = std::uint64_t{1} << 30;
};

/// Finds unordered accesses of different warps of a block to one byte, at least one of them a
/// write. It keeps a vector clock per warp, and the last accesses of each kind per byte (FastTrack,
/// Flanagan and Freund 2009). Lanes of one warp are taken as ordered.
///
/// Barriers order accesses: all that a warp did before it arrived comes before what the waiting
/// warps do afterwards. So do release and acquire patterns: a strong write that releases or follows
/// a fence, and a strong read of its value that acquires or precedes a fence.
///
/// Asynchronous operations belong to actors of their own, whose numbers follow those of the warps:
/// one for the products of each four warps, and one for the copies that an mbarrier announces (many
/// barriers share actors). An operation begins after its warp's earlier accesses; a warp is ordered
/// after it by wait_for_products(), or by acquiring the barrier of complete_copy().
class RaceCheck {
 public:
  /// `has_async` says whether there are products of four warps, or copies that an mbarrier
  /// announces.
  RaceCheck(std::uint32_t num_warps, bool has_async, RaceBudget& budget);
  ~RaceCheck();
  RaceCheck(const RaceCheck&) = delete;
  RaceCheck& operator=(const RaceCheck&) = delete;

  /// Forgets all, for the next block.
  void begin_block();

  /// Notes an access. Returns its races, one per other instruction, valid until the next call.
  /// Throws InputError beyond the budget.
  std::span<const Race> access(const RaceAccess& access);
  /// Memory has a new owner: earlier accesses do not count.
  void forget(std::uint64_t address, std::uint64_t bytes);

  void fence(std::uint32_t warp);
  /// A warp comes to a barrier.
  void arrive(std::uint32_t warp, std::uint32_t barrier);
  /// A warp that waited there goes on. `all` says that the barrier is for all warps, so that
  /// finished ones count as arrived.
  void pass(std::uint32_t warp, std::uint32_t barrier, bool all);
  /// The barrier is complete: its next use starts.
  void reset(std::uint32_t barrier);
  void end_warp(std::uint32_t warp);

  /// A warp begins a copy that the mbarrier at an offset in shared memory announces. Returns the
  /// actor.
  std::uint32_t begin_copy(std::uint32_t warp, std::uint64_t barrier);
  /// The copies of an actor have arrived; a warp that acquires the barrier comes after them.
  void complete_copy(std::uint32_t actor, std::uint64_t barrier, std::uint32_t bytes);
  /// A warp begins its part of a product. Returns the actor that reads.
  std::uint32_t begin_product(std::uint32_t warp);
  [[nodiscard]] bool is_copier(std::uint32_t actor) const { return actor >= first_copier_; }
  void commit_products(std::uint32_t warp);
  /// All groups that the warp has committed, except the last `pending`, are done in all warps that
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
  /// special times mean that the number is an index.
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
  /// An actor begins something for a warp, ordered after what the warp has done.
  void follow(std::uint32_t actor, std::uint32_t warp);
  void acquire(const RaceAccess& access);
  void release(const RaceAccess& access);
  /// A plain store removes what the overwritten values carry.
  void overwrite(const RaceAccess& access);
  Cell& cell_of(std::uint64_t address);
  /// Divides a word's cell among its bytes.
  void split(Cell& cell);
  void touch(Cell& cell, const RaceAccess& access, std::uint64_t address, bool changes);
  bool is_ordered(const Record& record, std::uint32_t warp) const;
  /// The record, if the warp's current access is not ordered after it; else null.
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
  std::array<Clock, max_warps> observed_{};  ///< releases that a warp has read without acquiring
  std::array<Clock, num_barriers> barriers_{};
  Clock ended_{};  ///< of finished warps
  /// Times of a warp's products at its commits.
  std::array<std::vector<std::uint32_t>, max_warps> commits_;
  std::unordered_map<std::uint64_t, std::uint32_t> copiers_;  ///< by offset of the mbarrier
  /// What the value at an address carries to warps that acquire it.
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
