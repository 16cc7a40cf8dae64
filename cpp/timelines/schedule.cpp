#include "timelines/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "common/error.h"
#include "timelines/connections.h"

namespace warpstack::timelines {
namespace {

/// Places are shares of a GPU: sums of them that are less apart than this are equal.
constexpr double share_slack = 1e-9;

/// What happens at a time; of those at the same time the first kind comes first, then the first
/// row.
enum class Happens : std::uint8_t { end, blocks_end, trigger, call, ready };

struct Event {
  double time;
  Happens what;
  std::int32_t row;           ///< or the thread of a call
  std::size_t chunk = 0;      ///< of blocks that end, or trigger
  std::uint32_t version = 0;  ///< of the end of the chunk, or of the copy between host and GPU
  bool operator>(const Event& other) const {
    return std::tie(time, what, row) > std::tie(other.time, other.what, other.row);
  }
};

/// Blocks of a kernel that started together.
struct Chunk {
  std::int32_t row = nobody;  ///< none: the place is free
  double share = 0;           ///< of the GPU's places
  double blocks = 0;
  double end = 0;  ///< if nothing changes
  double speed = 1;
  double trigger = 0;          ///< when all of them have triggered
  double wait = 0;             ///< when the first wave waits
  bool has_triggered = false;  ///< or nobody needs to know
  bool is_held = false;        ///< its end is not known
  std::uint32_t version = 0;
};

/// The copy that an engine between host and GPU does.
struct Copy {
  std::int32_t row = nobody;  ///< none: it is idle
  double end = 0;             ///< if nothing changes
  double speed = 1;
  std::uint32_t version = 0;
};

/// An operation in the queue of its engine; the smallest goes first.
struct Turn {
  std::int32_t priority;
  double ready;
  std::int32_t row;
  bool operator>(const Turn& other) const {
    return std::tie(priority, ready, row) > std::tie(other.priority, other.ready, other.row);
  }
};

template <typename T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

/// The rows that wait for each row: lists the other way round.
struct Followers {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> rows;
  std::vector<std::uint8_t> early;  ///< whether they wait for its trigger; empty: none does

  explicit Followers(const RowLists& lists, std::size_t count,
                     std::span<const std::uint8_t> is_early = {})
      : first(count + 1, 0), early(is_early.size()) {
    for (const std::int32_t row : lists.rows) ++first[static_cast<std::size_t>(row) + 1];
    for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
    rows.resize(lists.rows.size());
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < count; ++i) {
      auto of_list = static_cast<std::size_t>(lists.first[i]);
      for (const std::int32_t row : lists.of(i)) {
        const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(row)]++);
        rows[place] = static_cast<std::int32_t>(i);
        if (!early.empty()) early[place] = is_early[of_list++];
      }
    }
  }
  std::span<const std::int32_t> of(std::size_t i) const {
    return std::span(rows).subspan(static_cast<std::size_t>(first[i]),
                                   static_cast<std::size_t>(first[i + 1] - first[i]));
  }
  /// Calls `visit` with each follower that waits for the trigger, or for the end.
  template <typename Visit>
  void visit(std::size_t i, bool for_trigger, Visit visit_row) const {
    for (std::int64_t place = first[i]; place < first[i + 1]; ++place) {
      const auto at = static_cast<std::size_t>(place);
      if ((!early.empty() && early[at] != 0) == for_trigger) visit_row(rows[at]);
    }
  }
};

void check_lists(const RowLists& lists, std::size_t count, const char* name) {
  bool fits = lists.first.size() == count + 1 && lists.first.front() == 0 &&
              lists.first.back() == static_cast<std::int64_t>(lists.rows.size());
  for (std::size_t i = 0; fits && i < count; ++i) fits = lists.first[i] <= lists.first[i + 1];
  if (!fits) throw InputError(std::string(name) + ": the lists do not belong to the operations");
  for (const std::int32_t row : lists.rows) {
    if (row < 0 || static_cast<std::size_t>(row) >= count) {
      throw InputError(std::string(name) + ": there is no operation " + std::to_string(row));
    }
  }
}

class Player {
 public:
  Player(const Operations& operations, const Device& device)
      : op_(operations),
        device_(device),
        count_(operations.thread.size()),
        followers_(operations.after, count_, operations.early),
        waiting_hosts_(operations.waits, count_),
        begun_(operations.begins, count_),
        connections_(operations.connection),
        pending_(count_),
        host_pending_(count_, 0),
        begins_left_(count_, 0),
        begins_(count_, 0.0),
        ended_(count_, 0),
        is_ready_(count_, 0),
        blocks_left_(operations.blocks.begin(), operations.blocks.end()),
        chunks_(count_, 0),
        untriggered_(count_, 0),
        has_triggered_(count_, 1),
        unended_(count_, 0),
        is_done_(count_, 0),
        waited_(count_, 0.0) {
    for (auto* times :
         {&made_.host_start, &made_.host_end, &made_.ready, &made_.start, &made_.end}) {
      times->assign(count_, -1.0);
    }
    made_.why.assign(count_, static_cast<std::uint8_t>(Why::nothing));
    made_.released_by.assign(count_, nobody);
    made_.freed_by.assign(count_, nobody);
    made_.host_waited_for.assign(count_, nobody);
    made_.held_by.assign(count_, nobody);
    last_on_.fill(nobody);
    for (std::size_t i = 0; i < count_; ++i) {
      // Its call is what it waits for beside those.
      pending_[i] =
          static_cast<std::int32_t>(op_.after.of(i).size()) + (op_.thread[i] >= 0 ? 1 : 0);
      if (op_.thread[i] >= 0) add_call(i);
      // The call before it in its thread is what it waits for beside those.
      begins_left_[i] = static_cast<std::int32_t>(op_.begins.of(i).size()) + 1;
      if (device_.in_order && has_turn(i)) order_[op_.engine[i]].push_back(row_of(i));
      followers_.visit(i, true, [&](std::int32_t row) {
        ++unended_[static_cast<std::size_t>(row)];
        has_triggered_[i] = 0;
      });
    }
  }

  Schedule run(const InterruptCheck& interrupt) {
    for (std::size_t t = 0; t < calls_.size(); ++t) call_next(t, 0.0);
    for (std::size_t i = 0; i < count_; ++i) {
      if (op_.has_device[i] && pending_[i] == 0) become_ready(i, 0.0);
    }
    std::size_t steps = 0;
    while (!events_.empty()) {
      const double now = events_.top().time;
      // All that happens now, and what follows from it without time, before engines choose.
      while (!events_.empty() && events_.top().time <= now) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
        if (interrupt && (++steps & 0xffff) == 0) interrupt();
      }
      const bool touches_link = touched_[to_gpu] || touched_[to_host];
      for (std::size_t engine = 0; engine < num_engines; ++engine) {
        if (touched_[engine]) dispatch(engine, now);
      }
      if (touches_link) set_link_speeds(now);
    }
    check_all_ended();
    return std::move(made_);
  }

 private:
  static constexpr auto kernels = static_cast<std::size_t>(Engine::kernels);
  static constexpr auto to_gpu = static_cast<std::size_t>(Engine::to_gpu);
  static constexpr auto to_host = static_cast<std::size_t>(Engine::to_host);

  static std::int32_t row_of(std::size_t i) { return static_cast<std::int32_t>(i); }
  bool has_turn(std::size_t i) const {
    const auto engine = static_cast<Engine>(op_.engine[i]);
    return op_.has_device[i] && engine != Engine::none && engine != Engine::callback;
  }

  void add_call(std::size_t i) {
    const auto thread = static_cast<std::size_t>(op_.thread[i]);
    if (thread >= calls_.size()) {
      calls_.resize(thread + 1);
      next_call_.resize(thread + 1, 0);
    }
    calls_[thread].push_back(row_of(i));
  }

  /// The next call of a thread whose last one returned at a time.
  void call_next(std::size_t thread, double returned) {
    if (next_call_[thread] == calls_[thread].size()) return;
    const auto i = static_cast<std::size_t>(calls_[thread][next_call_[thread]]);
    begins_[i] = std::max(begins_[i], returned);
    if (--begins_left_[i] == 0) begin_call(i);
  }

  /// The host's time before a call begins, as all that it begins after has returned.
  void begin_call(std::size_t i) {
    made_.host_start[i] = begins_[i] + op_.host_before[i];
    push(made_.host_start[i] + op_.host_call[i], Happens::call, op_.thread[i]);
  }

  void push(double time, Happens what, std::int32_t row) { events_.push({time, what, row}); }

  void happen(const Event& event) {
    const auto i = static_cast<std::size_t>(event.row);
    switch (event.what) {
      case Happens::call:
        make_call(i, event.time);
        break;
      case Happens::ready:
        arrive(i, event.time);
        break;
      case Happens::blocks_end:
        if (running_[event.chunk].version != event.version) break;  // it ends at another time now
        free_ += running_[event.chunk].share;
        if (!running_[event.chunk].has_triggered) --untriggered_[i];
        leave(event.chunk);
        if (--num_chunks_ == 0) free_ = 1;  // no rounding is carried on
        last_on_[kernels] = event.row;
        touched_[kernels] = true;
        let_dependents_start(i, event.time);
        if (--chunks_[i] == 0 && blocks_left_[i] <= 0) {
          --num_grids_;
          is_done_[i] = 1;
          if (unended_[i] == 0) finish(i, event.time);
        }
        break;
      case Happens::trigger:
        if (running_[event.chunk].version != event.version) break;
        running_[event.chunk].has_triggered = true;
        --untriggered_[i];
        let_dependents_start(i, event.time);
        break;
      case Happens::end: {
        const std::size_t engine = op_.engine[i];
        if (has_turn(i)) {
          if (event.version != copies_[engine].version) break;  // it ends at another time now
          copies_[engine].row = nobody;
          busy_[engine] = false;
          last_on_[engine] = event.row;
          touched_[engine] = true;
        }
        finish(i, event.time);
        break;
      }
    }
  }

  /// The call of a thread is made: its work is on its way, and the host returns or waits.
  void make_call(std::size_t thread, double now) {
    const auto i = static_cast<std::size_t>(calls_[thread][next_call_[thread]]);
    if (op_.has_device[i]) {
      connections_.enter(i);
      note_release(i, now + op_.delay[i], Why::host, nobody);
      if (--pending_[i] == 0) become_ready(i, now);
    }
    std::int32_t left = 0;
    waited_[i] = now;
    double latest = now;
    for (const std::int32_t row : op_.waits.of(i)) {
      const auto other = static_cast<std::size_t>(row);
      if (!ended_[other]) {
        ++left;
      } else if (made_.end[other] + op_.host_return[i] > latest) {
        latest = made_.end[other] + op_.host_return[i];  // word of it is on its way
        made_.host_waited_for[i] = row;
      }
    }
    host_pending_[i] = left;
    if (left == 0) return_from(i, latest);
  }

  void return_from(std::size_t i, double at) {
    const auto thread = static_cast<std::size_t>(op_.thread[i]);
    made_.host_end[i] = at;
    ++next_call_[thread];
    if (!op_.has_device[i]) {
      made_.start[i] = made_.host_start[i];
      made_.end[i] = at;
      ended_[i] = 1;
      // Nothing on the device follows a call without work, but other lists may name it.
      for (const std::int32_t row : followers_.of(i)) release(row, at, row_of(i));
    }
    call_next(thread, at);
    for (const std::int32_t row : begun_.of(i)) {
      const auto other = static_cast<std::size_t>(row);
      begins_[other] = std::max(begins_[other], at);
      if (--begins_left_[other] == 0) begin_call(other);
    }
  }

  /// Notes what kept an operation from being ready until a time; the last of these counts.
  void note_release(std::size_t i, double at, Why why, std::int32_t by) {
    if (at > made_.ready[i] || made_.ready[i] < 0) {
      made_.ready[i] = at;
      made_.why[i] = static_cast<std::uint8_t>(why);
      made_.released_by[i] = by;
    }
  }

  void release(std::int32_t row, double at, std::int32_t by) {
    const auto i = static_cast<std::size_t>(row);
    note_release(i, at + op_.gap[i], Why::dependence, by);
    if (--pending_[i] == 0) become_ready(i, at);
  }

  void become_ready(std::size_t i, double now) {
    made_.ready[i] = std::max(made_.ready[i], now);
    made_.freed_by[i] = made_.released_by[i];
    push(made_.ready[i], Happens::ready, row_of(i));
  }

  /// All that an operation waits for has happened: it goes, with those that it held up, unless it
  /// is held up itself.
  void arrive(std::size_t i, double now) {
    connections_.arrive(i, [&](std::size_t passes) {
      if (now > made_.ready[passes]) note_release(passes, now, Why::queue, row_of(i));
      enter_queue(passes, now);
    });
  }

  void enter_queue(std::size_t i, double now) {
    const std::size_t engine = op_.engine[i];
    if (!has_turn(i)) {  // as many as there are at a time
      made_.start[i] = now;
      if (op_.duration[i] > 0) {
        push(now + op_.duration[i], Happens::end, row_of(i));
      } else {
        finish(i, now);
      }
      return;
    }
    is_ready_[i] = 1;
    touched_[engine] = true;
    if (device_.in_order) return;
    queues_[engine].push({engine == kernels ? op_.priority[i] : 0, now, row_of(i)});
  }

  void finish(std::size_t i, double now) {
    made_.end[i] = now;
    ended_[i] = 1;
    followers_.visit(i, false, [&](std::int32_t row) { release(row, now, row_of(i)); });
    followers_.visit(i, true, [&](std::int32_t row) {
      if (--unended_[static_cast<std::size_t>(row)] == 0) go_on(row, now, row_of(i));
    });
    for (const std::int32_t row : waiting_hosts_.of(i)) {
      const auto caller = static_cast<std::size_t>(row);
      if (host_pending_[caller] == 0 || --host_pending_[caller] > 0) continue;
      made_.host_waited_for[caller] = row_of(i);
      return_from(caller, std::max(waited_[caller], now) + op_.host_return[caller]);
    }
  }

  /// Once all blocks of a kernel have triggered or ended, those start that wait for that.
  void let_dependents_start(std::size_t i, double now) {
    if (has_triggered_[i] || blocks_left_[i] > 0 || untriggered_[i] > 0) return;
    has_triggered_[i] = 1;
    followers_.visit(i, true, [&](std::int32_t row) { release(row, now, row_of(i)); });
  }

  /// The last of those that a kernel started behind the triggers of has ended: its blocks wait no
  /// more.
  void go_on(std::int32_t row, double now, std::int32_t last) {
    const auto i = static_cast<std::size_t>(row);
    touched_[kernels] = true;
    for (std::size_t place = 0; chunks_[i] > 0 && place < running_.size(); ++place) {
      Chunk& chunk = running_[place];
      if (chunk.row != row || !chunk.is_held) continue;
      chunk.is_held = false;
      const double waited = std::max(now - chunk.wait, 0.0);
      if (waited > 0) made_.held_by[i] = last;
      if (chunk.trigger > chunk.wait) chunk.trigger += waited;
      chunk.end += waited;
      ++chunk.version;
      push_ends(place);
    }
    if (!is_done_[i]) return;
    made_.held_by[i] = last;
    finish(i, now);
  }

  /// Notes when blocks will trigger, as far as that is known, and end.
  void push_ends(std::size_t place) {
    const Chunk& chunk = running_[place];
    // Who triggers at the end needs no event of its own.
    if (!chunk.has_triggered && chunk.trigger < chunk.end &&
        (!chunk.is_held || chunk.trigger <= chunk.wait)) {
      events_.push({chunk.trigger, Happens::trigger, chunk.row, place, chunk.version});
    }
    if (chunk.is_held) return;
    events_.push({chunk.end, Happens::blocks_end, chunk.row, place, chunk.version});
  }

  /// The operation whose turn it is on an engine, or nobody.
  std::int32_t first_of(std::size_t engine) const {
    if (!device_.in_order) return queues_[engine].empty() ? nobody : queues_[engine].top().row;
    if (place_[engine] == order_[engine].size()) return nobody;
    const std::int32_t row = order_[engine][place_[engine]];
    return is_ready_[static_cast<std::size_t>(row)] ? row : nobody;
  }

  void dispatch(std::size_t engine, double now) {
    touched_[engine] = false;
    if (engine == kernels) {
      dispatch_kernels(now);
      return;
    }
    const std::int32_t row = busy_[engine] ? nobody : first_of(engine);
    if (row == nobody) return;
    const auto i = static_cast<std::size_t>(row);
    if (device_.in_order) {
      ++place_[engine];
    } else {
      queues_[engine].pop();
    }
    busy_[engine] = true;
    begin(i, now, Why::engine);
    Copy& copy = copies_[engine];
    copy = {row, now + op_.duration[i], 1, copy.version + 1};
    events_.push({copy.end, Happens::end, row, 0, copy.version});
  }

  [[nodiscard]] bool fills_link(std::size_t engine) const {
    const std::int32_t row = copies_[engine].row;
    return row != nobody && op_.on_link[static_cast<std::size_t>(row)];
  }

  /// Copies that fill the link slow each other down while one goes each way.
  void set_link_speeds(double now) {
    const double speed = fills_link(to_gpu) && fills_link(to_host) ? device_.both_ways : 1;
    for (const std::size_t engine : {to_gpu, to_host}) {
      Copy& copy = copies_[engine];
      if (copy.row == nobody || copy.speed == speed) continue;
      copy.end = now + (copy.end - now) * copy.speed / speed;
      copy.speed = speed;
      events_.push({copy.end, Happens::end, copy.row, 0, ++copy.version});
    }
  }

  void begin(std::size_t i, double now, Why why) {
    made_.start[i] = now;
    if (now > made_.ready[i]) {
      made_.why[i] = static_cast<std::uint8_t>(why);
      made_.released_by[i] = last_on_[op_.engine[i]];
    }
  }

  /// The kernel whose blocks go next, or nobody. One that runs goes on where no other grid may
  /// start.
  std::int32_t first_kernel() {
    if (device_.in_order) {
      const std::int32_t row = first_of(kernels);
      const bool is_new = row != nobody && made_.start[static_cast<std::size_t>(row)] < 0;
      return is_new && num_grids_ >= device_.concurrent_grids ? nobody : row;
    }
    const auto& newcomers = queues_[kernels];
    const bool may_start = !newcomers.empty() && num_grids_ < device_.concurrent_grids;
    if (residents_.empty()) return may_start ? newcomers.top().row : nobody;
    if (may_start && residents_.top() > newcomers.top()) return newcomers.top().row;
    return residents_.top().row;
  }

  void run_chunk(std::int32_t row, double share, double blocks, double now, double waves,
                 double wave) {
    if (places_left_.empty()) {
      places_left_.push_back(running_.size());
      running_.emplace_back();
    }
    const std::size_t place = places_left_.back();
    places_left_.pop_back();
    Chunk& chunk = running_[place];
    const auto i = static_cast<std::size_t>(row);
    const double end = now + wave * waves;
    chunk = {.row = row,
             .share = share,
             .blocks = blocks,
             .end = end,
             .speed = 1,
             .trigger = end - wave * (1 - op_.trigger[i]),
             .wait = now + wave * op_.wait[i],
             .has_triggered = has_triggered_[i] != 0,
             .is_held = unended_[i] > 0 && op_.wait[i] < 1,
             .version = chunk.version + 1};
    if (!chunk.has_triggered) ++untriggered_[i];
    push_ends(place);
  }

  void leave(std::size_t place) {
    running_[place].row = nobody;
    ++running_[place].version;
    places_left_.push_back(place);
  }

  /// Finds how fast the kernels are that run now.
  void set_speeds(double now) {
    if (!device_.speeds) return;
    std::vector<std::int32_t> rows;
    std::vector<RunningKernel> kernels_now;
    for (const Chunk& chunk : running_) {
      if (chunk.row == nobody || chunk.is_held) continue;
      const auto known = std::ranges::find(rows, chunk.row);
      if (known != rows.end()) {
        kernels_now[static_cast<std::size_t>(known - rows.begin())].blocks += chunk.blocks;
        continue;
      }
      rows.push_back(chunk.row);
      kernels_now.push_back({op_.kernel_class[static_cast<std::size_t>(chunk.row)], chunk.blocks});
    }
    std::vector<double> speeds(rows.size(), 1);
    if (rows.size() > 1) {
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const auto i = static_cast<std::size_t>(rows[k]);
        const bool is_held_up = blocks_left_[i] > 0;
        kernels_now[k].alone =
            is_held_up ? std::min(op_.blocks[i], op_.places[i]) : kernels_now[k].blocks;
      }
      speeds = device_.speeds(kernels_now);
    }
    for (std::size_t place = 0; place < running_.size(); ++place) {
      Chunk& chunk = running_[place];
      if (chunk.row == nobody || chunk.is_held) continue;
      const auto k = static_cast<std::size_t>(std::ranges::find(rows, chunk.row) - rows.begin());
      if (speeds[k] == chunk.speed) continue;
      chunk.end = now + (chunk.end - now) * chunk.speed / speeds[k];
      chunk.trigger = now + (chunk.trigger - now) * chunk.speed / speeds[k];
      chunk.speed = speeds[k];
      ++chunk.version;
      push_ends(place);
    }
  }

  void dispatch_kernels(double now) {
    give_places(now);
    set_speeds(now);
  }

  void give_places(double now) {
    for (std::int32_t row = first_kernel(); row != nobody; row = first_kernel()) {
      const auto i = static_cast<std::size_t>(row);
      const bool is_new = made_.start[i] < 0;
      const double places = op_.places[i];
      const double left = blocks_left_[i];
      const double taken = std::min(left, std::floor(free_ * places + places * share_slack));
      if (taken < 1) return;
      double waves = 1;
      if (left > taken) {
        waves = taken >= places ? std::floor(left / places)
                                : std::max(1.0, std::floor(left / places / 2));
      }
      blocks_left_[i] = std::max(left - taken * waves, 0.0);
      if (is_new) {
        begin(i, now, Why::places);
        ++num_grids_;
      }
      const double share = taken / places;
      free_ = std::max(free_ - share, 0.0);
      ++chunks_[i];
      ++num_chunks_;
      const double all_waves = std::ceil(op_.blocks[i] / places);
      run_chunk(row, share, taken, now, waves, op_.duration[i] / all_waves);
      const bool has_left = blocks_left_[i] > 0;
      if (device_.in_order) {
        if (!has_left) ++place_[kernels];
      } else if (is_new) {
        if (has_left) residents_.push(queues_[kernels].top());
        queues_[kernels].pop();
      } else if (!has_left) {
        residents_.pop();
      }
    }
  }

  void check_all_ended() const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!ended_[i] || (op_.thread[i] >= 0 && made_.host_end[i] < 0)) {
        throw InputError(
            "operation " + std::to_string(i) +
            " waits for operations that wait for it, or for a call that is never made");
      }
    }
  }

  const Operations& op_;
  const Device& device_;
  std::size_t count_;
  Followers followers_;
  Followers waiting_hosts_;
  Followers begun_;
  Connections connections_;
  std::vector<std::int32_t> pending_;       ///< what keeps an operation from being ready
  std::vector<std::int32_t> host_pending_;  ///< what keeps a call from returning
  std::vector<std::int32_t> begins_left_;   ///< what keeps the time before a call from beginning
  std::vector<double> begins_;              ///< when the last of those so far returned
  std::vector<char> ended_;
  std::vector<char> is_ready_;
  std::vector<double> blocks_left_;        ///< without a place yet
  std::vector<std::int32_t> chunks_;       ///< groups of blocks that run
  std::vector<std::int32_t> untriggered_;  ///< of those, which have not triggered
  std::vector<char> has_triggered_;        ///< all blocks, or nobody waits for that
  std::vector<std::int32_t> unended_;      ///< kernels that it started behind the triggers of
  std::vector<char> is_done_;              ///< all blocks have ended
  std::vector<double> waited_;             ///< since when a call waits
  std::vector<std::vector<std::int32_t>> calls_;
  std::vector<std::size_t> next_call_;
  LeastFirst<Event> events_;
  std::array<LeastFirst<Turn>, num_engines> queues_;
  LeastFirst<Turn> residents_;  ///< kernels that have started and have blocks without a place
  std::array<std::vector<std::int32_t>, num_engines> order_;  ///< where there is one queue
  std::array<std::size_t, num_engines> place_{};
  std::array<bool, num_engines> busy_{};
  std::array<Copy, num_engines> copies_{};  ///< or what else an engine does alone
  std::array<bool, num_engines> touched_{};
  std::array<std::int32_t, num_engines> last_on_{};
  double free_ = 1;  ///< share of the GPU's places
  std::size_t num_chunks_ = 0;
  std::vector<Chunk> running_;
  std::vector<std::size_t> places_left_;  ///< of `running_` that are free
  std::uint32_t num_grids_ = 0;
  Schedule made_;
};

void check_operations(const Operations& operations) {
  const std::size_t count = operations.thread.size();
  const std::size_t sizes[] = {
      operations.host_before.size(), operations.host_call.size(),    operations.host_return.size(),
      operations.delay.size(),       operations.engine.size(),       operations.has_device.size(),
      operations.duration.size(),    operations.gap.size(),          operations.blocks.size(),
      operations.places.size(),      operations.kernel_class.size(), operations.priority.size(),
      operations.connection.size(),  operations.on_link.size(),      operations.trigger.size(),
      operations.wait.size()};
  for (const std::size_t size : sizes) {
    if (size != count) throw InputError("the columns of operations differ in length");
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (const double time :
         {operations.host_before[i], operations.host_call[i], operations.host_return[i],
          operations.delay[i], operations.duration[i], operations.gap[i]}) {
      if (!(time >= 0) || std::isinf(time)) {
        throw InputError("operation " + std::to_string(i) +
                         ": a time is negative or not a finite number");
      }
    }
    if (operations.engine[i] >= num_engines) {
      throw InputError("operation " + std::to_string(i) + ": there is no such engine");
    }
    const bool is_kernel = static_cast<Engine>(operations.engine[i]) == Engine::kernels;
    if (is_kernel && !(operations.blocks[i] >= 1 && operations.places[i] >= 1)) {
      throw InputError("operation " + std::to_string(i) + ": a kernel without blocks or places");
    }
    const std::int32_t connection = operations.connection[i];
    if (connection >= 0 &&
        (operations.thread[i] < 0 || static_cast<std::size_t>(connection) >= count)) {
      throw InputError("operation " + std::to_string(i) + ": there is no such connection for it");
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (const double share : {operations.trigger[i], operations.wait[i]}) {
      if (share >= 0 && share <= 1) continue;
      throw InputError("operation " + std::to_string(i) + ": a share is not between 0 and 1");
    }
  }
  check_lists(operations.after, count, "after");
  if (operations.early.size() != operations.after.rows.size()) {
    throw InputError("early: the flags do not belong to the rows of after");
  }
  check_lists(operations.waits, count, "waits");
  check_lists(operations.begins, count, "begins");
  for (const std::int32_t row : operations.begins.rows) {
    if (operations.thread[static_cast<std::size_t>(row)] < 0) {
      throw InputError("begins: operation " + std::to_string(row) +
                       " is no call of a host thread: no call begins after it");
    }
  }
}

}  // namespace

Schedule play(const Operations& operations, const Device& device, const InterruptCheck& interrupt) {
  check_operations(operations);
  if (!(device.both_ways > 0 && device.both_ways <= 1)) {
    throw InputError("both_ways: expected more than 0 and at most 1");
  }
  return Player(operations, device).run(interrupt);
}

}  // namespace warpstack::timelines
