#pragma once

namespace warpstack::cusolver {

/// What cusolverDnParams_t, syevjInfo_t and gesvdjInfo_t point to: settings of algorithms, of which
/// the stand-in has one each.
struct Parameters {};
struct JacobiEigen {};
struct JacobiSingular {};

}  // namespace warpstack::cusolver
