#include "trace/columns/storage_budget.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace warpstack::trace {
namespace {

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Repeats a partial read or write until all bytes are done.
template <typename Call>
void transfer_all(std::uint64_t bytes, const char* what, Call call) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t count = call(done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(what);
    if (count == 0) throw std::system_error(EIO, std::generic_category(), what);
    done += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

SpillFile::SpillFile(const std::string& folder) {
  std::string path = folder + "/warpstack-XXXXXX";
  file_ = ::mkstemp(path.data());
  if (file_ < 0) throw_system_error("cannot create a temporary trace file " + path);
  ::fcntl(file_, F_SETFD, FD_CLOEXEC);
  ::unlink(path.c_str());
}

SpillFile::~SpillFile() { ::close(file_); }

std::uint64_t SpillFile::append(const void* data, std::uint64_t bytes) {
  const std::uint64_t begin = end_.fetch_add(bytes);
  transfer_all(bytes, "cannot write the temporary trace file",
               [&](std::uint64_t done, std::uint64_t rest) {
                 return ::pwrite(file_, static_cast<const char*>(data) + done, rest,
                                 static_cast<off_t>(begin + done));
               });
  return begin;
}

void SpillFile::read(std::uint64_t offset, void* target, std::uint64_t bytes) const {
  transfer_all(bytes, "cannot read the temporary trace file",
               [&](std::uint64_t done, std::uint64_t rest) {
                 return ::pread(file_, static_cast<char*>(target) + done, rest,
                                static_cast<off_t>(offset + done));
               });
}

bool StorageBudget::try_take(std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

SpillFile& StorageBudget::spill_file() {
  const std::scoped_lock lock(mutex_);
  if (!file_) file_ = std::make_unique<SpillFile>(spill_folder_);
  return *file_;
}

StorageBudget::Chunk StorageBudget::take_chunk() {
  {
    const std::scoped_lock lock(mutex_);
    if (!spare_chunks_.empty()) {
      Chunk chunk = std::move(spare_chunks_.back());
      spare_chunks_.pop_back();
      return chunk;
    }
  }
  return std::make_unique_for_overwrite<std::byte[]>(chunk_bytes);
}

void StorageBudget::leave_chunk(Chunk chunk) {
  const std::scoped_lock lock(mutex_);
  if (spare_chunks_.size() < most_spare_chunks) spare_chunks_.push_back(std::move(chunk));
}

}  // namespace warpstack::trace
