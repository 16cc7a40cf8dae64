#include "trace/instructions/product_step.h"

#include <algorithm>
#include <cctype>

namespace warpstack::trace {

std::string product_opcode(const std::string& opcode, const ProductStep& step) {
  const std::string m = std::to_string(step.m);
  const std::string n = std::to_string(step.n);
  const std::string k = std::to_string(step.k);
  std::string types;
  for (const ProductElement element : {step.d, step.a, step.b}) {
    types.append(".").append(name_of(element));
  }
  if (!opcode.starts_with("UTC")) return opcode + ".m" + m + "n" + n + "k" + k + types;
  std::ranges::transform(types, types.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return opcode + "." + m + "x" + n + "x" + k + types;
}

}  // namespace warpstack::trace
