#pragma once

#include <string>
#include <vector>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// Links several modules into one, as nvlink does with relocatable device code. `.extern`
/// declarations refer to the definition in another module. Of several `.weak` definitions the first
/// counts, unless there is one that is not weak. The largest of `.common` variables counts. Equal
/// names that only their module sees get a suffix `$2`, `$3`, … A name that is declared and nowhere
/// defined stays a declaration.
///
/// `file` names the whole in messages; messages about one function or variable name its module's
/// file. Throws InputError, with both places, when a name is defined twice, or is not the same kind
/// of thing in both.
Module link(std::vector<Module> modules, std::string file);

}  // namespace warpstack::ptx
