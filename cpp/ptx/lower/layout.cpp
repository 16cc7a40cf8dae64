#include "ptx/lower/layout.h"

#include <algorithm>
#include <set>

#include "common/error.h"
#include "ptx/lower/draft.h"

namespace warpstack::ptx {
namespace {

/// Visits the variables that an instruction names anywhere in its operands.
template <class F>
void for_each_name(const Operand& operand, F f) {
  if (operand.kind == Operand::Kind::variable) f(operand.name);
  for (const Operand& element : operand.elements) for_each_name(element, f);
}
/// Local bytes and registers of the deepest chain of calls; marks recursion.
class CallDepth {
 public:
  CallDepth(const KernelProgram& program, bool& recursive)
      : program_(program), recursive_(recursive), state_(program.functions.size()) {}

  ThreadNeeds of(std::uint32_t function) {
    State& state = state_[function];
    if (state.done) return state.needs;
    if (state.open) {
      recursive_ = true;
      return {};
    }
    state.open = true;
    ThreadNeeds deepest;
    const auto visit = [&](std::uint32_t callee) {
      const ThreadNeeds needs = of(callee);
      deepest.local_bytes = std::max(deepest.local_bytes, needs.local_bytes);
      deepest.registers = std::max(deepest.registers, needs.registers);
    };
    for (const Step& step : program_.functions[function].steps) {
      if (step.action == Action::call) {
        const Call& call = program_.calls[step.detail];
        if (call.function != none) visit(call.function);
      } else if (step.action == Action::indirect_call) {
        for (std::uint32_t f = 1; f < program_.functions.size(); ++f) visit(f);
      }
    }
    state.needs = {deepest.local_bytes + program_.functions[function].local_bytes,
                   deepest.registers + program_.functions[function].pressure};
    state.open = false;
    state.done = true;
    return state.needs;
  }

 private:
  struct State {
    bool open = false;
    bool done = false;
    ThreadNeeds needs;
  };
  const KernelProgram& program_;
  bool& recursive_;
  std::vector<State> state_;
};

}  // namespace

void find_functions(const Module& module, const Function& kernel, KernelLayout& layout) {
  const auto add = [&](const Function& function) {
    const auto number = static_cast<std::uint32_t>(layout.functions.size());
    if (layout.function_numbers.try_emplace(function.name, number).second) {
      layout.functions.push_back(&function);
    }
  };
  add(kernel);
  const auto add_named = [&](const std::string& name) {
    const Function* function = module.function(name);
    if (function != nullptr && !function->is_declaration && !function->is_entry) add(*function);
  };
  for (std::size_t i = 0; i < layout.functions.size(); ++i) {
    bool indirect = false;
    for (const Instruction& instruction : layout.functions[i]->body) {
      for (const Operand& operand : instruction.operands) for_each_name(operand, add_named);
      if (instruction.opcode != "call") continue;
      for (const Operand& operand : instruction.operands) {
        indirect = indirect || operand.kind == Operand::Kind::reg;
      }
    }
    if (!indirect) continue;
    // Variables may hold tables of function addresses.
    for (const Variable& variable : module.variables) {
      for (const AddressInitializer& address : variable.addresses) add_named(address.symbol);
    }
  }
}

void reserve_stack(KernelLayout& layout) {
  for (const Function* function : layout.functions) {
    for (const Instruction& instruction : function->body) {
      if (instruction.opcode == "alloca" || instruction.opcode == "stacksave") {
        layout.stack_bytes = usual_stack_bytes;
      }
    }
  }
}

void place_shared(const Module& module, KernelLayout& layout, KernelProgram& program) {
  std::set<std::string> named;
  for (const Function* function : layout.functions) {
    for (const Instruction& instruction : function->body) {
      for (const Operand& operand : instruction.operands) {
        for_each_name(operand, [&](const std::string& name) { named.insert(name); });
      }
    }
  }
  std::uint64_t end = 0;
  std::uint64_t dynamic_alignment = 1;
  std::vector<std::pair<const Function*, std::string>> dynamic;
  const auto place = [&](const Function* owner, const Variable& variable) {
    if (variable.space != Space::shared) return;
    if (variable.size == 0) {
      dynamic.emplace_back(owner, variable.name);
      dynamic_alignment = std::max<std::uint64_t>(dynamic_alignment, variable.alignment);
      return;
    }
    end = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
    layout.shared[{owner, variable.name}] = end;
    program.shared_variables.push_back({variable.name, end, variable.size});
    // A launch refuses more than a block has. The bound keeps the sum of very many within 64 bits.
    end = std::min(end + variable.size, std::uint64_t{1} << 48);
  };
  for (const Variable& variable : module.variables) {
    if (named.contains(variable.name)) place(nullptr, variable);
  }
  for (const Function* function : layout.functions) {
    for (const Variable& variable : function->variables) place(function, variable);
  }
  program.shared_bytes = end;
  program.dynamic_shared_offset =
      (end + dynamic_alignment - 1) / dynamic_alignment * dynamic_alignment;
  program.uses_dynamic_shared = !dynamic.empty();
  for (const auto& name : dynamic) layout.shared[name] = program.dynamic_shared_offset;
}

ThreadNeeds needs_of_calls(KernelProgram& program) {
  return CallDepth(program, program.recursive).of(0);
}

void fail_local(const Module& module, const Function& function, std::uint32_t line,
                const std::string& what) {
  throw InputError(module.file_of(function) + ":" + std::to_string(line) + ": " +
                   (function.is_entry ? "kernel " : "function ") + function.name + ": " + what +
                   " bytes of local memory per thread, at most " + std::to_string(max_local_bytes) +
                   " are possible; keep large arrays in global memory");
}

}  // namespace warpstack::ptx
