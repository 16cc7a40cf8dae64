#pragma once

#include "sass/lower/lowerer.h"
#include "simt/program/lane_form.h"

namespace warpstack::sass {

/// Takes the modifier that names a comparison. Throws when there is none.
simt::Comparison comparison_in(Lowerer& to, Form& form);

/// Takes the modifier that says how a result and a predicate are combined: '&', '|' or '^'.
char combination_in(Lowerer& to, Form& form);

}  // namespace warpstack::sass
