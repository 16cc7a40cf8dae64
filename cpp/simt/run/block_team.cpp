#include "simt/run/block_team.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace warpstack::simt {
namespace {

/// A member whose columns are larger takes no further block beyond its share.
constexpr std::uint64_t most_kept_bytes = std::uint64_t{64} << 20;

// A block that sees old memory may run for ever. It ends when it has executed many times as many
// warp instructions as the first member, and more than this.
constexpr std::uint64_t many_times = 16;
constexpr std::uint64_t most_lost_instructions = std::uint64_t{1} << 23;

}  // namespace

BlockTeam::Member::Member(BlockTeam& team, Execution& launch, const Recorder& trunk, bool is_first)
    : options(launch.options),
      view(launch.device.memory),
      execution(launch.device, launch.program, launch.parameters, options, launch.bound_textures) {
  options.progress = {};
  options.note = {};
  if (!is_first) {
    options.interrupt = [this, &team] {
      const std::uint64_t done = execution.warp_instructions - share.begin;
      if (team.abandoned_ || done > team.most_instructions_) throw Abandoned{};
    };
  } else if (options.interrupt) {
    options.interrupt = [&team, check = launch.options.interrupt] {
      try {
        check();
      } catch (...) {
        team.interruption_ = std::current_exception();
        throw Abandoned{};
      }
    };
  }
  execution.constant_banks = launch.constant_banks;
  execution.first_frame = launch.first_frame;
  execution.view = &view;
  runner.emplace(execution, trunk);
}

BlockTeam::BlockTeam(Execution& launch, Recorder& recorder, std::uint32_t num_members)
    : launch_(launch), recorder_(recorder), waiting_(num_members) {
  for (std::uint32_t i = 0; i < num_members; ++i) {
    members_.push_back(std::make_unique<Member>(*this, launch, recorder, i == 0));
  }
  // Signals are for the threads of the program whose kernel runs here; it has its handlers.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (std::uint32_t i = 1; i < num_members; ++i) {
      members_[i]->thread = std::thread([this, i] { work(*members_[i]); });
    }
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    stop();
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BlockTeam::~BlockTeam() { stop(); }

void BlockTeam::stop() {
  {
    const std::scoped_lock lock(mutex_);
    quits_ = true;
  }
  has_begun_.notify_all();
  for (const auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

void BlockTeam::work(Member& member) {
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      has_begun_.wait(lock, [&] { return quits_ || round_ != seen; });
      if (quits_) return;
      seen = round_;
    }
    run_share(member);
    const std::scoped_lock lock(mutex_);
    if (--num_working_ == 0) has_ended_.notify_one();
  }
}

void BlockTeam::run_share(Member& member) {
  Share& share = member.share;
  BlockRunner& runner = *member.runner;
  try {
    for (; share.done < share.blocks; ++share.done) {
      if (abandoned_) throw Abandoned{};
      if (share.may_end_early && share.done > 0 &&
          (enough_ || bytes_of(member.records.columns.counts()) > most_kept_bytes)) {
        break;
      }
      runner.start(share.first + share.done);
      if (!runner.run_to_end()) throw NeedsItsTurn{};
      runner.recorder().keep_block(member.records);
    }
    runner.recorder().keep_counts(member.records);
    share.warp_instructions = member.execution.warp_instructions - share.begin;
  } catch (const NeedsItsTurn&) {
    share.has_failed = share.needs_its_turn = true;
  } catch (...) {
    // This is a fault of the kernel, or looks like one because the blocks ran too early, or memory
    // is too small for so much at once. A real fault comes again when it is its turn.
    share.has_failed = true;
  }
}

void BlockTeam::begin_round(const Round& round, const Patience& patience) {
  begin_patience_ = patience;
  enough_ = false;
  abandoned_ = false;
  most_instructions_ = ~std::uint64_t{0};
  const std::uint64_t instructions_left = launch_.options.step_limit - launch_.warp_instructions;
  std::uint64_t next = round.first;
  for (const auto& member : members_) {
    const bool is_first = member == members_.front();
    const bool is_last = member == members_.back();
    const std::uint64_t rest = round.first + round.most - next;
    member->share = {.first = next,
                     .blocks = is_last ? rest : std::min(round.per_member, rest),
                     .may_end_early = is_last,
                     .begin = member->execution.warp_instructions};
    next += member->share.blocks;
    member->records.clear();
    member->view.begin(!is_first);
    member->options.step_limit = member->share.begin + instructions_left;
    member->execution.thread_instructions = 0;
    member->runner->patience() = patience;
    member->runner->recorder().begin_ahead();
  }
  {
    const std::scoped_lock lock(mutex_);
    num_working_ = members_.size() - 1;
    ++round_;
  }
  has_begun_.notify_all();
}

void BlockTeam::wait() {
  std::unique_lock lock(mutex_);
  has_ended_.wait(lock, [this] { return num_working_ == 0; });
}

BlockTeam::Outcome BlockTeam::run(const Round& round, Patience& patience) {
  // A block has allocated more: the next ones will, too.
  if (!members_.front()->view.covers_all()) return {.is_hopeless = true};
  begin_round(round, patience);
  try {
    // The others run already: the blocks of the last round are stored beside them.
    store_records();
    run_share(*members_.front());
  } catch (...) {
    abandoned_ = true;
    wait();
    throw;
  }
  enough_ = true;
  most_instructions_ =
      std::max(many_times * members_.front()->share.warp_instructions, most_lost_instructions);
  if (members_.front()->share.has_failed) abandoned_ = true;
  wait();
  if (interruption_) std::rethrow_exception(std::exchange(interruption_, nullptr));
  return commit(patience);
}

bool BlockTeam::holds(std::size_t member, const Patience& before) const {
  // The time at which a block is watched for spinning depends on earlier blocks.
  if (begin_patience_ != before) return false;
  const MemoryView& view = members_[member]->view;
  return std::none_of(members_.begin(), members_.begin() + static_cast<std::ptrdiff_t>(member),
                      [&](const auto& earlier) { return view.conflicts_with(earlier->view); });
}

BlockTeam::Outcome BlockTeam::commit(Patience& patience) {
  Outcome outcome;
  outcome.is_hopeless = members_.front()->share.needs_its_turn;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = *members_[i];
    const Share& share = member.share;
    const std::uint64_t rest = launch_.options.step_limit - launch_.warp_instructions;
    if (share.has_failed || share.warp_instructions > rest || !holds(i, patience)) return outcome;
    member.view.commit();
    launch_.warp_instructions += share.warp_instructions;
    launch_.thread_instructions += member.execution.thread_instructions;
    patience = member.runner->patience();
    outcome.blocks += share.done;
    std::swap(waiting_[num_waiting_++], member.records);
  }
  outcome.all = true;
  return outcome;
}

void BlockTeam::store_records() {
  // If storing fails, the launch fails: nothing is tried again.
  const std::size_t count = std::exchange(num_waiting_, 0);
  for (std::size_t i = 0; i < count; ++i) recorder_.store(waiting_[i]);
}

}  // namespace warpstack::simt
