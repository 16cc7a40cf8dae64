#pragma once

#include "stand_ins/cusparse/context.h"

namespace warpstack::cusparse {

/// What a cusparseMatDescr_t points to.
struct LegacyMatrix {
  int type = 0;  ///< CUSPARSE_MATRIX_TYPE_GENERAL
  int fill = fill_lower, diagonal = diagonal_stored, base = 0;
};

/// What a descriptor says, or the default if it is none.
inline LegacyMatrix legacy_or_default(const LegacyMatrix* matrix) {
  return library::Handles<LegacyMatrix>::has(const_cast<LegacyMatrix*>(matrix)) ? *matrix
                                                                                : LegacyMatrix{};
}

}  // namespace warpstack::cusparse
