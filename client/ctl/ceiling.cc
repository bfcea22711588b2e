#include "client/ctl/ceiling.h"

namespace pando::ctl {

uint64_t Ceiling::Add(uint64_t tokens, std::span<const uint64_t> chain) {
  const uint64_t usable = tokens == 0 ? 0 : (tokens - 1) / block_tokens_;
  uint64_t hit = 0;
  while (hit < usable && hit < chain.size() && seen_.contains(chain[hit])) ++hit;
  seen_.insert(chain.begin() + static_cast<ptrdiff_t>(hit), chain.end());
  prompt_tokens_ += tokens;
  hit_tokens_ += hit * block_tokens_;
  return hit * block_tokens_;
}

}  // namespace pando::ctl
