#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/emitter.h"
#include "ptx/lower/families.h"

// Control flow and calls.

namespace warpstack::ptx::families {
namespace {

/// What a name stands for that no function of the module has.
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

}  // namespace

void bra(Emitter& e, Modifiers& modifiers) {
  modifiers.take("uni");
  if (e.operand(0).kind != Operand::Kind::label) throw Unsupported{"its target is not a label"};
  // The number of an instruction; connect_branches() makes it that of a step.
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
  const auto pieces = [&](const Operand& list) {
    std::vector<Call::Piece> result;
    for (const Operand& element : list.elements) {
      if (element.kind == Operand::Kind::sink) {
        result.push_back({});
        continue;
      }
      if (element.kind != Operand::Kind::variable) {
        throw Unsupported{"arguments that are not .param variables are not supported"};
      }
      result.push_back(e.variables().argument(element.name));
    }
    return result;
  };
  if (e.operand(0).kind == Operand::Kind::arguments) call.results = pieces(e.operand(next++));
  const Operand& callee = e.operand(next++);
  if (e.num_operands() > next && e.operand(next).kind == Operand::Kind::arguments) {
    call.arguments = pieces(e.operand(next));
  }
  if (callee.kind == Operand::Kind::reg) {
    call.address = e.in(callee, Type::u64);
    e.emit(Action::indirect_call, e.program().calls, call, {}, {call.address});
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
    if (text.parameters.size() != call.arguments.size() ||
        text.returns.size() != call.results.size()) {
      throw Unsupported{callee.name + " has another number of parameters"};
    }
  }
  e.emit(Action::call, e.program().calls, call, {}, {});
}

void ret(Emitter& e, Modifiers& modifiers) {
  modifiers.take("uni");
  e.emit(e.in_kernel() ? Action::exit : Action::function_return, {}, {});
}

void exit(Emitter& e, Modifiers&) { e.emit(Action::exit, {}, {}); }

void nanosleep(Emitter& e, Modifiers& modifiers) {
  modifiers.take("u32");
  const std::uint32_t ticks = e.in(0, Type::u32);
  e.emit(Action::sleep, {}, {ticks}).operands.source[0] = ticks;
}

void trap(Emitter& e, Modifiers&) { e.emit(Action::trap, {}, {}); }

}  // namespace warpstack::ptx::families
