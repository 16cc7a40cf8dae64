#pragma once

#include <string>
#include <vector>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// Makes one module of several, as nvlink does of relocatable device code: a name that another
/// module declares `.extern` is the one that is defined, of several `.weak` definitions the first
/// counts unless there is another one, `.common` variables become the largest of them, and names
/// that only their module sees are made different by a suffix `$2`, `$3`, … where they are equal.
/// What is declared and nowhere defined stays a declaration.
///
/// `file` is the name of the whole for messages; those that concern one function or variable name
/// its own module's file. Throws InputError, with both places, when a name is defined twice, or is
/// not the same kind of thing in both.
Module link(std::vector<Module> modules, std::string file);

}  // namespace warpstack::ptx
