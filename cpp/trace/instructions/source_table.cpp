#include "trace/instructions/source_table.h"

#include <map>
#include <tuple>

#include "common/error.h"

namespace warpstack::trace {
namespace {

/// Gives numbers in the order in which files and calls are first asked for.
class UsedSources {
 public:
  explicit UsedSources(const SourceTable& all)
      : all_(all), files_(all.files.size() + 1), calls_(all.calls.size() + 1) {}

  std::uint32_t file(std::uint32_t number) {
    const SourceFile* const file = all_.file(number);
    if (file == nullptr) return 0;
    std::uint32_t& known = files_[number];
    if (known == 0) {
      const auto next = static_cast<std::uint32_t>(used_.files.size() + 1);
      const auto [entry, is_new] =
          same_.try_emplace(std::tuple(file->name, file->time, file->bytes), next);
      if (is_new) used_.files.push_back(*file);
      known = entry->second;
    }
    return known;
  }

  std::uint32_t call(std::uint32_t number) {
    if (number == 0 || number > all_.calls.size()) return 0;
    // Callers come first, so that the longest chain needs no recursion.
    std::vector<std::uint32_t> chain;
    for (std::uint32_t next = number; next != 0 && calls_[next] == 0;
         next = all_.calls[next - 1].caller) {
      chain.push_back(next);
    }
    for (auto next = chain.rbegin(); next != chain.rend(); ++next) {
      InlinedCall call = all_.calls[*next - 1];
      call.file = file(call.file);
      call.caller = calls_[call.caller];
      used_.calls.push_back(std::move(call));
      calls_[*next] = static_cast<std::uint32_t>(used_.calls.size());
    }
    return calls_[number];
  }

  SourceTable take() { return std::move(used_); }

 private:
  const SourceTable& all_;
  std::vector<std::uint32_t> files_;
  std::vector<std::uint32_t> calls_;
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::uint32_t> same_;
  SourceTable used_;
};

[[noreturn]] void fail_file(const std::string& who, std::uint32_t file, std::size_t files) {
  throw InputError(who + " names source file " + std::to_string(file) + " of " +
                   std::to_string(files));
}

}  // namespace

const SourceFile* SourceTable::file(std::uint32_t number) const {
  return number == 0 || number > files.size() ? nullptr : &files[number - 1];
}

std::string SourceTable::place(std::uint32_t file, std::uint32_t line) const {
  const SourceFile* const found = this->file(file);
  if (found == nullptr || line == 0) return {};
  return found->name.substr(found->name.rfind('/') + 1) + ":" + std::to_string(line);
}

void SourceTable::validate() const {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string who = "inlined call " + std::to_string(i + 1);
    if (calls[i].file > files.size()) fail_file(who, calls[i].file, files.size());
    if (calls[i].caller > i) {
      throw InputError(who + " has the caller " + std::to_string(calls[i].caller) +
                       ", which does not come before it");
    }
  }
}

void SourceTable::check(const StaticInstruction& instruction) const {
  const auto who = [&instruction] {
    return "instruction " + instruction.opcode + " at pc " + std::to_string(instruction.pc);
  };
  if (instruction.source_file > files.size()) {
    fail_file(who(), instruction.source_file, files.size());
  }
  if (instruction.inlined_at > calls.size()) {
    throw InputError(who() + " names inlined call " + std::to_string(instruction.inlined_at) +
                     " of " + std::to_string(calls.size()));
  }
}

SourceTable take_used(const SourceTable& all, std::span<StaticInstruction> instructions) {
  UsedSources used(all);
  for (StaticInstruction& instruction : instructions) {
    instruction.source_file = used.file(instruction.source_file);
    instruction.inlined_at = used.call(instruction.inlined_at);
  }
  return used.take();
}

}  // namespace warpstack::trace
