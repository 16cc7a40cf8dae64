#include <string>

#include "bindings/bindings.h"
#include "common/enum_names.h"
#include "gpu/choices.h"
#include "memory/system/memory_system.h"
#include "timing/base/timing_config.h"
#include "trace/changes/program_change.h"

namespace warpstack::bindings {
namespace {

template <NamedEnum Enum>
void add_names(py::dict& all) {
  py::list names;
  for (const std::string_view name : names_in<Enum>.names) names.append(std::string(name));
  all[py::str(std::string(names_in<Enum>.what))] = py::tuple(names);
}

}  // namespace

void bind_enums(py::module_& module) {
  py::dict all;
  add_names<gpu::Scheduler>(all);
  add_names<memory::WritePolicy>(all);
  add_names<memory::WriteMiss>(all);
  add_names<memory::Replacement>(all);
  add_names<memory::Allocation>(all);
  add_names<memory::Indexing>(all);
  add_names<memory::AccessOrder>(all);
  add_names<memory::BlockPolicy>(all);
  add_names<timing::L1Latency>(all);
  add_names<timing::LinesUnderWay>(all);
  add_names<timing::AtomicRequests>(all);
  add_names<timing::StoreAcknowledgement>(all);
  add_names<timing::KernelEnd>(all);
  add_names<trace::ProgramChange>(all);
  module.attr("ENUM_NAMES") = all;
}

}  // namespace warpstack::bindings
