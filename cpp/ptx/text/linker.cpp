#include "ptx/text/linker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/error.h"

namespace warpstack::ptx {
namespace {

/// The strongest definition of a name counts.
int strength(Linkage linkage) {
  switch (linkage) {
    case Linkage::external:
      return 0;
    case Linkage::weak:
      return 1;
    case Linkage::common:
      return 2;
    default:
      return 3;
  }
}

int strength(const Variable& variable) { return strength(variable.linkage); }
int strength(const Function& function) {
  return function.is_declaration ? 0 : strength(function.linkage);
}

class Linker {
 public:
  explicit Linker(std::string file) { linked_.file = std::move(file); }

  Module run(std::vector<Module> modules) {
    for (const Module& module : modules) collect(module);
    std::vector<Renames> renames;
    for (Module& module : modules) renames.push_back(choose_names(module));
    for (std::size_t i = 0; i < modules.size(); ++i) {
      renames[i].insert(aliases_.begin(), aliases_.end());
      add(std::move(modules[i]), renames[i]);
    }
    return std::move(linked_);
  }

 private:
  using Renames = std::unordered_map<std::string, std::string>;

  /// Notes the names that other modules see, and those that they see under another name.
  void collect(const Module& module) {
    const auto note = [this](const auto& items) {
      for (const auto& item : items) {
        all_names_.insert(item.name);
        if (item.linkage != Linkage::local) taken_.insert(item.name);
      }
    };
    note(module.variables);
    note(module.functions);
  }

  Renames choose_names(Module& module) {
    Renames renames;
    for (Variable& variable : module.variables) choose_name(variable, renames);
    for (Function& function : module.functions) choose_name(function, renames);
    for (const auto& [alias, target] : module.aliases) {
      const auto found = renames.find(target);
      aliases_.try_emplace(alias, found == renames.end() ? target : found->second);
    }
    return renames;
  }

  void add(Module module, const Renames& renames) {
    const auto object = static_cast<std::uint32_t>(linked_.objects.size());
    linked_.objects.push_back(module.file);
    linked_.version = std::max(linked_.version, module.version);
    linked_.address_size = module.address_size;
    if (module.architecture() > linked_.architecture()) linked_.target = module.target;
    const auto first_file = static_cast<std::uint32_t>(linked_.sources.files.size());
    const auto first_call = static_cast<std::uint32_t>(linked_.sources.calls.size());
    std::ranges::move(module.sources.files, std::back_inserter(linked_.sources.files));
    for (trace::InlinedCall& call : module.sources.calls) {
      if (call.file != 0) call.file += first_file;
      if (call.caller != 0) call.caller += first_call;
      linked_.sources.calls.push_back(std::move(call));
    }

    for (Variable& variable : module.variables) {
      variable.object = object;
      rename(variable.addresses, renames);
      merge(std::move(variable), linked_.variables, false);
    }
    for (Function& function : module.functions) {
      function.object = object;
      if (function.is_declaration && aliases_.contains(function.name)) continue;
      adapt(function, renames, first_file, first_call);
      merge(std::move(function), linked_.functions, true);
    }
  }

  template <class Item>
  void choose_name(Item& item, Renames& renames) {
    if (item.linkage != Linkage::local || taken_.insert(item.name).second) return;
    std::string name;
    for (std::uint32_t suffix = 2; name.empty() || !all_names_.insert(name).second; ++suffix) {
      name = item.name + "$" + std::to_string(suffix);
    }
    taken_.insert(name);
    renames[item.name] = name;
    item.name = std::move(name);
  }

  static void rename(std::string& name, const Renames& renames) {
    if (const auto found = renames.find(name); found != renames.end()) name = found->second;
  }
  static void rename(std::vector<AddressInitializer>& addresses, const Renames& renames) {
    for (AddressInitializer& address : addresses) rename(address.symbol, renames);
  }
  static void rename(std::vector<Operand>& operands, const Renames& renames) {
    for (Operand& operand : operands) {
      if (operand.kind == Operand::Kind::variable) rename(operand.name, renames);
      rename(operand.elements, renames);
    }
  }

  /// Changes names and files in a function's body to those of the linked module.
  static void adapt(Function& function, Renames renames, std::uint32_t first_file,
                    std::uint32_t first_call) {
    for (const auto* own : {&function.variables, &function.parameters, &function.returns}) {
      for (const Variable& variable : *own) renames.erase(variable.name);  // it hides the outer one
    }
    for (Instruction& instruction : function.body) {
      rename(instruction.operands, renames);
      if (instruction.source.file != 0) instruction.source.file += first_file;
      if (instruction.source.inlined_at != 0) instruction.source.inlined_at += first_call;
    }
    for (TargetList& list : function.target_lists) {
      for (std::string& name : list.functions) rename(name, renames);
    }
    for (Variable& variable : function.variables) rename(variable.addresses, renames);
  }

  /// Adds a function or variable, or merges it with the one of the same name.
  template <class Item>
  void merge(Item item, std::vector<Item>& items, bool is_function) {
    const auto [place, is_new] =
        places_.try_emplace(item.name, Place{is_function, items.size(), item.object, item.line});
    if (is_new) {
      items.push_back(std::move(item));
      return;
    }
    if (place->second.is_function != is_function) {
      fail(item, place->second.object, place->second.line,
           is_function ? "is a function, and a variable" : "is a variable, and a function");
    }
    Item& first = items[place->second.index];
    check_same(first, item);
    const int before = strength(first);
    const int now = strength(item);
    const bool both_count = before == strength(Linkage::visible) && now == before;
    if (both_count) fail(item, first.object, first.line, "is defined here, and");
    if (is_larger(item, first) ? now >= before : now > before) first = std::move(item);
  }

  /// Of common variables and declarations with one name, the larger counts.
  static bool is_larger(const Variable& a, const Variable& b) {
    return a.linkage == b.linkage && a.linkage != Linkage::weak &&
           std::pair(a.size, a.alignment) > std::pair(b.size, b.alignment);
  }
  static bool is_larger(const Function&, const Function&) { return false; }

  void check_same(const Variable& first, const Variable& second) const {
    if (first.space != second.space || first.opaque != second.opaque) {
      fail(second, first.object, first.line, "has another state space than");
    }
    const bool fixed = first.linkage != Linkage::common && second.linkage != Linkage::common &&
                       first.size != 0 && second.size != 0;
    if (fixed && first.size != second.size) {
      fail(second, first.object, first.line,
           "takes " + std::to_string(second.size) + " bytes, and " + std::to_string(first.size));
    }
  }
  void check_same(const Function& first, const Function& second) const {
    if (!same_signature(first, second)) {
      fail(second, first.object, first.line, "has another signature than");
    }
  }

  template <class Item>
  [[noreturn]] void fail(const Item& item, std::uint32_t other_object, std::uint32_t other_line,
                         const std::string& what) const {
    throw InputError(linked_.objects[item.object] + ":" + std::to_string(item.line) + ": '" +
                     item.name + "' " + what + " in " + linked_.objects[other_object] + ":" +
                     std::to_string(other_line) +
                     "; the modules cannot be linked, build the program again");
  }

  struct Place {
    bool is_function = false;
    std::size_t index = 0;
    std::uint32_t object = 0;
    std::uint32_t line = 0;
  };

  Module linked_;
  std::unordered_map<std::string, Place> places_;  ///< by name in the linked module
  std::unordered_set<std::string> taken_;          ///< names in the linked module
  std::unordered_set<std::string> all_names_;      ///< including replaced ones
  std::unordered_map<std::string, std::string> aliases_;
};

}  // namespace

Module link(std::vector<Module> modules, std::string file) {
  if (modules.size() == 1) return std::move(modules.front());
  return Linker(std::move(file)).run(std::move(modules));
}

}  // namespace warpstack::ptx
