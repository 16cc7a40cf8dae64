#include "ptx/lower/variables.h"

#include <algorithm>

#include "ptx/lower/draft.h"
#include "ptx/lower/modifiers.h"

namespace warpstack::ptx {

void Variables::place(ProgramFunction& result) {
  // The parameter area of a function holds its results and parameters, then the `.param`
  // variables of the calls it makes.
  std::uint64_t end = 0;
  const auto place = [&](const Variable& variable) {
    end = placed(variable, end, "parameters of it and of its calls");
    parameters_[variable.name] = end;
    const Call::Piece piece{static_cast<std::uint32_t>(end),
                            static_cast<std::uint32_t>(variable.size)};
    end += piece.bytes;
    return piece;
  };
  if (is_kernel_) {
    const auto offsets = parameter_offsets(module_, function_);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      kernel_parameters_[function_.parameters[i].name] = offsets[i];
    }
  } else {
    for (const Variable& variable : function_.returns) result.results.push_back(place(variable));
    for (const Variable& variable : function_.parameters) {
      result.parameters.push_back(place(variable));
    }
  }
  if (!is_kernel_ && layout_.stack_bytes != 0) {
    result.parameters.push_back(place(stack_parameter()));
  }
  std::uint64_t local = is_kernel_ ? layout_.stack_bytes : 0;
  for (const Variable& variable : function_.variables) {
    if (variable.space == Space::param) {
      argument_bytes_[variable.name] = place(variable).bytes;
    } else if (variable.space == Space::local) {
      local = placed(variable, local, "local variables");
      local_[variable.name] = local;
      local += variable.size;
    }
  }
  declared_end_ = parameter_end_ = end;
  result.local_bytes = static_cast<std::uint32_t>(align(local, 16));
}

Variable Variables::stack_parameter() {
  Variable parameter;
  parameter.name = "the stack";  // no name of PTX
  parameter.type = Type::u64;
  parameter.alignment = parameter.size = 8;
  return parameter;
}

Call::Piece Variables::temporary_argument(const Variable& parameter, std::uint64_t& end) {
  const std::uint64_t begin =
      placed(parameter, std::max(end, declared_end_), "parameters of it and of its calls");
  end = begin + parameter.size;
  parameter_end_ = std::max(parameter_end_, end);
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(parameter.size)};
}

std::uint32_t Variables::parameter_bytes() const {
  return static_cast<std::uint32_t>(align(parameter_end_, 16));
}

std::uint64_t Variables::placed(const Variable& variable, std::uint64_t end,
                                const char* what) const {
  const std::uint64_t begin = align(end, variable.alignment);
  if (begin > max_local_bytes || variable.size > max_local_bytes - begin) {
    fail_local(module_, function_, variable.line,
               "the " + std::string(what) + " need " + std::to_string(begin + variable.size));
  }
  return begin;
}

Call::Piece Variables::argument(const std::string& name) const {
  const auto bytes = argument_bytes_.find(name);
  if (bytes == argument_bytes_.end()) {
    throw Unsupported{"arguments that are not .param variables are not supported"};
  }
  return {static_cast<std::uint32_t>(parameters_.at(name)), bytes->second};
}

bool Variables::is_shared(const std::string& name) const {
  return layout_.shared.contains({&function_, name}) || layout_.shared.contains({nullptr, name});
}

std::uint64_t Variables::static_address(const std::string& name) const {
  for (const Function* owner : {&function_, static_cast<const Function*>(nullptr)}) {
    const auto shared = layout_.shared.find({owner, name});
    if (shared != layout_.shared.end()) return shared->second;
  }
  if (const auto found = kernel_parameters_.find(name); found != kernel_parameters_.end()) {
    return found->second;
  }
  if (const auto found = symbols_.addresses.find(name); found != symbols_.addresses.end()) {
    return found->second;
  }
  if (const Function* kernel = module_.function(name); kernel != nullptr && kernel->is_entry) {
    return function_address(module_, *kernel);  // to launch it
  }
  if (const auto found = layout_.function_numbers.find(name);
      found != layout_.function_numbers.end()) {
    return function_address(module_, *layout_.functions[found->second]);
  }
  if (const Variable* variable = module_.variable(name);
      variable != nullptr && variable->is_extern()) {
    throw Unsupported{"no module of the program defines the .extern variable " + name};
  }
  throw Unsupported{"the address of " + name + " cannot be taken"};
}

}  // namespace warpstack::ptx
