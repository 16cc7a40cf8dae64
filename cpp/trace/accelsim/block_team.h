#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "trace/accelsim/reader.h"

namespace warpstack::trace {

/// Threads that parse thread blocks for a reader, the trunk. Each has a branch of the trunk. What
/// they parse is taken over in the order of the file, and what they give up on is parsed again by
/// the trunk, alone, since new instructions get their rows, and errors their lines, in this order.
class BlockTeam {
 public:
  BlockTeam(AccelSimReader& trunk, unsigned num_threads);
  ~BlockTeam();
  BlockTeam(const BlockTeam&) = delete;
  BlockTeam& operator=(const BlockTeam&) = delete;

  /// Gives whole thread blocks as text to the next free thread, and takes over what is parsed.
  /// Throws InputError with the first error of the file.
  void submit(std::string_view text);
  /// Takes over all that was submitted.
  void finish();

 private:
  using Piece = AccelSimReader::Piece;

  void work();
  void take_first();
  [[nodiscard]] bool first_is_done();

  AccelSimReader& trunk_;
  std::deque<std::unique_ptr<Piece>> pieces_;  ///< in order of the file, of the trunk's thread

  std::vector<std::unique_ptr<Piece>> spare_;  ///< to be used again

  std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable has_result_;
  std::deque<Piece*> waiting_;
  unsigned busy_ = 0;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpstack::trace
