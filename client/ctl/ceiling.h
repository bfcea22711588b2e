// What an infinite cache, empty at first and shared by all replicas, would hit on the same
// requests: the ceiling that a hit rate is measured against. Plain counting, under the node's own
// rules: only full blocks are kept, only a leading run of them counts, and one token of each prompt
// is always left to compute.
//
// One thread.
#ifndef PANDO_CLIENT_CTL_CEILING_H_
#define PANDO_CLIENT_CTL_CEILING_H_

#include <cstdint>
#include <span>
#include <unordered_set>

namespace pando::ctl {

class Ceiling {
 public:
  explicit Ceiling(uint32_t block_tokens) : block_tokens_(block_tokens) {}

  // Counts one request: its length and the chain of its full blocks (BlockChain). Returns how many
  // of its tokens hit; a real cache that hits more was not empty at the start.
  uint64_t Add(uint64_t tokens, std::span<const uint64_t> chain);

  uint64_t prompt_tokens() const { return prompt_tokens_; }
  uint64_t hit_tokens() const { return hit_tokens_; }
  uint64_t blocks() const { return seen_.size(); }

 private:
  uint32_t block_tokens_;
  std::unordered_set<uint64_t> seen_;  // blocks, each with all before it
  uint64_t prompt_tokens_ = 0;
  uint64_t hit_tokens_ = 0;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_CEILING_H_
