#include "node/core/guests.h"

#include <algorithm>

#include "node/core/limits.h"

namespace pando {

std::optional<BootId> Guests::Enter(const std::string& name, BootId boot) {
  if (Heard(boot) && guests_[boot].name == name) return std::nullopt;
  std::optional<BootId> over;
  if (const auto same = by_name_.find(name); same != by_name_.end()) {
    over = same->second;
  } else if (guests_.contains(boot)) {
    over = boot;
  } else if (guests_.size() >= limits::kGuests) {
    over = std::min_element(guests_.begin(), guests_.end(), [](const auto& a, const auto& b) {
             return a.second.heard < b.second.heard;
           })->first;
  }
  if (over) Leave(*over);
  Leave(boot);  // under another name
  guests_[boot] = {name, context_->now};
  by_name_[name] = boot;
  return over;
}

BootId Guests::Named(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? BootId() : it->second;
}

bool Guests::Leave(BootId boot) {
  const auto it = guests_.find(boot);
  if (it == guests_.end()) return false;
  by_name_.erase(it->second.name);
  guests_.erase(it);
  return true;
}

bool Guests::Heard(BootId boot) {
  const auto it = guests_.find(boot);
  if (it == guests_.end()) return false;
  it->second.heard = context_->now;
  return true;
}

}  // namespace pando
