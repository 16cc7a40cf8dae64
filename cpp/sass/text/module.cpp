#include "sass/text/module.h"

#include <algorithm>

namespace warpstack::sass {
namespace {

constexpr std::string_view bank_prefix = ".nv.constant";

}  // namespace

int Section::bank() const {
  if (!name.starts_with(bank_prefix) || name.size() == bank_prefix.size()) return -1;
  const char digit = name[bank_prefix.size()];
  return digit >= '0' && digit <= '9' ? digit - '0' : -1;
}

std::string_view Section::kernel() const {
  const std::size_t dot = name.find('.', bank_prefix.size());
  return bank() < 0 || dot == std::string::npos ? std::string_view{}
                                                : std::string_view(name).substr(dot + 1);
}

const Kernel* Module::kernel(std::string_view name) const {
  const auto found =
      std::ranges::find_if(kernels, [name](const Kernel& kernel) { return kernel.name == name; });
  return found == kernels.end() ? nullptr : &*found;
}

std::vector<std::string> Module::kernel_names() const {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

std::string Module::place_of(const Instruction& instruction) const {
  return sources.place(instruction.file, instruction.line);
}

}  // namespace warpstack::sass
