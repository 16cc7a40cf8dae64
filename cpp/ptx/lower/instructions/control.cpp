#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"
#include "ptx/lower/register_arguments.h"

// Control flow and calls.

namespace warpstack::ptx::handlers {
namespace {

/// The runtime function of a name that no function of the module has.
RuntimeFunction runtime_function(const std::string& name) {
  if (const auto function = runtime_function_named(name)) return *function;
  if (name == "cudaDeviceSynchronize" || name == "__cudaDeviceSynchronizeDeprecationAvoidance") {
    throw Unsupported{
        "cudaDeviceSynchronize of kernels, which CUDA 12 has removed, is not supported; launch "
        "what follows into cudaStreamTailLaunch"};
  }
  if (name.starts_with("cuda") || name.starts_with("__cuda")) {
    throw Unsupported{name + " of CUDA's device runtime is not supported"};
  }
  throw Unsupported{"function " + name + " is not in the module"};
}

/// The results and parameters of a function that is called; null: not known.
struct Parameters {
  const std::vector<Variable>* returns = nullptr;
  const std::vector<Variable>* parameters = nullptr;
};

/// From the callee's text, or for an indirect call from its prototype or a target, which operand
/// `next` names.
Parameters parameters_of(const Emitter& e, const Operand& callee, std::size_t next) {
  std::string name = callee.name;
  if (callee.kind == Operand::Kind::reg) {
    if (e.num_operands() <= next) return {};
    const Operand& kind = e.operand(next);
    if (kind.kind == Operand::Kind::prototype) {
      const Prototype& prototype = e.function().prototypes[kind.index];
      return {&prototype.returns, &prototype.parameters};
    }
    if (kind.kind != Operand::Kind::targets) return {};
    const TargetList& targets = e.function().target_lists[kind.index];
    if (targets.functions.empty()) return {};
    name = targets.functions.front();
  }
  const auto found = e.layout().function_numbers.find(name);
  if (found == e.layout().function_numbers.end()) return {};
  const Function& text = *e.layout().functions[found->second];
  return {&text.returns, &text.parameters};
}

bool is_register(const Emitter& e, const Operand& argument) {
  return argument.kind != Operand::Kind::sink &&
         (argument.kind != Operand::Kind::variable || !e.variables().is_argument(argument.name));
}

/// The places of a call's results or arguments in the parameter area.
std::vector<Call::Piece> pieces(Emitter& e, const Operand& list,
                                const std::vector<Variable>* formal, std::uint64_t& end) {
  std::vector<Call::Piece> result;
  for (std::size_t i = 0; i < list.elements.size(); ++i) {
    const Operand& element = list.elements[i];
    if (element.kind == Operand::Kind::sink) {
      result.push_back({});
    } else if (!is_register(e, element)) {
      result.push_back(e.variables().argument(element.name));
    } else if (formal != nullptr && i < formal->size()) {
      result.push_back(e.variables().temporary_argument((*formal)[i], end));
    } else {
      throw Unsupported{"an argument in a register has no parameter that it is for"};
    }
  }
  return result;
}

/// Whether the callee is a function of the module, and not one of CUDA's own.
bool calls_text(const Emitter& e, const Operand& callee) {
  return callee.kind == Operand::Kind::reg || e.layout().function_numbers.contains(callee.name);
}

/// Moves the arguments or results that are not `.param` variables.
template <class Move>
void for_registers(Emitter& e, const Operand& list, const std::vector<Call::Piece>& places,
                   const std::vector<Variable>* formal, const Move& move) {
  for (std::size_t i = 0; i < list.elements.size(); ++i) {
    const Operand& element = list.elements[i];
    if (is_register(e, element)) move(e, places[i], element, (*formal)[i].type);
  }
}

}  // namespace

void bra(Emitter& e, Modifiers& modifiers) {
  modifiers.take("uni");
  if (e.operand(0).kind != Operand::Kind::label) throw Unsupported{"its target is not a label"};
  // This is the number of an instruction; connect_branches() replaces it by that of a step.
  e.emit(Action::branch, {}, {}).jump = e.operand(0).index;
}

void brx(Emitter& e, Modifiers& modifiers) {
  modifiers.take("idx");
  modifiers.take("uni");
  IndexedBranch branch;
  branch.index = e.in(0, Type::u32);
  if (e.operand(1).kind != Operand::Kind::targets) throw Unsupported{"its target list is missing"};
  branch.targets = e.function().target_lists[e.operand(1).index].labels;
  e.emit(Action::indexed_branch, e.program().indexed_branches, branch, {}, {branch.index});
}

void call(Emitter& e, Modifiers& modifiers) {
  modifiers.take("uni");
  Call call;
  std::size_t next = 0;
  const Operand no_list;
  const bool has_results = e.operand(0).kind == Operand::Kind::arguments;
  const Operand& results = has_results ? e.operand(next++) : no_list;
  const Operand& callee = e.operand(next++);
  const bool has_arguments =
      e.num_operands() > next && e.operand(next).kind == Operand::Kind::arguments;
  const Operand& arguments = has_arguments ? e.operand(next++) : no_list;
  const Parameters formal = parameters_of(e, callee, next);
  std::uint64_t end = 0;
  call.results = pieces(e, results, formal.returns, end);
  call.arguments = pieces(e, arguments, formal.parameters, end);
  for_registers(e, arguments, call.arguments, formal.parameters, store_to_piece);
  if (e.layout().stack_bytes != 0 && calls_text(e, callee)) {
    call.arguments.push_back(e.variables().temporary_argument(Variables::stack_parameter(), end));
    store_value(e, call.arguments.back(), e.stack_top(), 8);
  }
  if (callee.kind == Operand::Kind::reg) {
    call.address = e.in(callee, Type::u64);
    e.emit(Action::indirect_call, e.program().calls, call, {}, {call.address});
    e.set_row_step();
    for_registers(e, results, call.results, formal.returns, load_from_piece);
    return;
  }
  static constexpr std::pair<std::string_view, Call::BuiltIn> built_in[] = {
      {"vprintf", Call::BuiltIn::print},
      {"__assertfail", Call::BuiltIn::assert_fail},
      {"malloc", Call::BuiltIn::allocate},
      {"free", Call::BuiltIn::release}};
  for (const auto& [name, kind] : built_in) {
    if (callee.name == name) call.built_in = kind;
  }
  const auto found = e.layout().function_numbers.find(callee.name);
  if (call.built_in == Call::BuiltIn::none && found == e.layout().function_numbers.end()) {
    call.runtime_function = runtime_function(callee.name);
    call.built_in = Call::BuiltIn::runtime;
  }
  if (call.built_in == Call::BuiltIn::none) {
    call.function = found->second;
    const Function& text = *e.layout().functions[call.function];
    if (text.parameters.size() != arguments.elements.size() ||
        text.returns.size() != call.results.size()) {
      throw Unsupported{callee.name + " has another number of parameters"};
    }
  }
  e.emit(Action::call, e.program().calls, call, {}, {});
  e.set_row_step();
  for_registers(e, results, call.results, formal.returns, load_from_piece);
}

void ret(Emitter& e, Modifiers& modifiers) {
  modifiers.take("uni");
  e.leave_function();
  e.emit(e.in_kernel() ? Action::exit : Action::function_return, {}, {});
}

void exit(Emitter& e, Modifiers&) { e.emit(Action::exit, {}, {}); }

void nanosleep(Emitter& e, Modifiers& modifiers) {
  modifiers.take("u32");
  const std::uint32_t ticks = e.in(0, Type::u32);
  e.emit(Action::sleep, {}, {ticks}).operands.source[0] = ticks;
}

void trap(Emitter& e, Modifiers&) { e.emit(Action::trap, {}, {}); }

}  // namespace warpstack::ptx::handlers
