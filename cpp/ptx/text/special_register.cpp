#include "ptx/text/special_register.h"

#include <unordered_map>

namespace warpstack::ptx {
namespace {

const std::unordered_map<std::string_view, SpecialRegister> special_names = {
    {"%tid", {Special::tid, true}},
    {"%ntid", {Special::ntid, true}},
    {"%ctaid", {Special::ctaid, true}},
    {"%nctaid", {Special::nctaid, true}},
    {"%laneid", {Special::laneid}},
    {"%warpid", {Special::warpid}},
    {"%nwarpid", {Special::nwarpid}},
    {"%smid", {Special::smid}},
    {"%nsmid", {Special::nsmid}},
    {"%gridid", {Special::gridid}},
    {"%lanemask_eq", {Special::lanemask_eq}},
    {"%lanemask_le", {Special::lanemask_le}},
    {"%lanemask_lt", {Special::lanemask_lt}},
    {"%lanemask_ge", {Special::lanemask_ge}},
    {"%lanemask_gt", {Special::lanemask_gt}},
    {"%clock", {Special::clock}},
    {"%clock_hi", {Special::clock_hi}},
    {"%clock64", {Special::clock64}},
    {"%globaltimer", {Special::globaltimer}},
    {"%globaltimer_lo", {Special::globaltimer_lo}},
    {"%globaltimer_hi", {Special::globaltimer_hi}},
    {"%dynamic_smem_size", {Special::dynamic_smem_size}},
    {"%total_smem_size", {Special::total_smem_size}},
    {"%clusterid", {Special::clusterid, true}},
    {"%nclusterid", {Special::nclusterid, true}},
    {"%cluster_ctaid", {Special::cluster_ctaid, true}},
    {"%cluster_nctaid", {Special::cluster_nctaid, true}},
    {"%cluster_ctarank", {Special::cluster_ctarank}},
    {"%cluster_nctarank", {Special::cluster_nctarank}},
    {"%is_explicit_cluster", {Special::is_explicit_cluster}},
};

}  // namespace

std::optional<SpecialRegister> special_register_named(std::string_view name) {
  if (const auto found = special_names.find(name); found != special_names.end()) {
    return found->second;
  }
  // %envreg0 to %envreg31, %pm0 to %pm7.
  const bool is_environment = name.starts_with("%envreg");
  if (!is_environment && !name.starts_with("%pm")) return {};
  const std::string_view digits = name.substr(is_environment ? 7 : 3);
  if (digits.empty() || digits.size() > 2 || (digits.size() == 2 && digits[0] == '0')) return {};
  unsigned number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return {};
    number = number * 10 + static_cast<unsigned>(digit - '0');
  }
  if (number >= (is_environment ? 32u : 8u)) return {};
  return SpecialRegister{is_environment ? Special::envreg : Special::pm, false,
                         static_cast<std::uint8_t>(number)};
}

std::string_view name_of(Special special) {
  for (const auto& [name, entry] : special_names) {
    if (entry.special == special) return name.substr(1);
  }
  return special == Special::envreg ? "envreg" : "pm";
}

}  // namespace warpstack::ptx
