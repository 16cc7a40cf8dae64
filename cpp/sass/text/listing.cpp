#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "common/error.h"
#include "sass/module.h"

namespace warpstack::sass {
namespace {

constexpr std::uint64_t max_section_bytes = std::uint64_t{4} << 30;
/// Of zeros between two .hex, which a listing leaves out.
constexpr std::uint64_t max_gap_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t max_bank_bytes = std::uint64_t{64} << 10;

/// Reads a listing line by line.
class ListingParser {
 public:
  ListingParser(std::string_view text, std::string file) : rest_(text) {
    module_.file = std::move(file);
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
    return std::move(module_);
  }

 private:
  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    ++number_;
    return true;
  }
  std::string_view word() {
    while (line_.starts_with(' ')) line_.remove_prefix(1);
    const std::size_t end = line_.find(' ');
    const std::string_view result = line_.substr(0, end);
    line_ = end == std::string_view::npos ? std::string_view{} : line_.substr(end + 1);
    return result;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(module_.file + ":" + std::to_string(number_) + ": " + what);
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
      module_.target = name("the target");
      if (!module_.target.starts_with("sm_")) fail("the target is not like sm_80");
      module_.arch = number_in<std::uint32_t>(std::string_view(module_.target).substr(3),
                                              "the target's number", 999);
    } else if (what == ".file") {
      const auto place = number<std::size_t>("the file's number", 1 << 20);
      const std::string_view quoted = word();
      if (place != module_.source_files.size() + 1 || quoted.size() < 2) {
        fail("files are numbered from 1, in order, with names in quotes");
      }
      module_.source_files.emplace_back(quoted.substr(1, quoted.size() - 2));
    } else if (what == ".section") {
      Section next;
      next.name = name("the section's name");
      next.size =
          number<std::uint64_t>("its size", next.bank() >= 0 ? max_bank_bytes : max_section_bytes);
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
      if (field.offset + 8 > section().size) fail("the address lies outside its section");
      section().addresses.push_back(std::move(field));
    } else if (what == ".symbol") {
      std::string symbol = name("the symbol");
      Symbol value;
      value.section = name("the section");
      value.offset = number<std::uint64_t>("the offset", max_section_bytes);
      value.bytes = number<std::uint64_t>("the size", max_section_bytes);
      module_.symbols.emplace(std::move(symbol), std::move(value));
    } else {
      kernel_directive(what);
    }
  }

  void kernel_directive(std::string_view what) {
    if (what == ".kernel") {
      if (kernel_ != nullptr) fail("kernel " + kernel_->name + " has no .end");
      module_.kernels.emplace_back().name = name("the kernel's name");
      kernel_ = &module_.kernels.back();
    } else if (what == ".needs") {
      kernel().registers = number<std::uint32_t>("the number of registers", 256);
      kernel().shared_bytes = number<std::uint64_t>("shared memory", 1 << 20);
      kernel().local_bytes = number<std::uint64_t>("local memory", 1 << 20);
      kernel().max_threads = number<std::uint32_t>("the number of threads", 1024);
    } else if (what == ".parameters") {
      kernel().parameter_base = number<std::uint32_t>("the parameters' place", 1 << 16);
      kernel().parameter_bytes = number<std::uint64_t>("the parameters' size", 1 << 16);
    } else if (what == ".param") {
      Parameter parameter;
      parameter.type = name("the type");
      parameter.offset = number<std::uint64_t>("the offset", 1 << 16);
      parameter.bytes = number<std::uint64_t>("the size", 1 << 16);
      kernel().parameters.push_back(std::move(parameter));
    } else if (what == ".label") {
      std::string label = name("the label");
      kernel().labels[std::move(label)] = number<std::uint32_t>("the address", 1 << 30);
    } else if (what == ".end") {
      if (kernel().code.empty()) fail("kernel " + kernel_->name + " has no instructions");
      kernel_ = nullptr;
    } else {
      fail("there is no directive " + std::string(what));
    }
  }

  void hex() {
    auto offset = number<std::size_t>("the offset", max_section_bytes);
    const std::string_view digits = word();
    auto& bytes = section().bytes;
    if (digits.size() % 2 != 0 || offset > section().size ||
        digits.size() / 2 > section().size - offset || offset > bytes.size() + max_gap_bytes) {
      fail("the digits are not whole bytes within the section");
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
    result.control = decode_control(number_in<std::uint32_t>(control, "the control", 0x1fffff, 16));
    const std::string_view place = word();
    const std::size_t colon = place.find(':');
    if (colon == std::string_view::npos) fail("the place is not like 1:12");
    result.file = number_in<std::uint32_t>(place.substr(0, colon), "the file's number",
                                           module_.source_files.size());
    result.line = number_in<std::uint32_t>(place.substr(colon + 1), "the line", 1 << 30);
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
    std::string_view operands = word();
    while (!operands.empty()) {
      std::size_t depth = 0;
      std::size_t end = 0;
      for (; end < operands.size() && (operands[end] != ',' || depth > 0); ++end) {
        if (operands[end] == '[' || operands[end] == '{') ++depth;
        if ((operands[end] == ']' || operands[end] == '}') && depth > 0) --depth;
      }
      result.operands.push_back(operand(operands.substr(0, end)));
      operands = end < operands.size() ? operands.substr(end + 1) : std::string_view{};
    }
    kernel().code.push_back(std::move(result));
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
};

}  // namespace

Module parse(std::string_view text, std::string file) {
  return ListingParser(text, std::move(file)).run();
}

}  // namespace warpstack::sass
