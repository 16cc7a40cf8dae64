#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/error.h"
#include "common/text.h"
#include "sass/text/built_ins.h"
#include "sass/text/module.h"

namespace warpstack::sass {
namespace {

constexpr std::uint64_t max_section_bytes = std::uint64_t{4} << 30;
/// The most zeros between .hex lines of a listing. They are stored, and a small file must not fill
/// memory.
constexpr std::uint64_t max_gap_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t max_bank_bytes = std::uint64_t{64} << 10;
/// Volta is not tested; earlier architectures have instructions of eight bytes.
constexpr std::uint32_t first_arch = 75;
/// The registers of a thread: R0 to R254.
constexpr std::uint32_t max_registers = 255;
constexpr std::uint32_t last_barrier = 5;
constexpr std::uint32_t no_barrier = 7;
constexpr std::uint64_t most_count = ~std::uint64_t{0};
constexpr std::size_t most_calls = std::size_t{1} << 24;
/// The most characters of a wrong text that a message repeats.
constexpr std::size_t most_text = 1000;
constexpr std::string_view blanks = " \t";

/// Instructions after which control never continues.
constexpr std::string_view last_opcodes[] = {"EXIT", "RET", "BRA", "BRX",
                                             "JMP",  "JMX", "BPT", "KILL"};

bool ends_code(const Instruction& last) {
  const std::string_view opcode = last.opcode;
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  const auto may_fail = [](const Operand& predicate) {
    return predicate.is_predicate() && (predicate.index != true_predicate || predicate.negated);
  };
  return std::ranges::find(last_opcodes, base) != std::end(last_opcodes) &&
         !(last.is_guarded && may_fail(last.guard)) &&
         !std::ranges::any_of(last.operands, may_fail);
}

/// Reads a listing line by line.
class ListingParser {
 public:
  ListingParser(std::string_view text, std::string file, TextOf source) : rest_(text) {
    module_.file = std::move(file);
    module_.source = source;
  }

  Module run() {
    if (!next_line() || word() != ".sass" || word() != "1") {
      fail(
          "the first line must be .sass 1: this is not a listing of machine code, or of another "
          "version of the program");
    }
    while (next_line()) {
      const std::string_view first = word();
      if (first.empty() || first.starts_with("//")) continue;
      if (first[0] == '.') {
        directive(first);
      } else {
        instruction(first);
      }
    }
    if (kernel_ != nullptr)
      fail("kernel " + kernel_->name + " has no .end: the listing is cut off");
    if (module_.target.empty()) fail("there is no .target: the architecture, as in .target sm_80");
    check_symbols();
    return std::move(module_);
  }

 private:
  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++number_;
    return true;
  }
  static std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
  }
  std::string_view word() {
    line_ = trimmed(line_);
    const std::size_t end = line_.find_first_of(blanks);
    const std::string_view result = line_.substr(0, end);
    line_ = end == std::string_view::npos ? std::string_view{} : line_.substr(end + 1);
    return result;
  }
  std::string_view rest_of_line() { return trimmed(std::exchange(line_, {})); }
  [[noreturn]] void fail(const std::string& reason) const {
    const std::string what = shortened(reason, most_text);
    if (module_.source == TextOf::listing) {
      const std::size_t line = std::max<std::size_t>(number_, 1);
      throw InputError(module_.file + ":" + std::to_string(line) + ": " + what +
                       " (make the listing anew: MachineModule.listing)");
    }
    std::string place = module_.file;
    if (kernel_ != nullptr) place += ": kernel " + kernel_->name;
    if (in_instruction_) {
      place += ", machine code at " + hexadecimal(kernel_->code.size() * instruction_bytes);
    }
    throw InputError(place + ": " + what +
                     " (compile the cubin anew; if that does not help, take another version of "
                     "nvidia-cuda-nvdisasm)");
  }
  template <class T>
  T number_in(std::string_view text, const char* field, std::uint64_t most, int base = 10) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || value > most) {
      fail(std::string(field) + " is \"" + std::string(text) + "\", not a number up to " +
           std::to_string(most) + (base == 16 ? " in hexadecimal" : ""));
    }
    return static_cast<T>(value);
  }
  template <class T>
  T number(const char* field, std::uint64_t most) {
    return number_in<T>(word(), field, most);
  }
  std::string name(const char* field) {
    const std::string_view text = word();
    if (text.empty()) fail(std::string(field) + " is missing");
    return std::string(text);
  }
  Section& section() {
    if (module_.sections.empty()) fail("there is no .section before it");
    return module_.sections.back();
  }
  Kernel& kernel() {
    if (kernel_ == nullptr) fail("there is no .kernel before it");
    return *kernel_;
  }

  void directive(std::string_view what) {
    if (what == ".target") {
      target();
    } else if (what == ".file") {
      source_file();
    } else if (what == ".inlined") {
      inlined_call();
    } else if (what == ".section") {
      Section next;
      next.name = name("the section's name");
      next.size = number<std::uint64_t>(("the size of section " + next.name).c_str(),
                                        next.bank() >= 0 ? max_bank_bytes : max_section_bytes);
      if (!section_sizes_.emplace(next.name, next.size).second) {
        fail("there are two sections " + next.name);
      }
      module_.sections.push_back(std::move(next));
    } else if (what == ".hex") {
      hex();
    } else if (what == ".address") {
      AddressField field;
      field.offset = number<std::uint64_t>("the offset", max_section_bytes);
      field.symbol = name("the symbol");
      const std::string_view addend = word();
      const bool negative = addend.starts_with('-');
      field.addend =
          number_in<std::int64_t>(addend.substr(negative ? 1 : 0), "the addend", max_section_bytes);
      if (negative) field.addend = -field.addend;
      if (!trimmed(line_).empty()) {
        field.first = number<std::uint64_t>("the first byte of the address", 7);
        field.bytes = number<std::uint64_t>("the number of its bytes", 8 - field.first);
      }
      if (field.offset + field.bytes > section().size) {
        fail("the address of " + field.symbol + " at " + std::to_string(field.offset) +
             " lies outside its section " + section().name + " of " +
             std::to_string(section().size) + " bytes");
      }
      address_lines_.push_back({number_, field.symbol});
      section().addresses.push_back(std::move(field));
    } else if (what == ".symbol") {
      std::string symbol = name("the symbol");
      Symbol value;
      value.section = name("the section");
      value.offset = number<std::uint64_t>("the offset", max_section_bytes);
      value.bytes = number<std::uint64_t>("the size", max_section_bytes);
      if (!module_.symbols.emplace(symbol, std::move(value)).second) {
        fail("there are two symbols " + symbol);
      }
    } else {
      kernel_directive(what);
    }
    if (const std::string_view more = rest_of_line(); !more.empty()) {
      fail("behind what " + std::string(what) + " needs there is \"" + std::string(more) + "\"");
    }
  }

  void source_file() {
    const auto place = number<std::size_t>("the file's number", 1 << 20);
    const std::string_view text = trimmed(line_);
    const std::size_t end = text.rfind('"');
    if (place != module_.sources.files.size() + 1 || !text.starts_with('"') || end == 0) {
      fail("file " + std::to_string(place) + " is " + std::string(text) +
           ": files are numbered from 1, in order, with names in quotes");
    }
    trace::SourceFile& file = module_.sources.files.emplace_back();
    file.name = text.substr(1, end - 1);
    line_ = trimmed(text.substr(end + 1));
    if (line_.empty()) return;
    file.time = number<std::uint64_t>("the file's time", most_count);
    file.bytes = number<std::uint64_t>("the file's size", most_count);
  }

  void inlined_call() {
    const auto place = number<std::size_t>("the number of the inlined call", most_calls);
    if (place != module_.sources.calls.size() + 1) {
      fail("inlined call " + std::to_string(place) + " comes after " +
           std::to_string(module_.sources.calls.size()) + ": they are numbered from 1, in order");
    }
    const trace::StaticInstruction call = source_place(word());
    module_.sources.calls.push_back({.function = std::string(word()),
                                     .file = call.source_file,
                                     .line = call.source_line,
                                     .caller = call.inlined_at});
  }

  /// FILE:LINE or FILE:LINE@CALL.
  trace::StaticInstruction source_place(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
      fail("the place is \"" + std::string(text) + "\", not like 1:12");
    }
    const std::size_t at = text.find('@');
    trace::StaticInstruction place;
    place.source_file = number_in<std::uint32_t>(text.substr(0, colon), "the file's number",
                                                 module_.sources.files.size());
    place.source_line =
        number_in<std::uint32_t>(text.substr(colon + 1, at - colon - 1), "the line", 1 << 30);
    if (at != std::string_view::npos) {
      place.inlined_at = number_in<std::uint32_t>(text.substr(at + 1), "the inlined call",
                                                  module_.sources.calls.size());
    }
    return place;
  }

  void target() {
    if (!module_.target.empty()) fail("there are two .target");
    module_.target = name("the target");
    if (!module_.target.starts_with("sm_")) {
      fail("the target is \"" + module_.target + "\", not like sm_80");
    }
    std::string_view digits = std::string_view(module_.target).substr(3);
    if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.remove_suffix(1);
    module_.arch = number_in<std::uint32_t>(digits, "the target's number", 999);
    if (module_.arch < first_arch) {
      fail("machine code for " + module_.target + " is not read: compile for sm_75 to sm_121");
    }
  }

  /// A symbol may come before its section, and an address before its symbol. Addresses in a cubin
  /// may be those of driver functions that are not called.
  void check_symbols() {
    for (const auto& [name, symbol] : module_.symbols) {
      const auto section = section_sizes_.find(symbol.section);
      if (section == section_sizes_.end()) {
        fail("symbol " + name + " lies in section " + symbol.section + ", which is not there");
      }
      if (symbol.offset > section->second || symbol.bytes > section->second - symbol.offset) {
        fail("symbol " + name + " has " + std::to_string(symbol.bytes) + " bytes at " +
             std::to_string(symbol.offset) + ", beyond its section " + symbol.section + " of " +
             std::to_string(section->second) + " bytes");
      }
    }
    if (module_.source == TextOf::cubin) return;
    for (const auto& [line, name] : address_lines_) {
      const bool is_function = std::ranges::any_of(module_.kernels, [&](const Kernel& kernel) {
        return kernel.name == name || kernel.labels.contains(name);
      });
      if (is_function || module_.symbols.contains(name) || section_sizes_.contains(name) ||
          find_built_in(name) != nullptr) {
        continue;
      }
      number_ = line;
      fail("symbol " + name + ", whose address is wanted, is not there: it has no .symbol");
    }
  }

  void kernel_directive(std::string_view what) {
    if (what == ".kernel") {
      if (kernel_ != nullptr) fail("kernel " + kernel_->name + " has no .end");
      std::string next = name("the kernel's name");
      if (!kernel_names_.insert(next).second) fail("there are two kernels " + next);
      module_.kernels.emplace_back().name = std::move(next);
      kernel_ = &module_.kernels.back();
    } else if (what == ".needs") {
      kernel().registers = number<std::uint32_t>("the number of registers", max_registers);
      kernel().shared_bytes = number<std::uint64_t>("shared memory", 1 << 20);
      kernel().local_bytes = number<std::uint64_t>("local memory", 1 << 20);
      kernel().max_threads = number<std::uint32_t>("the number of threads", 1024);
      if (kernel_->max_threads == 0) {
        fail("the number of threads of kernel " + kernel_->name + " is 0, not 1 to 1024");
      }
    } else if (what == ".cluster") {
      for (std::uint64_t& size : kernel().required_cluster) {
        size = number<std::uint64_t>("the cluster's size", 1 << 16);
        if (size == 0) fail("a size of the cluster of kernel " + kernel_->name + " is 0");
      }
    } else if (what == ".parameters") {
      kernel().parameter_base = number<std::uint32_t>("the parameters' place", 1 << 16);
      kernel().parameter_bytes = number<std::uint64_t>("the parameters' size", 1 << 16);
      if (kernel_->parameter_base + kernel_->parameter_bytes > max_bank_bytes) {
        fail("the parameters take " + std::to_string(kernel_->parameter_bytes) + " bytes at " +
             std::to_string(kernel_->parameter_base) + ", beyond a constant bank's " +
             std::to_string(max_bank_bytes));
      }
    } else if (what == ".param") {
      Parameter parameter;
      parameter.type = name("the type");
      parameter.offset = number<std::uint64_t>("the offset", 1 << 16);
      parameter.bytes = number<std::uint64_t>("the size", 1 << 16);
      if (parameter.offset + parameter.bytes > kernel().parameter_bytes) {
        fail("parameter " + std::to_string(kernel_->parameters.size() + 1) + " has " +
             std::to_string(parameter.bytes) + " bytes at " + std::to_string(parameter.offset) +
             ", beyond the parameters' " + std::to_string(kernel_->parameter_bytes));
      }
      if (!kernel_->parameters.empty()) {
        const Parameter& last = kernel_->parameters.back();
        if (parameter.offset < last.offset + last.bytes) {
          fail("parameter " + std::to_string(kernel_->parameters.size() + 1) + " is at " +
               std::to_string(parameter.offset) + ", before the end of the one before it at " +
               std::to_string(last.offset + last.bytes));
        }
      }
      kernel().parameters.push_back(std::move(parameter));
    } else if (what == ".label") {
      std::string label = name("the label");
      const auto address = number<std::uint32_t>("the address", 1 << 30);
      if (!kernel().labels.emplace(label, address).second) fail("there are two labels " + label);
    } else if (what == ".end") {
      end_kernel();
    } else {
      fail("there is no directive " + std::string(what));
    }
  }

  void end_kernel() {
    Kernel& done = kernel();
    done.changes_registers = std::ranges::any_of(done.code, [](const Instruction& each) {
      return each.opcode.find("SETMAXREG") != std::string::npos;
    });
    if (done.code.empty()) fail("kernel " + done.name + " has no instructions");
    if (done.registers == 0) fail("kernel " + done.name + " has no .needs with its registers");
    check_registers(done);
    for (const auto& [label, address] : done.labels) {
      if (address % instruction_bytes != 0 || address / instruction_bytes >= done.code.size()) {
        fail("label " + label + " is " + hexadecimal(address) +
             ", which is not the address of an instruction of kernel " + done.name);
      }
    }
    if (const Instruction& last = done.code.back(); !ends_code(last)) {
      fail("kernel " + done.name + " ends in " +
           (last.is_guarded ? "@" + last.guard.text + " " : "") + last.opcode + " at " +
           hexadecimal(last.address) +
           ", behind which there are no instructions: EXIT, RET or BRA is missing");
    }
    kernel_ = nullptr;
  }

  /// USETMAXREG changes the number at run time.
  void check_registers(const Kernel& done) const {
    if (done.changes_registers) return;
    std::uint32_t most = 0;
    const Instruction* user = nullptr;
    const auto count = [&](const Instruction& instruction, std::uint32_t index) {
      if (index == zero_register || index == Operand::no_base || index < most) return;
      most = index + 1;
      user = &instruction;
    };
    for (const Instruction& instruction : done.code) {
      for (const Operand& operand : instruction.operands) {
        if (operand.kind == Operand::Kind::reg) count(instruction, operand.index);
        count(instruction, operand.base);
      }
    }
    if (most > done.registers) {
      fail("kernel " + done.name + " has " + std::to_string(done.registers) +
           " registers by its .needs, and " + user->opcode + " at " + hexadecimal(user->address) +
           " uses R" + std::to_string(most - 1) + ": .needs must say " + std::to_string(most) +
           " or more");
    }
  }

  /// An SM's issue logic has scoreboard barriers 0 to 5.
  void check_barriers(const Instruction& instruction) const {
    const auto check = [this](const char* what, std::uint32_t number) {
      if (number > last_barrier && number != no_barrier) {
        fail(std::string("the control's ") + what + " barrier is " + std::to_string(number) +
             ", not 0 to 5 or 7 (none)");
      }
    };
    check("write", instruction.control.write_barrier);
    check("read", instruction.control.read_barrier);
    if (!instruction.opcode.starts_with("DEPBAR")) return;
    for (const Operand& operand : instruction.operands) {
      std::string_view names = operand.text;
      const bool is_list = names.starts_with('{');
      if (!is_list && !names.starts_with("SB")) continue;
      names.remove_prefix(is_list ? 1 : 2);
      if (is_list && names.ends_with('}')) names.remove_suffix(1);
      while (!names.empty()) {
        const std::size_t end = names.find(',');
        const std::string_view name = trimmed(names.substr(0, end));
        if (name.size() != 1 || name[0] < '0' || name[0] > '0' + static_cast<char>(last_barrier)) {
          fail(instruction.opcode + " names barrier \"" + std::string(name) + "\" in " +
               operand.text + ", not 0 to 5");
        }
        names = end == std::string_view::npos ? std::string_view{} : names.substr(end + 1);
      }
    }
  }

  void hex() {
    auto offset = number<std::size_t>("the offset", max_section_bytes);
    const std::string_view digits = word();
    auto& bytes = section().bytes;
    if (digits.size() % 2 != 0 || offset > section().size ||
        digits.size() / 2 > section().size - offset) {
      fail(std::to_string(digits.size()) + " digits at " + std::to_string(offset) +
           " are not whole bytes within section " + section().name + " of " +
           std::to_string(section().size) + " bytes");
    }
    if (offset > bytes.size()) gap_bytes_ += offset - bytes.size();
    if (gap_bytes_ > max_gap_bytes) {
      fail("the digits at " + std::to_string(offset) + " leave out " + std::to_string(gap_bytes_) +
           " bytes of zeros before and between them, more than " + std::to_string(max_gap_bytes));
    }
    bytes.resize(std::max(bytes.size(), offset + digits.size() / 2));
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      bytes[offset++] =
          static_cast<std::byte>(number_in<unsigned>(digits.substr(i, 2), "a byte", 255, 16));
    }
  }

  void instruction(std::string_view control) {
    Instruction result;
    result.address = static_cast<std::uint32_t>(kernel().code.size()) * instruction_bytes;
    result.listing_line = static_cast<std::uint32_t>(number_);
    in_instruction_ = true;
    result.control = decode_control(number_in<std::uint32_t>(control, "the control", 0x1fffff, 16));
    const trace::StaticInstruction place = source_place(word());
    result.file = place.source_file;
    result.line = place.source_line;
    result.inlined_at = place.inlined_at;
    std::string_view opcode = word();
    if (opcode.starts_with('@')) {
      result.is_guarded = true;
      result.guard = operand(opcode.substr(1));
      if (!result.guard.is_predicate())
        fail("the guard " + std::string(opcode) + " is not a predicate");
      opcode = word();
    }
    if (opcode.empty()) fail("the opcode is missing");
    result.opcode = opcode;
    const std::string_view operands = rest_of_line();
    for (std::size_t at = 0; at < operands.size();) {
      const std::size_t end = end_of_operand(operands, at);
      const std::string_view text = trimmed(operands.substr(at, end - at));
      if (text.empty() || end + 1 == operands.size()) {
        fail("an operand is missing in \"" + std::string(operands) + "\"");
      }
      if (text.find_first_of(blanks) != std::string_view::npos) {
        fail("operand \"" + std::string(text) + "\" has a blank in it: operands are separated by " +
             "commas");
      }
      result.operands.push_back(operand(text));
      at = end + 1;
    }
    check_barriers(result);
    kernel().code.push_back(std::move(result));
    in_instruction_ = false;
  }
  /// The position of the comma behind the operand at `at`, or the end; commas in brackets belong to
  /// the operand.
  static std::size_t end_of_operand(std::string_view operands, std::size_t at) {
    std::size_t depth = 0;
    for (; at < operands.size() && (operands[at] != ',' || depth > 0); ++at) {
      if (operands[at] == '[' || operands[at] == '{') ++depth;
      if ((operands[at] == ']' || operands[at] == '}') && depth > 0) --depth;
    }
    return at;
  }

  Operand operand(std::string_view text) {
    try {
      return parse_operand(text);
    } catch (const InputError& error) {
      fail(error.what());
    }
  }

  Module module_;
  std::string_view rest_;
  std::string_view line_;
  std::size_t number_ = 0;
  Kernel* kernel_ = nullptr;
  bool in_instruction_ = false;
  std::set<std::string, std::less<>> kernel_names_;
  std::map<std::string, std::uint64_t, std::less<>> section_sizes_;
  std::uint64_t gap_bytes_ = 0;
  std::vector<std::pair<std::size_t, std::string>> address_lines_;  ///< of symbols
};

}  // namespace

Module parse(std::string_view text, std::string file, TextOf source) {
  return ListingParser(text, std::move(file), source).run();
}

}  // namespace warpstack::sass
