#include "bindings/bindings.h"
#include "trace/columns/issued_block.h"

namespace warpstack::bindings {

void bind_blocks(py::module_& module) {
  module.def(
      "append_block",
      [](trace::TraceBuilder& builder, std::uint64_t linear_index,
         const Contiguous<std::uint32_t>& warp, const Contiguous<std::uint32_t>& row,
         const Contiguous<std::uint32_t>& mask, const Contiguous<std::uint32_t>& access,
         const Contiguous<std::uint64_t>& addresses) {
        append_block(
            builder, linear_index,
            {span_of(warp), span_of(row), span_of(mask), span_of(access), span_of(addresses)});
      },
      py::arg("builder"), py::arg("linear_index"), py::arg("warp"), py::arg("row"), py::arg("mask"),
      py::arg("access"), py::arg("addresses"));
}

}  // namespace warpstack::bindings
