#include "timing/device/simulator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/error.h"
#include "memory/cache/kernel_end.h"
#include "timing/device/future_requests.h"
#include "timing/device/grids.h"
#include "timing/memory/dram.h"
#include "timing/memory/interconnect.h"
#include "timing/memory/l2_slice.h"
#include "timing/sm/sm.h"
#include "trace/columns/dependent_launch.h"

namespace warpstack::timing {
namespace {

/// One run of a kernel, or of several at the same time. Time goes from one instant at which
/// something happens to the next. At one instant things happen in the order in which a request
/// meets them: SMs, request network, slices of L2, DRAM channels, reply network. An SM whose turn
/// has come does as many cycles more as the others cannot change: a reply arrives a latency after
/// it is sent, a place gets no block before those that were free earlier, and what leaves the queue
/// to the NoC matters to those only that wait for its room. The NoC sees each request in the cycle
/// in which it was sent.
template <typename AnyDispatcher>
class SimulatedGpu {
 public:
  SimulatedGpu(const Grids& grids, const TimingConfig& config, memory::Cache& l2,
               const SimulationOptions& options, AnyDispatcher dispatcher)
      : grids_(grids),
        config_(config),
        options_(options),
        l2_(l2),
        rows_(grids.traces, config, grids.has_dependents),
        dispatcher_(std::move(dispatcher)),
        pipeline_latency_(config.gpu.l1_latency_place == L1Latency::before_tags
                              ? to_ticks(std::max(std::ceil(config.gpu.l1_latency) - 1, 0.0))
                              : 0),
        l2_latency_(to_ticks(config.gpu.l2_latency)),
        num_sms_(sms_of(grids, config)),
        request_network_(config.l2_clock(), num_sms_, num_sms_ + config.memory.l2.slices,
                         is_crossbar() ? config.memory.l2.slices : 0),
        slice_port_time_(is_crossbar() ? l2_time(config.gpu.l2_slice_request_cycles) : 0),
        reply_network_(config.l2_clock(), config.memory.l2.slices,
                       config.memory.l2.slices + num_sms_, is_crossbar() ? num_sms_ : 0),
        reply_port_free_(num_sms_),
        noc_waits_(num_sms_, config.memory.l2.slices, is_crossbar()) {
    result_.occupancy = grids.occupancy;
    result_.l1_size_bytes = grids.l1.size_bytes;
    channels_.reserve(config.dram_channels);
    slices_.reserve(config.memory.l2.slices);
    sms_.reserve(num_sms_);
    for (std::uint32_t c = 0; c < config.dram_channels; ++c) {
      channels_.emplace_back(config, result_.traffic);
    }
    for (std::uint32_t s = 0; s < config.memory.l2.slices; ++s) {
      slices_.emplace_back(config, s, l2, channels_[channel_of(s)], reply_network_, packets_,
                           result_.totals, result_.traffic);
    }
    for (std::uint32_t s = 0; s < num_sms_; ++s) {
      sms_.emplace_back(config, rows_, grids.l1, l2, grids.most, s);
      if (options.count_rows) sms_.back().count_rows();
    }
    if (options.count_rows) result_.row_slots.emplace(rows_.size());
    next_of_sm_.resize(sms_.size(), never);
    next_of_slice_.resize(slices_.size(), never);
    next_of_channel_.resize(channels_.size(), never);
    control_cost_ = transfer_cost(config.gpu.noc_control_bytes);
    for (std::uint32_t sectors = 0; sectors < data_costs_.size(); ++sectors) {
      data_costs_[sectors] = transfer_cost(sectors * trace::sector_bytes);
    }
    if constexpr (std::is_same_v<AnyDispatcher, Dispatcher>) add_places();
    for (std::uint32_t g = 0; grids.has_dependents && g < grids.launches.size(); ++g) {
      if (grids.launches[g].after_trigger.empty()) continue;
      for (Sm& sm : sms_) sm.hold(g);
    }
    release_warps(0);
    sample_cycles_ = options.sample_cycles;
    next_sample_ = sample_cycles_ > 0 ? 0 : never;
  }

  SimulationResult run() {
    if (options_.interrupt) options_.interrupt();
    while (true) {
      const Ticks now = next_instant();
      if (now == never) break;
      if (next_sample_ != never) sample(now);
      if (options_.max_cycles > 0 && now > options_.max_cycles * ticks_per_cycle && !done()) {
        fail(subject("is", "are") +
             " not done after max_cycles = " + std::to_string(options_.max_cycles) +
             " cycles; raise it, or see what its warps wait for:");
      }
      step(now);
      last_ = now;
      if (++steps_ % steps_between_checks == 0) watch();
      if (steps_ % steps_between_checks == 0 || steps_ahead_ >= steps_between_checks) {
        steps_ahead_ = 0;
        if (options_.interrupt) options_.interrupt();
        if (options_.progress) options_.progress(instructions());
      }
    }
    if (!done()) {
      for (const Sm& sm : sms_) last_ = std::max(last_, sm.last() * ticks_per_cycle);
      const bool is_at_barriers = std::ranges::any_of(sms_, &Sm::waits_at_barrier);
      fail(subject("is", "are") + " in a deadlock at cycle " +
           std::to_string(last_ / ticks_per_cycle) + ": nothing can happen any more, " +
           (is_at_barriers ? "because too few warps come to a barrier"
                           : "which is an error of the simulator") +
           ". Who waits for what:");
    }
    finish();
    return std::move(result_);
  }

  /// The SMs that get a block.
  static std::uint32_t sms_of(const Grids& grids, const TimingConfig& config) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(config.memory.num_sms, grids.blocks));
  }
  [[nodiscard]] const AnyDispatcher& dispatcher() const { return dispatcher_; }
  /// When the last warp of a grid was done.
  [[nodiscard]] Cycle end_of_grid(std::uint32_t grid) const {
    Cycle end = 0;
    for (const Sm& sm : sms_) end = std::max(end, sm.end_of_grid(grid));
    return end;
  }
  /// How many SMs had blocks of a grid.
  [[nodiscard]] std::uint32_t sms_of_grid(std::uint32_t grid) const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(sms_, [&](const Sm& sm) { return sm.end_of_grid(grid) > 0; }));
  }

 private:
  static constexpr std::uint64_t steps_between_checks = 1 << 16;

  /// Fails when nothing has moved since the last time: components that ask for turns in vain would
  /// go on for ever.
  void watch() {
    const TrafficCounters& traffic = result_.traffic;
    const std::uint64_t moved = instructions() + traffic.noc_requests + traffic.noc_replies +
                                traffic.dram_reads + traffic.dram_writes;
    if (moved == moved_ && !done()) {
      fail(subject("makes", "make") + " no progress at cycle " +
           std::to_string(last_ / ticks_per_cycle) +
           ", which is an error of the simulator. Who waits for what:");
    }
    moved_ = moved;
  }

  /// What an error is about.
  [[nodiscard]] std::string subject(const std::string& is, const std::string& are) const {
    constexpr std::size_t most_named = 4;
    std::string text = grids_.traces.size() > 1 ? "kernels" : "kernel";
    for (std::size_t g = 0; g < std::min(grids_.traces.size(), most_named); ++g) {
      const trace::KernelHeader& header = grids_.traces[g]->header();
      text += (g > 0 ? ", " : " ") + std::to_string(header.launch_id) + " (" + header.name + ")";
    }
    if (grids_.traces.size() > most_named) {
      text += " and " + std::to_string(grids_.traces.size() - most_named) + " more";
    }
    return text + " " + (grids_.traces.size() > 1 ? are : is);
  }
  [[nodiscard]] std::uint32_t channel_of(std::uint32_t slice) const {
    return slice / (config_.memory.l2.slices / config_.dram_channels);
  }
  [[nodiscard]] bool done() const {
    return dispatcher_.empty() && packets_under_way() == 0 &&
           std::ranges::all_of(sms_, [](const Sm& sm) { return sm.resident_warps() == 0; });
  }
  [[nodiscard]] std::size_t packets_under_way() const {
    std::size_t count = packets_.size();
    for (const Sm& sm : sms_) count += sm.lsu().queued_requests() + sm.replies_under_way();
    return count;
  }
  [[nodiscard]] std::uint64_t instructions() const {
    std::uint64_t count = 0;
    for (const Sm& sm : sms_) count += sm.instructions();
    return count;
  }

  /// The SMs take one block each in turn until they are full.
  void add_places() {
    const std::size_t places = sms_.empty() ? 0 : sms_.front().places();
    for (std::size_t place = 0; place < places; ++place) {
      for (std::uint32_t sm = 0; sm < num_sms_; ++sm) dispatcher_.add_place(sm, 0);
    }
  }

  [[nodiscard]] Ticks next_instant() {
    const Cycle sms = std::min({sms_next_, requests_.next(), dispatcher_.next()});
    return std::min({sms >= never ? never : sms * ticks_per_cycle, request_network_.next(),
                     slices_next_, channels_next_, reply_network_.next()});
  }

  void step(Ticks now) {
    if (dispatcher_.next() < never && dispatcher_.next() * ticks_per_cycle == now) start_blocks();
    if (sms_next_ < never && sms_next_ * ticks_per_cycle == now) step_sms();
    if (requests_.next() < never && requests_.next() * ticks_per_cycle == now) {
      requests_.take([&](std::uint32_t sm) { request_network_.add(sm, now); });
    }
    if (request_network_.next() == now) step_requests(now);
    if (slices_next_ == now) step_slices(now);
    if (channels_next_ == now) step_channels(now);
    if (reply_network_.next() == now) step_replies(now);
  }

  void start_blocks() {
    const Cycle now = dispatcher_.next();
    while (const auto start = dispatcher_.start(now)) {
      Sm& sm = sms_[start->sm];
      sm.launch(*start, now);
      note_sm(start->sm);
    }
  }

  void step_sms() {
    const Cycle now = sms_next_;
    sms_next_ = never;
    for (std::uint32_t s = 0; s < num_sms_; ++s) {
      if (next_of_sm_[s] == now) {
        step_sm(s, now);
      }
      sms_next_ = std::min(sms_next_, next_of_sm_[s]);
    }
    if (grids_.has_dependents) release_warps(now + 1);
  }

  /// Warps of grids whose primaries have all ended by now go on in a cycle.
  void release_warps(Cycle cycle) {
    if constexpr (std::is_same_v<AnyDispatcher, GridDispatcher>) {
      for (const std::uint32_t grid : dispatcher_.take_released()) {
        for (std::uint32_t s = 0; s < num_sms_; ++s) {
          sms_[s].release(grid, cycle);
          note_sm(s);
        }
      }
    }
  }

  /// Lets an SM do its cycle `now`, and then as many as do not depend on what others do from `now`
  /// on: its state stays in the host's caches meanwhile.
  void step_sm(std::uint32_t s, Cycle now) {
    Sm& sm = sms_[s];
    sm.step(&dispatcher_);
    const Cycle end = std::min(end_of_window(now), dispatcher_.earliest_start(s));
    while (sm.next() < end && sm.can_run_ahead(dispatcher_.has_more())) {
      sm.step(nullptr);
      ++steps_ahead_;
    }
    next_of_sm_[s] = sm.next();
    for (const Cycle entered : sm.lsu().entered()) {
      if (entered == now) {
        request_network_.add(s, now * ticks_per_cycle);
      } else {
        requests_.add(s, entered);
      }
    }
    sm.lsu().entered().clear();
  }

  /// The first cycle at which a reply that is sent from `now` on may arrive, or somebody looks at
  /// the SMs.
  [[nodiscard]] Cycle end_of_window(Cycle now) const {
    Cycle end = std::min(cycle_at_or_after(now * ticks_per_cycle + l2_latency_ - pipeline_latency_),
                         now + FutureRequests::most_cycles);
    end = std::min(end, next_sample_);
    if (options_.max_cycles > 0) end = std::min(end, options_.max_cycles + 1);
    return end;
  }

  void step_requests(Ticks now) {
    request_network_.step(
        [&](std::uint32_t sm, Interconnect::Transfer& transfer) {
          const LoadStoreUnit::Outgoing& request = sms_[sm].lsu().first_request();
          if (!slices_[request.slice].has_room()) return false;
          const TransferCost& cost = request_cost(request);
          transfer = {cost.time,        cost.port_time,           sm,
                      slice_port_time_, num_sms_ + request.slice, request.slice};
          return true;
        },
        [&](std::uint32_t sm) {
          LoadStoreUnit& lsu = sms_[sm].lsu();
          const std::uint32_t id = packets_.add(lsu.first_packet());
          Packet& packet = packets_[id];
          ++result_.traffic.noc_requests;
          const TransferCost& cost = request_cost(lsu.first_request());
          result_.traffic.noc_request_bytes += cost.bytes;
          lsu.pop_request();
          noc_waits_.count_request(sm, packet.slice, packet.mark, cost.port_time, now);
          packet.noc += now - packet.mark;
          packet.mark = now;
          L2Slice& slice = slices_[packet.slice];
          slice.add(id, now);
          note_slice(packet.slice);
          sms_[sm].take_room(now);
          note_sm(sm);
        });
  }

  void step_slices(Ticks now) {
    slices_next_ = never;
    for (std::uint32_t s = 0; s < slices_.size(); ++s) {
      if (next_of_slice_[s] == now) {
        L2Slice& slice = slices_[s];
        const bool was_full = !slice.has_room();
        const bool channel_had_room = channels_[channel_of(s)].has_room();
        slice.step();
        if (was_full && slice.has_room()) {
          noc_waits_.has_room(s, now);
          request_network_.wake(now);
        }
        if (channel_had_room && !channels_[channel_of(s)].has_room()) tell_neighbours(s, now);
        note_channel(channel_of(s), now);
        next_of_slice_[s] = slice.next();
      }
      slices_next_ = std::min(slices_next_, next_of_slice_[s]);
    }
  }

  /// A slice has filled the queue of its DRAM channel; the slices after it have yet to act at
  /// `now`.
  void tell_neighbours(std::uint32_t slice, Ticks now) {
    const std::uint32_t sharers = config_.memory.l2.slices / config_.dram_channels;
    const std::uint32_t first = channel_of(slice) * sharers;
    for (std::uint32_t s = slice + 1; s < first + sharers; ++s) {
      slices_[s].channel_is_full(now);
      next_of_slice_[s] = slices_[s].next();
    }
    for (std::uint32_t s = first; s < slice; ++s) {
      slices_[s].channel_is_full(config_.l2_clock().after(now));
      note_slice(s);
    }
  }

  [[nodiscard]] bool is_stuck(std::uint32_t channel) const {
    return channel == 0 && options_.fault != SimulationOptions::Fault::none;
  }
  [[nodiscard]] Ticks next_of_channel(std::uint32_t channel, Ticks now) const {
    if (!is_stuck(channel)) return channels_[channel].next();
    if (options_.fault == SimulationOptions::Fault::dram_sleeps) return never;
    return channels_[channel].queued() > 0 ? config_.dram_clock().after(now) : never;
  }

  void step_channels(Ticks now) {
    channels_next_ = never;
    const std::uint32_t sharers = config_.memory.l2.slices / config_.dram_channels;
    for (std::uint32_t c = 0; c < channels_.size(); ++c) {
      if (is_stuck(c)) next_of_channel_[c] = next_of_channel(c, now);
      if (next_of_channel_[c] == now && !is_stuck(c)) {
        DramChannel& channel = channels_[c];
        const bool has_more_room = channel.step([&](const DramRequest& request) {
          L2Slice& slice = slices_[request.slice];
          slice.finish(request, now, now + channel.latency(request));
          note_slice(request.slice);
        });
        for (std::uint32_t s = c * sharers; has_more_room && s < (c + 1) * sharers; ++s) {
          slices_[s].wake(now);
          note_slice(s);
        }
        next_of_channel_[c] = channel.next();
      }
      channels_next_ = std::min(channels_next_, next_of_channel_[c]);
    }
  }

  void step_replies(Ticks now) {
    reply_network_.step(
        [&](std::uint32_t slice, Interconnect::Transfer& transfer) {
          const Packet& packet = packets_[slices_[slice].first_reply()];
          const auto first_port = static_cast<std::uint32_t>(slices_.size());
          transfer = {reply_cost(packet).time,
                      slice_port_time_,
                      first_port + packet.sm,
                      slice_port_time_,
                      slice,
                      packet.sm};
          return true;
        },
        [&](std::uint32_t s) {
          const std::uint32_t id = slices_[s].first_reply();
          slices_[s].pop_reply();
          Packet& packet = packets_[id];
          ++result_.traffic.noc_replies;
          const TransferCost& cost = reply_cost(packet);
          result_.traffic.noc_reply_bytes += cost.bytes;
          // A reply that finds the port of its SM busy waits there, where it holds nobody up.
          const Ticks sent = std::max(now, reply_port_free_[packet.sm]);
          reply_port_free_[packet.sm] = sent + cost.port_time;
          noc_waits_.count_reply(packet.mark, now, sent, l2_latency_);
          packet.noc += sent - packet.mark;
          sms_[packet.sm].send_reply({packet.owner, sent + l2_latency_ - pipeline_latency_,
                                      packet.entered, packet.noc, packet.dram_queue, packet.dram},
                                     now);
          note_sm(packet.sm);
          packets_.release(id);
          slices_[s].wake(now);
          note_slice(s);
        });
  }

  // A part's next instant may have changed.
  void note_sm(std::uint32_t sm) {
    next_of_sm_[sm] = sms_[sm].next();
    sms_next_ = std::min(sms_next_, next_of_sm_[sm]);
  }
  void note_slice(std::uint32_t slice) {
    next_of_slice_[slice] = slices_[slice].next();
    slices_next_ = std::min(slices_next_, next_of_slice_[slice]);
  }
  void note_channel(std::uint32_t channel, Ticks now) {
    next_of_channel_[channel] = next_of_channel(channel, now);
    channels_next_ = std::min(channels_next_, next_of_channel_[channel]);
  }

  [[nodiscard]] bool is_crossbar() const {
    return config_.gpu.noc_topology == NocTopology::crossbar;
  }
  /// Time of some cycles of L2's clock.
  [[nodiscard]] Ticks l2_time(double cycles) const {
    return static_cast<Ticks>(
        std::floor(cycles * static_cast<double>(config_.l2_clock().period()) + 0.5));
  }
  /// What a packet takes of the NoC, and of its SM's port.
  struct TransferCost {
    std::uint32_t bytes = 0;
    Ticks time = 0;
    Ticks port_time = 0;
  };
  [[nodiscard]] TransferCost transfer_cost(std::uint32_t bytes) const {
    TransferCost cost{bytes, 0, 0};
    if (!is_crossbar()) cost.time = config_.transfer_time(bytes, config_.gpu.noc_bandwidth_gbs);
    if (config_.gpu.noc_sm_bytes_per_cycle > 0) {
      cost.port_time = l2_time(bytes / config_.gpu.noc_sm_bytes_per_cycle);
    }
    return cost;
  }
  [[nodiscard]] const TransferCost& request_cost(const LoadStoreUnit::Outgoing& request) const {
    return request.has_data ? data_costs_[request.data_sectors] : control_cost_;
  }
  [[nodiscard]] const TransferCost& reply_cost(const Packet& packet) const {
    return packet.returns_data() ? data_costs_[memory::count_sectors(packet.mask)] : control_cost_;
  }

  /// Records the state at each multiple of the period up to `now`.
  void sample(Ticks now) {
    for (; next_sample_ * ticks_per_cycle <= now; next_sample_ += sample_cycles_) {
      TimingSample sample;
      sample.cycle = next_sample_;
      for (const Sm& sm : sms_) {
        sample.instructions += sm.instructions();
        sample.resident_warps += sm.resident_warps();
        sample.l1_mshrs += sm.lsu().misses_in_flight();
        sample.noc_queue += sm.lsu().queued_requests();
        sample.slots += sm.slots();
      }
      for (const L2Slice& slice : slices_) {
        sample.l2_queue += slice.queued_requests();
        sample.l2_mshrs += slice.misses_in_flight();
        sample.reply_queue += slice.queued_replies();
      }
      for (const DramChannel& channel : channels_) sample.dram_queue += channel.queued();
      result_.samples.push_back(sample);
      if (!sms_.empty()) sms_.front().count_scheduler_warps(result_.scheduler_warps);
      if (options_.most_samples > 0 && result_.samples.size() > options_.most_samples) thin_out();
    }
  }

  /// Keeps every second sample.
  void thin_out() {
    const std::size_t width = result_.scheduler_warps.size() / result_.samples.size();
    const std::size_t kept = (result_.samples.size() + 1) / 2;
    const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
    for (std::size_t s = 1; s < kept; ++s) {
      result_.samples[s] = result_.samples[2 * s];
      std::copy_n(result_.scheduler_warps.begin() + at(2 * s * width), width,
                  result_.scheduler_warps.begin() + at(s * width));
    }
    result_.samples.resize(kept);
    result_.scheduler_warps.resize(kept * width);
    sample_cycles_ *= 2;
    // The loop adds a period to the last sample that was taken.
    next_sample_ = result_.samples.back().cycle;
  }

  [[noreturn]] void fail(std::string text) const {
    constexpr std::size_t most_lines = 8;
    std::size_t shown = 0;
    for (const Sm& sm : sms_) {
      if (sm.resident_warps() == 0) continue;
      if (++shown > 2) {
        text += "\n  and more SMs";
        break;
      }
      sm.explain(text, most_lines);
    }
    text += "\n  requests under way: " + std::to_string(packets_under_way());
    for (std::uint32_t s = 0; s < num_sms_; ++s) {
      const LoadStoreUnit& lsu = sms_[s].lsu();
      if (lsu.queued_requests() == 0) continue;
      text += "\n  SM " + std::to_string(s) + ": " + std::to_string(lsu.queued_requests()) +
              " packets wait for the NoC, the first for L2 slice " +
              std::to_string(lsu.first_request().slice);
      break;
    }
    // The fullest of each kind tells most.
    const auto slice =
        std::ranges::max_element(slices_, {}, [](const L2Slice& one) { return one.waiting(); });
    if (slice != slices_.end() && slice->waiting() > 0) {
      const auto index = static_cast<std::uint32_t>(slice - slices_.begin());
      slice->explain(text);
      text += "; its DRAM channel is " + std::to_string(channel_of(index));
    }
    const auto channel = std::ranges::max_element(
        channels_, {}, [](const DramChannel& one) { return one.queued(); });
    if (channel != channels_.end() && channel->queued() > 0) {
      text += "\n  DRAM channel " + std::to_string(channel - channels_.begin()) + ": " +
              std::to_string(channel->queued()) + " of at most " +
              std::to_string(config_.gpu.dram_queue_entries) + " requests wait for their transfer";
    }
    throw InputError(text);
  }

  void finish() {
    // What L1 holds is written back without taking time.
    for (Sm& sm : sms_) {
      memory::flush_into_l2(sm.lsu().l1(), l2_, result_.totals);
    }
    const auto include = [this](Ticks time) {
      if (time >= 0) result_.cycles = std::max(result_.cycles, cycle_after(time));
    };
    if (config_.gpu.kernel_end != KernelEnd::last_warp) {
      for (const L2Slice& slice : slices_) include(slice.last_write());
    }
    if (config_.gpu.kernel_end == KernelEnd::last_acknowledgement) {
      const Ticks way_back = l2_latency_ - pipeline_latency_;
      for (const L2Slice& slice : slices_) {
        if (slice.last_write() >= 0) include(slice.last_write() + way_back);
      }
    }
    if (config_.gpu.kernel_end == KernelEnd::last_transfer) {
      for (const DramChannel& channel : channels_) include(channel.last_transfer());
    }
    add_details();
    for (const Sm& sm : sms_) {
      result_.cycles = std::max(result_.cycles, sm.end());
      result_.sm_cycles += sm.end();
      result_.instructions += sm.instructions();
      result_.tensor_cycles += sm.tensor_cycles();
      result_.active_sms += sm.instructions() > 0;
      result_.slots += sm.slots();
      if (result_.row_slots) *result_.row_slots += *sm.row_slots();
      result_.store_slots += sm.store_slots();
      result_.totals += sm.lsu().totals();
      result_.traffic.l1_pending_sector_hits += sm.lsu().pending_sector_hits();
      result_.critical_path += sm.lsu().critical_path();
      result_.miss_latency.misses += sm.lsu().miss_latency().misses;
      result_.miss_latency.ticks += sm.lsu().miss_latency().ticks;
    }
    for (const trace::KernelTrace* trace : grids_.traces) {
      memory::count_instructions(*trace, result_.totals);
    }
    result_.totals[memory::Total::l2_dirty_sectors] = l2_.dirty_sectors();
  }

  void add_details() {
    std::vector<SliceWaits> slices;
    for (const L2Slice& slice : slices_) slices.push_back(slice.waits());
    std::vector<ChannelWaits> channels;
    for (const DramChannel& channel : channels_) channels.push_back(channel.waits());
    WaitedFor waited;
    WaitedFor requests;
    noc_waits_.add_to(waited, requests, slices, channels);
    for (const Sm& sm : sms_) result_.details += sm.details(waited, requests);
  }

  const Grids& grids_;
  const TimingConfig& config_;
  const SimulationOptions& options_;
  memory::Cache& l2_;
  SimulationResult result_;
  RowTable rows_;
  AnyDispatcher dispatcher_;
  Ticks pipeline_latency_;  ///< of L1, of requests that are looked up after it
  Ticks l2_latency_;
  PacketPool packets_;
  std::uint32_t num_sms_;  ///< that get a block
  Interconnect request_network_;
  Ticks slice_port_time_;
  Interconnect reply_network_;
  std::vector<Ticks> reply_port_free_;  ///< by SM
  NocWaits noc_waits_;
  // Their elements know each other by address: they get their room first, and never move.
  std::vector<DramChannel> channels_;
  std::vector<L2Slice> slices_;
  std::vector<Sm> sms_;
  TransferCost control_cost_;
  std::array<TransferCost, memory::max_sectors_per_line + 1> data_costs_;  ///< by sectors
  // When each of them next has something to do: side by side, because they are asked all the time.
  std::vector<Cycle> next_of_sm_;
  std::vector<Ticks> next_of_slice_;
  std::vector<Ticks> next_of_channel_;
  Cycle sms_next_ = never;
  Ticks slices_next_ = never;
  Ticks channels_next_ = never;
  Cycle sample_cycles_ = 0;
  Cycle next_sample_ = never;
  FutureRequests requests_;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_ahead_ = 0;  ///< of SMs, since somebody was last told
  std::uint64_t moved_ =
      ~std::uint64_t{0};  ///< instructions, packets and transfers at the last watch()
  Ticks last_ = 0;        ///< the last instant
};

/// Adds what ran after the rest.
void append(SimulationResult& whole, const SimulationResult& part) {
  for (TimingSample sample : part.samples) {
    sample.cycle += whole.cycles;
    sample.instructions += whole.instructions;
    sample.slots += whole.slots;
    whole.samples.push_back(sample);
  }
  whole.scheduler_warps.insert(whole.scheduler_warps.end(), part.scheduler_warps.begin(),
                               part.scheduler_warps.end());
  whole.cycles += part.cycles;
  whole.instructions += part.instructions;
  whole.tensor_cycles += part.tensor_cycles;
  whole.active_sms = std::max(whole.active_sms, part.active_sms);
  whole.sm_cycles += part.sm_cycles;
  whole.slots += part.slots;
  whole.details += part.details;
  whole.store_slots += part.store_slots;
  whole.critical_path += part.critical_path;
  whole.miss_latency.misses += part.miss_latency.misses;
  whole.miss_latency.ticks += part.miss_latency.ticks;
  whole.totals += part.totals;
  whole.totals[memory::Total::l2_dirty_sectors] = part.totals[memory::Total::l2_dirty_sectors];
  whole.traffic += part.traffic;
  if (whole.l1_size_bytes == 0) {
    whole.occupancy = part.occupancy;
    whole.l1_size_bytes = part.l1_size_bytes;
  }
}

}  // namespace

Simulator::Simulator(const gpu::Gpu& gpu, double written_by_strangers)
    : config_(TimingConfig::of(gpu, written_by_strangers)),
      l2_(config_.memory.l2),
      repeated_(config_.memory.l2) {}

SimulationResult Simulator::run(const trace::KernelTrace& trace, const SimulationOptions& options) {
  const std::scoped_lock lock(mutex_);
  const auto run = [&] {
    const GridLaunch launch{.trace = &trace, .after = {}, .after_trigger = {}};
    const Grids grids(std::span(&launch, 1), config_);
    return SimulatedGpu(grids, config_, l2_, options, Dispatcher(trace, config_)).run();
  };
  if (options.sample_cycles > 0 || options.fault != SimulationOptions::Fault::none) return run();
  const std::string settings =
      std::to_string(options.max_cycles) + (options.count_rows ? " by row" : "");
  return repeated_.result_of(trace, settings, l2_, run);
}

ConcurrentResult Simulator::run_concurrently(std::span<const GridLaunch> launches,
                                             const SimulationOptions& options) {
  const std::scoped_lock lock(mutex_);
  ConcurrentResult result;
  result.grids.resize(launches.size());
  for (std::size_t g = 0; g < launches.size(); ++g) {
    result.grids[g].instructions = launches[g].trace->totals().instructions;
  }
  std::vector<GridLaunch> all(launches.begin(), launches.end());
  // Who has no trigger triggers at its end.
  for (GridLaunch& launch : all) {
    const auto without = std::ranges::stable_partition(
        launch.after_trigger, [&](std::uint32_t g) { return has_trigger(*all[g].trace); });
    launch.after.insert(launch.after.end(), without.begin(), without.end());
    launch.after_trigger.erase(without.begin(), without.end());
  }
  std::vector<bool> ended(launches.size(), false);
  std::vector<std::uint32_t> numbers(launches.size());
  // Each turn runs launches until the machine is at rest; those that nobody waits for any more
  // begin the next one.
  while (std::ranges::find(ended, false) != ended.end()) {
    const auto is_ready = [&](const GridLaunch& launch) {
      const auto has_ended = [&](std::uint32_t g) { return ended[g]; };
      return std::ranges::all_of(launch.after, has_ended) &&
             std::ranges::all_of(launch.after_trigger, has_ended);
    };
    std::uint32_t num_ready = 0;
    std::uint32_t ready = 0;
    for (std::uint32_t g = 0; g < launches.size(); ++g) {
      if (ended[g] || !is_ready(all[g])) continue;
      ++num_ready;
      ready = g;
    }
    const bool is_alone =
        num_ready == 1 && std::ranges::none_of(all, [&](const GridLaunch& one) {
          return std::ranges::find(one.after_trigger, ready) != one.after_trigger.end();
        });
    std::vector<GridLaunch> left;
    std::vector<std::uint32_t> which;
    for (std::uint32_t g = 0; g < launches.size(); ++g) {
      if (ended[g]) continue;
      // After one alone the machine is at rest, whoever waits for its end.
      if (is_alone && g != ready) continue;
      numbers[g] = static_cast<std::uint32_t>(left.size());
      which.push_back(g);
      left.push_back(all[g]);
    }
    for (GridLaunch& launch : left) {
      for (auto* const before : {&launch.after, &launch.after_trigger}) {
        std::erase_if(*before, [&](std::uint32_t g) { return ended[g]; });
        for (std::uint32_t& g : *before) g = numbers[g];
      }
    }
    const Grids grids(left, config_);
    SimulationOptions own = options;
    const Cycle begin = result.whole.cycles;
    own.count_rows = false;
    if (options.max_cycles > 0) own.max_cycles = std::max<Cycle>(options.max_cycles - begin, 1);
    const std::uint64_t issued = result.whole.instructions;
    if (options.progress) {
      own.progress = [&](std::uint64_t instructions) { options.progress(issued + instructions); };
    }
    using Gpu = SimulatedGpu<GridDispatcher>;
    Gpu gpu(grids, config_, l2_, own,
            GridDispatcher(grids.launches, config_, grids.shared_memory_bytes,
                           Gpu::sms_of(grids, config_)));
    const SimulationResult part = gpu.run();
    Cycle last = 0;
    for (std::uint32_t g = 0; g < left.size(); ++g) last = std::max(last, gpu.end_of_grid(g));
    for (std::uint32_t g = 0; g < left.size(); ++g) {
      if (gpu.dispatcher().is_held(g)) continue;
      ended[which[g]] = true;
      GridTime& time = result.grids[which[g]];
      const Cycle start = gpu.dispatcher().start_of(g);
      time.sms = gpu.sms_of_grid(g);
      time.start = begin + (start == never ? last : start);
      time.end = begin + (start == never ? last : gpu.end_of_grid(g));
      // L2 has the last stores when the last grid has ended.
      if (start != never && gpu.end_of_grid(g) == last) time.end = begin + part.cycles;
    }
    append(result.whole, part);
  }
  return result;
}

}  // namespace warpstack::timing
