#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stand_ins/state/fat_binary.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::cudart {

/// The folder through which a program hands its traces and errors to `warpstack trace`, which
/// creates it and names it in the environment. Without one, kernels run untraced.
///
///     attached            exists once a program has loaded the stand-in
///     state               two 64-bit numbers: launches so far, traced launches so far
///     kernel-N.wstrace    trace of launch N (see trace_file.h); its reader deletes it
///     progress            of a launch that takes longer than a second: its number, blocks done,
///     blocks
///                         of the grid and the kernel's mangled name
///     operations, operation-names
///                         what the host does (see operation_log.h)
///     errors              one line per error that makes the traces or the results incomplete
///     module-P-N.cubin    machine code of process P (.ptx: PTX to assemble) behind a line with its
///                         name for messages; the reader answers with module-P-N.sass, its listing,
///                         or module-P-N.problem, why there is none
///
/// Processes that a traced program starts share the folder: launches are numbered across them.
class Spool {
 public:
  /// Reads the environment: WARPSTACK_CUDART_SPOOL (folder), _KERNEL (POSIX extended regular
  /// expression), _LIMIT (traced launches), _BUDGET (bytes of columns kept in memory) and _READER
  /// (process number). Throws InputError on an impossible value.
  Spool();
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// A launch's number, from 1, and whether to trace it.
  struct Ticket {
    std::uint64_t launch = 0;
    bool traced = false;
  };
  /// Counts a launch of the kernel with this mangled name.
  Ticket next_launch(const std::string& kernel);
  /// Reports the progress of a launch now and then, from a second after its first call on, and its
  /// end.
  void show_progress(std::uint64_t launch, const std::string& kernel, std::uint64_t done,
                     std::uint64_t blocks);
  void end_progress();
  /// Whether all wanted launches have been traced and the program shall end then
  /// (WARPSTACK_CUDART_STOP).
  [[nodiscard]] bool is_enough() const;
  /// Hands a trace over. Waits while too much is unread.
  void write(const trace::KernelTrace& trace);
  /// The listing of a module's machine code, made by the reader, which can run NVIDIA's tools.
  /// Throws InputError when it cannot, or is gone.
  std::string listing(const FatBinaryImage& image, const std::string& name);

  /// The memory for traces under construction.
  [[nodiscard]] const std::shared_ptr<trace::StorageBudget>& storage() const { return storage_; }

 private:
  struct Pattern;

  [[nodiscard]] bool wanted(const std::string& kernel) const;
  [[nodiscard]] std::string file(std::string_view name) const;
  void wait_for_reader() const;
  [[nodiscard]] bool has_reader() const;

  std::string folder_;  ///< empty: none
  std::unique_ptr<Pattern> pattern_;
  std::optional<std::uint64_t> limit_;
  std::shared_ptr<trace::StorageBudget> storage_;
  std::uint64_t local_launches_ = 0;  ///< without a folder
  std::uint64_t shown_launch_ = 0;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point next_look_;
};

/// The value of an environment variable; empty without one.
std::string environment(const char* name);
/// The same as a number. Throws InputError when it is not one.
std::optional<std::uint64_t> environment_number(const char* name);

/// Prints a line on standard error unless it was printed before. Returns whether it was printed.
bool say(std::string_view kind, std::string_view message);

/// Prints an error and hands it to `warpstack trace`, once.
void report(std::string_view message);

}  // namespace warpstack::cudart
