#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/mixed_network.h"

namespace warpstack::model {

/// What a thread block takes of an SM, or an SM has.
struct SmRoom {
  double blocks = 0;
  double warps = 0;
  double threads = 0;
  double registers = 0;
  double shared_memory = 0;

  /// How many blocks with this need fit.
  [[nodiscard]] double times(const SmRoom& need) const;
  void take(const SmRoom& need, double count);
};

/// A kernel as ConcurrentGrids plays it.
struct GridClass {
  double duration = 0;  ///< of a launch alone, in cycles
  double ends = 0;      ///< part of it in which a launch alone no longer takes its places
  double blocks = 1;
  double instructions = 1;                   ///< of a warp
  SmRoom need;                               ///< of a block
  std::optional<CustomerClass> customers{};  ///< none: nobody delays it, nor does it delay anybody
};

/// Launches that run at the same time, block by block, each block as fast as the network of all
/// that run says.
///
/// One of the grids that may start is in line: that of the highest priority, of these the first
/// that came. Its blocks take the room that is free, where it got free first, SM after SM; then
/// those of the next one. Blocks start one after the other: those of the next grid
/// wait for that. The room of a block that ends is free a while later, or at once where
/// nothing is left under way. At most so many grids are under way at a time. These are the rules
/// of timing::GridDispatcher.
///
/// All blocks of a grid are alike, and a launch that is alone takes `duration`. At its end come
/// `ends`, when others have its places already. What else the network does not know of it (blocks
/// that differ, starts) is spread over its instructions as time that nobody else makes longer.
/// Where the network takes longer, all of its times are made shorter alike. No launch ends earlier
/// after its start than alone.
class ConcurrentGrids {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct Machine {
    double sms = 1;
    SmRoom room;                  ///< of an SM
    double concurrent_grids = 0;  ///< 0: no limit
    double mshrs = 1;             ///< of an SM
    double replacement = 0;       ///< cycles from the end of a block until others have its room
    double interval = 0;          ///< cycles between the starts of two blocks
  };

  ConcurrentGrids(std::vector<GridClass> classes, const Machine& machine);

  /// A grid may start from now on. Returns its number: they count from 0. The larger priority is
  /// served first.
  std::size_t add(std::size_t of_class, std::int32_t priority);
  /// When something happens next, if nothing is added before; never: nothing runs.
  [[nodiscard]] double next();
  /// Goes on to a time, no later than next().
  void advance(double time);
  /// Grids that have ended since the last call, in the order of their ends.
  std::vector<std::size_t> take_ended();

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double start_of(std::size_t grid) const { return grids_[grid].start; }
  [[nodiscard]] double end_of(std::size_t grid) const { return grids_[grid].end; }

  /// What makes a launch that is alone take its duration.
  struct Pace {
    double beside = 0;  ///< cycles of an instruction beside the network
    double scale = 1;   ///< of all times
    double ends = 0;    ///< `GridClass::ends`, as far as its network leaves them
  };
  [[nodiscard]] const Pace& pace_of(std::size_t of_class) const { return paces_[of_class]; }

 private:
  struct Grid {
    std::size_t of_class = 0;
    std::int32_t priority = 0;
    double unstarted = 0;  ///< blocks
    double running = 0;
    double start = never;
    double end = never;
    double ending = never;  ///< when it ends, as all its places are free
  };
  /// Blocks of one grid that started together on each SM of a group.
  struct Cohort {
    std::size_t grid = 0;
    double blocks = 0;     ///< on an SM
    double rounds = 1;     ///< so many follow one another in each place
    double left = 0;       ///< instructions of a warp
    double rate = 0;       ///< instructions of a warp per cycle
    double until = never;  ///< its blocks have ended, and others have their room then
    bool is_new = true;

    [[nodiscard]] bool has_ended() const { return until != never; }
  };
  /// SMs that hold the same.
  struct Group {
    double sms = 1;
    SmRoom room;
    double free_since = 0;
    /// When they were last given a block, or had room: of those with room since one time the one
    /// with the lowest number is next.
    std::uint64_t number = 0;
    std::vector<Cohort> cohorts;
  };

  [[nodiscard]] const GridClass& class_of(std::size_t grid) const {
    return classes_[grids_[grid].of_class];
  }
  /// Puts the machine at rest.
  void rest();
  double time_alone(std::size_t of_class);
  void find_pace(std::size_t of_class);
  /// Plays the grid that was alone until now.
  void play_lone();
  /// Gives blocks to SMs and finds how fast all go, if something has changed.
  void settle();
  [[nodiscard]] std::size_t in_line() const;
  /// Gives blocks of a grid to the SMs whose turn it is; false where none has room.
  bool give(std::size_t grid);
  /// Gives back the room of blocks that have ended.
  void clear(Cohort& cohort, Group& group);
  void merge_groups();
  void find_rates();
  void step(double time);

  std::vector<GridClass> classes_;
  std::vector<Pace> paces_;       ///< by class
  std::vector<double> alone_;     ///< cycles of a launch that is alone, by class
  std::vector<double> capacity_;  ///< blocks that the machine holds at once, by class
  Machine machine_;
  std::vector<Grid> grids_;
  std::vector<std::size_t> ending_;   ///< grids that have left their places and not ended
  std::vector<std::size_t> waiting_;  ///< grids with blocks that have not started, as they came
  std::vector<Group> groups_;
  std::uint64_t number_ = 0;
  double under_way_ = 0;  ///< grids that have started and not ended
  double now_ = 0;
  bool has_changed_ = false;
  std::size_t last_given_ = nobody;  ///< the grid whose blocks went last
  double line_free_ = 0;             ///< when the last of them has started
  /// The grid that has been alone since `lone_since_`, which is not played; or `nobody`.
  std::size_t lone_ = nobody;
  double lone_since_ = 0;
  std::vector<std::size_t> ended_;
  std::map<std::vector<double>, std::vector<double>> known_;  ///< times of networks

  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
};

}  // namespace warpstack::model
