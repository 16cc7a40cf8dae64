#include "ptx/text/module.h"

#include <algorithm>
#include <array>

namespace warpstack::ptx {
namespace {

constexpr std::array<std::string_view, 23> type_names = {
    "",    "pred", "b8",  "b16", "b32",   "b64",  "b128",   "u8",   "u16", "u32", "u64",  "s8",
    "s16", "s32",  "s64", "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f64", "f32x2"};
static_assert(type_names.size() == static_cast<std::size_t>(Type::f32x2) + 1);

template <typename Item>
const Item* named(const std::vector<Item>& items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &Item::name);
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

Type type_named(std::string_view word) {
  for (std::size_t i = 1; i < type_names.size(); ++i) {
    if (type_names[i] == word) return static_cast<Type>(i);
  }
  return Type::none;
}

std::string_view name_of(Type type) { return type_names[static_cast<std::size_t>(type)]; }

std::string_view name_of(Space space) {
  switch (space) {
    case Space::global:
      return "global";
    case Space::constant:
      return "const";
    case Space::shared:
      return "shared";
    case Space::local:
      return "local";
    case Space::param:
      return "param";
    case Space::none:
      break;
  }
  return "";
}

Space space_named(std::string_view word) {
  for (const Space space :
       {Space::global, Space::constant, Space::shared, Space::local, Space::param}) {
    if (name_of(space) == word) return space;
  }
  return Space::none;
}

std::string Instruction::full_opcode() const {
  std::string result = opcode;
  for (const std::string& modifier : modifiers) result += "." + modifier;
  return result;
}

bool Instruction::has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

bool same_signature(const Function& a, const Function& b) {
  const auto same = [](const std::vector<Variable>& x, const std::vector<Variable>& y) {
    return std::ranges::equal(x, y, [](const Variable& one, const Variable& other) {
      return one.space == other.space && one.size == other.size;
    });
  };
  return a.is_entry == b.is_entry && same(a.returns, b.returns) && same(a.parameters, b.parameters);
}

const Function* Module::function(std::string_view name) const { return named(functions, name); }

const Variable* Module::variable(std::string_view name) const { return named(variables, name); }

std::uint32_t Module::architecture() const {
  std::uint32_t number = 0;
  for (const char c : target) {
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return number;
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> result;
  for (const Function& function : functions) {
    if (function.is_entry) result.push_back(function.name);
  }
  return result;
}

}  // namespace warpstack::ptx
